//! Which parts of the state have changed since they were last asked for, so that an image of it can
//! be updated instead of rebuilt.

use foldhash::{HashMap, HashMapExt};

use super::kinds::kinds;
use super::record::Record;

macro_rules! entity {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        /// One thing that the state file shows separately.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Entity {
            $($kind(<super::$module::$kind as Record>::Id),)*
        }
    };
}
kinds!(entity);

#[derive(Clone, Debug)]
pub enum Changed {
    /// All of an earlier image is out of date.
    Everything,
    /// The entities that changed; those that the state no longer has were removed.
    Entities(HashMap<Entity, Change>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Seq of the event that changed it last.
    pub seq: u64,
    /// Whether it was created, perhaps in place of a removed one of the same id.
    pub anew: bool,
}

impl Default for Changed {
    fn default() -> Self {
        Self::Entities(HashMap::new())
    }
}

/// Most entities that are remembered one by one; beyond that everything counts as changed.
const REMEMBERED: usize = 1 << 16;

impl Changed {
    pub(super) fn note(&mut self, entity: Entity, change: Change) {
        if let Self::Entities(entities) = self {
            let known = entities.entry(entity).or_insert(change);
            *known = Change { seq: change.seq, anew: known.anew || change.anew };
            if entities.len() > REMEMBERED {
                *self = Self::Everything;
            }
        }
    }

    /// These changes followed by `later`.
    pub fn and(mut self, later: Self) -> Self {
        match (&self, later) {
            (Self::Entities(_), Self::Entities(later)) => {
                later.into_iter().for_each(|(entity, change)| self.note(entity, change));
                self
            }
            _ => Self::Everything,
        }
    }
}
