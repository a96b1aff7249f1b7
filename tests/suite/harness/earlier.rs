//! Calls that were made some time ago.

use std::time::Duration;

use callboard::clock::{Clock, ManualClock, SystemClock};
use callboard::participant::{self, Caller, Options, Stay};
use serde_json::Value;

use super::Board;

impl Board {
    /// Makes calls as a one-shot command did, `age` ago.
    pub(crate) fn called_earlier(&self, age: Duration, calls: &[(&'static str, Value)]) {
        let then = SystemClock.wall() - i64::try_from(age.as_millis()).unwrap();
        let handle = participant::spawn(Options {
            dir: self.dir().to_owned(),
            state_file: None,
            stay: Stay::Brief,
            forbidden: None,
            unasked: None,
            unwritable: None,
            clock: Box::new(ManualClock::at(then)),
            seed: 7,
            worktree: None,
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (operation, arguments) in calls {
            runtime
                .block_on(handle.call(operation, arguments.clone(), &Caller::default()))
                .unwrap();
        }
    }
}
