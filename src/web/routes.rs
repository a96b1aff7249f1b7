//! Which page is at an address, and what it is made of.

use axum::http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::pages::{self, Query};
use super::{Door, Failure, Page, Visit};
use crate::git::change::Diff;
use crate::ops::{FindTasks, GetBoard, GetHistory, GetMasterPlan, GetTask, ListSnapshots};
use crate::ops::{
    find_tasks, get_board, get_history, get_master_plan, get_task, list_snapshots, may_read,
};
use crate::participant::CallError;
use crate::state::State;
use crate::state::id::{AgentId, TaskId};
use crate::state::limit;
use crate::state::policy::Policy;
use crate::state::task::Task;
use crate::state::time::Timestamp;
use crate::view::{Board, Detail, Found, Kind, List, Look, Named, Profile, Timeline, Tree, latest};

/// Events of a page, and those that a task and an agent show.
const EVENTS: u32 = 100;
const EVENTS_OF_ONE: u32 = 40;

type Opened = Result<(Page, u64), Failure>;

/// The page at the address of the visit, and the event that it shows; without an address, the head
/// that all pages but the first have.
pub(super) async fn page(door: &Door, visit: &Visit) -> Opened {
    let (path, query) = visit.path.split_once('?').unwrap_or((&visit.path, ""));
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let words: Vec<_> = decoded.split('/').filter(|word| !word.is_empty()).collect();
    let query = Query::of(query);
    let reader = Reader { door, visit, query: &query };
    if path.is_empty() {
        return reader.head().await;
    }
    match words.as_slice() {
        [] => reader.first().await,
        ["agents"] => reader.agents().await,
        ["agents", name] => reader.agent(name).await,
        ["tasks"] => reader.tasks().await,
        ["tasks", name] => reader.task(name).await,
        ["tasks", name, "diff"] => reader.diff(name).await,
        ["graph"] => reader.graph().await,
        ["timeline"] => reader.timeline().await,
        ["events"] => reader.events().await,
        ["plan"] => reader.plan().await,
        ["files"] => reader.files().await,
        ["search"] => reader.search().await,
        ["discoveries"] => reader.discoveries().await,
        ["snapshots"] => reader.snapshots().await,
        ["keys"] => reader.plain(|board, _| pages::keys::page(board)).await,
        ["add"] => reader.plain(pages::add::page).await,
        _ => Err(gone("there is no such page")),
    }
}

fn gone(text: impl Into<String>) -> Failure {
    Failure { status: StatusCode::NOT_FOUND, text: text.into() }
}

struct Reader<'a> {
    door: &'a Door,
    visit: &'a Visit,
    query: &'a Query,
}

