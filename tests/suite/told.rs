//! What a person is told of: by a webhook on this machine and by a program, through whatever happens
//! to the processes that tell.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::harness::{Board, PATIENCE, until};

const KEY: &str = "key of the webhook";

/// One request that a receiver got.
#[derive(Clone, Debug)]
struct Heard {
    id: String,
    signature: String,
    body: String,
}

impl Heard {
    fn notice(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn is_signed(&self) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
        mac.update(self.body.as_bytes());
        let hex: String =
            mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        self.signature == format!("sha256={hex}")
    }
}

/// A receiver of webhooks, which answers as it is told.
struct Receiver {
    port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Receiver {
    fn answering(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&heard), Arc::new(answer));
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                thread::spawn(move || {
                    let Some(request) = request(&mut stream) else { return };
                    kept.lock().unwrap().push(request);
                    answer(&mut stream);
                });
            }
        });
        Self { port, heard }
    }

    fn new() -> Self {
        Self::answering(|stream| {
            drop(stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"));
        })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

fn request(stream: &mut TcpStream) -> Option<Heard> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut headers, mut line) = (BTreeMap::new(), String::new());
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Heard {
        id: headers.remove("x-callboard-id")?,
        signature: headers.remove("x-callboard-signature").unwrap_or_default(),
        body: String::from_utf8(body).ok()?,
    })
}

/// Writes the user's settings before anything happens on the board.
fn set(board: &Board, notify: &str) {
    let dir = board.base().join(".config/callboard");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("key"), KEY).unwrap();
    fs::write(dir.join("config.toml"), format!("[notify]\n{notify}\n")).unwrap();
}

fn command(board: &Board) -> Command {
    let mut command = board.command();
    command.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME");
    command
}

#[track_caller]
fn ok(board: &Board, arguments: &[&str]) -> String {
    let finished = board.finish(command(board).args(arguments));
    assert!(finished.status.success(), "{arguments:?}: {}{}", finished.stdout, finished.stderr);
    finished.stdout
}

fn ask(board: &Board, agent: &str, text: &str) {
    ok(board, &["--agent", agent, "send", "human", text, "--request"]);
}

/// The ids of all events of the board that a person is told of by the default.
fn asking(board: &Board) -> Vec<String> {
    let board_id = board.document()["board_id"].as_str().unwrap().to_owned();
    let events = board.events();
    let events = events.iter().map(|one| (one.seq, serde_json::to_value(one).unwrap()));
    let asks = events.filter(|(_, event)| match event["kind"].as_str().unwrap() {
        "message_sent" => event["message"]["kind"] == "request",
        "failed" => event.get("retry_at").is_none(),
        kind => kind == "agent_waits",
    });
    asks.map(|(seq, _)| format!("{board_id}/{seq}")).collect()
}

