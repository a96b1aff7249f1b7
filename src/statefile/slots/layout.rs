//! The layout of a flat file, as its own `layout` field states it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::state::changed::Entity;
use crate::state::kinds::kinds;
use crate::state::record::{All, AllOf, Record};

macro_rules! fields {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        /// The fields that hold entities.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Field {
            $($kind,)*
        }

        const ALL: [Field; [$(Field::$kind),*].len()] = [$(Field::$kind),*];

        impl Field {
            pub(crate) fn of(entity: &Entity) -> Self {
                match entity {
                    $(Entity::$kind(_) => Self::$kind,)*
                }
            }

            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => crate::state::$module::$kind::FIELD,)*
                }
            }

            /// Whether the field is an object by id, and not a list.
            pub(crate) fn is_map(self) -> bool {
                match self {
                    $(Self::$kind => !AllOf::<crate::state::$module::$kind>::IS_LIST,)*
                }
            }

            pub(super) fn entity(self, id: &str) -> Entity {
                match self {
                    $(Self::$kind => Entity::$kind(id.into()),)*
                }
            }
        }
    };
}
kinds!(fields);

/// The fields in the order in which the file has them: the agents come first, and what few look for
/// comes last.
pub(crate) const FIELDS: [Field; ALL.len()] = {
    let (mut fields, mut filled, mut turn) = (ALL, 0, 0);
    while turn < 3 {
        let mut next = 0;
        while next < ALL.len() {
            let its_turn = match ALL[next] {
                Field::Agent => 0,
                Field::Participant | Field::Retired => 2,
                _ => 1,
            };
            if its_turn == turn {
                fields[filled] = ALL[next];
                filled += 1;
            }
            next += 1;
        }
        turn += 1;
    }
    fields
};

/// The field behind which the plan stands.
pub(crate) const BEFORE_PLAN: Field = Field::Message;

impl Field {
    /// Whether the field is a list whose entities may outgrow their slots, so that they carry their
    /// order.
    pub(crate) fn has_order(self) -> bool {
        matches!(self, Self::Reservation | Self::Task)
    }

    pub(crate) fn opening(self) -> String {
        format!("\n  \"{}\": {}", self.name(), if self.is_map() { '{' } else { '[' })
    }

    /// What stands behind the last slot, or behind the opening if there is none.
    pub(crate) fn closing(self, is_empty: bool) -> &'static str {
        match (self.is_map(), is_empty) {
            (true, true) => "},",
            (true, false) => "\n  },",
            (false, true) => "],",
            (false, false) => "\n  ],",
        }
    }
}

/// The `layout` field. Offsets and lengths in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Layout {
    /// The generation of the arrangement: within one, slots are only added, and stay where they
    /// are.
    pub generation: u64,
    /// The ID of the boot in which the file was written.
    pub boot: String,
    /// The order that the next new task or reservation gets.
    pub next_order: u64,
    /// Length of the part at the front: the goal, and what is derived.
    pub head: u64,
    /// Length of the part behind the messages: the plan.
    pub plan: u64,
    /// Length of the part behind the last slots: the board's other fields.
    pub spent: u64,
    #[serde(flatten)]
    pub spans: Spans,
}

/// The slots of each field. One that is missing in a file, because its version had no such field,
/// is nowhere; the file is then rearranged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spans([Span; ALL.len()]);

impl Serialize for Spans {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = ALL;
        fields.sort_by_key(|field| (*field == Field::Task, field.name()));
        let spans = fields.into_iter().map(|field| (field.name(), self.0[field as usize]));
        serializer.collect_map(spans.filter(|(_, span)| *span != Span::default()))
    }
}

impl<'de> Deserialize<'de> for Spans {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spans = BTreeMap::<Cow<'_, str>, Span>::deserialize(deserializer)?;
        Ok(Self(ALL.map(|field| spans.get(field.name()).copied().unwrap_or_default())))
    }
}

/// Slots from `start` to `end`, then the field's closing bracket, and room for more up to `limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub start: u64,
    pub end: u64,
    pub limit: u64,
}

impl Layout {
    /// A layout of which nothing is known but when it was made, with offsets that are as long as
    /// they can be.
    pub(crate) fn anywhere(generation: u64, boot: &str) -> Self {
        let anywhere = Span { start: u64::MAX, end: u64::MAX, limit: u64::MAX };
        Self {
            generation,
            boot: boot.to_owned(),
            next_order: u64::MAX,
            head: u64::MAX,
            plan: u64::MAX,
            spent: u64::MAX,
            spans: Spans([anywhere; ALL.len()]),
        }
    }

    pub(crate) fn span(&self, field: Field) -> Span {
        self.spans.0[field as usize]
    }

    pub(super) fn set_span(&mut self, field: Field, span: Span) {
        self.spans.0[field as usize] = span;
    }

    /// Extends the slots of `field` by `length` bytes, and returns where those are; `None` when there
    /// is no room.
    pub(super) fn grow(&mut self, field: Field, length: u32) -> Option<u64> {
        let Span { start, end, limit } = self.span(field);
        let grown = end.checked_add(u64::from(length))?;
        self.set_span(field, Span { start, end: grown, limit });
        (grown + field.closing(false).len() as u64 <= limit).then_some(end)
    }

    /// The order of a new entity of `field`; 0 if it has none.
    pub(super) fn next_order(&mut self, field: Field) -> u64 {
        if !field.has_order() {
            return 0;
        }
        self.next_order += 1;
        self.next_order - 1
    }

    pub(crate) fn plan_at(&self) -> u64 {
        self.span(BEFORE_PLAN).limit
    }

    pub(crate) fn rest_at(&self) -> u64 {
        self.span(FIELDS[FIELDS.len() - 1]).limit
    }

    /// The offset of the last part, which tells whose file it is.
    pub(crate) fn end_at(&self) -> u64 {
        self.rest_at() + self.spent
    }

    /// Whether the parts follow each other as they must, within a file of `size` bytes.
    pub(crate) fn fits(&self, size: u64) -> bool {
        let end = FIELDS.into_iter().try_fold(self.head, |at, field| {
            let Span { start, end, limit } = self.span(field);
            let is_next = at.checked_add(field.opening().len() as u64)? == start && start <= end;
            let closed = end.checked_add(field.closing(start == end).len() as u64)?;
            let behind = if field == BEFORE_PLAN { self.plan } else { 0 };
            (is_next && closed <= limit).then(|| limit.checked_add(behind)).flatten()
        });
        end.and_then(|end| end.checked_add(self.spent)).is_some_and(|end| end < size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_written_as_it_always_was() {
        let layout = Layout::anywhere(1, "boot");
        let text = serde_json::to_string(&layout).unwrap();
        let keys: Vec<_> = text.split('"').filter(|word| word.len() > 4).collect();
        let expected = "generation next_order agents checkpoints discoveries messages participants \
                        reservations retired sessions workflows tasks";
        let keys: Vec<_> = keys.into_iter().filter(|key| expected.contains(key)).collect();
        assert_eq!(keys.join(" "), expected);
        let mut older = layout.clone();
        older.set_span(Field::Session, Span::default());
        let text = serde_json::to_string(&older).unwrap();
        assert!(!text.contains("sessions"), "{text}");
        assert_eq!(serde_json::from_str::<Layout>(&text).unwrap(), older);
    }
}
