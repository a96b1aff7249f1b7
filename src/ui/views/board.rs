//! The first screen, in which every row of `status --all` can be chosen.

use super::super::first::{Line, Overview, Room, Words};
use super::super::opened::{Layout, Row};
use super::super::subject::{Subject, TaskSubject};
use super::page;
use crate::state::task::TaskStatus;
use crate::view::{AgentRow, Board, Card, Done, Group, Retry, Rows, Wait, WaitKind};

pub(super) fn layout(board: &Board, notes: &[Line], columns: usize, words: Words<'_>) -> Layout {
    let overview = Overview { board, room: Room { columns, lines: None }, words };
    let mut rows: Vec<Row> = notes
        .iter()
        .flat_map(|note| page::folded(note, columns))
        .map(|line| Row { line, about: None })
        .collect();
    rows.extend(listed(overview.waits(board.waits.rows.len()), &board.waits, wait));
    rows.extend(listed(overview.agents(board.agents.rows.len()), &board.agents, agent));
    rows.extend(listed(overview.next(), &board.next, |card| of_card(card, TaskStatus::Available)));
    rows.extend(listed(overview.blocked(), &board.blocked, group));
    let waiting = |retry: &Retry| of_card(&retry.card, TaskStatus::Available);
    rows.extend(listed(overview.waiting(), &board.retries, waiting));
    let done = |done: &Done| of_card(&done.card, TaskStatus::Done);
    rows.extend(listed(overview.done(), &board.done, done));
    Layout { head: overview.head(), rows, about: None }
}

/// Lines of a list, each with what it is about: a gap and a title come first.
pub(super) fn listed<T>(
    lines: Vec<Line>,
    list: &Rows<T>,
    about: impl Fn(&T) -> Option<Subject>,
) -> Vec<Row> {
    let abouts = [None, None].into_iter().chain(list.rows.iter().map(about));
    let abouts = abouts.chain(std::iter::repeat(None));
    lines.into_iter().zip(abouts).map(|(line, about)| Row { line, about }).collect()
}

pub(super) fn agent(row: &AgentRow) -> Option<Subject> {
    let holds = row.task.as_ref().map(|task| format!("{} {}", task.name(), task.title));
    Some(Subject::Agent { id: row.id.clone(), holds })
}

fn of_card(card: &Card, status: TaskStatus) -> Option<Subject> {
    Some(Subject::Task(TaskSubject::card(card, status)))
}

fn group(group: &Group) -> Option<Subject> {
    let first = group.by.first().or(group.first.first())?;
    Some(Subject::Task(TaskSubject::named(first)))
}

fn wait(wait: &Wait) -> Option<Subject> {
    let message = wait.message.as_ref().zip(wait.agent.as_ref());
    if let Some((id, from)) = message {
        return Some(Subject::Message {
            id: id.clone(),
            name: wait.name.clone(),
            from: from.clone(),
            is_question: wait.kind == WaitKind::Question,
            text: wait.text.clone(),
            options: wait.options.clone(),
        });
    }
    let task = wait.task.as_ref().map(TaskSubject::named);
    match (wait.kind, &wait.agent) {
        (WaitKind::Permission | WaitKind::Input | WaitKind::NoSign, Some(id)) => {
            let holds = task.map(|task| task.said());
            Some(Subject::Agent { id: id.clone(), holds })
        }
        _ => task.map(|task| {
            let (agent, attempt) = (wait.agent.clone(), wait.attempt);
            Subject::Task(TaskSubject { agent, attempt, ..task })
        }),
    }
}
