use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::plan;
use crate::state::brought::Counts;
use crate::state::event::{Event, NewTask, PlanChange, Replanned, Reworded, TEXT};
use crate::state::hierarchy;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::plan::{
    Given, Import, KeptText, LineEnds, Plan, Problem, Remark, Skipped, Stated, one_line,
};
use crate::state::refusal::Refusal;
use crate::state::task::TaskStatus;
use crate::state::{Created, State};

pub struct ImportPlan;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// The whole plan: Markdown with headings and checklists, or JSON
    pub text: PlanText,
    /// File that the plan comes from: a plan is known by it
    pub source: Option<String>,
    /// Name to know the plan by instead
    pub name: Option<String>,
    /// Name of the plan that this one takes the place of
    pub replace: Option<String>,
    /// Headings that count, such as Phase 1 and Phase 2, need not wait for each other
    pub parallel: Option<bool>,
    /// Entries of plain lists are tasks wherever they stand; false: no line that is not read is
    /// work. Kept for later versions
    pub lists: Option<bool>,
    /// Files of other plans that are no longer there: this one may be such a plan, moved
    #[serde(default)]
    pub gone: Vec<String>,
    /// Report what would change, and change nothing
    #[serde(default)]
    pub dry_run: bool,
    /// Refuse unless this is the board's current version: first 6 or more digits of its sha256
    pub prev_sha256: Option<String>,
    /// TASK=PATH: the item at PATH is the done TASK in other words
    #[serde(default)]
    pub carry: Vec<String>,
    /// Set from the text before it is cleaned.
    #[serde(default)]
    #[schemars(skip)]
    #[doc(hidden)]
    pub line_ends: Vec<LineEnds>,
}

/// The plan's text, parsed when the call comes in, so that under the board's lock only the
/// comparison is left.
#[derive(Clone, Deserialize, Serialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub struct PlanText {
    text: String,
    plan: Result<Plan, Vec<Problem>>,
}

impl From<String> for PlanText {
    fn from(text: String) -> Self {
        Self { plan: plan::parse(&text), text }
    }
}

impl Default for PlanText {
    fn default() -> Self {
        String::new().into()
    }
}

