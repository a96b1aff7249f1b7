use super::*;

impl Project {
    /// Adds hooks twice to `before`: the first gives the returned text, the second changes nothing.
    fn adds_hooks(&self, client: Client, file: &str, before: &str) -> String {
        let path = self.path("project").join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, before).expect("a file");
        let first = self.connect_with(hooks(client), None).expect("connected");
        assert_eq!((first.status, &first.path), (Status::Written, &path));
        let after = fs::read_to_string(&path).expect("a file");
        assert_eq!(
            self.connect_with(hooks(client), None).expect("connected").status,
            Status::Unchanged
        );
        assert_eq!(fs::read_to_string(&path).expect("a file"), after);
        after
    }
}

#[test]
fn hooks_come_beside_those_that_are_there() {
    let before = r#"{
  // mine
  "hooks": {
    "AfterAgent": [
      { "matcher": "*", "hooks": [{ "name": "bell", "type": "command", "command": "bell" }] }
    ]
  }
}
"#;
    let after = Project::new().adds_hooks(Client::Gemini, ".gemini/settings.json", before);
    let expected = r#"{
  // mine
  "hooks": {
    "AfterAgent": [
      { "matcher": "*", "hooks": [{ "name": "bell", "type": "command", "command": "bell" }] },
      {
        "hooks": [
          {
            "type": "command",
            "command": "/opt/callboard hook stop || true",
            "timeout": 5000
          }
        ]
      }
    ],
    "SessionStart": ["#;
    assert!(after.starts_with(expected), "{after}");
}

#[test]
fn hooks_of_every_client_that_has_them_are_for_its_own_events() {
    let files = [
        (
            Client::Claude,
            ".claude/settings.json",
            ["SessionStart", "SubagentStop", "PostToolUseFailure"],
            5,
        ),
        (
            Client::Codex,
            ".codex/hooks.json",
            ["SessionStart", "SubagentStop", "UserPromptSubmit"],
            5,
        ),
        (
            Client::Gemini,
            ".gemini/settings.json",
            ["SessionStart", "AfterAgent", "BeforeAgent"],
            5_000,
        ),
    ];
    for (client, file, events, timeout) in files {
        let after = Project::new().adds_hooks(client, file, "");
        let value: serde_json::Value = serde_json::from_str(&after).expect("JSON");
        for (event, hook) in events.iter().zip(["session-start", "stop", "heartbeat"]) {
            let command = format!("/opt/callboard hook {hook} || true");
            let group = serde_json::json!([{"hooks": [{"type": "command", "command": command, "timeout": timeout}]}]);
            assert_eq!(value["hooks"][event], group, "{client:?}");
        }
        let hook = serde_json::json!({"type": "command", "command": "/opt/callboard hook guard || true", "timeout": 5});
        let edits =
            serde_json::json!([{"matcher": "Edit|Write|MultiEdit|NotebookEdit", "hooks": [hook]}]);
        let guarded = (client == Client::Claude).then_some(&edits);
        assert_eq!(value["hooks"].get("PreToolUse"), guarded, "{client:?}");
        let waiting = |event: &str| {
            value["hooks"][event][0]["hooks"][0]["command"] == "/opt/callboard hook waiting || true"
        };
        assert_eq!(waiting("PermissionRequest"), client != Client::Gemini, "{client:?}");
        assert_eq!(waiting("Notification"), client != Client::Codex, "{client:?}");
        let named = value["hooks"]["SubagentStart"][0]["hooks"][0]["command"].is_string();
        assert_eq!(named, client != Client::Gemini, "{client:?}");
    }
    let project = Project::new();
    let refused = project.connect_with(hooks(Client::Zed), None).expect_err("refused");
    assert!(refused.to_string().contains("claude, codex and gemini"), "{refused}");
}

#[test]
fn our_hooks_from_elsewhere_are_updated_and_their_own_settings_stay() {
    let project = Project::new();
    let before = r#"{"hooks": {"Stop": [{"hooks": [
        {"type": "command", "command": "callboard-notes hook stopped", "timeout": 1},
        {"type": "command", "command": "'/old place/callboard' hook stop --dir /b", "timeout": 9}
    ]}]}}"#;
    let after = project.adds_hooks(Client::Claude, ".claude/settings.json", before);
    assert!(after.contains("callboard-notes hook stopped"), "{after}");
    assert!(
        after.contains(
            r#"{"type": "command", "command": "/opt/callboard hook stop || true", "timeout": 9}"#
        ),
        "{after}"
    );
    assert!(!after.contains("/old place"), "{after}");
}

