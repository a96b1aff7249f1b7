//! Fills a directory with a lively board, for pictures and for trying the screens: five agents at a
//! plan of sixty tasks, with a prompt, questions, reviews, failures and hand-overs, and a git
//! repository with the branches of two reviews.
//!
//! Run it with `cargo run --example scene -- DIRECTORY`, then `callboard status` there.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use callboard::Board;
use callboard::board::Options;
use callboard::state::State;
use callboard::state::document::Document;
use callboard::statefile;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

const PLAN: &str = include_str!("plan.txt");
const GOAL: &str = "Port the parser to Rust";
/// Who works, and when each was last heard of, in minutes before now.
const AGENTS: [(&str, f64); 5] = [
    ("claude-1", 0.2),
    ("claude-2", 6.0),
    ("claude-3", 38.0),
    ("codex-1", 0.02),
    ("gemini-1", 12.0),
];

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let directory = std::env::args().nth(1).filter(|given| !given.starts_with('-'));
    let directory = directory.ok_or("which directory? It is made if it is not there")?;
    let root = Path::new(&directory);
    if root.join(".git").exists() {
        let why = "is a git repository already, and the scene would add its own commits to it; \
                   name a new directory, which may be inside";
        return Err(format!("{directory} {why}").into());
    }
    fs::create_dir_all(root.join(".coordination"))?;
    let state = root.join(".coordination/mcp-state.json");
    if state.exists() {
        return Err(format!("{} is there already", state.display()).into());
    }
    let commits = repository(root)?;
    fs::write(&state, statefile::text_of(&State::from_document(past(&commits)?))?)?;
    let board = Options::at(root.join(".coordination")).brief().open()?;
    present(&board).await?;
    println!("{directory} has a board; look at it with `callboard status` there");
    Ok(())
}

/// The board as it was a moment ago.
fn past(commits: &[(String, String)]) -> Outcome<Document> {
    let rows: Vec<Row> = PLAN.lines().map(Row::of).collect();
    let tasks: Vec<Value> = rows.iter().map(|row| row.task(&rows, commits)).collect();
    let mut document = serde_json::to_value(State::new().to_document())?;
    document["tasks"] = tasks.into();
    document["agents"] = agents(&rows).into();
    document["board_id"] = "board-scene".into();
    document["seq"] = 1.into();
    document["goal"] = GOAL.into();
    document["master_plan"] = "Lexer, parser, tree, tools.".into();
    document["created_at"] = ago(300.0).into();
    document["last_activity"] = ago(0.1).into();
    Ok(serde_json::from_value(document)?)
}

/// A line of the plan: path, title, what became of it, what it waits for.
struct Row {
    path: &'static str,
    title: &'static str,
    became: Vec<&'static str>,
    needs: Vec<&'static str>,
}

impl Row {
    fn of(line: &'static str) -> Self {
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next().unwrap_or_default();
        let (path, title, became, needs) = (next(), next(), next(), next());
        let words = |text: &'static str| text.split_whitespace().collect();
        Self { path, title, became: words(became), needs: words(needs) }
    }

