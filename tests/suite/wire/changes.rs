//! Notifications to waiting clients: changes, completions, progress.

use std::collections::BTreeSet;

use super::*;

const STATUS: &str = "coordination://status";
const DISCOVERIES: &str = "coordination://discoveries";

impl Session {
    /// Makes a change by another process.
    fn change(&self, operation: &str, arguments: Value) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callboard"));
        command
            .args(["call", operation, &arguments.to_string()])
            .env("COORDINATION_DIR", &self.board);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn notification(&mut self) -> Value {
        let message = self.receive();
        assert!(message.get("id").is_none(), "{message}");
        message
    }

    /// Reads that many notifications. Returns the updated resources, and whether the list has
    /// changed.
    fn told(&mut self, count: usize) -> (BTreeSet<String>, bool) {
        let (mut uris, mut list) = (BTreeSet::new(), false);
        for _ in 0..count {
            let told = self.notification();
            match told["method"].as_str().unwrap() {
                "notifications/resources/updated" => {
                    assert!(
                        uris.insert(told["params"]["uri"].as_str().unwrap().to_owned()),
                        "twice: {told}"
                    );
                }
                "notifications/resources/list_changed" => list = true,
                other => panic!("{other}"),
            }
        }
        (uris, list)
    }

    fn completed(&mut self, reference: Value, argument: &str, typed: &str) -> Vec<String> {
        let params = json!({"ref": reference, "argument": {"name": argument, "value": typed}});
        let answer = self.ask(modern(1, "completion/complete", params));
        let completion = &answer["result"]["completion"];
        assert_eq!(completion["hasMore"], false, "{answer}");
        serde_json::from_value(completion["values"].clone()).unwrap()
    }
}

fn uris(uris: &[&str]) -> BTreeSet<String> {
    uris.iter().map(|uri| (*uri).to_owned()).collect()
}

#[test]
fn listen_stream_tells_what_it_acknowledged_until_it_is_cancelled() {
    let mut session = Session::start(&[]);
    session.call("create_task", json!({"id": "t1", "description": "d"}));
    let task = "coordination://tasks/t1";
    let wanted = json!({
        "toolsListChanged": true,
        "resourcesListChanged": true,
        "resourceSubscriptions": [STATUS, task, "coordination://nothing"],
    });
    session.send(&modern(7, "subscriptions/listen", json!({"notifications": wanted})));
    let acknowledged = session.notification();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    let accepted = json!({"resourcesListChanged": true, "resourceSubscriptions": [STATUS, task]});
    assert_eq!(acknowledged["params"]["notifications"], accepted, "{acknowledged}");
    assert_eq!(
        session.told(3),
        (uris(&[STATUS, task]), true),
        "all may have changed before it listened"
    );

    session.change("add_discovery", json!({"content": "no list, no task"}));
    assert_eq!(session.told(1), (uris(&[STATUS]), false));
    session.change("update_task", json!({"task_id": "t1", "priority": 1}));
    assert_eq!(session.told(3), (uris(&[STATUS, task]), true));
    session.change("create_task", json!({"id": "t2", "description": "another"}));
    let told = session.notification();
    assert_eq!(told["method"], "notifications/resources/list_changed");
    let meta = &told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*meta, 7, "which stream it belongs to: {told}");
    assert_eq!(session.told(1), (uris(&[STATUS]), false));

    session.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}),
    );
    session.send(&modern(
        8,
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": [STATUS]}}),
    ));
    assert_eq!(session.notification()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(session.told(1), (uris(&[STATUS]), false));
    for id in ["t3", "t4"] {
        session.change("create_task", json!({"id": id, "description": "heard on one stream"}));
        let told = session.notification();
        assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 8, "{told}");
    }
}

