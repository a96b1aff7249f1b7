//! What a change of a run means for its session and for the parent session.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ChildResult, ExecutionMode, NO_MATCH, Run, RunKind, RunStatus};
use crate::state::agent::Demands;
use crate::state::apply::Absent;
use crate::state::event::{Event, NewTask};
use crate::state::id::{Chance, SessionId, TaskId};
use crate::state::session::{Affinity, Asked, Session};
use crate::state::stored::Replaced;
use crate::state::task::{DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Task, TaskStatus};
use crate::state::time::{SECOND, Timestamp};
use crate::state::{Ordinal, Savepoint, State, Undo};

/// Bytes of a child's output, and of its error, that are handed on.
const OUTPUT_SHOWN: usize = 8 << 10;
/// Largest data that is handed on, in bytes of JSON.
const DATA_SHOWN: usize = 8 << 10;
/// Child results that a busy parent gets in full; of further ones it gets only the status.
const RESULTS_SHOWN: usize = 50;

const CALLED_BACK: &str = "Runs that this session had started have ended; `results` says what \
                           they came to. Go on from there.";

impl Run {
    /// The run as a new task, for the event that creates it.
    pub fn asked(self, id: TaskId, prompt: String, demands: Demands) -> NewTask {
        NewTask {
            id,
            title: None,
            description: prompt,
            priority: DEFAULT_PRIORITY,
            dependencies: Vec::new(),
            context: None,
            path: None,
            parent: None,
            planned: None,
            status: None,
            demands,
            tags: Vec::new(),
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            not_before: None,
            timeout_seconds: None,
            silent_minutes: None,
            estimated_minutes: None,
            review: None,
            run: Some(Box::new(self)),
        }
    }
}

impl State {
    /// Updates the sessions of all runs changed since `since`.
    pub(in crate::state) fn follow_runs(
        &mut self,
        since: Savepoint,
        at: Timestamp,
    ) -> Result<(), Absent> {
        let mut changed: BTreeMap<Ordinal, Option<Arc<Task>>> = BTreeMap::new();
        for undo in &self.undo[since.0..] {
            if let Undo::Record(Replaced::Task(ordinal, old)) = undo
                && self.records.tasks.get(*ordinal).is_some_and(|task| task.run.is_some())
            {
                changed.entry(*ordinal).or_insert_with(|| old.clone());
            }
        }
        for (ordinal, old) in changed {
            let Some(task) = self.records.tasks.get(ordinal).cloned() else { continue };
            let Some(run) = task.run.as_deref() else { continue };
            let before = old.as_ref().map(|task| task.status);
            if before.is_some_and(|before| before != TaskStatus::Available)
                && task.status == TaskStatus::Available
            {
                self.edit_run(&task.id, |run| {
                    run.no_match_until = Some(at + i64::from(run.no_match_seconds) * SECOND)
                })?;
            }
            if !run.callback {
                self.note_asked(run, &task);
            }
            let begins =
                task.status == TaskStatus::InProgress && before != Some(TaskStatus::InProgress);
            let is_over =
                !task.status.is_unfinished() && before.is_some_and(TaskStatus::is_unfinished);
            if begins || is_over && task.status == TaskStatus::Done {
                self.bind(run, &task);
            }
            if is_over && run.execution_mode == ExecutionMode::AsyncCallback {
                self.call_back(run, &task, at);
            }
            if is_over && task.status != TaskStatus::Done && !task.has_begun() {
                self.take_results_back(run, &task)?;
            }
        }
        Ok(())
    }

    pub(in crate::state) fn edit_run(
        &mut self,
        id: &TaskId,
        edit: impl FnOnce(&mut Run),
    ) -> Result<(), Absent> {
        self.edit_task(id, |task| task.run.as_deref_mut().map_or((), edit))
    }

    fn edit_session(&mut self, id: &SessionId, edit: impl FnOnce(&mut Session)) {
        if let Some(session) = self.session(id) {
            let mut session = Session::clone(session);
            edit(&mut session);
            self.put_session(session);
        }
    }

