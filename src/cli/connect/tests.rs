mod adding_hooks;

use std::os::unix::fs::{PermissionsExt, symlink};

use super::client::export_token;
use super::*;

/// Connects the first client, with its server or with the hooks alone.
fn connect(args: &ConnectArgs, target: &Target<'_>) -> anyhow::Result<Connected> {
    connect_part(args.clients[0], if args.hooks { Part::Hooks } else { Part::Server }, args, target)
}

struct Project {
    dir: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(dir.path().join("home")).expect("a home");
        fs::create_dir(dir.path().join("project")).expect("a project");
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&self, client: Client) -> PathBuf {
        self.path("project").join(client.project_file())
    }

    fn write(&self, client: Client, text: &str) {
        let file = self.file(client);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        fs::write(file, text).expect("a file");
    }

    fn read(&self, client: Client) -> String {
        fs::read_to_string(self.file(client)).expect("a file")
    }

    fn connect(&self, client: Client) -> anyhow::Result<Connected> {
        self.connect_with(args(client), None)
    }

    fn connect_with(&self, args: ConnectArgs, dir: Option<&Path>) -> anyhow::Result<Connected> {
        self.connect_as(args, None, dir)
    }

    fn connect_as(
        &self,
        args: ConnectArgs,
        agent: Option<&str>,
        dir: Option<&Path>,
    ) -> anyhow::Result<Connected> {
        let (project, home) = (self.path("project"), self.path("home"));
        let board = project.join(".coordination");
        let target = Target {
            agent,
            dir,
            board: &board,
            project_root: &project,
            home: Some(&home),
            ..target()
        };
        connect(&args, &target)
    }

    /// Connects twice: the first adds the entry to `before`, giving `after`, and the second changes
    /// nothing.
    fn adds(&self, client: Client, before: &str, after: &str) {
        self.write(client, before);
        let first = self.connect(client).expect("connected");
        assert_eq!(self.read(client), after);
        assert_eq!((first.status, first.changes), (Status::Written, Vec::new()));
        assert_eq!(self.connect(client).expect("connected").status, Status::Unchanged);
        assert_eq!(self.read(client), after);
    }

    fn refuses(&self, client: Client, text: &str, reason: &str) {
        self.write(client, text);
        let error = format!("{:#}", self.connect(client).expect_err("refused"));
        assert!(error.contains(reason), "{error}");
        assert_eq!(self.read(client), text);
    }
}

fn target() -> Target<'static> {
    Target {
        exe: Path::new("/opt/callboard"),
        agent: None,
        dir: None,
        board: Path::new("/p/.coordination"),
        project_root: Path::new("/p"),
        home: None,
        path: None,
    }
}

fn args(client: Client) -> ConnectArgs {
    ConnectArgs {
        claude_home: None,
        codex_home: None,
        config_home: None,
        ..ConnectArgs::to(vec![client])
    }
}

fn hooks(client: Client) -> ConnectArgs {
    ConnectArgs { hooks: true, ..args(client) }
}

fn http(client: Client) -> ConnectArgs {
    ConnectArgs { url: Some("http://127.0.0.1:8425/mcp".to_owned()), ..args(client) }
}

#[test]
fn the_examples_are_what_print_prints() {
    let examples = [
        (Client::Claude, include_str!("../../../examples/clients/claude.mcp.json")),
        (Client::Codex, include_str!("../../../examples/clients/codex.config.toml")),
        (Client::Cursor, include_str!("../../../examples/clients/cursor.mcp.json")),
        (Client::Gemini, include_str!("../../../examples/clients/gemini.settings.json")),
        (Client::Vscode, include_str!("../../../examples/clients/vscode.mcp.json")),
        (Client::Zed, include_str!("../../../examples/clients/zed.settings.json")),
        (Client::Copilot, include_str!("../../../examples/clients/copilot.mcp.json")),
        (Client::Opencode, include_str!("../../../examples/clients/opencode.json")),
    ];
    for (client, example) in examples {
        assert_eq!(printed(args(client)), example, "{client:?}");
    }
    let examples = [
        (Client::Claude, include_str!("../../../examples/clients/claude.http.mcp.json")),
        (Client::Codex, include_str!("../../../examples/clients/codex.http.config.toml")),
        (Client::Cursor, include_str!("../../../examples/clients/cursor.http.mcp.json")),
        (Client::Gemini, include_str!("../../../examples/clients/gemini.http.settings.json")),
        (Client::Vscode, include_str!("../../../examples/clients/vscode.http.mcp.json")),
        (Client::Copilot, include_str!("../../../examples/clients/copilot.http.mcp.json")),
        (Client::Opencode, include_str!("../../../examples/clients/opencode.http.json")),
    ];
    for (client, example) in examples {
        assert_eq!(printed(http(client)), example, "{client:?}");
    }
    let examples = [
        (Client::Claude, include_str!("../../../examples/clients/claude.settings.json")),
        (Client::Codex, include_str!("../../../examples/clients/codex.hooks.json")),
        (Client::Gemini, include_str!("../../../examples/clients/gemini.hooks.settings.json")),
    ];
    for (client, example) in examples {
        assert_eq!(printed(hooks(client)), example, "{client:?}");
    }
}

