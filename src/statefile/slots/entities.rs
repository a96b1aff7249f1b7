//! The entities of a file with slots, as the state has them.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;

use super::layout::{FIELDS, Field};
use super::slot::ORDER;
use crate::state::State;
use crate::state::agent::Agent;
use crate::state::changed::Entity;
use crate::state::kinds::kinds;
use crate::state::stored::Kind;
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

macro_rules! entities {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        /// Renders an entity; `None` when the state does not have it any more.
        pub(super) fn rendering_of(entity: &Entity, state: &State) -> io::Result<Option<Rendered>> {
            if let Entity::Agent(id) = entity {
                return state.agent(id).map(|agent| Rendered::of_agent(agent, state)).transpose();
            }
            match entity {
                $(Entity::$kind(id) => {
                    let one = crate::state::$module::$kind::find(state, id);
                    one.map(Rendered::of).transpose()
                })*
            }
        }

        /// The entity's key, if its field is a map.
        fn key(entity: &Entity) -> Option<&str> {
            let id = match entity {
                $(Entity::$kind(id) => id.as_str(),)*
            };
            Field::of(entity).is_map().then_some(id)
        }

        /// The entities of a field, the last in the file first.
        fn from_the_last(field: Field, state: &State) -> Box<dyn Iterator<Item = Entity> + '_> {
            match field {
                $(Field::$kind => {
                    let all = crate::state::$module::$kind::each(state);
                    Box::new(all.rev().map(|(id, _)| Entity::$kind(id.clone())))
                })*
            }
        }

        pub(super) fn count(field: Field, state: &State) -> usize {
            match field {
                $(Field::$kind => crate::state::$module::$kind::count(state),)*
            }
        }
    };
}
kinds!(entities);

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
    let mut all: Vec<_> = from_the_last(field, state).collect();
    all.reverse();
    all
}

/// The `new` entities, those of lists oldest first. They are the last in the state's lists: nothing
/// old was made after them.
pub(super) fn by_creation<'a>(state: &State, new: impl Iterator<Item = &'a Entity>) -> Vec<Entity> {
    let (mut maps, lists): (Vec<_>, Vec<_>) =
        new.cloned().partition(|entity| Field::of(entity).is_map());
    let lists: BTreeSet<_> = lists.into_iter().collect();
    let new_of = |field: Field| {
        let count = lists.iter().filter(|entity| Field::of(entity) == field).count();
        from_the_last(field, state).filter(|entity| lists.contains(entity)).take(count)
    };
    let fields = FIELDS.into_iter().filter(|field| !field.is_map());
    let mut found: Vec<_> = fields.flat_map(new_of).collect();
    found.reverse();
    maps.append(&mut found);
    maps
}