    /// Binds the session to the place where its first run is worked on, or where a session that
    /// starts again is.
    fn bind(&mut self, run: &Run, task: &Task) {
        let agent = task.claimed_by.as_ref().and_then(|id| self.agent(id));
        let Some(affinity) = agent.map(|agent| Affinity::of(&agent.properties)) else { return };
        let is_bound =
            self.session(&run.session_id).is_some_and(|session| !session.affinity.is_empty());
        let is_first = run.kind == RunKind::StartSession || !is_bound;
        if is_first
            && self.session(&run.session_id).is_some_and(|session| session.affinity != affinity)
        {
            self.edit_session(&run.session_id, |session| session.affinity = affinity);
        }
    }

    /// Notes what the newest run that somebody created asks for, as the model for runs that the
    /// board creates.
    fn note_asked(&mut self, run: &Run, task: &Task) {
        let Some(session) = self.session(&run.session_id) else { return };
        let asked = Asked::of(task);
        if session.last_run.as_ref() == Some(&task.id) && session.asked.as_deref() != Some(&asked) {
            self.edit_session(&run.session_id, |session| session.asked = Some(Box::new(asked)));
        }
    }

    /// Gives the run's results back to its session, because nobody was told them.
    fn take_results_back(&mut self, run: &Run, task: &Task) -> Result<(), Absent> {
        let mut results = run.results.clone();
        if results.is_empty() {
            return Ok(());
        }
        self.edit_run(&task.id, |run| run.results.clear())?;
        self.edit_session(&run.session_id, |session| {
            results.append(&mut session.results);
            session.results = results;
            session.waits = run.callback;
        });
        Ok(())
    }

    /// Keeps the run's result for the parent session.
    fn call_back(&mut self, run: &Run, task: &Task, at: Timestamp) {
        let parent =
            self.session(&run.session_id).and_then(|session| session.parent_session_id.clone());
        let Some(parent) = parent else { return };
        let kept = self.session(&parent).map_or(0, |session| session.results.len());
        let newest = self
            .runs_of(&parent)
            .next_back()
            .filter(|task| task.status.is_unfinished() && !task.has_begun());
        let told = newest.and_then(|task| task.run.as_ref()).map_or(0, |run| run.results.len());
        let result = child_result(run, task, at, kept + told < RESULTS_SHOWN);
        self.edit_session(&parent, |session| {
            session.results.push(result);
            session.waits = false;
        });
    }

    /// Creates the run of an event, with the results that its session has kept for it.
    pub(in crate::state) fn begin_run(
        &mut self,
        new: &NewTask,
        session: Option<&Session>,
        mut task: Task,
        at: Timestamp,
    ) -> Result<(), Absent> {
        let Some(run) = new.run.as_deref() else {
            return Err(Absent(format!("what makes {} a run", new.id)));
        };
        if let Some(session) = session {
            self.put_session(Session { created_at: at, ..session.clone() });
        }
        let id = &run.session_id;
        let session = self.session(id).ok_or_else(|| Absent(format!("session {id}")))?;
        let mut session = Session::clone(session);
        session.last_run = Some(task.id.clone());
        session.execution_mode = run.execution_mode;
        session.runs += 1;
        session.waits = false;
        let results = std::mem::take(&mut session.results);
        self.put_session(session);
        let no_match_until = Some(at + i64::from(run.no_match_seconds) * SECOND);
        task.run = Some(Box::new(Run { results, no_match_until, ..run.clone() }));
        self.number_above_spent(&mut task);
        let ordinal = self.take_ordinal();
        self.put(ordinal, Some(Arc::new(task)));
        Ok(())
    }

    /// Hands the results that came since the run was created to the pending run.
    pub(in crate::state) fn tell_run(&mut self, id: &TaskId) -> Result<(), Absent> {
        let run = self.task(id).and_then(|task| task.run.as_deref());
        let session = run.ok_or_else(|| Absent(format!("run {id}")))?.session_id.clone();
        let mut results = Vec::new();
        self.edit_session(&session, |session| results = std::mem::take(&mut session.results));
        self.edit_run(id, |run| run.results.append(&mut results))
    }