#[test]
fn session_hears_of_what_it_subscribed_to_and_no_more_once_it_unsubscribed() {
    let mut session = Session::legacy("2025-11-25");
    session.change("create_task", json!({"id": "t1", "description": "before"}));
    for (id, uri) in [(1, STATUS), (2, DISCOVERIES), (3, STATUS)] {
        let answer = session.ask(message(id, "resources/subscribe", json!({"uri": uri})));
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
    session.change("add_discovery", json!({"content": "c"}));
    assert_eq!(session.told(2), (uris(&[STATUS, DISCOVERIES]), false));
    session.change("create_task", json!({"id": "t2", "description": "d"}));
    assert_eq!(session.told(2), (uris(&[STATUS]), true));

    let answer = session.ask(message(4, "resources/unsubscribe", json!({"uri": DISCOVERIES})));
    assert_eq!(answer["result"], json!({}), "{answer}");
    session.change("add_discovery", json!({"content": "c"}));
    assert_eq!(session.told(1), (uris(&[STATUS]), false));
    session.change("cancel_task", json!({"task_id": "t2"}));
    assert_eq!(session.told(2), (uris(&[STATUS]), true), "nothing of the discoveries came between");

    let unknown =
        session.ask(message(5, "resources/subscribe", json!({"uri": "coordination://nothing"})));
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
}

#[test]
fn session_hears_of_what_changes_a_resource_from_elsewhere() {
    const PLAN: &str = "coordination://master-plan";
    const API: &str = "coordination://discoveries/api";
    const WAITING: &str = "coordination://tasks/waiting";
    let mut session = Session::legacy("2025-11-25");
    session.change("create_task", json!({"id": "first", "description": "d"}));
    session.change(
        "create_task",
        json!({"id": "waiting", "description": "d", "dependencies": ["first"]}),
    );
    session.change("register_agent", json!({"agent_id": "ada", "role": "worker"}));
    let found = session.change("add_discovery", json!({"content": "c", "tags": ["api"]}));
    for (id, uri) in [(1, PLAN), (2, API), (3, WAITING)] {
        assert_eq!(
            session.ask(message(id, "resources/subscribe", json!({"uri": uri})))["result"],
            json!({})
        );
    }
    let first = json!({"agent_id": "ada", "task_id": "first"});
    let plan = json!({"text": "# Title\n\n- [ ] one\n"});
    let newer =
        json!({"content": "d", "tags": ["other"], "supersedes": [found["discovery"]["id"]]});
    let changes: [(_, _, &[&str], bool); 5] = [
        ("claim_task", first.clone(), &[WAITING], false),
        ("start_task", first.clone(), &[WAITING], false),
        ("release_task", first, &[WAITING], true),
        ("add_discovery", newer, &[API], false),
        ("import_plan", plan, &[PLAN, WAITING], true),
    ];
    for (operation, arguments, touched, list) in changes {
        session.change(operation, arguments);
        let told = session.told(touched.len() + usize::from(list));
        assert_eq!(told, (uris(touched), list), "{operation}");
    }
}

#[test]
fn session_hears_of_the_list_once_however_often_it_subscribed_and_not_without() {
    let mut session = Session::legacy("2025-11-25");
    let ask = |session: &mut Session, what: &str| {
        let answer = session.ask(message(1, &format!("resources/{what}"), json!({"uri": STATUS})));
        assert_eq!(answer["result"], json!({}), "{answer}");
    };
    for _ in 0..3 {
        ask(&mut session, "subscribe");
        ask(&mut session, "unsubscribe");
    }
    session.change("create_task", json!({"id": "t1", "description": "d"}));
    ask(&mut session, "subscribe");
    session.change("add_discovery", json!({"content": "c"}));
    assert_eq!(session.told(1), (uris(&[STATUS]), false));
    session.change("create_task", json!({"id": "t2", "description": "d"}));
    assert_eq!(session.told(2), (uris(&[STATUS]), true));
    session.change("add_discovery", json!({"content": "c"}));
    assert_eq!(session.told(1), (uris(&[STATUS]), false));
}

#[test]
fn session_goes_on_hearing_when_a_change_could_not_be_read_once() {
    let mut session = Session::failing("listen:1:error");
    session.initialize("2025-11-25");
    session.ask(message(1, "resources/subscribe", json!({"uri": STATUS})));
    let (mut heard, mut number) = (BTreeSet::new(), 1);
    // Whichever of the two failed.
    until(PATIENCE, "the resource and the list are told", || {
        number += 1;
        session.change("create_task", json!({"description": "d"}));
        session.send(&message(number, "ping", json!({})));
        loop {
            let told = session.receive();
            if told["id"] == number {
                return (heard.len() == 2).then_some(());
            }
            heard.insert(told["method"].as_str().unwrap().to_owned());
        }
    });
}

#[test]
fn session_that_subscribed_to_nothing_reads_replies_only() {
    let mut session = Session::legacy("2025-06-18");
    for number in 0..5 {
        let create = json!({"name": "create_task", "arguments": {"description": "d"}});
        session.ask(message(number, "tools/call", create));
        session.change("create_task", json!({"description": "d"}));
    }
    session.close_input();
    assert_eq!(session.ends_well_within_a_second(), [Value::Null; 0]);
}

#[test]
fn ids_and_tags_are_completed_unfinished_tasks_first() {
    let mut session = Session::start(&[]);
    for id in ["api-1", "api-2", "web-1"] {
        session.call("create_task", json!({"id": id, "description": "d"}));
    }
    session.call("register_agent", json!({"agent_id": "Ada", "role": "leader"}));
    session.call("cancel_task", json!({"task_id": "api-1"}));
    session.call(
        "add_discovery",
        json!({"agent_id": "Ada", "content": "c", "tags": ["perf", "parser", "api"]}),
    );
    let task = json!({"type": "ref/resource", "uri": "coordination://tasks/{id}"});
    assert_eq!(session.completed(task.clone(), "id", "api"), ["api-2", "api-1"]);
    assert_eq!(session.completed(task.clone(), "id", ""), ["api-2", "web-1", "api-1"]);
    assert_eq!(session.completed(task.clone(), "id", "zz"), [""; 0]);
    assert_eq!(session.completed(task, "tag", ""), [""; 0]);
    let tag = json!({"type": "ref/resource", "uri": "coordination://discoveries/{tag}"});
    assert_eq!(session.completed(tag, "tag", "p"), ["parser", "perf"]);
    let work = json!({"type": "ref/prompt", "name": "work"});
    assert_eq!(session.completed(work, "agent_id", "a"), ["Ada"]);
    let unknown = json!({"ref": {"type": "ref/prompt", "name": "nope"}, "argument": {"name": "a", "value": ""}});
    let refused = session.ask(modern(1, "completion/complete", unknown));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let read =
        session.ask(modern(1, "resources/read", json!({"uri": "coordination://discoveries/perf"})));
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("parser"), "{read}");
}

#[test]
fn long_poll_shows_progress_to_who_asks_for_it() {
    let mut session = Session::start(&[]);
    session.call("register_agent", json!({"agent_id": "a", "role": "worker"}));
    let mut claim = modern(
        9,
        "tools/call",
        json!({"name": "claim_task", "arguments": {"agent_id": "a", "wait_seconds": 50}}),
    );
    claim["params"]["_meta"]["progressToken"] = json!("p1");
    session.send(&claim);
    let mut last = 0.0;
    for _ in 0..2 {
        let told = session.notification();
        assert_eq!(
            (&told["method"], &told["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p1"))
        );
        let progress = told["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{told}");
        last = progress;
    }
    session.change("create_task", json!({"id": "t1", "description": "d"}));
    let claimed = session.receive();
    assert_eq!(claimed["result"]["structuredContent"]["task"]["id"], "t1", "{claimed}");
}