#[test]
fn hooks_of_the_user_that_run_ours_among_other_things_stay() {
    let own = [
        "CALLBOARD_AGENT=ada callboard hook stop || true; notify-send done",
        "cat NOTES.md; callboard hook stop --agent ada",
        "log-it.sh 'ran callboard hook stop now'",
        "callboard hook stop && bell",
        "callboard hook stop > log",
        "CALLBOARD_AGENT=ada callboard hook stop",
        "A=/x/callboard hook stop",
        "callboard hook stop\nbell",
        "echo \"$(callboard hook stop)\"",
        "callboard hook stop --with-what-nobody-knows",
    ];
    for command in own {
        let before = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
        let after =
            Project::new().adds_hooks(Client::Claude, ".claude/settings.json", &before.to_string());
        let value: serde_json::Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(value["hooks"]["Stop"][0], before["hooks"]["Stop"][0]);
        assert_eq!(
            value["hooks"]["Stop"][1]["hooks"][0]["command"],
            "/opt/callboard hook stop || true"
        );
    }
}

#[test]
fn options_of_ours_stay_when_hooks_are_updated_until_others_are_given() {
    let project = Project::new();
    let hook = |before: &str, agent: Option<&str>| {
        let path = project.path("project/.claude/settings.json");
        let text = serde_json::json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": before}]}]}});
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, text.to_string()).expect("a file");
        project.connect_as(hooks(Client::Claude), agent, None).expect("connected");
        let text = fs::read_to_string(&path).expect("a file");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["hooks"]["Stop"].as_array().map(Vec::len), Some(1), "{value}");
        value["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().expect("a command").to_owned()
    };
    let kept = hook("callboard hook stop --agent ada --dir /b", None);
    assert_eq!(kept, "/opt/callboard hook stop --agent ada || true");
    assert_eq!(
        hook("'/my bin/callboard' --agent=ada hook stop", None),
        "/opt/callboard hook stop --agent=ada || true"
    );
    assert_eq!(
        hook("\"/my bin/callboard\" hook stop||true", None),
        "/opt/callboard hook stop || true"
    );
    assert_eq!(
        hook("callboard hook stop --agent ada", Some("bob")),
        "/opt/callboard hook stop --agent bob || true"
    );
    for given in ["--agent ada", "--agent=ada"] {
        let dropped = hook(&format!("callboard hook stop {given}"), Some("auto"));
        assert_eq!(
            dropped, "/opt/callboard hook stop || true",
            "a hook that names nobody finds the agent itself"
        );
    }
}

#[test]
fn hooks_name_the_executable_and_the_board_as_a_shell_reads_them() {
    let print = ConnectArgs { print: true, ..hooks(Client::Claude) };
    let (exe, board) = (Path::new("/it's here/callboard"), Path::new("/my board"));
    let printed = connect(&print, &Target { exe, board, dir: Some(board), ..target() })
        .expect("printed")
        .to_string();
    let value: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let command = &value["hooks"]["Stop"][0]["hooks"][0]["command"];
    assert_eq!(command, r"'/it'\''s here/callboard' hook stop --dir '/my board' || true");
}

