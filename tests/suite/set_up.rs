//! `init` on a terminal, and `connect` for a whole project.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// An empty project, a home directory, and a directory of programs.
struct Project {
    base: TempDir,
}

impl Project {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for dir in ["home", "project", "bin"] {
            fs::create_dir(base.path().join(dir)).unwrap();
        }
        Self { base }
    }

    /// A project for which these clients are installed, and callboard itself.
    fn with_clients(names: &[&str]) -> Self {
        let project = Self::new();
        for name in names {
            fs::write(project.path("bin").join(name), "").unwrap();
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_callboard"), project.path("bin/callboard"))
            .unwrap();
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path("project").join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("project").join(name), text).unwrap();
    }

    fn has(&self, name: &str) -> bool {
        self.path("project").join(name).exists()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        command.args(arguments).current_dir(self.path("project")).env("HOME", self.path("home"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        // Programs such as git are found, clients of this machine's user are not.
        let system = std::env::split_paths(&path)
            .filter(|dir| dir.starts_with("/usr/bin") || dir.starts_with("/bin"));
        command.env(
            "PATH",
            std::env::join_paths([self.path("bin")].into_iter().chain(system)).unwrap(),
        );
        for name in [
            "COORDINATION_DIR",
            "CLAUDE_PROJECT_DIR",
            "CLAUDE_CONFIG_DIR",
            "CODEX_HOME",
            "XDG_CONFIG_HOME",
        ] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    #[track_caller]
    fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a terminal shows on which a person types `answers`; `script` is that terminal.
    fn on_terminal(&self, arguments: &[&str], answers: &str) -> String {
        let callboard = self.command(arguments);
        let mut terminal = Command::new("script");
        if cfg!(target_os = "linux") {
            let words = [callboard.get_program()].into_iter().chain(callboard.get_args());
            let line = shlex::try_join(words.map(|word| word.to_str().unwrap())).unwrap();
            terminal.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        } else {
            terminal
                .args(["-q", "/dev/null"])
                .arg(callboard.get_program())
                .args(callboard.get_args());
        }
        for (name, value) in callboard.get_envs() {
            match value {
                Some(value) => terminal.env(name, value),
                None => terminal.env_remove(name),
            };
        }
        terminal.current_dir(callboard.get_current_dir().unwrap());
        let mut child = terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{shown}");
        shown
    }

    fn board(&self) -> Value {
        serde_json::from_str(&self.read(".coordination/mcp-state.json")).unwrap()
    }
}

const PLAN: &str = "# Port it\n\n- [ ] Write the lexer\n- [ ] Write the parser\n";

#[test]
fn on_a_terminal_init_asks_and_then_sets_the_project_up() {
    let project = Project::with_clients(&["claude", "gemini"]);
    project.write("PLAN.md", PLAN);
    project.write("CLAUDE.md", "# Mine\n");
    let shown = project.on_terminal(&["init", "Port it"], "y\ny\n\n");
    for part in [
        "The board is in",
        "CLAUDE.md? [Y/n]",
        "Import PLAN.md (2 things",
        "[y/N]",
        "Connect Claude Code, Gemini CLI",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let text = project.read("CLAUDE.md");
    assert!(
        text.starts_with("# Mine\n\n<!-- callboard -->\n## Tasks\n")
            && text.contains("agent_id in\nevery call"),
        "{text}"
    );
    assert!(!project.has("AGENTS.md"));
    assert_eq!(project.board()["tasks"].as_array().map(Vec::len), Some(2));
    for file in [".mcp.json", ".claude/settings.json", ".gemini/settings.json"] {
        assert!(project.has(file), "{file}");
    }
    let again = project.on_terminal(&["init", "Port it"], "n\nn\nn\n");
    assert!(!again.contains("CLAUDE.md?"), "it is there already: {again}");
    assert_eq!(project.read("CLAUDE.md"), text);
}

#[test]
fn no_is_an_answer_and_so_is_the_end_of_the_input() {
    for answers in ["n\nn\nn\n", ""] {
        let project = Project::with_clients(&["codex"]);
        project.write("TODO.md", PLAN);
        let shown = project.on_terminal(&["init", "x"], answers);
        assert!(shown.contains("AGENTS.md? [Y/n]") && shown.contains("Connect Codex"), "{shown}");
        assert!(!project.has("AGENTS.md") && !project.has(".codex"), "{shown}");
        assert_eq!(project.board()["tasks"].as_array().map_or(0, Vec::len), 0);
    }
}

#[test]
fn without_a_terminal_or_with_no_input_nothing_is_asked_and_only_the_board_is_made() {
    let project = Project::with_clients(&["claude"]);
    let shown = project.says(&["init", "x"]);
    assert!(shown.contains("## Tasks") && shown.contains("For AGENTS.md or CLAUDE.md"), "{shown}");
    let shown = project.on_terminal(&["init", "x", "--no-input"], "");
    assert!(shown.contains("## Tasks") && !shown.contains("[Y/n]"), "{shown}");
    assert!(project.has(".coordination") && !project.has("AGENTS.md") && !project.has(".mcp.json"));
}

#[test]
fn yes_answers_all_questions_and_takes_none_of_several_plans() {
    let project = Project::with_clients(&["claude"]);
    project.write("PLAN.md", PLAN);
    let shown = project.says(&["init", "x", "--yes"]);
    assert!(
        shown.contains("AGENTS.md") && shown.contains("PLAN.md") && !shown.contains("[Y/n]"),
        "{shown}"
    );
    assert!(
        project.has("AGENTS.md")
            && project.has(".mcp.json")
            && project.has(".claude/settings.json")
    );
    assert_eq!(project.board()["tasks"].as_array().map(Vec::len), Some(2));
    project.write("PLAN.md", "# Another\n\n- [ ] Else\n");
    let shown = project.says(&["init", "x", "--yes"]);
    assert!(shown.contains("has a plan already") && !shown.contains("imported "), "{shown}");
    assert_eq!(project.board()["tasks"].as_array().map(Vec::len), Some(2));

    let project = Project::with_clients(&["claude"]);
    project.write("PLAN.md", PLAN);
    project.write("TODO.md", "# T\n\n- [ ] Else\n");
    let told: Value =
        serde_json::from_str(&project.says(&["init", "x", "--yes", "--json"])).unwrap();
    assert_eq!(told["plan"], Value::Null);
    assert_eq!(told["connected"]["files"][0]["status"], "written", "{told}");
    assert!(told["paragraphs"][0].as_str().unwrap().ends_with("AGENTS.md"), "{told}");
}

#[test]
fn a_plan_that_init_finds_is_known_by_its_path() {
    let project = Project::with_clients(&[]);
    fs::create_dir(project.path("project/docs")).unwrap();
    project.write("docs/plan.md", PLAN);
    project.says(&["init", "x", "--yes"]);
    project.write("plan.md", "- [ ] Else\n");
    let second = project.says(&["plan", "import", "plan.md"]);
    assert!(second.contains("beside docs/plan.md") && second.contains("1 added"), "{second}");
    let listed = project.says(&["plan", "list"]);
    assert!(listed.contains("docs/plan.md") && !listed.contains("gone"), "{listed}");
}

#[test]
fn connect_alone_says_what_it_wrote_how_to_begin_and_how_other_worktrees_get_it() {
    let project = Project::with_clients(&["claude", "codex", "gemini"]);
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(project.path("project"))
            .status()
            .unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    git(&["init", "--quiet"]);
    project.write(".gitignore", ".gemini/\n");
    let shown = project.says(&["connect"]);
    for part in [
        "added the server `callboard` to",
        ".mcp.json: callboard mcp --agent auto",
        ".claude/settings.json: SessionStart, SubagentStart, Stop",
        ".codex/hooks.json: ",
        "next: restart Claude Code",
        "/mcp__callboard__work",
        "Work on the callboard until",
        "type `/work`",
        "worktrees: commit .claude/settings.json, .codex/config.toml, .codex/hooks.json, .mcp.json",
        "git ignores .gemini/settings.json",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let told: Value = serde_json::from_str(&project.says(&["connect", "--json"])).unwrap();
    let files = told["files"].as_array().unwrap();
    assert!(files.len() == 6 && files.iter().all(|file| file["status"] == "unchanged"), "{told}");
    assert_eq!(told["prompts"][1], json!({"client": "codex", "how": told["prompts"][1]["how"]}));
    let checked = project.says(&["connect", "--check"]);
    assert_eq!(
        checked.lines().filter(|line| line.starts_with("already configured")).count(),
        6,
        "{checked}"
    );
    let settings = project.read(".claude/settings.json");
    project
        .write(".claude/settings.json", &settings.replace("hook guard", "hook guard --agent ada"));
    let checked = project.run(&["connect", "--check"]);
    assert_eq!(
        checked.status.code(),
        Some(0),
        "options of the user stay: {}",
        String::from_utf8_lossy(&checked.stdout)
    );
    project.write(".claude/settings.json", &settings.replace("SubagentStart", "Other"));
    let checked = project.run(&["connect", "claude", "--check"]);
    let shown = String::from_utf8(checked.stdout).unwrap();
    assert_eq!(checked.status.code(), Some(1), "{shown}");
    assert!(shown.contains("outdated: the hooks") && shown.contains("SubagentStart"), "{shown}");
    project.says(&["connect"]);
    let removed = project.says(&["connect", "--remove"]);
    assert_eq!(removed.lines().filter(|line| line.starts_with("removed")).count(), 6, "{removed}");
    for gone in [".mcp.json", ".codex", ".gemini"] {
        assert!(!project.has(gone), "{gone}");
    }
    assert!(project.read(".claude/settings.json").contains("Other"), "a hook that is not ours");
    assert_eq!(project.run(&["connect", "--check"]).status.code(), Some(1));
}

#[test]
fn uninstall_takes_out_what_callboard_wrote_and_nothing_else() {
    let project = Project::with_clients(&["claude", "gemini"]);
    project.says(&["init", "Goal", "--yes"]);
    let written = ["AGENTS.md", ".mcp.json", ".gemini/settings.json", ".claude/settings.json"];
    project.write("AGENTS.md", &format!("# Mine\n\n{}", project.read("AGENTS.md")));
    let listed = project.says(&["uninstall", "--dry-run"]);
    for name in written {
        assert!(listed.contains(&format!("/{name}")), "{name} in {listed}");
        assert!(project.has(name), "{name} is only listed");
    }
    let taken = project.says(&["uninstall"]);
    assert_eq!(taken.replace("took out", "would take out"), listed);
    assert_eq!(project.read("AGENTS.md"), "# Mine\n");
    for name in &written[1..] {
        assert!(!project.has(name), "{name} held nothing else");
    }
    assert!(project.has(".coordination/mcp-state.json"), "the board stays");
    let again = project.says(&["uninstall"]);
    assert!(again.contains("nothing of callboard is in this project's files"), "{again}");
}

#[test]
fn help_has_topics_and_lists_them() {
    let project = Project::new();
    let help = project.says(&["--help"]);
    for topic in ["clients", "http", "git", "promises", "back", "settings"] {
        assert!(help.contains(&format!("\n  help {topic} ")), "{topic} in {help}");
        let text = project.says(&["help", topic]);
        assert!(
            text.lines().count() > 10 && text.lines().all(|line| line.chars().count() <= 105),
            "{text}"
        );
    }
    let mut closed = project.command(&["help", "clients"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert!(closed.stdout(writer).status().unwrap().success(), "a pager that was closed");
    assert!(project.says(&["help", "serve"]).contains("Usage: callboard serve"));
}

#[test]
fn uninstall_leaves_a_link_and_empties_what_it_leads_to() {
    let project = Project::with_clients(&[]);
    project.says(&["init", "Goal", "--yes"]);
    fs::rename(project.path("project/AGENTS.md"), project.path("project/OTHER.md")).unwrap();
    std::os::unix::fs::symlink("OTHER.md", project.path("project/AGENTS.md")).unwrap();
    project.says(&["uninstall"]);
    assert!(project.path("project/AGENTS.md").is_symlink());
    assert_eq!(project.read("OTHER.md"), "");
}