impl Reader<'_> {
    async fn first(&self) -> Opened {
        let rows = self.query.rows.unwrap_or(pages::board::ROWS);
        let asked = get_board::Params {
            scope: self.query.scope.clone(),
            filter: self.query.filter.clone(),
            ..rows_of(rows, pages::board::LATEST)
        };
        let board = self.door.ask::<GetBoard>(self.visit, asked).await?;
        Ok((pages::board::page(&board, self.query, self.visit), board.seq))
    }

    /// The board as the heads of the other pages show it.
    async fn board(&self, rows: u32) -> Result<Board, CallError> {
        self.door.ask::<GetBoard>(self.visit, rows_of(rows, 0)).await
    }

    /// What `read` makes of the state, in the visitor's turn.
    async fn survey<T, F>(&self, read: F) -> Result<T, CallError>
    where
        T: Send + 'static,
        F: FnOnce(&State, &Policy, Timestamp) -> T + Send + 'static,
    {
        self.door.handle.survey(self.visit.viewer(), read).await
    }

    async fn head(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        Ok((pages::head(&board), board.seq))
    }

    /// A page that shows nothing but its head and what never changes.
    async fn plain(&self, page: impl Fn(&Board, &Visit) -> Page) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        Ok((page(&board, self.visit), board.seq))
    }

    async fn agents(&self) -> Opened {
        let board = self.board(limit::PAGE.max.try_into().unwrap_or(u32::MAX)).await?;
        Ok((pages::agents::page(&board), board.seq))
    }

    async fn agent(&self, name: &str) -> Opened {
        let id = AgentId::checked(name).map_err(|refusal| gone(refusal.to_string()))?;
        let board = self.board(pages::board::ROWS).await?;
        let asked = get_history::Params { agent: Some(name.to_owned()), ..history(EVENTS_OF_ONE) };
        let (events, _) = self.history(asked).await?;
        let principal = self.visit.principal();
        let made = self.survey(move |state, policy, now| {
            let filter = Default::default();
            let look = Look { now, policy, scope: None, filter: &filter, rows: 0 };
            let mut profile = Profile::of(state, &id, &look)?;
            profile.messages.retain(|message| may_read(principal.as_deref(), message));
            Some((profile, latest(state, &events)))
        });
        let Some((profile, events)) = made.await? else {
            return Err(gone(format!("there is no agent {name}; see /agents")));
        };
        let seq = profile.seq;
        Ok((pages::agents::one(&board, &profile, &events, self.visit), seq))
    }

    async fn tasks(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let query = self.query.clone();
        let kind = query.is.as_deref().and_then(Kind::of_word).unwrap_or(Kind::All);
        let list = self.survey(move |state, _, now| {
            let after = query.after.and_then(|after| usize::try_from(after).ok());
            let (scope, after) = (query.scope.as_deref(), after.unwrap_or_default());
            List::of(state, kind, scope, &query.filter, after, now)
        });
        let list = list.await?;
        Ok((pages::list::page(&board, &list, self.query), list.seq))
    }

    async fn task(&self, name: &str) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let task = self.task_of(name).await?;
        let (id, principal) = (task.id.clone(), self.visit.principal());
        let asked = get_history::Params { task_id: Some(id.to_string()), ..history(EVENTS_OF_ONE) };
        let (events, _) = self.history(asked).await?;
        let made = self.survey(move |state, _, now| {
            let mut detail = Detail::of(state, &id, now);
            detail.messages.retain(|message| may_read(principal.as_deref(), message));
            (detail, latest(state, &events))
        });
        let (detail, latest) = made.await?;
        let (seq, sheet) = (detail.seq, pages::task::Sheet { task, detail, latest });
        Ok((pages::task::page(&board, &sheet, self.visit), seq))
    }

    /// The task of a name, with all attempts that one reply has, whether it is live or retired.
    async fn task_of(&self, name: &str) -> Result<Task, Failure> {
        let asked = find_tasks::Params { references: vec![name.to_owned()], known_only: false };
        let found = self.door.ask::<FindTasks>(self.visit, asked).await;
        let found = found.map_err(|error| match &error {
            CallError::Refused(refusal) if refusal.code() == "unknown_task" => {
                gone(format!("there is no task {name}; see /tasks"))
            }
            _ => error.into(),
        })?;
        let id = found.tasks.first().map_or_else(|| name.to_owned(), |task| task.id.to_string());
        let asked = get_task::Params { task_id: id, ..Default::default() };
        let whole = self.door.ask::<GetTask>(self.visit, asked).await?.task;
        let attempts = whole.attempts.iter().map(|attempt| (**attempt).clone()).collect();
        Ok(Task { attempts, ..whole.task })
    }

    async fn diff(&self, name: &str) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let task = self.task_of(name).await?;
        let project = self.door.project();
        let asked = task.clone();
        let made =
            tokio::task::spawn_blocking(move || Diff::of(&asked, asked.attempts.last(), &project));
        let diff = made.await.map_err(|_| CallError::Gone)?;
        Ok((pages::task::diff(&board, &task, &diff, self.visit), board.seq))
    }

    async fn graph(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let (drawn, seq) = self.door.drawings.of(self.door, self.visit, self.query).await?;
        Ok((pages::graph::page(&board, drawn), seq))
    }

    async fn timeline(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let is_offered = |hours: &u32| pages::timeline::HOURS.contains(hours);
        let hours = self.query.rows.filter(is_offered).unwrap_or(pages::timeline::HOURS[1]);
        let timeline = self
            .survey(move |state, _, now| Timeline::of(state, now, pages::timeline::millis(hours)));
        let timeline = timeline.await?;
        Ok((pages::timeline::page(&board, &timeline, hours), timeline.seq))
    }

    async fn events(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let asked = get_history::Params {
            agent: self.query.filter.agent.clone(),
            before_seq: self.query.after,
            ..history(EVENTS)
        };
        let (events, next) = self.history(asked).await?;
        let events = self.survey(move |state, _, _| latest(state, &events)).await?;
        Ok((pages::events::page(&board, &events, next, self.query, self.visit), board.seq))
    }

    /// Events as the visitor may see them, the newest first, and where they go on.
    async fn history(
        &self,
        asked: get_history::Params,
    ) -> Result<(Vec<Value>, Option<u64>), Failure> {
        let reply = json!(self.door.ask::<GetHistory>(self.visit, asked).await?);
        let events = reply["events"].as_array().cloned().unwrap_or_default();
        Ok((events, reply["next"].as_u64()))
    }

    async fn plan(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let asked = get_master_plan::Params {};
        let plan = self.door.ask::<GetMasterPlan>(self.visit, asked).await?;
        let scope = self.query.scope.clone();
        let tree = self.survey(move |state, _, _| Tree::of(state, scope.as_deref()));
        let tree = tree.await?;
        Ok((pages::plan::page(&board, &tree, &plan.master_plan, self.query), tree.seq))
    }

    async fn files(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let held = self.survey(|state, _, _| {
            let named = |id: &TaskId| Named::find(state, id);
            let held = state.reservations().take(limit::PAGE.max);
            held.map(|one| (one.clone(), one.task.as_ref().map(named))).collect::<Vec<_>>()
        });
        Ok((pages::files::page(&board, &held.await?), board.seq))
    }

    async fn search(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let words = self.query.q.clone().unwrap_or_default();
        let found = self.survey(move |state, _, now| Found::of(state, &words, now));
        let found = found.await?;
        Ok((pages::search::page(&board, &found, self.query, self.visit), found.seq))
    }

    async fn discoveries(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let after = self.query.after.and_then(|after| usize::try_from(after).ok());
        let found = self.survey(move |state, _, _| {
            let newest = state.discoveries().rev().skip(after.unwrap_or_default());
            let found: Vec<_> = newest.take(pages::discoveries::PAGE).cloned().collect();
            (found, state.discoveries().len())
        });
        let (found, total) = found.await?;
        Ok((pages::discoveries::page(&board, &found, total, self.query, self.visit), board.seq))
    }

    async fn snapshots(&self) -> Opened {
        let board = self.board(pages::board::ROWS).await?;
        let asked = list_snapshots::Params::default();
        let reply = self.door.ask::<ListSnapshots>(self.visit, asked).await?;
        let all: Vec<_> = reply.snapshots.iter().map(|one| (**one).clone()).collect();
        Ok((pages::snapshots::page(&board, &all), board.seq))
    }
}

fn rows_of(rows: u32, latest: u32) -> get_board::Params {
    get_board::Params { limit: rows.try_into().ok(), latest, ..Default::default() }
}

fn history(limit: u32) -> get_history::Params {
    get_history::Params { limit: limit.try_into().ok(), ..Default::default() }
}
