//! Reads what a view shows, by the operations and in the words of the commands.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::There;
use crate::cli::print::Page as Printed;
use crate::cli::status::{Seen, notes};
use crate::cli::tasks::numbers;
use crate::cli::undo::{self, Preview};
use crate::cli::{diff, show, story, watch};
use crate::git::change::Diff;
use crate::ops::get_all_tasks::Brief;
use crate::ops::{
    ExportPlan, FindTasks, GetAgents, GetAllTasks, GetBoard, GetHistory, GetTask, ListPlans,
    Operation, find_tasks, get_agents, get_task,
};
use crate::participant::board_time;
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, MessageId, TaskId};
use crate::state::limit;
use crate::state::message::{Message, MessageKind};
use crate::state::task::{Named, Task, TaskStatus};
use crate::ui::{
    AgentRow, Candidate, Content, EventRow, Line, Page, Place, Subject, TaskRow, TaskSubject,
    Undoable,
};
use crate::view::{self, Board, Names, Numbers, Tone};

/// Rows of each list of the first screen.
const ROWS: usize = 200;
/// Events on their own view, and on the page of a task or an agent.
const EVENTS: usize = 200;
const OF_ONE: usize = 50;
/// Most tasks whose numbers are looked up for one page.
const NUMBERED: usize = 10;
/// Most pages of events among which a message is looked for.
const MESSAGE_PAGES: usize = 20;
/// Most tasks that one stands below in the graph.
const BELOW: usize = 5;

pub(super) struct Reader {
    there: Arc<There>,
    names: Names,
}

impl Reader {
    pub(super) fn new(there: Arc<There>) -> Self {
        Self { there, names: Names::default() }
    }

    pub(super) async fn read(&mut self, place: &Place) -> anyhow::Result<Content> {
        match place {
            Place::Board => self.board().await,
            Place::Tasks => self.tree().await,
            Place::Agents => self.agents().await,
            Place::Events => Ok(Content::Events(self.events(json!({}), EVENTS).await?)),
            Place::Plan => self.plan().await,
            Place::Graph => Ok(Content::Tasks(self.graph().await?)),
            Place::Task(id) => self.task(id).await,
            Place::Diff(id) => self.diff(id).await,
            Place::Agent(id) => self.agent(id).await,
            Place::Message(id) => self.message(id).await,
        }
    }

    async fn call<O: Operation>(&self, arguments: Value) -> anyhow::Result<Value> {
        self.there.board.call(O::NAME, arguments).await
    }

    /// All entries of a list, a page at a time.
    async fn all<O: Operation, T: DeserializeOwned>(
        &self,
        list: &str,
        mut query: Value,
    ) -> anyhow::Result<Vec<T>> {
        let mut all = Vec::new();
        query["limit"] = limit::PAGE.max.into();
        loop {
            let mut reply = self.call::<O>(query.clone()).await?;
            all.extend(Vec::<T>::deserialize(reply[list].take())?);
            match reply["next"].take() {
                Value::Null => return Ok(all),
                next => query["after"] = next,
            }
        }
    }

    fn page(&self) -> Printed {
        let session = &self.there.session;
        let page = Printed::new(true, board_time(session.dir())).in_utc(session.utc).unbounded();
        page.read_by(view::Reader::new(session.own_actors()))
    }

    async fn board(&self) -> anyhow::Result<Content> {
        let there = &self.there;
        let seen = Seen::of(&there.session, &there.board, None, Some(ROWS)).await?;
        let notes = notes::all(&self.page(), &seen, &there.session.wording.of_nobody());
        Ok(Content::Board(Box::new(seen.board), notes))
    }

    async fn tasks(&self) -> anyhow::Result<Vec<Brief>> {
        self.all::<GetAllTasks, _>("tasks", json!({"brief": true, "sort": "path"})).await
    }

    async fn tree(&self) -> anyhow::Result<Content> {
        let tasks = self.tasks().await?;
        let numbers = numbers(tasks.iter());
        let rows = tasks.iter().map(|task| self.row(task, None, &numbers));
        Ok(Content::Tasks(rows.collect()))
    }

