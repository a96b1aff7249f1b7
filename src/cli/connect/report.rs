//! What `connect` says that it has done.

use std::fmt;

use serde::Serialize;

use super::{Client, ConnectArgs, Connected, Part, Status, Target, worktrees};

/// What was done with all files. `Display` is for people: with `--print` it is the configuration
/// and, if there are several files, their names.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub files: Vec<Connected>,
    /// How to set a session of each client to work.
    pub prompts: Vec<Prompt>,
    /// How other worktrees get the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktrees: Option<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Prompt {
    client: Client,
    how: &'static str,
}

impl Report {
    pub(crate) fn new(files: Vec<Connected>, args: &ConnectArgs, target: &Target<'_>) -> Self {
        let is_there = |one: &&Connected| matches!(one.status, Status::Written | Status::Unchanged);
        let mut clients: Vec<_> = files.iter().filter(is_there).map(|one| one.client).collect();
        clients.dedup();
        let prompts =
            clients.into_iter().map(|client| Prompt { client, how: client.prompt() }).collect();
        let is_of_project = !args.global && !args.check;
        let worktrees = is_of_project.then(|| worktrees::advice(&files, target)).flatten();
        Self { files, prompts, worktrees }
    }

    /// Whether everything is there as it would be written now.
    pub(crate) fn is_current(&self) -> bool {
        !self.files.is_empty() && self.files.iter().all(|one| one.status == Status::Unchanged)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.files.is_empty() {
            return f.write_str("no client of this project is connected");
        }
        let mut lines = Vec::new();
        let is_printed = |one: &&Connected| one.status == Status::Printed;
        let printed = self.files.iter().filter(is_printed).count();
        for one in &self.files {
            if printed > 1 {
                lines.push(format!("{}:", one.path.display()));
            }
            lines.push(one.to_string());
        }
        let is_new = |one: &&Connected| one.status == Status::Written;
        for one in self.files.iter().filter(is_new) {
            lines.push(format!("next: {}", one.next));
        }
        let has_news = self.files.iter().any(|one| is_new(&one));
        for Prompt { client, how } in self.prompts.iter().filter(|_| has_news) {
            lines.push(format!("to set {} to work: {how}", client.title()));
        }
        lines.extend(
            self.worktrees.iter().filter(|_| has_news).map(|advice| format!("worktrees: {advice}")),
        );
        f.write_str(&lines.join("\n"))
    }
}

impl fmt::Display for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, what, changes, .. } = self;
        let path = path.display();
        let part = match self.part {
            Part::Server => "the server `callboard`",
            Part::Hooks => "the hooks of callboard",
        };
        match self.status {
            Status::Printed => f.write_str(self.config.trim_end()),
            Status::Unchanged => write!(f, "already configured: {part} in {path}"),
            Status::Removed => write!(f, "removed {part} from {path}"),
            Status::Absent => write!(f, "not there: {part} in {path}"),
            Status::Outdated if changes.is_empty() => {
                write!(f, "missing: {part} in {path}; {}", self.mend())
            }
            Status::Outdated => {
                write!(f, "outdated: {part} in {path}; {}\n  {}", self.mend(), changes.join("\n  "))
            }
            Status::Written if changes.is_empty() => write!(f, "added {part} to {path}: {what}"),
            Status::Written => write!(f, "updated {part} in {path}:\n  {}", changes.join("\n  ")),
        }
    }
}

impl Connected {
    fn mend(&self) -> String {
        let name =
            clap::ValueEnum::to_possible_value(&self.client).map(|name| name.get_name().to_owned());
        format!("`callboard connect {}` writes it", name.unwrap_or_default())
    }
}