    fn word(&self, place: usize) -> &'static str {
        self.became.get(place).copied().unwrap_or_default()
    }

    fn minutes(&self, place: usize) -> f64 {
        self.word(place).parse().unwrap_or_default()
    }

    /// What is said behind the numbers.
    fn rest(&self) -> String {
        self.became.get(4..).unwrap_or_default().join(" ")
    }

    fn id(path: &str) -> String {
        format!("task-{}", path.to_lowercase().replace('.', "-"))
    }

    fn task(&self, rows: &[Self], commits: &[(String, String)]) -> Value {
        let parent = self.path.rsplit_once('.').map(|(parent, _)| Self::id(parent));
        let needs: Vec<_> = self.needs.iter().map(|path| Self::id(path)).collect();
        let is_parent = rows.iter().any(|row| row.path.starts_with(&format!("{}.", self.path)));
        let mut task = json!({
            "id": Self::id(self.path), "path": self.path, "parent": parent, "title": self.title,
            "description": description(self.title), "priority": 5, "dependencies": needs,
            "status": "available", "created_at": ago(299.0), "tags": [tag(self.path)],
        });
        if !is_parent && self.word(0) != "open" {
            self.worked(&mut task, commits);
        }
        task
    }

    /// Adds what became of the task.
    fn worked(&self, task: &mut Value, commits: &[(String, String)]) {
        let (agent, at) = (self.word(1), self.minutes(2));
        let is_held = self.word(0) == "work";
        let begun = if is_held { at } else { at + self.minutes(3) };
        let branch = format!("work/{}", self.path.to_lowercase());
        let mut attempt = json!({
            "number": 1, "agent": agent, "claimed_at": ago(begun), "started_at": ago(begun),
            "lease_until": ago(-60.0), "branch": branch, "acted": true,
        });
        task["claimed_by"] = agent.into();
        task["claimed_at"] = ago(begun).into();
        task["attempt"] = 1.into();
        if !is_held {
            attempt["ended_at"] = ago(at).into();
        }
        match self.word(0) {
            "work" => {
                attempt["note"] = self.rest().into();
                task["status"] = "in_progress".into();
            }
            "done" | "review" => {
                let commit = commits.iter().find(|(path, _)| path == self.path);
                attempt["outcome"] = "done".into();
                task["status"] = self.word(0).into();
                task["result"] = json!({
                    "output": format!("{}: done, with tests.", self.title), "branch": branch,
                    "commit": commit.map(|(_, commit)| commit),
                    "files_modified": [format!("src/{}.rs", tag(self.path))],
                });
                if self.word(0) == "done" {
                    task["completed_at"] = ago(at).into();
                } else {
                    task["review"] = "required".into();
                }
            }
            status => {
                let rest = self.rest();
                let (category, message) = rest.split_once(": ").unwrap_or(("other", &rest));
                attempt["outcome"] = "failed".into();
                attempt["error"] = json!({"category": category, "message": message});
                task["claimed_by"] = Value::Null;
                task["status"] = if status == "failed" { "failed" } else { "available" }.into();
                if status == "failed" {
                    task["max_attempts"] = 1.into();
                    task["completed_at"] = ago(at).into();
                } else {
                    task["not_before"] = ago(-14.0).into();
                }
            }
        }
        task["attempts"] = json!([attempt]);
    }
}

fn tag(path: &str) -> &'static str {
    match &path[..2] {
        "P1" => "lexer",
        "P2" => "parser",
        "P3" => "tree",
        _ => "tools",
    }
}

fn description(title: &str) -> String {
    format!(
        "{title}, as in the old parser.\n\n- The same input gives the same result; `tests/old` has \
         400 files.\n- Errors say where, what, and **what to do**.\n\nSee the \
         [grammar](https://example.org/grammar)."
    )
}

fn agents(rows: &[Row]) -> Map<String, Value> {
    let agent = |(name, heard): &(&str, f64)| {
        let held: Vec<_> = rows
            .iter()
            .filter(|row| row.word(0) == "work" && row.word(1) == *name)
            .map(|row| Row::id(row.path))
            .collect();
        let done = rows.iter().filter(|row| row.word(0) == "done" && row.word(1) == *name).count();
        let failed =
            rows.iter().filter(|row| row.word(0) == "failed" && row.word(1) == *name).count();
        let agent = json!({
            "id": name, "role": "worker", "last_heartbeat": ago(*heard), "registered_at": ago(298.0),
            "current_task": held.last(), "current_tasks": held, "tasks_completed": done,
            "tasks_failed": failed, "capabilities": ["rust"],
        });
        ((*name).to_owned(), agent)
    };
    AGENTS.iter().map(agent).collect()
}

/// The time so many minutes before now.
fn ago(minutes: f64) -> String {
    (Timestamp::now() - SignedDuration::from_secs_f64(minutes * 60.0)).to_string()
}