#[test]
fn questions_prompts_failures_and_the_end_are_told_once_signed_and_in_order() {
    let (board, receiver) = (Board::new(), Receiver::new());
    set(&board, &format!("webhook = '{}'\nsecret_file = 'key'", receiver.url()));
    let mut client = board.mcp();
    client.register("ada");
    client
        .ok("create_task", json!({"id": "t", "description": "Write the lexer", "max_attempts": 1}));
    client.ok("claim_task", json!({"agent_id": "ada"}));
    client.ok(
        "report_waiting",
        json!({"agent_id": "ada", "for": "permission", "what": "Bash: make"}),
    );
    client.ok(
        "send_message",
        json!({"agent_id": "ada", "to": "human", "kind": "request", "text": "Tabs?"}),
    );
    client.ok(
        "send_message",
        json!({"agent_id": "ada", "to": "human", "text": "For your information"}),
    );
    client.ok("fail_task", json!({"agent_id": "ada", "task_id": "t", "error": "no compiler"}));
    let heard = until(PATIENCE, "four notices", || {
        let heard = receiver.heard();
        (heard.len() >= 4).then_some(heard)
    });
    let told: Vec<_> = heard.iter().map(Heard::notice).collect();
    let kinds: Vec<_> = told.iter().map(|notice| notice["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["permission", "question", "parked", "finished"], "{told:#?}");
    assert!(heard.iter().all(Heard::is_signed));
    assert!(heard.iter().zip(&told).all(|(heard, notice)| notice["id"] == heard.id));
    assert_eq!(
        told[..3].iter().map(|one| one["id"].as_str().unwrap()).collect::<Vec<_>>(),
        asking(&board)
    );
    assert_eq!(told[1]["text"], "ada asks: Tabs?");
    assert_eq!((&told[2]["task"], &told[2]["title"]), (&json!("t"), &json!("Write the lexer")));
    assert!(told[2]["text"].as_str().unwrap().contains("no compiler"));
    // The commands do what is asked for.
    let retry = told[2]["command"].as_str().unwrap().strip_prefix("callboard ").unwrap().to_owned();
    ok(&board, &retry.split(' ').collect::<Vec<_>>());
    let log = ok(&board, &["--json", "notify", "log"]);
    let log: Value = serde_json::from_str(&log).unwrap();
    let delivered = log["log"].as_array().unwrap();
    assert!(
        delivered.len() >= 4 && delivered.iter().all(|line| line["outcome"] == "delivered"),
        "{log}"
    );
}

#[test]
fn a_result_to_review_is_told_with_the_command_that_approves_it() {
    let (board, receiver) = (Board::new(), Receiver::new());
    set(&board, &format!("webhook = '{}'\nevents = ['review', 'finished']", receiver.url()));
    let mut client = board.mcp();
    client.register("ada");
    let task = json!({"id": "t", "description": "Write the lexer", "review": "required"});
    client.ok("create_task", task);
    client.ok("claim_task", json!({"agent_id": "ada"}));
    client.ok("complete_task", json!({"agent_id": "ada", "task_id": "t", "output": "made"}));
    let kinds = |count| {
        until(PATIENCE, "a notice", || {
            let heard: Vec<_> = receiver.heard().iter().map(Heard::notice).collect();
            (heard.len() >= count).then_some(heard)
        })
    };
    let told = kinds(1).remove(0);
    assert_eq!(
        (&told["kind"], &told["task"], &told["agent"]),
        (&json!("review"), &json!("t"), &json!("ada"))
    );
    let approve = told["command"].as_str().unwrap().strip_prefix("callboard ").unwrap().to_owned();
    ok(&board, &approve.split(' ').collect::<Vec<_>>());
    assert_eq!(kinds(2)[1]["kind"], "finished", "not before it was approved");
}

#[test]
fn notices_carry_the_names_of_people() {
    let (board, receiver) = (Board::new(), Receiver::new());
    // What bob does is before anybody is told, so that no process of his tells.
    let bob = |words: &[&str]| {
        let finished = board.finish(command(&board).env("CALLBOARD_ME", "bob").args(words));
        assert!(finished.status.success(), "{words:?}: {}", finished.stderr);
    };
    bob(&["add", "Write the lexer", "--id", "t", "--review"]);
    bob(&["add", "Write the parser", "--id", "u"]);
    bob(&["--agent", "ada", "send", "human", "Hello", "--request"]);
    bob(&["send", "ada", "Which part?"]);
    let sent = board.document()["messages"][1].clone();
    assert_eq!((&sent["person"], &sent["text"]), (&json!("bob"), &json!("Which part?")));
    set(&board, &format!("webhook = '{}'", receiver.url()));
    let config = board.base().join(".config/callboard/config.toml");
    let notify = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("me = 'grace'\n{notify}")).unwrap();
    let grace = |words: &[&str]| {
        let finished = board.finish(command(&board).env_remove("CALLBOARD_ME").args(words));
        assert!(finished.status.success(), "{words:?}: {}", finished.stderr);
    };
    grace(&["claim", "t"]);
    grace(&["complete", "t", "done"]);
    grace(&["claim", "u"]);
    grace(&["fail", "u", "no docs", "--permanent"]);
    grace(&["send", "human", "Lunch?", "--request"]);
    grace(&["--agent", "ada", "send", "human", "Tabs?", "--request"]);
    let answer = json!({"agent_id": "ada", "to": "human", "kind": "request", "text": "The lexer?",
        "reply_to": sent["id"]});
    grace(&["call", "send_message", &answer.to_string()]);
    let heard = until(PATIENCE, "all are told", || {
        let told: Vec<_> = receiver.heard().iter().map(Heard::notice).collect();
        let told: Vec<_> = told.into_iter().filter(|one| one["kind"] != "stuck").collect();
        (told.len() >= 5).then_some(told)
    });
    let expected = [
        (
            "grace has completed “Write the lexer”, which waits for review",
            Some("grace"),
            Some("grace"),
        ),
        ("“Write the parser” failed, says grace: no docs", Some("grace"), None),
        ("grace asks: Lunch?", Some("grace"), Some("grace")),
        ("ada asks grace: Tabs?", None, Some("grace")),
        ("ada asks bob: The lexer?", None, Some("bob")),
    ];
    for (notice, (text, person, asked)) in heard.iter().zip(expected) {
        let is = |name: &str| notice.get(name).map(|name| name.as_str().expect("a name"));
        assert_eq!((&notice["text"], is("person"), is("asked")), (&json!(text), person, asked));
    }
}

#[test]
fn short_commands_alone_have_everything_told() {
    let (board, receiver) = (Board::new(), Receiver::new());
    set(&board, &format!("webhook = '{}'\nevents = ['question']", receiver.url()));
    ok(&board, &["add", "Write the lexer"]);
    (0..5).for_each(|number| ask(&board, "ada", &format!("question {number}")));
    let expected = asking(&board);
    assert_eq!(expected.len(), 5);
    until(PATIENCE, "all are told", || {
        let heard: Vec<_> = receiver.heard().into_iter().map(|one| one.id).collect();
        (heard == expected).then_some(())
    });
}

#[test]
fn what_happened_before_the_person_wanted_to_be_told_is_not_told() {
    let (board, receiver) = (Board::new(), Receiver::new());
    ok(&board, &["add", "Write the lexer"]);
    ask(&board, "ada", "before");
    // The file's time decides, and it has no finer grain than a tick of the system.
    let path = board.file("mcp-state.json");
    until(PATIENCE, "the clock moves on", || {
        let written = fs::metadata(&path).unwrap().modified().unwrap();
        let probe = board.base().join("probe");
        fs::write(&probe, "").unwrap();
        let now = fs::metadata(&probe).unwrap().modified().unwrap();
        (now > written + Duration::from_millis(20)).then_some(())
    });
    set(&board, &format!("webhook = '{}'", receiver.url()));
    ask(&board, "ada", "after");
    let heard = until(PATIENCE, "one is told", || receiver.heard().first().cloned());
    assert_eq!(heard.notice()["text"], "ada asks: after");
}

#[test]
fn nothing_is_left_untold_when_those_who_tell_are_killed() {
    let (board, receiver) =
        (
            Board::new(),
            Receiver::answering(|stream| {
                // Slow enough for kills between a delivery and its note.
                thread::sleep(Duration::from_millis(15));
                drop(stream.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                ));
            }),
        );
    set(
        &board,
        &format!("webhook = '{}'\nsecret_file = 'key'\nevents = ['question']", receiver.url()),
    );
    for round in 0..6 {
        let mut client = board.mcp();
        client.register("ada");
        for number in 0..5 {
            let text = format!("question {round}-{number}");
            client.ok(
                "send_message",
                json!({"agent_id": "ada", "to": "human", "kind": "request", "text": text}),
            );
        }
        client.kill();
    }
    let expected = asking(&board);
    assert_eq!(expected.len(), 30);
    ok(&board, &["status"]);
    let heard = until(PATIENCE, "every event is told", || {
        let heard = receiver.heard();
        expected.iter().all(|id| heard.iter().any(|one| one.id == *id)).then_some(heard)
    });
    assert!(heard.iter().all(Heard::is_signed));
    let mut first_times = Vec::new();
    for one in heard {
        if !first_times.contains(&one.id) {
            first_times.push(one.id);
        }
    }
    assert_eq!(first_times, expected, "in order, if what was told again is left out");
}

#[test]
fn receivers_that_hang_refuse_redirect_or_flood_hold_nobody_up_and_are_named() {
    let elsewhere = Receiver::new();
    let location = elsewhere.url();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hanging = Receiver::answering(|stream| drop(stream.read(&mut [0])));
    let redirecting = Receiver::answering(move |stream| {
        let head = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        );
        drop(stream.write_all(head.as_bytes()));
    });
    let flooding = Receiver::answering(|stream| {
        drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"));
        drop(stream.write_all(&vec![b'x'; 10_000_000]));
    });
    let refused = format!("http://{closed}/");
    for (url, words) in [
        (refused, Some("refused")),
        (redirecting.url(), Some("307")),
        (hanging.url(), Some("10 seconds")),
        (flooding.url(), None),
    ] {
        let board = Board::new();
        set(&board, &format!("webhook = '{url}'\ncommand = ['sleep', '1000']"));
        let mut client = board.mcp();
        client.register("ada");
        client.ok(
            "send_message",
            json!({"agent_id": "ada", "to": "human", "kind": "request", "text": "Tabs?"}),
        );
        client.ok("create_task", json!({"id": "t", "description": "d"}));
        let start = Instant::now();
        client.ok("claim_task", json!({"agent_id": "ada"}));
        assert!(start.elapsed() < Duration::from_secs(5), "a claim waits for no receiver");
        let finished = board.finish(command(&board).args(["notify", "test"]));
        assert_eq!(finished.status.code(), Some(1), "{}", finished.stdout);
        let said = &finished.stdout;
        match words {
            Some(words) => {
                assert!(said.contains(words) && !said.contains("/hook"), "{words}: {said}")
            }
            None => assert!(said.contains("webhook") && said.contains("delivered"), "{said}"),
        }
        assert!(said.contains("command sleep 1000: no answer within 10 seconds"), "{said}");
    }
    assert!(elsewhere.heard().is_empty(), "no redirection is followed");
}

