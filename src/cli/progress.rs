use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::report::say;
use super::{Session, print};

const TICK: Duration = Duration::from_millis(100);

/// A spinner on a terminal that shows what is waited for and for how long; it disappears when
/// dropped.
pub(super) struct Progress(ProgressBar);

impl Session {
    /// None if nobody would see it: standard error is no terminal, or a program reads the reply.
    pub(super) fn progress(&self, what: &str) -> Option<Progress> {
        if self.json || !io::stderr().is_terminal() {
            return None;
        }
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed:>4}") {
            bar.set_style(style);
        }
        bar.set_message(print::headline(what));
        bar.enable_steady_tick(TICK);
        Some(Progress(bar))
    }
}

/// Steps of a whole, told one by one.
pub(super) struct Steps {
    spinner: Option<Progress>,
    what: String,
    of: usize,
    /// Whether they are printed, one a line.
    printed: bool,
}

impl Steps {
    /// `printed` is what the caller asks for where no spinner turns.
    pub(super) fn of(session: &Session, what: &str, of: usize, printed: bool) -> Self {
        let spinner = session.progress(what);
        let printed = printed && spinner.is_none();
        Self { spinner, what: what.to_owned(), of, printed }
    }

    pub(super) fn step(&self, number: usize, doing: &str) {
        let Self { spinner, what, of, printed } = self;
        let percent = number * 100 / of;
        if let Some(Progress(bar)) = spinner {
            bar.set_message(print::headline(&format!("{what}: {doing}, {percent} %")));
        }
        if *printed {
            say(&format!("{what}: {doing}, {percent} %"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