#[test]
fn hooks_are_not_put_where_a_client_would_not_find_them() {
    for (text, reason) in [
        (r#"{"hooks": []}"#, "`hooks` is not an object"),
        (r#"{"hooks": {"Stop": {}}}"#, "`hooks.Stop` is not an array"),
        (r#"{"hooks": {}, "hooks": {}}"#, "twice"),
        ("{ // no comments\n}", "on line 1"),
    ] {
        let project = Project::new();
        let path = project.path("project").join(".claude/settings.json");
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(&path, text).expect("a file");
        let error = format!(
            "{:#}",
            project.connect_with(hooks(Client::Claude), None).expect_err("refused")
        );
        assert!(error.contains(reason), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("a file"), text);
    }
}

#[test]
fn hooks_for_every_project_go_to_the_users_own_settings() {
    let project = Project::new();
    let global = |client| ConnectArgs { global: true, print: true, ..hooks(client) };
    let path = |args| project.connect_with(args, None).expect("printed").path;
    assert_eq!(path(global(Client::Claude)), project.path("home/.claude/settings.json"));
    let moved = ConnectArgs { claude_home: Some(project.path("c")), ..global(Client::Claude) };
    assert_eq!(path(moved), project.path("c/settings.json"));
    assert_eq!(path(global(Client::Codex)), project.path("home/.codex/hooks.json"));
    assert_eq!(path(global(Client::Gemini)), project.path("home/.gemini/settings.json"));
}

#[test]
fn hooks_of_others_stay_when_ours_are_removed() {
    let project = Project::new();
    let before = r#"{
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "bell" }] },
      { "hooks": [{ "type": "command", "command": "callboard hook stop; bell" }] }
    ],
    "PreCompact": []
  },
  "model": "m"
}
"#;
    project.adds_hooks(Client::Claude, ".claude/settings.json", before);
    let removed = project.connect_with(removing(hooks(Client::Claude)), None).expect("removed");
    assert_eq!(removed.status, Status::Removed);
    let after = fs::read_to_string(&removed.path).expect("a file");
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    assert_eq!(value(&after), value(before), "{after}");
}

#[test]
fn without_a_name_the_clients_that_are_installed_are_connected_with_their_hooks() {
    let project = Project::new();
    let (root, home, bin) = (project.path("project"), project.path("home"), project.path("bin"));
    let target =
        |path| Target { project_root: &root, home: Some(&home), board: &root, path, ..target() };
    let all = ConnectArgs { clients: Vec::new(), ..args(Client::Claude) };
    let none =
        super::super::connect(&all, &target(None)).expect_err("none is installed").to_string();
    assert!(
        none.contains("Claude Code, Codex") && none.contains("callboard connect claude"),
        "{none}"
    );
    fs::create_dir_all(home.join(".gemini")).expect("a directory");
    fs::create_dir(&bin).expect("a directory");
    fs::write(bin.join("claude"), "").expect("a file");
    let (report, failure) =
        super::super::connect(&all, &target(Some(bin.as_os_str()))).expect("connected");
    assert!(failure.is_none());
    let done: Vec<_> = report.files.iter().map(|one| (one.client, one.part)).collect();
    let parts = |client| [(client, Part::Server), (client, Part::Hooks)];
    assert_eq!(done, [parts(Client::Claude), parts(Client::Gemini)].concat());
    let text = report.to_string();
    for part in [
        ".mcp.json: callboard mcp --agent auto",
        ".claude/settings.json: SessionStart",
        "/mcp__callboard__work",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let check = ConnectArgs { check: true, ..all.clone() };
    assert!(super::super::connect(&check, &target(None)).expect("checked").0.is_current());
    let without = ConnectArgs { no_hooks: true, clients: vec![Client::Codex], ..all.clone() };
    assert_eq!(super::super::connect(&without, &target(None)).expect("connected").0.files.len(), 1);
    let remove = ConnectArgs { remove: true, ..all.clone() };
    let (report, _) = super::super::connect(&remove, &target(None)).expect("removed");
    let removed = report.files.iter().filter(|one| one.status == Status::Removed).count();
    assert_eq!(removed, 5, "{report}");
    let (report, _) = super::super::connect(&remove, &target(None)).expect("nothing to do");
    assert_eq!(report.to_string(), "no client of this project is connected");
    assert!(!super::super::connect(&check, &target(None)).expect("checked").0.is_current());
}