#[test]
fn a_program_reads_the_notice_and_gets_no_token() {
    let board = Board::new();
    let told = board.base().join("told");
    let script = format!(
        "cat > {0}.new; echo \"token=$CALLBOARD_TOKEN\" >> {0}.new; mv {0}.new {0}",
        told.display()
    );
    set(&board, &format!("command = ['sh', '-c', {script:?}]"));
    ok(&board, &["add", "Write the lexer"]);
    let mut first = command(&board);
    first.env("CALLBOARD_TOKEN", "secret").args([
        "--agent",
        "ada",
        "send",
        "human",
        "Tabs?",
        "--request",
    ]);
    assert!(board.finish(&mut first).status.success());
    let text = until(PATIENCE, "the program has run", || fs::read_to_string(&told).ok());
    let (notice, token) = text.split_once("token=").unwrap();
    assert_eq!(serde_json::from_str::<Value>(notice).unwrap()["kind"], "question");
    assert_eq!(token.trim(), "");
}

#[test]
fn settings_that_others_could_write_start_nothing() {
    let board = Board::new();
    let touched = board.base().join("touched");
    let notify = format!("command = ['touch', '{}']", touched.display());
    board.make_dir();
    fs::write(board.file("config.toml"), format!("[notify]\n{notify}\n")).unwrap();
    ok(&board, &["add", "Write the lexer"]);
    ask(&board, "ada", "Tabs?");
    let doctor = board.finish(command(&board).arg("doctor"));
    assert!(doctor.stdout.contains("[notify] in it is ignored"), "{}", doctor.stdout);
    let test = board.finish(command(&board).args(["notify", "test"]));
    assert!(test.stderr.contains("no way is set"), "{}", test.stderr);

    set(&board, &notify);
    let path = board.base().join(".config/callboard/config.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    ask(&board, "ada", "Spaces?");
    let test = board.finish(command(&board).args(["notify", "test"]));
    assert!(!test.status.success() && test.stderr.contains("chmod go-w"), "{}", test.stderr);
    let doctor = board.finish(command(&board).arg("doctor"));
    assert!(doctor.stdout.contains("chmod go-w"), "{}", doctor.stdout);
    assert!(!touched.exists());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    ask(&board, "ada", "Or both?");
    until(PATIENCE, "now it is told", || touched.exists().then_some(()));
}
