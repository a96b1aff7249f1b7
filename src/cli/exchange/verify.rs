//! `callboard verify`: compares files with the board.

use std::process::ExitCode;

use serde_json::json;

use super::{Found, find, view, with_formats_of};
use crate::cli::print::Tone;
use crate::cli::{Outcome, REFUSED, Session, plan, usage_error};
use crate::exchange;

const EXAMPLES: &str = "Examples:\n  \
    callboard verify task-master .taskmaster/tasks/tasks.json\n  \
    callboard verify csv jira.csv --map title=Summary,id='Issue key'\n\n\
    Compared are ids, titles, statuses, dependencies, results, and what is a part of what. A task that an agent holds counts as \
    available. The exit code is 1 if there are differences.";

#[derive(clap::Args)]
#[command(after_help = with_formats_of(EXAMPLES, &[], |format| format.read.is_some()))]
pub(crate) struct Arguments {
    /// Format of the file
    format: String,
    /// File or directory; `-` reads standard input
    #[arg(value_name = "PATH|-")]
    path: String,
    /// Columns of a CSV file, as title=Summary,status=State
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',', value_parser = super::mapped)]
    map: Vec<(String, String)>,
}

pub(crate) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { format, path, map } = arguments;
    let Found::Other { format, tree, read, .. } = find(session, Some(&format), &path, &map)? else {
        usage_error(format!("`callboard plan diff {path}` compares a plan with the board"));
    };
    let verdict = exchange::verify(format.name, tree.path.as_deref(), &read, &view(session)?);
    session.show(&json!(verdict), |page| {
        for difference in &verdict.differences {
            page.marked("differs", Tone::Waiting, difference);
        }
        for (side, counts) in
            [("in the file", &verdict.in_file), ("on the board", &verdict.on_board)]
        {
            let exchange::Counts { items, done, over, dependencies } = counts;
            page.line(format_args!(
                "{side}: {items} items, {done} done, {over} failed or called off, {dependencies} \
                 dependencies"
            ));
        }
        page.line(match verdict.differences.len() {
            0 if verdict.unread > 0 => format!(
                "the items are the same, but {} of the file look like work and were not read as items",
                plan::count("line", &verdict.unread.into())
            ),
            0 => "both say the same".to_owned(),
            1 => "1 difference".to_owned(),
            many => format!("{many} differences"),
        });
    })?;
    Ok(if verdict.same { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) })
}
