//! Tasks as people name them on the command line: by number, id, path, part of an id, or title.

use std::slice;

use super::Session;
use super::ask::Unfit;
use super::report::blame_and_data;
use crate::ops::FindTasks;
use crate::ops::find_tasks::Params;
use crate::participant;
use crate::rpc::client::Blame;
use crate::state::task::Named;

impl Session {
    /// The task that a person named.
    pub(super) fn task(&self, given: &str) -> anyhow::Result<Named> {
        let found = self.tasks(slice::from_ref(&given.to_owned()))?;
        Ok(found.into_iter().next().unwrap_or_else(|| Named::unknown(given)))
    }

    /// The id of the task that an option names, if it is given.
    pub(super) fn task_id(&self, given: Option<&str>) -> anyhow::Result<Option<String>> {
        given.map(|given| Ok(self.task(given)?.id.to_string())).transpose()
    }

    pub(super) fn task_ids(&self, given: &[String]) -> anyhow::Result<Vec<String>> {
        Ok(self.tasks(given)?.into_iter().map(|task| task.id.to_string()).collect())
    }

    /// The tasks that were named. Without a board, and for an older server, they are ids.
    pub(super) fn tasks(&self, given: &[String]) -> anyhow::Result<Vec<Named>> {
        let as_ids = || given.iter().map(|id| Named::unknown(id)).collect();
        let is_begun = self.server.is_some() || participant::is_begun(self.dir());
        if given.is_empty() || !is_begun {
            return Ok(as_ids());
        }
        self.keep_board()?;
        let found = self.ask::<FindTasks>(&Params { references: given.to_vec() });
        match found {
            Ok(found) => {
                self.opened.swap_warning(found.json().get("warning").cloned());
                Ok(found.reply.tasks)
            }
            Err(error) if is_of_another_version(&error) => Ok(as_ids()),
            Err(error) => Err(error),
        }
    }
}

/// True if the server does not know the operation, or answers it otherwise.
fn is_of_another_version(error: &anyhow::Error) -> bool {
    error.is::<Unfit>() || matches!(blame_and_data(error).0, Blame::Name)
}