    /// Moves the end of the wait for a runner: it counts only time in which agents could act.
    pub(in crate::state) fn step_runs(&mut self, gap_millis: i64) -> Result<(), Absent> {
        let pending: Vec<_> = self
            .runs()
            .pending_runs()
            .filter_map(|ordinal| self.records.tasks.get(ordinal))
            .collect();
        let pending: Vec<_> = pending.into_iter().map(|task| task.id.clone()).collect();
        for id in pending {
            self.edit_run(&id, |run| {
                run.no_match_until = run.no_match_until.map(|until| until + gap_millis)
            })?;
        }
        Ok(())
    }

    /// The next event that follows from the state; asked for until there is none. Sessions whose
    /// child runs have ended are resumed, unless they are busy, were stopped, or a resumption
    /// has failed already.
    pub fn follow_up(&self, seed: u64) -> Option<Event> {
        self.owed_sessions().find_map(|session| {
            if session.waits || self.session_status(session) == Some(RunStatus::Stopped) {
                return None;
            }
            let mut open =
                self.runs_of(&session.id).rev().filter(|task| task.status.is_unfinished());
            let Some(open) = open.next() else { return Some(self.resume(session, seed)) };
            let waits = open.status == TaskStatus::Available
                && open.run.as_ref().is_some_and(|run| run.callback);
            waits.then(|| Event::ResultsAdded { run_id: open.id.clone() })
        })
    }

    fn resume(&self, session: &Session, seed: u64) -> Event {
        let run = Run {
            session_id: session.id.clone(),
            kind: RunKind::ResumeSession,
            execution_mode: session.execution_mode,
            agent_name: session.agent_name.clone(),
            project_dir: session.project_dir.clone(),
            created_by: None,
            no_match_seconds: NO_MATCH,
            no_match_until: None,
            callback: true,
            results: Vec::new(),
        };
        let (demands, asked) = (session.demands(), session.asked.as_deref());
        let asked_for = run.asked(self.new_run_id(seed), CALLED_BACK.to_owned(), demands);
        let run = NewTask {
            priority: asked.map_or(asked_for.priority, |asked| asked.priority),
            timeout_seconds: asked.and_then(|asked| asked.timeout_seconds),
            ..asked_for
        };
        Event::RunCreated { run: Box::new(run), session: None }
    }

    /// A run id that is not in use.
    pub fn new_run_id(&self, seed: u64) -> TaskId {
        let mut chance = Chance::new(seed);
        loop {
            let id = TaskId::trusted(format!("run-{}", chance.base32(8)));
            if self.status_of(&id).is_none() {
                return id;
            }
        }
    }
}

/// The part of a text that is handed on.
fn beginning(text: &str) -> &str {
    let end = (0..=OUTPUT_SHOWN.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

fn child_result(run: &Run, task: &Task, at: Timestamp, is_shown: bool) -> ChildResult {
    let result = task.result.as_ref();
    let output = result.and_then(|result| result.output.as_deref());
    let shown = output.filter(|_| is_shown).map(beginning);
    let error = result.and_then(|result| result.error.as_deref());
    let told = error.filter(|_| is_shown).map(beginning);
    let data = result.and_then(|result| result.data.as_ref());
    let handed = data.filter(|data| is_shown && data.to_string().len() <= DATA_SHOWN);
    ChildResult {
        run_id: task.id.clone(),
        session_id: run.session_id.clone(),
        agent_name: run.agent_name.clone(),
        status: RunStatus::of(task),
        output: shown.map(str::to_owned),
        error: told.map(str::to_owned),
        data: handed.cloned(),
        shortened: shown.map(str::len) != output.map(str::len)
            || told.map(str::len) != error.map(str::len)
            || handed.is_some() != data.is_some(),
        ended_at: at,
    }
}