fn printed(args: ConnectArgs) -> String {
    let print = ConnectArgs { print: true, ..args };
    let printed = connect(&print, &Target { exe: Path::new("callboard"), ..target() });
    format!("{}\n", printed.expect("printed"))
}

#[test]
fn every_client_gets_a_new_file_once() {
    for client in <Client as clap::ValueEnum>::value_variants() {
        let project = Project::new();
        let first = project.connect(*client).expect("connected");
        assert_eq!(first.status, Status::Written);
        assert_eq!(project.read(*client), first.config);
        let mode = fs::metadata(&first.path).expect("metadata").permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        let second = project.connect(*client).expect("connected");
        assert_eq!(second.status, Status::Unchanged);
        assert!(second.to_string().starts_with("already configured"), "{second}");
    }
}

#[test]
fn print_writes_nothing() {
    let project = Project::new();
    let print = ConnectArgs { print: true, ..args(Client::Claude) };
    project.connect_with(print, None).expect("printed");
    assert!(!project.file(Client::Claude).exists());
}

#[test]
fn comments_order_and_layout_of_the_rest_stay() {
    Project::new().adds(
        Client::Vscode,
        r#"// servers of this project
{
    "inputs": [],   // none
    "servers": {
        /* of the team */
        "other": { "type": "http", "url": "https://example.com/mcp" },
    },
    "z": 1, "a": 2,
}
"#,
        r#"// servers of this project
{
    "inputs": [],   // none
    "servers": {
        /* of the team */
        "other": { "type": "http", "url": "https://example.com/mcp" },
        "callboard": {
            "type": "stdio",
            "command": "/opt/callboard",
            "args": ["mcp", "--agent", "auto"]
        },
    },
    "z": 1, "a": 2,
}
"#,
    );
}

#[test]
fn a_file_without_servers_gets_them() {
    Project::new().adds(
        Client::Gemini,
        "{\n  // mine\n  \"theme\": \"x\"\n}",
        r#"{
  // mine
  "theme": "x",
  "mcpServers": {
    "callboard": {
      "command": "/opt/callboard",
      "args": ["mcp", "--agent", "auto"]
    }
  }
}"#,
    );
}

#[test]
fn codex_keeps_comments_and_other_servers() {
    Project::new().adds(
        Client::Codex,
        "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"o\"\n\n# last words\n[tui]\ntheme = \"t\"\n",
        r#"model = "x" # mine

[mcp_servers.other]
command = "o"

[mcp_servers.callboard]
command = "/opt/callboard"
args = ["mcp", "--agent", "auto"]
env_vars = ["COORDINATION_DIR"]
startup_timeout_sec = 30
tool_timeout_sec = 300

# last words
[tui]
theme = "t"
"#,
    );
}

#[test]
fn last_comments_stay_above_a_new_table() {
    let project = Project::new();
    project.write(Client::Codex, "a = 1\n\n# model = \"x\"\n");
    project.connect(Client::Codex).expect("connected");
    let text = project.read(Client::Codex);
    assert!(text.starts_with("a = 1\n\n# model = \"x\"\n\n[mcp_servers.callboard]\n"), "{text}");
}