    /// The task in a line; without a depth, where its path puts it.
    fn row(&self, task: &Brief, depth: Option<usize>, numbers: &Numbers) -> TaskRow {
        let standing = task.standing();
        let by_path = || task.path.as_ref().map_or(0, |path| path.matches('.').count());
        TaskRow {
            id: task.id.clone(),
            number: task.number,
            depth: depth.unwrap_or_else(by_path),
            path: task.path.clone(),
            title: task.title.clone(),
            status: task.status,
            standing: standing.words(|at| self.page().clock(at), numbers),
            tone: standing.tone(),
            agent: task.agent.clone(),
            priority: task.priority,
        }
    }

    /// What waits, below what it waits for. A task that waits for several stands below the first
    /// whole, and below a few others alone.
    async fn graph(&self) -> anyhow::Result<Vec<TaskRow>> {
        let tasks = self.tasks().await?;
        let numbers = numbers(tasks.iter());
        let by_id: HashMap<&TaskId, &Brief> = tasks.iter().map(|one| (&one.id, one)).collect();
        let mut behind: HashMap<&TaskId, Vec<&Brief>> = HashMap::new();
        for task in &tasks {
            let known = task.blocked_by.iter().filter(|by| by_id.contains_key(by));
            let shown = known.take(BELOW);
            shown.for_each(|by| behind.entry(by).or_default().push(task));
        }
        let is_first = |task: &&Brief| task.blocked_by.iter().all(|by| !by_id.contains_key(by));
        let firsts = tasks.iter().filter(|task| is_first(task) && behind.contains_key(&task.id));
        // Those in a circle wait for each other, and are behind no first one.
        let others = tasks.iter().filter(|task| behind.contains_key(&task.id));
        let mut rows = Vec::new();
        let mut done: HashSet<&TaskId> = HashSet::new();
        for first in firsts.chain(others) {
            if done.contains(&first.id) {
                continue;
            }
            let mut open = vec![(first, 0)];
            while let Some((task, depth)) = open.pop() {
                rows.push(self.row(task, Some(depth), &numbers));
                if done.insert(&task.id) {
                    let below = behind.get(&task.id).into_iter().flatten().rev();
                    open.extend(below.map(|one| (*one, depth + 1)));
                }
            }
        }
        Ok(rows)
    }

    async fn agents(&self) -> anyhow::Result<Content> {
        let (board, ended) = self.all_agents().await?;
        Ok(Content::Agents(Box::new(board), ended))
    }

    /// The agents to choose from, first those that are there.
    pub(super) async fn candidates(&self) -> anyhow::Result<Vec<Candidate>> {
        let (board, ended) = self.all_agents().await?;
        let ended = ended.iter().map(|agent| Candidate::ended(agent.id.as_str()));
        Ok(Candidate::there(&board).into_iter().chain(ended).collect())
    }

    /// The board for the agents that are there, and those whose sessions have ended.
    async fn all_agents(&self) -> anyhow::Result<(Board, Vec<AgentRow>)> {
        let reply = self.call::<GetBoard>(json!({"limit": limit::PAGE.max})).await?;
        let board = Board::deserialize(reply)?;
        let there: HashSet<&AgentId> = board.agents.rows.iter().map(|row| &row.id).collect();
        let all: Vec<get_agents::Item> = self.all::<GetAgents, _>("agents", json!({})).await?;
        let mut ended: Vec<_> = all
            .into_iter()
            .map(|item| item.agent)
            .filter(|agent| agent.id.as_str() != HUMAN && !there.contains(&agent.id))
            .map(|agent| AgentRow {
                id: agent.id,
                role: agent.role,
                last_sign: agent.last_heartbeat,
                completed: agent.tasks_completed,
                failed: agent.tasks_failed,
            })
            .collect();
        ended.sort_by_key(|agent| std::cmp::Reverse(agent.last_sign));
        Ok((board, ended))
    }

    /// What would be taken back of the command of this event, or of the last command.
    pub(super) async fn undoable(&self, event: Option<u64>) -> anyhow::Result<Undoable> {
        let board = &self.there.board;
        let seq = match event {
            Some(seq) => seq,
            None => undo::last_of(&self.there.session, board, None).await?,
        };
        let preview = Preview::of(board, seq).await?;
        let did = preview.events.iter().map(|event| {
            let told = preview.names.told(event);
            format!("{} {}", told.word, told.text)
        });
        let stays = preview.left.iter().map(|left| self.there.session.wording.in_commands(left));
        Ok(Undoable { seq: preview.seq, did: did.collect(), stays: stays.collect() })
    }

