//! The state file written as a whole, from texts that are kept for as long as the state holds their
//! entities: for boards up to a size, for file systems without leases or exchange of names, and for
//! the text of a state by itself.
//!
//! The text is what `serde_json` prints with two spaces. What a person looks for comes first; the
//! fields that tell whose file it is and whether it is sound come last, where programs find them
//! without reading the rest.

use std::io;

use serde_json::Value;

use super::derived::{self, Derived};
use super::fragment::{Section, Shape, Sums};
use super::plan::{Plan, short};
use super::rendering::{Rendering, hex};
use super::slots::layout::{BEFORE_PLAN, FIELDS, Field};
use crate::state::State;
use crate::state::document::Board;
use crate::state::kinds::kinds;
use crate::state::record::Record;
use crate::state::stored::Kind;

/// Fields of the board that are not in the part of its small ones: the long ones, and those at the
/// end.
const ELSEWHERE: [&str; 5] = ["goal", "master_plan", "schema_version", "board_id", "seq"];

macro_rules! sections {
    ($($(#[$meta:meta])* $field:ident: $module:ident::$kind:ident,)*) => {
        #[derive(Debug)]
        pub(super) struct Sections {
            $(pub(super) $field: Section<
                <crate::state::$module::$kind as Record>::Id,
                crate::state::$module::$kind,
            >,)*
        }

        impl Sections {
            fn new() -> Self {
                Self { $($field: Section::new(Field::$kind.name(), Shape::of(Field::$kind)),)* }
            }

            fn write(
                &mut self,
                field: Field,
                text: &mut Vec<u8>,
                state: &State,
            ) -> io::Result<Sums> {
                match field {
                    $(Field::$kind => {
                        self.$field.write(text, crate::state::$module::$kind::each(state))
                    })*
                }
            }
        }
    };
}
kinds!(sections);

#[derive(Debug)]
pub(super) struct Whole {
    pub(super) sections: Sections,
    plan: Option<Plan>,
    pub(super) text: Vec<u8>,
}

impl Whole {
    pub(super) fn new() -> Self {
        Self { sections: Sections::new(), plan: None, text: Vec::new() }
    }

    pub(super) fn render(&mut self, state: &State) -> io::Result<&[u8]> {
        let plan = Plan::known_or_of(self.plan.take(), state.board())?;
        let small = Rendering::of(&short(state.board()))?;
        let derived = Derived::of(state)?;
        let text = &mut self.text;
        text.clear();
        text.push(b'{');
        text.extend_from_slice(&plan.goal);
        derived.push(text);
        let mut sums = Sums { state: plan.sum_with(&small), derived: derived.sum() };
        for field in FIELDS {
            sums = sums.and(if field == Field::Agent {
                let agents = state.agents();
                let titled = agents.map(|one| (&one.id, one, derived::title(state, one)));
                self.sections.agents.write_titled(text, titled)?
            } else {
                self.sections.write(field, text, state)?
            });
            if field == BEFORE_PLAN {
                text.extend_from_slice(&plan.plan);
            }
        }
        push_small(&small, text)?;
        text.extend_from_slice(&plan.spent);
        push_end(state.board(), sums, text)?;
        // There is no comma behind the last field.
        text.pop();
        text.extend_from_slice(b"\n}");
        self.plan = Some(plan);
        Ok(text)
    }
}

/// Appends the small fields of the board.
pub(super) fn push_small(board: &Rendering, text: &mut Vec<u8>) -> io::Result<()> {
    let Value::Object(fields) = board.value()? else { return Ok(()) };
    for (name, value) in fields.iter().filter(|(name, _)| !ELSEWHERE.contains(&name.as_str())) {
        Rendering::of(value)?.push_field(name, text);
    }
    Ok(())
}

/// Appends the fields that tell whose file it is and whether it is sound.
pub(super) fn push_end(board: &Board, sums: Sums, text: &mut Vec<u8>) -> io::Result<()> {
    let Board { schema_version, board_id, seq, .. } = board;
    Rendering::of(schema_version)?.push_field("schema_version", text);
    Rendering::of(board_id)?.push_field("board_id", text);
    Rendering::of(seq)?.push_field("seq", text);
    Rendering::of(&hex(sums.state))?.push_field("checksum", text);
    Rendering::of(&hex(sums.derived))?.push_field(derived::CHECKSUM, text);
    Ok(())
}

/// The text of a whole file that shows `state`, to the byte.
pub fn text_of(state: &State) -> io::Result<Vec<u8>> {
    let mut whole = Whole::new();
    whole.render(state)?;
    Ok(whole.text)
}