#[test]
fn a_byte_order_mark_and_line_ends_stay() {
    let project = Project::new();
    project.write(Client::Vscode, "\u{feff}{\r\n\t\"a\": 1\r\n}\r\n");
    project.connect(Client::Vscode).expect("connected");
    let text = project.read(Client::Vscode);
    assert!(text.starts_with("\u{feff}{\r\n\t\"a\": 1,\r\n\t\"servers\": {\r\n"), "{text:?}");
    assert!(!text.replace("\r\n", "").contains('\n'), "{text:?}");
}

#[test]
fn codex_keeps_a_byte_order_mark_and_line_ends() {
    let project = Project::new();
    project.write(
        Client::Codex,
        "\u{feff}# mine\r\nmodel = \"x\"\r\n\r\n[tui]\r\ntext = \"\"\"\r\na\r\n\"\"\"\r\n",
    );
    project.connect(Client::Codex).expect("connected");
    let text = project.read(Client::Codex);
    assert!(text.starts_with("\u{feff}# mine\r\nmodel = \"x\"\r\n"), "{text:?}");
    assert!(
        text.contains("[mcp_servers.callboard]\r\n") && !text.replace("\r\n", "").contains('\n'),
        "{text:?}"
    );
    assert_eq!(project.connect(Client::Codex).expect("connected").status, Status::Unchanged);
}

#[test]
fn codex_inline_tables_stay_inline() {
    let project = Project::new();
    project.write(Client::Codex, "mcp_servers = { other = { command = \"o\" } }\n");
    project.connect(Client::Codex).expect("connected");
    let text = project.read(Client::Codex);
    assert!(text.contains(", callboard = { command ="), "{text}");
    assert_eq!(project.connect(Client::Codex).expect("connected").status, Status::Unchanged);
}