impl From<PlanText> for String {
    fn from(plan: PlanText) -> Self {
        plan.text
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The board already has this version
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
    /// Name of the plan
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Names of the other plans of the board
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    pub sha256: String,
    /// First 12 digits of sha256, which name the version
    pub session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev_sha256: Option<String>,
    pub items: usize,
    /// Items that did not change
    pub kept: usize,
    pub added: Vec<Changed>,
    pub modified: Vec<Changed>,
    /// Items that had ended and are to be done again
    pub reopened: Vec<Changed>,
    pub renamed: Vec<Changed>,
    /// Items that the plan says are done
    pub completed: Vec<Changed>,
    /// Items that the plan calls off
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub called_off: Vec<Changed>,
    /// Items no longer in the plan
    pub obsolete: Vec<Changed>,
    /// Items no longer in the plan, or not in these words, whose agents keep them until their
    /// attempts end
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaving: Vec<Changed>,
    /// Open items that may be done ones in other words or in another place: `carry` says so
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reworded: Vec<Rewording>,
    /// Items no longer in the plan that were done before
    pub left_done: Vec<Changed>,
    /// Items done or called off according to the plan, but held by an agent: import again after
    /// they are released
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticked: Vec<Changed>,
    /// Lines that look like work and were not read as items
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// How many lines look like work and are in no item, not even in what describes one: `lists`
    /// as true makes the entries of lists tasks, and as false it says that none is work
    #[serde(skip_serializing_if = "is_zero")]
    pub unread: usize,
    /// How lines were read that do not say it in so many words
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// What was understood of the whole
    pub understood: Understood,
    /// What came beside tasks, from another board
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brought: Option<Counts>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What the text says, whatever the board had before.
#[derive(Serialize, JsonSchema)]
pub struct Understood {
    /// Items that are headings or made for their parts
    pub groups: usize,
    /// Items to be done by themselves or with their parts: entries, rows, and headings without
    /// parts
    pub items: usize,
    pub done: usize,
    /// Cancelled or obsolete
    pub called_off: usize,
    /// Items that wait for others
    pub waits: Vec<Waits>,
    /// Items that nothing keeps from being done
    pub ready: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct Waits {
    pub line: usize,
    pub title: String,
    /// Titles of the items that it waits for
    pub after: Vec<String>,
    /// True if their headings count one after the other
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub order: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Rewording {
    pub task: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    /// Task that is done
    pub done: TaskId,
    /// Its title
    pub was: String,
    /// Value of `carry` that makes the item the done task
    pub carry: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Changed {
    pub task: TaskId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    pub title: String,
    /// Previous title or path
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was: Option<String>,
    /// Agent that holds the task
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_by: Option<AgentId>,
}

impl Operation for ImportPlan {
    const NAME: &'static str = "import_plan";
    const DESCRIPTION: &'static str = "Leaders: make a plan's items tasks. Of a changed plan only the difference: done work \
         stays done in its own words, items in other words are open, removed ones become obsolete.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Optional;
    type Params = Params;
    type Reply = Reply;

    fn note_form(arguments: &mut Value) {
        let ends = arguments["text"].as_str().map(LineEnds::of).unwrap_or_default();
        if let Some(fields) = arguments.as_object_mut() {
            fields.remove("line_ends");
            if !ends.is_empty() {
                fields.insert("line_ends".to_owned(), json!(ends));
            }
        }
    }

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        call.leads(state, "import a plan")?;
        let import = params.import(state)?;
        let plan = &*params.plan(state, &import)?;
        check_version(params, state, &import)?;
        if state.has_plan(plan, &import) && params.carry.is_empty() {
            return Ok(Vec::new());
        }
        let mut event = event(plan, state, &import)?;
        if let Event::PlanImported { text, .. } = &mut event {
            *text = Some(params.kept())
                .filter(|_| plan.is_markdown() && is_text_read(state, call))
                .map(Box::new);
        }
        Ok(Some(event).filter(|_| !params.dry_run).into_iter().collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let imported = call.created.iter().find_map(|created| match created {
            Created::Plan(event) => Some(Event::clone(event)),
            _ => None,
        });
        let import = match &imported {
            Some(Event::PlanImported { plan, .. }) => Import::of(plan),
            _ => params.import(state)?,
        };
        let plan = &*params.plan(state, &import)?;
        let told = |event: Option<&Event>| told(params, plan, state, &import, event);
        match imported {
            Some(event) => Ok(told(Some(&event))),
            None if state.has_plan(plan, &import) && params.carry.is_empty() => Ok(told(None)),
            None => Ok(told(Some(&event(plan, state, &import)?))),
        }
    }
}

impl Params {
    fn kept(&self) -> KeptText {
        KeptText { text: self.text.text.clone(), line_ends: self.line_ends.clone() }
    }

    /// The plan, parsed again if what it does not mark are items of the board's plan. The result is
    /// the same before and after the event.
    fn plan(&self, state: &State, import: &Import) -> Result<Cow<'_, Plan>, Refusal> {
        let plan = self.read(&BTreeSet::new(), import.lists)?;
        let known = state.still_items(&plan, import);
        if known.is_empty() { Ok(plan) } else { self.read(&known, import.lists) }
    }

    fn read(&self, known: &BTreeSet<usize>, lists: bool) -> Result<Cow<'_, Plan>, Refusal> {
        let bad = |problems: &Vec<Problem>| Refusal::BadPlan { problems: problems.clone() };
        if known.is_empty() && !lists {
            return self.text.plan.as_ref().map(Cow::Borrowed).map_err(bad);
        }
        let plan = plan::parse_with(&self.text.text, known, lists);
        plan.map(Cow::Owned).map_err(|problems| bad(&problems))
    }

    fn import(&self, state: &State) -> Result<Import, Refusal> {
        let plan = &*self.read(&BTreeSet::new(), self.lists == Some(true))?;
        let source = self
            .source
            .as_deref()
            .map(|source| input::checked_text("source", &limit::PATH, source));
        let name = |given: &Option<String>| {
            let name =
                given.as_deref().map(|name| input::checked_text("name", &limit::PLAN_NAME, name));
            name.transpose()
        };
        let new_name = name(&self.name)?.map(|name| one_line(&name));
        limit::PLANS.check(self.gone.len())?;
        let given = Given {
            source: source.transpose()?,
            name: new_name,
            replace: name(&self.replace)?,
            gone: self.gone.clone(),
            parallel: self.parallel,
            lists: self.lists,
        };
        Ok(Import { carry: self.carried()?, ..state.import_of(plan, &given)? })
    }

    fn carried(&self) -> Result<Vec<(TaskId, String)>, Refusal> {
        let pair = |given: &String| {
            let (task, path) = given.split_once('=').ok_or_else(|| Refusal::BadCarry {
                given: given.chars().take(limit::ID.max).collect(),
            })?;
            Ok((TaskId::checked(task.trim())?, path.trim().to_owned()))
        };
        limit::CARRIED.check(self.carry.len())?;
        self.carry.iter().map(pair).collect()
    }
}

/// True if no living process is too old for the text of a plan, which is left out then.
fn is_text_read(state: &State, call: &Call) -> bool {
    state.board().schema_version >= TEXT || state.older(&(call.vitals.living)(), TEXT).is_empty()
}

fn check_version(params: &Params, state: &State, import: &Import) -> Result<(), Refusal> {
    let Some(given) = &params.prev_sha256 else { return Ok(()) };
    let current = state.base_of(import).map(|plan| plan.sha256.clone());
    let shortest = 6;
    if given.len() >= shortest
        && current.as_ref().is_some_and(|current| current.starts_with(given.as_str()))
    {
        return Ok(());
    }
    limit::ID.check_text(given)?;
    Err(Refusal::PlanMoved { given: given.clone(), current })
}

fn event(plan: &Plan, state: &State, import: &Import) -> Result<Event, Refusal> {
    let event = state.replan(plan, import).map_err(|problems| Refusal::BadPlan { problems })?;
    if let Event::PlanImported { created, brought, .. } = &event {
        brought.iter().try_for_each(|brought| state.check_room_for(brought))?;
        limit::TASKS.check(state.live_tasks() + created.len())?;
    }
    Ok(event)
}

/// Builds the reply. It is the same before and after the event, except that a removed task is
/// obsolete only after it.
fn told(
    params: &Params,
    plan: &Plan,
    state: &State,
    import: &Import,
    event: Option<&Event>,
) -> Reply {
    let current = state.base_of(import);
    let own = [import.name.as_deref(), import.base.as_deref()];
    let mut reply = Reply {
        success: true,
        dry_run: params.dry_run,
        unchanged: event.is_none(),
        plan: import.name.clone(),
        beside: state.plan_names().into_iter().filter(|name| !own.contains(&Some(name))).collect(),
        session: plan.sha256.get(..12).unwrap_or_default().to_owned(),
        sha256: plan.sha256.clone(),
        prev_sha256: current.and_then(|plan| plan.prev_sha256.clone()),
        items: plan.items.len(),
        kept: plan.items.len(),
        added: Vec::new(),
        modified: Vec::new(),
        reopened: Vec::new(),
        renamed: Vec::new(),
        completed: Vec::new(),
        called_off: Vec::new(),
        obsolete: Vec::new(),
        leaving: Vec::new(),
        reworded: Vec::new(),
        left_done: Vec::new(),
        ticked: ticked(state, import, event),
        skipped: plan.skipped.clone(),
        unread: if import.is_all_read { 0 } else { plan.unread },
        remarks: remarks(plan, state, import),
        understood: understood(plan, import.parallel),
        brought: None,
    };
    let Some(Event::PlanImported {
        plan: version,
        created,
        changed,
        removed,
        leaving,
        reworded,
        brought,
        ..
    }) = event
    else {
        return reply;
    };
    reply.brought = brought.as_ref().map(|brought| brought.counts());
    reply.prev_sha256.clone_from(&version.prev_sha256);
    reply.added = created
        .iter()
        .map(|new| Changed {
            task: new.id.clone(),
            path: new.path.clone(),
            title: new.title.clone().unwrap_or_default(),
            was: None,
            held_by: None,
        })
        .collect();
    for one in changed {
        let task = state.task(&one.task);
        let title = one.change.title.clone().or_else(|| Some(task?.headline().to_owned()));
        let list = match one.what {
            PlanChange::Modified => &mut reply.modified,
            PlanChange::Reopened => &mut reply.reopened,
            PlanChange::Renamed => &mut reply.renamed,
            PlanChange::Completed => &mut reply.completed,
            PlanChange::CalledOff => &mut reply.called_off,
            PlanChange::Moved => continue,
        };
        list.push(Changed {
            task: one.task.clone(),
            path: Some(one.path.clone()),
            title: title.unwrap_or_default(),
            was: one.was.clone(),
            held_by: task.and_then(|task| Some(task.open_attempt()?.agent.clone())),
        });
    }
    for id in removed.iter().chain(leaving) {
        let Some(task) = state.task(id) else { continue };
        let list = match task.status {
            _ if leaving.contains(id) => &mut reply.leaving,
            TaskStatus::Done => &mut reply.left_done,
            _ => &mut reply.obsolete,
        };
        list.push(Changed {
            task: id.clone(),
            path: task.path.clone(),
            title: task.headline().to_owned(),
            was: None,
            held_by: task.open_attempt().map(|open| open.agent.clone()),
        });
    }
    let new: HashMap<&TaskId, &NewTask> = created.iter().map(|new| (&new.id, new)).collect();
    reply.reworded = reworded
        .iter()
        .filter_map(|one| rewording(one, new.get(&one.now).copied(), state))
        .collect();
    let lists = [
        &reply.added,
        &reply.modified,
        &reply.reopened,
        &reply.renamed,
        &reply.completed,
        &reply.called_off,
    ];
    reply.kept = reply.items - lists.iter().map(|list| list.len()).sum::<usize>();
    for list in [
        &mut reply.added,
        &mut reply.modified,
        &mut reply.reopened,
        &mut reply.renamed,
        &mut reply.completed,
        &mut reply.called_off,
        &mut reply.leaving,
        &mut reply.obsolete,
        &mut reply.left_done,
        &mut reply.ticked,
    ] {
        list.sort_by_cached_key(|one| hierarchy::numbers(one.path.as_deref().unwrap_or_default()));
    }
    reply
}

/// `new` is the item's task, if the import makes one.
fn rewording(one: &Reworded, new: Option<&NewTask>, state: &State) -> Option<Rewording> {
    let now = || state.task(&one.now);
    let path = new.map_or_else(|| now()?.path.clone(), |new| new.path.clone());
    let title = new.map_or_else(|| Some(now()?.headline().to_owned()), |new| new.title.clone());
    let carry = format!("{}={}", one.done, path.as_deref().unwrap_or(one.now.as_str()));
    let was = state.task(&one.done)?.headline().to_owned();
    Some(Rewording {
        task: one.now.clone(),
        path,
        title: title?,
        done: one.done.clone(),
        was,
        carry,
    })
}

fn remarks(plan: &Plan, state: &State, import: &Import) -> Vec<Remark> {
    let mut remarks = plan.remarks.clone();
    remarks.extend(state.unknown_dependencies(plan, import));
    remarks.sort();
    remarks
}

fn understood(plan: &Plan, parallel: bool) -> Understood {
    let items = &plan.items;
    let of_parts = plan.of_parts();
    let follows = |number: usize| of_parts[number].is_some();
    let status = |number: usize| of_parts[number].unwrap_or(items[number].status);
    let parents: HashSet<usize> = items.iter().filter_map(|item| item.parent).collect();
    let is_group = |number: usize| items[number].is_group && parents.contains(&number);
    let keeps_open = |number: &usize| matches!(status(*number), Stated::Open | Stated::Failed);
    let kept_open: HashSet<usize> =
        (0..items.len()).filter(keeps_open).filter_map(|number| items[number].parent).collect();
    let counted: Vec<usize> = (0..items.len()).filter(|number| !is_group(*number)).collect();
    let mut before: Vec<Vec<usize>> = items.iter().map(|item| item.waits.clone()).collect();
    let order = if parallel { &[][..] } else { &plan.order };
    order.iter().for_each(|(later, earlier)| before[*later].push(*earlier));
    let ordered: HashSet<usize> = order.iter().map(|(later, _)| *later).collect();
    let mut waiting: Vec<bool> = Vec::with_capacity(items.len());
    for (number, item) in items.iter().enumerate() {
        let is_late = before[number].iter().any(|on| status(*on) == Stated::Open);
        waiting.push(is_late || item.parent.is_some_and(|parent| waiting[parent]));
    }
    let of = |wanted: fn(Stated) -> bool| {
        counted.iter().filter(|number| wanted(status(**number))).count()
    };
    let is_ready =
        |number: &usize| !follows(*number) && !waiting[*number] && !kept_open.contains(number);
    let ready = (0..items.len()).filter(is_ready);
    let waits = (0..items.len()).filter(|number| !before[*number].is_empty()).map(|number| Waits {
        line: items[number].line,
        title: items[number].title.clone(),
        after: before[number].iter().map(|on| items[*on].title.clone()).collect(),
        order: ordered.contains(&number),
    });
    Understood {
        groups: items.len() - counted.len(),
        items: counted.len(),
        done: of(|status| status == Stated::Done),
        called_off: of(|status| status.is_called_off()),
        waits: waits.collect(),
        ready: ready.filter(|number| status(*number) == Stated::Open).count(),
    }
}

/// Tasks that agents hold although the plan says they are done.
fn ticked(state: &State, import: &Import, event: Option<&Event>) -> Vec<Changed> {
    let (changed, removed): (HashMap<&TaskId, &Replanned>, &[TaskId]) = match event {
        Some(Event::PlanImported { changed, removed, .. }) => {
            (changed.iter().map(|one| (&one.task, one)).collect(), removed)
        }
        _ => Default::default(),
    };
    let held = state.tasks().filter_map(|task| Some((task, task.open_attempt()?)));
    let ticked = held.filter(|(task, _)| {
        let planned = changed.get(&task.id).map(|one| &one.planned).or(task.planned.as_deref());
        let is_own = changed.contains_key(&task.id) || task.plan_name() == import.base.as_deref();
        is_own && planned.is_some_and(|planned| planned.ticked) && !removed.contains(&task.id)
    });
    let told = ticked.map(|(task, open)| Changed {
        task: task.id.clone(),
        path: task.path.clone(),
        title: task.headline().to_owned(),
        was: None,
        held_by: Some(open.agent.clone()),
    });
    told.collect()
}