    /// The newest events, without those that say nothing of the work.
    async fn events(&mut self, mut query: Value, most: usize) -> anyhow::Result<Vec<EventRow>> {
        query["kinds"] = json!(story::kinds());
        query["limit"] = most.into();
        let mut reply = self.call::<GetHistory>(query).await?;
        let events = Vec::<Value>::deserialize(reply["events"].take())?;
        self.names.learn(&self.there.board, &events).await;
        let told = events.iter().flat_map(|event| {
            let mut page = self.page();
            watch::line::write(&mut page, event, &self.names);
            let (about, seq) = (about(event), event["seq"].as_u64());
            let rows = page.into_lines().into_iter();
            rows.map(move |line| EventRow { line, about: about.clone(), seq })
        });
        Ok(told.collect())
    }

    /// The plans as they stand, as Markdown.
    async fn plan(&self) -> anyhow::Result<Content> {
        let mut plans = self.call::<ListPlans>(json!({})).await?;
        let names = plans["plans"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let mut page = self.page();
        for plan in &names {
            let name = if names.len() > 1 { plan["name"].clone() } else { Value::Null };
            let reply = self.call::<ExportPlan>(json!({"plan": name})).await?;
            page.line(reply["markdown"].as_str().unwrap_or_default());
        }
        if names.is_empty() {
            let import = self.there.session.wording.command("plan import FILE");
            let tree = self.there.session.wording.command("tree");
            page.line(format_args!(
                "no plan was imported: {tree} shows the tasks and their parts, {import} makes tasks \
                 of a plan"
            ));
        }
        Ok(Content::Page(Box::new(Page { about: None, lines: page.into_lines() })))
    }

    async fn task(&mut self, id: &TaskId) -> anyhow::Result<Content> {
        let reply = match self.call::<GetTask>(json!({"task_id": id})).await {
            Ok(reply) => get_task::Reply::deserialize(reply)?,
            // It may have gone since it was seen.
            Err(error) => return Ok(alone(self.there.session.told(&error))),
        };
        let mut page = self.page();
        show::write(&mut page, &reply, &self.called(&reply.task.task.dependencies).await);
        page.line("\nlog");
        let mut lines = page.into_lines();
        let events = self.events(json!({"task_id": id}), OF_ONE).await?;
        lines.extend(events.into_iter().map(|event| event.line));
        let about = Some(subject(&reply.task.task));
        Ok(Content::Page(Box::new(Page { about, lines })))
    }

    /// What people call the tasks: their numbers.
    async fn called(&self, ids: &[TaskId]) -> HashMap<TaskId, String> {
        let asked: Vec<_> = ids.iter().take(NUMBERED).collect();
        let reply = self.call::<FindTasks>(json!({"references": asked})).await.unwrap_or_default();
        let tasks = find_tasks::Reply::deserialize(reply).map(|reply| reply.tasks);
        let tasks = tasks.unwrap_or_default().into_iter();
        tasks.filter_map(|task| Some((task.id, format!("#{}", task.number?)))).collect()
    }

    /// What git shows of the work on a task.
    async fn diff(&self, id: &TaskId) -> anyhow::Result<Content> {
        let reply = match self.call::<GetTask>(json!({"task_id": id})).await {
            Ok(reply) => get_task::Reply::deserialize(reply)?.task,
            Err(error) => return Ok(alone(self.there.session.told(&error))),
        };
        let about = Some(subject(&reply.task));
        let (named, root) = (Named::from(&reply.task), self.there.session.project_root());
        // Git may take its time.
        let asked = spawn_blocking(move || {
            let last = reply.attempts.last().map(|attempt| &**attempt);
            Diff::of(&reply.task, last, &root)
        });
        let mut page = self.page();
        match asked.await? {
            Diff::Change(change) => diff::write(&mut page, &named, &change),
            Diff::Nothing(why) => {
                let why = self.there.session.wording.in_commands(&why);
                page.line(format_args!("{named}: {why}"));
            }
        }
        let lines = page.into_lines().into_iter().map(toned).collect();
        Ok(Content::Page(Box::new(Page { about, lines })))
    }

    /// A message, from the event that brought it: reading the inbox would mark others as read.
    async fn message(&self, id: &MessageId) -> anyhow::Result<Content> {
        let mut query = json!({"kinds": ["message_sent"], "limit": limit::PAGE.max});
        for _ in 0..MESSAGE_PAGES {
            let mut reply = self.call::<GetHistory>(query.clone()).await?;
            let events = reply["events"].as_array().into_iter().flatten();
            let messages = events.filter_map(|event| Message::deserialize(&event["message"]).ok());
            if let Some(message) = messages.into_iter().find(|message| message.id == *id) {
                return Ok(written(&message, self.page()));
            }
            match reply["next"].take() {
                Value::Null => break,
                next => query["before_seq"] = next,
            }
        }
        Ok(alone(format!("message {id} was sent long ago; a answers, Esc goes back")))
    }

    async fn agent(&mut self, id: &AgentId) -> anyhow::Result<Content> {
        let all: Vec<get_agents::Item> = self.all::<GetAgents, _>("agents", json!({})).await?;
        let Some(item) = all.into_iter().find(|item| item.agent.id == *id) else {
            return Ok(alone(format!("no agent {id} any more")));
        };
        let reply = self.call::<GetBoard>(json!({"limit": limit::PAGE.max})).await?;
        let board = Board::deserialize(reply)?;
        let row = board.agents.rows.iter().find(|row| row.id == *id);
        let mut page = self.page();
        crate::cli::agents::write(&mut page, &item, row);
        page.line("\nlog");
        let mut lines = page.into_lines();
        let events = self.events(json!({"agent": id}), OF_ONE).await?;
        lines.extend(events.into_iter().map(|event| event.line));
        let task = row.and_then(|row| row.task.as_ref());
        let holds = task.map(|task| format!("{} {}", task.name(), task.title));
        let about = Subject::Agent { id: id.clone(), holds };
        Ok(Content::Page(Box::new(Page { about: Some(about), lines })))
    }
}

fn subject(task: &Task) -> Subject {
    Subject::Task(TaskSubject {
        id: task.id.clone(),
        name: task.number.map_or_else(|| task.id.to_string(), |number| format!("#{number}")),
        title: task.headline().to_owned(),
        status: task.status,
        priority: Some(task.priority),
        agent: task.claimed_by.clone(),
        attempt: Some(task.attempt),
    })
}

/// A line of a diff in the tone of what it says.
fn toned(line: Line) -> Line {
    let text: String = line.into_iter().map(|(_, text)| text).collect();
    let tone = match text.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Tone::Over,
        [b'+', ..] => Tone::Good,
        [b'-', ..] => Tone::Bad,
        [b'@', b'@', ..] => Tone::Waiting,
        _ => Tone::Plain,
    };
    vec![(tone, text)]
}

