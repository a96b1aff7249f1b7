//! Numbers on the command line: options take negative ones as their values, and what is refused says
//! in words which numbers are taken.

use std::any::TypeId;
use std::num::NonZeroU32;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::line::{own_words, whole};

/// Reads `-1` behind an option as its value, so that it is refused as a number.
pub(super) fn with_negative(command: clap::Command) -> clap::Command {
    let takes_value = |one: &clap::Arg| one.get_long().is_some() && one.get_action().takes_values();
    command
        .mut_args(|one| if takes_value(&one) { one.allow_negative_numbers(true) } else { one })
        .mut_subcommands(with_negative)
}

/// What the option takes whose value the error is about, if that is a number.
pub(super) fn explained(error: &clap::Error) -> Option<String> {
    let given = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // Other parsers of numbers say themselves what they take.
    let said = error.to_string();
    let is_of_a_number =
        [" is not in ", "invalid digit", "number too large"].iter().any(|part| said.contains(part));
    if error.kind() != ErrorKind::ValueValidation || !is_of_a_number {
        return None;
    }
    let option = given(ContextKind::InvalidArg)?.strip_prefix("--")?;
    let name = option.split([' ', '=', '[']).next()?;
    let root = whole();
    let mut command = &root;
    for word in own_words() {
        command = command.find_subcommand(&word).unwrap_or(command);
    }
    let mut known = command.get_arguments().chain(root.get_arguments());
    let range = range(known.find(|one| one.get_long() == Some(name))?.get_value_parser())?;
    let value = given(ContextKind::InvalidValue)?;
    Some(format!("--{name} takes a whole number {range}, not {value}"))
}

/// The numbers that a parser takes, in words; none if it parses something else.
fn range(parser: &ValueParser) -> Option<String> {
    let numbers = [
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<i64>(),
        TypeId::of::<NonZeroU32>(),
    ];
    if !numbers.iter().any(|number| parser.type_id() == *number) {
        return None;
    }
    let ends = ["9223372036854775807", "0"].into_iter().find_map(|value| ends(parser, value));
    let (first, last) = ends.unwrap_or((0, u64::MAX));
    let has_end = last < u64::from(u32::MAX);
    Some(if has_end { format!("from {first} to {last}") } else { format!("of at least {first}") })
}

/// The ends of the range that the parser names when it refuses `value`.
fn ends(parser: &ValueParser, value: &str) -> Option<(u64, u64)> {
    let option = clap::Arg::new("number").long("number").value_parser(parser.clone());
    let command = clap::Command::new("probe").arg(option);
    let refused = command.try_get_matches_from(["probe", "--number", value]).err()?.to_string();
    let range = refused.split_once(" is not in ")?.1.lines().next()?;
    let (first, last) = range.split_once("..")?;
    Some((first.parse().ok()?, last.trim_start_matches('=').parse().ok()?))
}

#[cfg(test)]
mod tests {
    use clap::builder::RangedU64ValueParser;

    use super::*;

    #[test]
    fn a_range_is_said_in_words() {
        let limit = RangedU64ValueParser::<usize>::new().range(1..);
        let share = clap::value_parser!(u16).range(1..=64);
        for (parser, expected) in [
            (ValueParser::new(limit), Some("of at least 1")),
            (ValueParser::new(share), Some("from 1 to 64")),
            (ValueParser::new(clap::value_parser!(u64)), Some("of at least 0")),
            (ValueParser::new(super::super::page_size()), Some("from 1 to 1000")),
            (ValueParser::string(), None),
        ] {
            assert_eq!(range(&parser).as_deref(), expected);
        }
    }
}