#[test]
fn another_entry_is_updated_and_the_message_says_how() {
    let project = Project::new();
    project.write(
        Client::Claude,
        r#"{"mcpServers": {"callboard": {"type": "http", "url": "http://127.0.0.1:1/mcp", "env": {"A": "b"}}}}"#,
    );
    let connected = project.connect(Client::Claude).expect("connected");
    let message = connected.to_string();
    assert!(message.contains(r#"type: "http", now "stdio""#), "{message}");
    assert!(message.contains("url: removed") && connected.next.contains("approve"), "{message}");
    let value: serde_json::Value =
        serde_json::from_str(&project.read(Client::Claude)).expect("JSON");
    let entry = serde_json::json!({
        "type": "stdio", "command": "/opt/callboard", "args": ["mcp", "--agent", "auto"], "env": {"A": "b"},
        "alwaysLoad": true,
    });
    assert_eq!(value["mcpServers"]["callboard"], entry);
}

#[test]
fn codex_limits_of_the_user_stay() {
    let project = Project::new();
    project.write(
        Client::Codex,
        "[mcp_servers.callboard]\ncommand = \"old\" # here\nargs = []\ntool_timeout_sec = 900\n",
    );
    let connected = project.connect(Client::Codex).expect("connected");
    assert_eq!(connected.changes[0], r#"command: "old", now "/opt/callboard""#);
    let text = project.read(Client::Codex);
    assert!(text.contains("command = \"/opt/callboard\" # here\n"), "{text}");
    assert!(text.contains("tool_timeout_sec = 900"), "{text}");
}

#[test]
fn what_the_client_cannot_read_is_refused_with_the_place() {
    let project = Project::new();
    project.refuses(Client::Cursor, "{\n  \"mcpServers\": {,}\n}", "on line 2 column 18");
    project.refuses(Client::Claude, "{\n  // no comments here\n}", "on line 2");
    project.refuses(Client::Gemini, "{\"a\": 1,}", "on line 1");
    project.refuses(Client::Vscode, "{'servers': {}}", "on line 1");
    project.refuses(Client::Zed, "[]", "top level");
    project.refuses(
        Client::Zed,
        "{\"context_servers\": null}",
        "`context_servers` is not an object",
    );
    project.refuses(Client::Zed, "{\"context_servers\": {}, \"context_servers\": {}}", "twice");
    project.refuses(Client::Codex, "model = \"x\"\n[mcp_servers\n", "line 2");
    project.refuses(Client::Codex, "mcp_servers = 3\n", "not a table");
}

#[test]
fn a_link_is_written_through_and_permissions_stay() {
    let project = Project::new();
    let real = project.path("dotfiles.json");
    fs::write(&real, "{}").expect("a file");
    fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).expect("permissions");
    symlink(&real, project.file(Client::Claude)).expect("a link");
    project.connect(Client::Claude).expect("connected");
    assert!(project.file(Client::Claude).is_symlink());
    assert!(fs::read_to_string(&real).expect("a file").contains("callboard"));
    let mode = fs::metadata(&real).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let left = fs::read_dir(project.dir.path()).expect("a listing").count();
    assert_eq!(left, 3, "home, project and the file, no temporary one");
}

#[test]
fn a_link_to_nothing_is_refused() {
    let project = Project::new();
    symlink("/nowhere/at/all", project.file(Client::Claude)).expect("a link");
    assert!(project.connect(Client::Claude).is_err());
}

#[test]
fn a_named_board_is_written_as_an_absolute_path() {
    let project = Project::new();
    let connected = project
        .connect_with(args(Client::Zed), Some(Path::new("/b/.coordination")))
        .expect("connected");
    assert!(
        connected.config.contains(r#"["mcp", "--agent", "auto", "--dir", "/b/.coordination"]"#)
    );
}

#[test]
fn global_writes_the_users_file_where_the_client_keeps_one() {
    let project = Project::new();
    let global = |client| ConnectArgs { global: true, ..args(client) };
    let cursor = project.connect_with(global(Client::Cursor), None).expect("connected");
    assert_eq!(cursor.path, project.path("home/.cursor/mcp.json"));
    let codex_home = ConnectArgs { codex_home: Some(project.path("c")), ..global(Client::Codex) };
    let codex = project.connect_with(codex_home, None).expect("connected");
    assert_eq!(codex.path, project.path("c/config.toml"));
    let claude = project.connect_with(global(Client::Claude), None).expect_err("refused");
    assert!(claude.to_string().contains("claude mcp add --scope user"));
}

#[test]
fn the_home_directory_is_no_project() {
    let project = Project::new();
    let home = project.path("home");
    let refused = connect(
        &args(Client::Cursor),
        &Target { project_root: &home, home: Some(&home), ..target() },
    );
    assert!(refused.expect_err("refused").to_string().contains("--global"));
}

#[test]
fn the_bare_name_is_used_if_it_leads_to_this_executable() {
    let project = Project::new();
    let (bin, exe) = (project.path("bin"), project.path("exe"));
    fs::create_dir(&bin).expect("a directory");
    fs::write(&exe, "").expect("a file");
    symlink(&exe, bin.join("callboard")).expect("a link");
    assert_eq!(command(&exe, Some(bin.as_os_str())), Path::new("callboard"));
    assert_eq!(command(&project.path("other"), Some(bin.as_os_str())), project.path("other"));
    assert_eq!(command(&exe, None), exe);
}

#[test]
fn options_of_ours_stay_in_a_servers_entry_until_others_are_given() {
    for client in <Client as clap::ValueEnum>::value_variants() {
        let project = Project::new();
        project.connect_as(args(*client), Some("ada"), None).expect("connected");
        let text = project.read(*client);
        assert!(
            text.contains(r#""mcp", "--agent", "ada"]"#)
                || text.contains(r#"["mcp", "--agent", "ada"]"#),
            "{text}"
        );
        let full = text.replace(r#""ada""#, r#""ada", "--toolset", "full""#);
        project.write(*client, &full);
        assert_eq!(
            project.connect(*client).expect("connected").status,
            Status::Unchanged,
            "{full}"
        );
        project.connect_as(args(*client), Some("bob"), Some(Path::new("/b"))).expect("connected");
        let text = project.read(*client);
        assert!(
            text.contains(r#""mcp", "--agent", "bob", "--toolset", "full", "--dir", "/b"]"#),
            "{text}"
        );
    }
}

#[test]
fn options_of_another_program_are_not_kept() {
    let project = Project::new();
    let other = r#"{"mcpServers": {"callboard": {"command": "docker", "args": ["run", "--rm", "callboard", "mcp"]}}}"#;
    project.write(Client::Claude, other);
    project.connect(Client::Claude).expect("connected");
    let value: serde_json::Value =
        serde_json::from_str(&project.read(Client::Claude)).expect("JSON");
    assert_eq!(
        value["mcpServers"]["callboard"]["args"],
        serde_json::json!(["mcp", "--agent", "auto"])
    );
}

#[test]
fn what_a_client_is_advised_to_do_itself_names_the_executable_the_agent_and_the_board() {
    let project = Project::new();
    let advice = |client| {
        let global = ConnectArgs { global: true, ..args(client) };
        project
            .connect_as(global, Some("ada"), Some(Path::new("/my board")))
            .expect_err("refused")
            .to_string()
    };
    let claude = advice(Client::Claude);
    assert!(
        claude.contains("callboard -- /opt/callboard mcp --agent ada --dir '/my board'`"),
        "{claude}"
    );
    let vscode = advice(Client::Vscode);
    let entry = r#""command":"/opt/callboard","args":["mcp","--agent","ada","--dir","/my board"]"#;
    assert!(vscode.contains(entry), "{vscode}");
}

#[test]
fn what_somebody_else_wrote_meanwhile_stays() {
    let project = Project::new();
    project.write(Client::Gemini, "{}");
    let file = ConfigFile::open(project.file(Client::Gemini)).expect("opened");
    project.write(Client::Gemini, "{\"theme\": 1}");
    assert!(!file.replace("{\"mine\": 1}").expect("looked at"));
    assert_eq!(project.read(Client::Gemini), "{\"theme\": 1}");
}

#[test]
fn two_that_connect_at_once_lose_nothing() {
    for _ in 0..20 {
        let project = Project::new();
        std::thread::scope(|scope| {
            scope.spawn(|| project.connect(Client::Gemini).expect("connected"));
            scope.spawn(|| project.connect_with(hooks(Client::Gemini), None).expect("connected"));
        });
        let text = project.read(Client::Gemini);
        assert!(text.contains("mcpServers") && text.contains("AfterAgent"), "{text}");
    }
}

#[test]
fn every_client_but_zed_changes_doors_and_back_without_a_trace() {
    let all = <Client as clap::ValueEnum>::value_variants().iter().copied();
    for client in all.filter(|client| *client != Client::Zed) {
        let project = Project::new();
        project.connect(client).expect("connected");
        let changed = project.connect_with(http(client), None).expect("connected");
        assert_eq!(changed.status, Status::Written, "{client:?}");
        assert_eq!(
            project.connect_with(http(client), None).expect("connected").status,
            Status::Unchanged
        );
        let text = project.read(client);
        assert!(
            text.contains("http://127.0.0.1:8425/mcp") && !text.contains("/opt/callboard"),
            "{text}"
        );
        assert!(!text.contains("stdio") && !text.contains("--agent"), "{text}");
        project.connect(client).expect("connected");
        let text = project.read(client);
        assert!(text.contains("/opt/callboard") && !text.contains("8425"), "{text}");
        assert!(!text.to_uppercase().contains("TOKEN") && !text.contains("inputs"), "{text}");
    }
}

#[test]
fn other_headers_and_inputs_of_the_user_stay() {
    let project = Project::new();
    project.write(
        Client::Vscode,
        r#"{
  "inputs": [
    { "type": "promptString", "id": "mine", "description": "d" }
  ],
  "servers": {
    "callboard": { "type": "http", "url": "http://h/mcp", "headers": { "X-Mine": "1", "Authorization": "Bearer x" } }
  }
}
"#,
    );
    let connected = project.connect_with(http(Client::Vscode), None).expect("connected");
    assert!(
        connected.changes.iter().any(|change| change.contains("`callboard-token` added")),
        "{connected}"
    );
    let value: serde_json::Value =
        serde_json::from_str(&project.read(Client::Vscode)).expect("JSON");
    let headers =
        serde_json::json!({"X-Mine": "1", "Authorization": "Bearer ${input:callboard-token}"});
    assert_eq!(value["servers"]["callboard"]["headers"], headers);
    let ids: Vec<_> =
        value["inputs"].as_array().expect("a list").iter().map(|input| &input["id"]).collect();
    assert_eq!(ids, ["mine", "callboard-token"]);
    assert_eq!(
        project.connect_with(http(Client::Vscode), None).expect("connected").status,
        Status::Unchanged
    );

    let text = project.read(Client::Vscode);
    let other = text.replacen(
        "\"servers\": {",
        "\"servers\": { \"other\": \"${input:callboard-token}\",",
        1,
    );
    project.write(Client::Vscode, &other);
    project.connect(Client::Vscode).expect("connected");
    assert!(
        project.read(Client::Vscode).contains("\"id\": \"callboard-token\""),
        "another server uses it"
    );
    project.write(Client::Vscode, &text);
    project.connect(Client::Vscode).expect("connected");
    let text = project.read(Client::Vscode);
    assert!(text.contains("\"id\": \"mine\"") && !text.contains("callboard-token"), "{text}");
}

#[test]
fn zed_which_would_need_the_token_in_its_settings_is_refused() {
    let project = Project::new();
    let refused = project.connect_with(http(Client::Zed), None).expect_err("refused");
    assert!(refused.to_string().contains("`callboard connect zed`"), "{refused}");
    assert!(!project.file(Client::Zed).exists());
}

#[test]
fn next_says_how_to_give_the_token() {
    let project = Project::new();
    let codex = project.connect_with(http(Client::Codex), None).expect("connected");
    let export = export_token(&project.path("project/.coordination"));
    assert!(codex.next.contains(&export), "{}", codex.next);
    let vscode = project.connect_with(http(Client::Vscode), None).expect("connected");
    assert!(
        vscode.next.contains("serve.token") && !vscode.next.contains("export"),
        "{}",
        vscode.next
    );
    for url in ["https://board.example/mcp", "http://10.1.2.3:8425/mcp"] {
        let args = ConnectArgs { url: Some(url.to_owned()), ..http(Client::Codex) };
        let far = project.connect_with(args, None).expect("connected");
        assert!(far.next.contains("callboard token add NAME"), "{}", far.next);
        assert!(!far.next.contains("serve.token"), "{}", far.next);
    }
    let elsewhere = export_token(Path::new("/it's here; rm"));
    assert_eq!(elsewhere, r#"export CALLBOARD_TOKEN="$(cat '/it'\''s here; rm/serve.token')""#);
}

#[test]
fn global_over_http_names_the_clients_own_way_where_it_has_one() {
    let project = Project::new();
    let global = |client| ConnectArgs { global: true, ..http(client) };
    let cursor = project.connect_with(global(Client::Cursor), None).expect("connected");
    assert_eq!(cursor.path, project.path("home/.cursor/mcp.json"));
    let claude =
        project.connect_with(global(Client::Claude), None).expect_err("refused").to_string();
    assert!(
        claude.contains("--transport http") && claude.contains("${CALLBOARD_TOKEN}"),
        "{claude}"
    );
    let vscode =
        project.connect_with(global(Client::Vscode), None).expect_err("refused").to_string();
    assert!(vscode.contains("MCP: Open User Configuration"), "{vscode}");
}

#[test]
fn endpoint_is_a_plain_url_and_a_servers_address_is_enough() {
    let host = "http://127.0.0.1:9000";
    for address in ["", "/", "/mcp", "/mcp/"].map(|path| format!("{host}{path}")) {
        let address = address.as_str();
        assert_eq!(endpoint(address).as_deref(), Ok("http://127.0.0.1:9000/mcp"), "{address}");
    }
    assert_eq!(endpoint("https://b.example/proxy/").as_deref(), Ok("https://b.example/proxy/"));
    assert_eq!(endpoint("https://b.example/team/mcp").as_deref(), Ok("https://b.example/team/mcp"));
    let wrong = [
        "127.0.0.1:8425",
        "ftp://h/mcp",
        "http://",
        "http:///mcp",
        "http://me:secret@h/mcp",
        "http://h/mcp?token=x",
    ];
    for url in wrong.into_iter().chain([
        "http://h/${HOME}",
        "http://h/a b",
        "http://h/\u{1b}[m",
        "http://h/'x'",
    ]) {
        assert!(endpoint(url).is_err(), "{url}");
    }
}

fn removing(args: ConnectArgs) -> ConnectArgs {
    ConnectArgs { remove: true, ..args }
}

#[test]
fn what_was_connected_is_removed_without_a_trace() {
    for client in <Client as clap::ValueEnum>::value_variants() {
        let project = Project::new();
        let before = fs::read_dir(project.path("project")).expect("a listing").count();
        let all: Vec<_> = [args(*client)]
            .into_iter()
            .chain(hooks::exist_for(*client).then(|| hooks(*client)))
            .collect();
        for args in &all {
            project.connect_with(args.clone(), None).expect("connected");
        }
        for args in all {
            let removed = project.connect_with(removing(args.clone()), None).expect("removed");
            assert_eq!(removed.status, Status::Removed, "{client:?}");
            let again = project.connect_with(removing(args), None).expect("nothing to do");
            assert_eq!(again.status, Status::Absent, "{client:?}");
        }
        let after = fs::read_dir(project.path("project")).expect("a listing").count();
        assert_eq!(before, after, "{client:?}: the files and their directory went");
    }
}

#[test]
fn what_is_others_stays_when_ours_is_removed() {
    let files = [
        (
            Client::Vscode,
            "{\n  // mine\n  \"servers\": {\n    /* theirs */\n    \"other\": { \"url\": \"u\" }\n  },\n  \"a\": 1\n}\n",
        ),
        (Client::Gemini, "{\n  // mine\n  \"theme\": \"x\"\n}\n"),
        (Client::Claude, "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"o\" }\n  }\n}\n"),
        (
            Client::Codex,
            "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = \"o\"\n\n# last words\n[tui]\ntheme = \"t\"\n",
        ),
        (Client::Codex, "a = 1\n\n# model = \"x\"\n"),
        (
            Client::Opencode,
            "{\n  \"$schema\": \"s\", // mine\n  \"mcp\": {\n    \"other\": { \"type\": \"local\", },\n  },\n}\n",
        ),
    ];
    for (client, before) in files {
        for door in [args(client), http(client)] {
            let project = Project::new();
            project.write(client, before);
            project.connect_with(door.clone(), None).expect("connected");
            assert_ne!(project.read(client), before);
            let removed = project.connect_with(removing(door), None).expect("removed");
            assert_eq!(removed.status, Status::Removed);
            let blank = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(
                blank(&project.read(client)),
                blank(before),
                "{client:?}\n{}",
                project.read(client)
            );
        }
    }
}

#[test]
fn a_check_says_whether_all_is_there_as_it_would_be_written_and_writes_nothing() {
    for client in <Client as clap::ValueEnum>::value_variants() {
        let project = Project::new();
        let check = ConnectArgs { check: true, ..args(*client) };
        let missing = project.connect_with(check.clone(), None).expect("checked");
        assert_eq!((missing.status, missing.path.exists()), (Status::Outdated, false));
        assert!(missing.to_string().contains("`callboard connect"), "{missing}");
        project.connect(*client).expect("connected");
        assert_eq!(
            project.connect_with(check.clone(), None).expect("checked").status,
            Status::Unchanged
        );
        let text = project.read(*client).replace("/opt/callboard", "/old/callboard");
        project.write(*client, &text);
        let old = project.connect_with(check, None).expect("checked");
        assert_eq!(old.status, Status::Outdated);
        assert!(old.changes[0].contains("/old/callboard"), "{old}");
        assert_eq!(project.read(*client), text);
    }
}

#[test]
fn what_one_client_refuses_keeps_no_other_from_being_connected() {
    let project = Project::new();
    let (root, home) = (project.path("project"), project.path("home"));
    project.write(Client::Claude, "[]");
    let target = Target { project_root: &root, home: Some(&home), board: &root, ..target() };
    let two = ConnectArgs { clients: vec![Client::Claude, Client::Cursor], ..args(Client::Claude) };
    let (report, failure) = super::connect(&two, &target).expect("tried");
    assert_eq!(report.files.len(), 1);
    assert!(project.file(Client::Cursor).exists());
    assert!(format!("{:#}", failure.expect("a failure")).contains("top level"));
    let global = ConnectArgs { global: true, clients: vec![Client::Claude], ..two.clone() };
    let (report, failure) = super::connect(&global, &target).expect("tried");
    assert_eq!(
        report.files[0].path,
        home.join(".claude/settings.json"),
        "hooks need no `claude mcp add`"
    );
    assert!(failure.expect("a failure").to_string().contains("claude mcp add"));
    let hooks = ConnectArgs { hooks: true, clients: vec![Client::Gemini, Client::Zed], ..two };
    let (report, failure) = super::connect(&hooks, &target).expect("tried");
    assert_eq!((report.files.len(), failure.is_some()), (1, true), "the first is reported");
}