/// The message as it is read whole.
fn written(message: &Message, mut page: Printed) -> Content {
    let name = message.name();
    let is_question = message.kind == MessageKind::Request;
    let when = page.when(message.sent_at);
    page.marked(&name, Tone::Busy, format_args!("from {}, {when}", message.author()));
    page.field("about", message.task_id.as_ref().map(TaskId::as_str).unwrap_or_default());
    page.line(format_args!("\n{}\n", message.text));
    for (option, number) in message.options.iter().zip(1..) {
        page.line(format_args!("{number}  {option}"));
    }
    let about = Subject::Message {
        id: message.id.clone(),
        name,
        from: message.from.clone(),
        is_question,
        text: message.text.clone(),
        options: message.options.clone(),
    };
    Content::Page(Box::new(Page { about: Some(about), lines: page.into_lines() }))
}

fn alone(text: String) -> Content {
    let line: Line = vec![(Tone::Over, text)];
    Content::Page(Box::new(Page { about: None, lines: vec![line] }))
}

/// The task that an event is about, or else the agent.
fn about(event: &Value) -> Option<Subject> {
    let tasks = event["tasks"].as_array().and_then(|tasks| tasks.first());
    let first = tasks.map(|first| first.get("id").unwrap_or(first));
    let task = [event.get("task"), event.get("task_id"), first].into_iter().flatten();
    let task = task.filter_map(|id| TaskId::checked(id.as_str()?).ok()).next();
    let agent = || {
        let id = event["agent"].as_str().or(event["actor"].as_str())?;
        Some(Subject::Agent { id: AgentId::checked(id).ok()?, holds: None })
    };
    let named = |id: TaskId| {
        Subject::Task(TaskSubject {
            name: id.to_string(),
            id,
            title: String::new(),
            // What an event leads to is known on the task's page only.
            status: TaskStatus::Obsolete,
            priority: None,
            agent: None,
            attempt: None,
        })
    };
    task.map(named).or_else(agent)
}
