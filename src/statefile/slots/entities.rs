//! The entities of a file with slots, as the state has them.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::layout::Field;
use super::slot::ORDER;
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::changed::Entity;
use crate::statefile::derived;
use crate::statefile::fragment::Sums;
use crate::statefile::rendering::Rendering;

/// An entity's JSON, and what the file shows.
pub(super) struct Rendered {
    state: Rendering,
    /// With the title of its task, if it is an agent that has one.
    titled: Option<Rendering>,
    /// The number of that title.
    title: u128,
}

impl Rendered {
    fn of(entity: &impl Serialize) -> io::Result<Self> {
        Ok(Self { state: Rendering::of(entity)?, titled: None, title: 0 })
    }

    fn of_agent(agent: &Agent, state: &State) -> io::Result<Self> {
        let rendered = Self::of(agent)?;
        let Some(title) = derived::title(state, agent) else { return Ok(rendered) };
        let titled = rendered.state.with_field_behind(derived::TASK, derived::TITLE, title)?;
        let title = derived::sum_of_title(agent.id.as_str(), title)?;
        Ok(Self { titled: Some(titled), title, ..rendered })
    }

    pub(super) fn sums(&self, entity: &Entity) -> Sums {
        let (section, key) = (Field::of(entity).name(), key(entity).unwrap_or_default());
        Sums { state: self.state.sum(section, key), derived: self.title }
    }
}

/// Renders an entity; `None` when the state does not have it any more.
pub(super) fn rendering_of(entity: &Entity, state: &State) -> io::Result<Option<Rendered>> {
    match entity {
        Entity::Agent(id) => {
            state.agent(id).map(|agent| Rendered::of_agent(agent, state)).transpose()
        }
        Entity::Checkpoint(id) => state.checkpoint(id).map(Rendered::of).transpose(),
        Entity::Discovery(id) => state.discovery(id).map(Rendered::of).transpose(),
        Entity::Message(id) => state.message(id).map(Rendered::of).transpose(),
        Entity::Participant(id) => state.participant(id).map(Rendered::of).transpose(),
        Entity::Reservation(id) => state.reservation(id).map(Rendered::of).transpose(),
        Entity::Retired(id) => state.retired_task(id).map(Rendered::of).transpose(),
        Entity::Session(id) => state.session(id).map(Rendered::of).transpose(),
        Entity::Task(id) => state.task(id).map(Rendered::of).transpose(),
        Entity::Workflow(id) => state.workflow(id).map(Rendered::of).transpose(),
    }
}

/// The entity's key, if its field is a map.
fn key(entity: &Entity) -> Option<&str> {
    match entity {
        Entity::Agent(id) => Some(id.as_str()),
        Entity::Checkpoint(id) => Some(id.as_str()),
        Entity::Participant(id) => Some(id.as_str()),
        Entity::Retired(id) => Some(id.as_str()),
        Entity::Session(id) => Some(id.as_str()),
        Entity::Workflow(id) => Some(id.as_str()),
        Entity::Discovery(_) | Entity::Message(_) | Entity::Reservation(_) | Entity::Task(_) => {
            None
        }
    }
}

/// The entity's text, with its order as the first field, if it has one.
pub(super) fn text_of(rendered: &Rendered, entity: &Entity, order: u64) -> io::Result<String> {
    let rendering = rendered.titled.as_ref().unwrap_or(&rendered.state);
    match order {
        0 => rendering.text(key(entity), ""),
        _ => rendering.text(key(entity), &format!("{ORDER}{order},")),
    }
}

/// The entities of a field, in the order in which the file shows them.
pub(super) fn entities(field: Field, state: &State) -> Vec<Entity> {
    match field {
        Field::Agents => state.agents().map(|one| Entity::Agent(one.id.clone())).collect(),
        Field::Checkpoints => {
            state.checkpoints().map(|(id, _)| Entity::Checkpoint(id.clone())).collect()
        }
        Field::Discoveries => {
            state.discoveries().map(|one| Entity::Discovery(one.id.clone())).collect()
        }
        Field::Messages => state.messages().map(|one| Entity::Message(one.id.clone())).collect(),
        Field::Participants => {
            state.participants().map(|one| Entity::Participant(one.id.clone())).collect()
        }
        Field::Reservations => {
            state.reservations().map(|one| Entity::Reservation(one.id.clone())).collect()
        }
        Field::Retired => state.retired().map(|(id, _)| Entity::Retired(id.clone())).collect(),
        Field::Sessions => state.sessions().map(|one| Entity::Session(one.id.clone())).collect(),
        Field::Tasks => state.tasks().map(|one| Entity::Task(one.id.clone())).collect(),
        Field::Workflows => state.workflows().map(|one| Entity::Workflow(one.id.clone())).collect(),
    }
}

pub(super) fn count(field: Field, state: &State) -> usize {
    match field {
        Field::Agents => state.agents().size_hint().0,
        Field::Checkpoints => state.checkpoints().len(),
        Field::Discoveries => state.discoveries().len(),
        Field::Messages => state.messages().len(),
        Field::Participants => state.participants().size_hint().0,
        Field::Reservations => state.reservations().len(),
        Field::Retired => state.retired().size_hint().0,
        Field::Sessions => state.sessions().len(),
        Field::Tasks => state.live_tasks(),
        Field::Workflows => state.workflows().len(),
    }
}

/// The `new` entities, those of lists oldest first. They are the last in the state's lists: nothing
/// old was made after them.
pub(super) fn by_creation<'a>(state: &State, new: impl Iterator<Item = &'a Entity>) -> Vec<Entity> {
    let (mut maps, lists): (Vec<_>, Vec<_>) =
        new.cloned().partition(|entity| Field::of(entity).is_map());
    let lists: BTreeSet<_> = lists.into_iter().collect();
    let count = |field| lists.iter().filter(|entity| Field::of(entity) == field).count();
    let tasks = state.tasks().rev().map(|one| Entity::Task(one.id.clone()));
    let tasks = tasks.filter(|entity| lists.contains(entity)).take(count(Field::Tasks));
    let discoveries = state.discoveries().rev().map(|one| Entity::Discovery(one.id.clone()));
    let discoveries =
        discoveries.filter(|entity| lists.contains(entity)).take(count(Field::Discoveries));
    let messages = state.messages().rev().map(|one| Entity::Message(one.id.clone()));
    let messages = messages.filter(|entity| lists.contains(entity)).take(count(Field::Messages));
    let reservations = state.reservations().rev().map(|one| Entity::Reservation(one.id.clone()));
    let reservations =
        reservations.filter(|entity| lists.contains(entity)).take(count(Field::Reservations));
    let mut found: Vec<_> = tasks.chain(discoveries).chain(messages).chain(reservations).collect();
    found.reverse();
    maps.append(&mut found);
    maps
}