/// What happens now, which the events tell.
async fn present(board: &Board) -> Outcome<()> {
    let task = |path: &str| Row::id(path);
    for (operation, call) in [
        (
            "ask_human",
            json!({"agent_id": "gemini-1", "question": "Keep the old syntax for ranges, with two dots and an equals sign?", "options": ["keep", "drop"], "task_id": task("P2.M1.T4")}),
        ),
        (
            "report_waiting",
            json!({"agent_id": "claude-2", "for": "permission", "what": "Bash: cargo add nom", "where": "tmux pane %3"}),
        ),
        (
            "send_message",
            json!({"agent_id": "claude-1", "to": "codex-1", "text": "The table of precedence is in src/table.rs now; the printer can read it.", "task_id": task("P3.M2.T1")}),
        ),
        (
            "add_discovery",
            json!({"agent_id": "codex-1", "content": "The old parser reads CRLF as one character: offsets in its tests are off by one for each line.", "tags": ["tests"], "files": ["tests/old/**"]}),
        ),
        (
            "reserve_files",
            json!({"agent_id": "claude-1", "files": ["src/expression.rs", "src/table.rs"], "reason": "operators", "task_id": task("P2.M1.T2")}),
        ),
        (
            "heartbeat",
            json!({"agent_id": "codex-1", "task_id": task("P3.M2.T1"), "note": "writing tests"}),
        ),
        ("update_task", json!({"agent_id": "human", "task_id": task("P2.M4.T3"), "priority": 3})),
        ("assign_task", json!({"agent_id": "human", "task_id": task("P3.M1.T4"), "to": "codex-1"})),
    ] {
        board.call_json(operation, call).await?;
    }
    Ok(())
}

/// A repository with a branch for each result that waits for a reviewer.
fn repository(root: &Path) -> Outcome<Vec<(String, String)>> {
    let git = |words: &[&str]| -> Outcome<String> {
        let who = ["-c", "user.name=scene", "-c", "user.email=scene@example.org"];
        let output = Command::new("git").current_dir(root).args(who).args(words).output()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if output.status.success() {
            Ok(text)
        } else {
            Err(format!("git {words:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
        }
    };
    git(&["init", "--quiet", "--initial-branch=main"])?;
    fs::create_dir_all(root.join("src"))?;
    fs::write(root.join(".gitignore"), ".coordination/\n")?;
    fs::write(root.join("src/lexer.rs"), BEFORE)?;
    git(&["add", "."])?;
    git(&["commit", "--quiet", "-m", "Begin"])?;
    let mut commits = Vec::new();
    for (path, after) in [("P1.M2.T3", NUMBERS), ("P1.M2.T4", NAMES)] {
        git(&["checkout", "--quiet", "-b", &format!("work/{}", path.to_lowercase()), "main"])?;
        fs::write(root.join("src/lexer.rs"), after)?;
        git(&["commit", "--quiet", "--all", "-m", path])?;
        commits.push((path.to_owned(), git(&["rev-parse", "HEAD"])?));
    }
    git(&["checkout", "--quiet", "main"])?;
    Ok(commits)
}

const BEFORE: &str = "/// Reads a number.\npub fn number(text: &str) -> Option<&str> {\n    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());\n    (end > 0).then(|| &text[..end])\n}\n";
const NUMBERS: &str = "/// Reads a number; an underscore may stand anywhere but at the ends.\npub fn number(text: &str) -> Option<&str> {\n    let is_part = |c: char| c.is_ascii_digit() || c == '_';\n    let end = text.find(|c: char| !is_part(c)).unwrap_or(text.len());\n    let digits = &text[..end];\n    let is_good = !digits.is_empty() && !digits.starts_with('_') && !digits.ends_with('_');\n    is_good.then_some(digits)\n}\n";
const NAMES: &str = "/// Reads a number.\npub fn number(text: &str) -> Option<&str> {\n    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());\n    (end > 0).then(|| &text[..end])\n}\n\n/// Reads a name or a keyword.\npub fn name(text: &str) -> Option<&str> {\n    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());\n    (end > 0).then(|| &text[..end])\n}\n";
