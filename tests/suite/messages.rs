//! Messages: who gets them, how often, and how long they are kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use callboard::state::agent::Agent;
use callboard::state::id::{AgentId, MessageId};
use callboard::state::limit;
use callboard::state::message::{Message, MessageKind};
use callboard::state::time::MINUTE;
use serde_json::{Value, json};

use crate::harness::{Board, Client};
use crate::world::{Answered, World};

fn team() -> World {
    World::new().agent_with("lead", json!({"role": "leader"})).agent("a1").agent("a2").task("t")
}

/// Sends a message and returns its id.
#[track_caller]
fn send(world: &mut World, from: &str, to: &str, text: &str) -> String {
    let reply = world.by(from).call("send_message", json!({"to": to, "text": text})).expect("sent");
    reply["message_id"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn inbox(world: &mut World, agent: &str) -> Vec<String> {
    let reply = world.by(agent).call("get_messages", json!({})).expect("read");
    reply["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|one| one["text"].as_str().unwrap().to_owned())
        .collect()
}

fn unread(world: &World, agent: &str) -> usize {
    world.state.unread_count(&AgentId::trusted(agent))
}

#[test]
fn every_form_of_address_reaches_whom_it_names() {
    for (to, reached) in [
        ("a2", vec!["a2"]),
        ("role:worker", vec!["a2"]),
        ("role:leader", vec!["lead"]),
        ("task:t", vec!["a2"]),
        ("all", vec!["a2", "lead"]),
        ("human", vec!["human"]),
    ] {
        let mut world = team().claimed("a2", "t");
        send(&mut world, "a1", to, "hello");
        let readers =
            ["a1", "a2", "lead", "human"].into_iter().filter(|reader| unread(&world, reader) == 1);
        assert_eq!(readers.collect::<Vec<_>>(), reached, "{to}");
    }
}

#[test]
fn what_cannot_be_delivered_is_refused_with_the_way_out() {
    let mut world = team();
    for (to, code, remedy) in [
        ("nobody", "unknown_recipient", "get_agents"),
        ("role:king", "unknown_recipient", "role:leader"),
        ("\u{1b}[2J`x", "unknown_recipient", "human"),
        ("role:observer", "nobody_there", "human"),
        ("task:t", "no_owner", "update_task"),
        ("task:u", "unknown_task", "get_all_tasks"),
    ] {
        let message =
            world.by("a1").call("send_message", json!({"to": to, "text": "x"})).refuses(code);
        assert!(message.contains(remedy) && !message.contains('\u{1b}'), "{to}: {message}");
    }
    world.by("a1").call("send_message", json!({"to": "a2", "text": " "})).refuses("empty");
    world.call("send_message", json!({"text": "x"})).refuses("empty");
    world
        .call("send_message", json!({"to": "a2", "text": "x".repeat(8 * 1_024 + 1)}))
        .refuses("over_limit");
    world
        .call("send_message", json!({"text": "x", "reply_to": "msg-none"}))
        .refuses("unknown_message");
    world
        .by("stranger")
        .call("send_message", json!({"to": "a2", "text": "x"}))
        .refuses("unknown_agent");
    world.nobody().call("send_message", json!({"to": "a2", "text": "x"})).refuses("agent_missing");
    assert_eq!(world.state.messages().len(), 0);
}

#[test]
fn unread_messages_are_told_with_every_reply_until_they_are_acknowledged() {
    let mut world = team().claimed("a2", "t");
    let (first, second) =
        (send(&mut world, "lead", "a2", "first"), send(&mut world, "a1", "a2", "second"));
    let command = "callboard --agent a2 messages";
    let told = json!({"unread_messages": {"count": 2, "next": "get_messages", "cli": command}});
    world.by("a2").call("claim_task", json!({})).replies(told.clone());
    world.call("heartbeat", json!({"task_id": "t"})).replies(told.clone());
    world.call("claim_task", json!({})).replies(told);
    assert_eq!(inbox(&mut world, "a2"), ["first", "second"]);
    assert_eq!(inbox(&mut world, "a2"), ["first", "second"], "a reply may be lost");
    let again = json!({"acknowledge": [first, first, "msg-gone"]});
    for _ in 0..2 {
        world.by("a2").call("get_messages", again.clone()).replies(
            json!({"unread": 1, "messages": [{"text": "second"}], "not_kept": ["msg-gone"]}),
        );
    }
    assert_eq!(world.count_of("messages_read"), 1, "once");
    let all_known = json!({"unread": 0, "messages": [], "not_kept": null});
    world.call("get_messages", json!({"acknowledge": [second]})).replies(all_known);
    world.call("heartbeat", json!({})).replies(json!({"unread_messages": null}));
    world.call("get_messages", json!({"all": true})).replies(json!({"messages": [
        {"text": "second", "unread": false}, {"text": "first", "from": "lead", "unread": false},
    ]}));
    world
        .by("a1")
        .call("get_messages", json!({"acknowledge": [second]}))
        .refuses("unknown_message");
}

#[test]
fn an_answer_goes_to_who_asked_and_acknowledges_the_question() {
    let mut world = team().claimed("a2", "t");
    let question =
        json!({"to": "task:t", "text": "which port?", "kind": "request", "task_id": "t"});
    let asked =
        world.by("lead").call("send_message", question).expect("sent")["message_id"].clone();
    let answer = json!({"reply_to": asked, "text": "8425"});
    world.by("a1").call("send_message", answer.clone()).refuses("unknown_message");
    world
        .by("a2")
        .call("send_message", answer)
        .replies(json!({"recipients": 1, "unread_messages": null}));
    world.by("lead").call("get_messages", json!({})).replies(json!({"messages": [
        {"kind": "reply", "text": "8425", "from": "a2", "to": "lead", "reply_to": asked, "task_id": "t", "unread": true},
    ]}));
}

#[test]
fn a_full_inbox_is_refused_by_name_and_left_out_of_what_goes_to_many() {
    let mut world = team();
    world.replays_seldom = true;
    for number in 0..limit::INBOX.max {
        send(&mut world, "a1", "a2", &number.to_string());
    }
    let message =
        world.by("a1").call("send_message", json!({"to": "a2", "text": "x"})).refuses("inbox_full");
    assert!(
        message.contains("`a2`")
            && message.contains("200 unread")
            && message.contains("get_messages"),
        "{message}"
    );
    world.call("send_message", json!({"to": "role:worker", "text": "x"})).refuses("inbox_full");
    let sent = world.call("send_message", json!({"to": "all", "text": "x"}));
    sent.replies(json!({"recipients": 1, "full": ["a2"]}));
    assert_eq!(inbox(&mut world, "a2").len(), limit::INBOX.max, "all, as a program reads them");
    let oldest = world.state.messages().next().expect("a message").id.to_string();
    world.by("a2").call("get_messages", json!({"acknowledge": [oldest]})).expect("read");
    send(&mut world, "a1", "a2", "one more");
    world.check();
}

#[test]
fn pages_hold_every_message_once_and_little_text() {
    let mut world = team();
    for number in 0..7 {
        send(&mut world, "a1", "a2", &format!("{number}{}", "x".repeat(8_000)));
    }
    let done: Vec<_> = world.state.messages().take(2).map(|one| one.id.to_string()).collect();
    world.by("a2").call("get_messages", json!({"acknowledge": done})).expect("read");
    let (mut seen, mut after, mut pages) = (Vec::new(), Value::Null, 0);
    loop {
        let page = world
            .call("get_messages", json!({"all": true, "limit": 3, "after": after}))
            .expect("a page");
        assert!(page.to_string().len() < 40_000);
        let texts = page["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["text"].as_str().unwrap()[..1].to_owned());
        seen.extend(texts);
        (after, pages) = (page["next"].clone(), pages + 1);
        if after.is_null() {
            break;
        }
    }
    assert_eq!((seen.concat().as_str(), pages), ("2345610", 3));
}

#[test]
fn what_is_acknowledged_between_pages_hides_nothing() {
    let mut world = team();
    let text = |number: usize| format!("m{number}");
    let sent: Vec<_> = (0..30).map(|number| send(&mut world, "a1", "a2", &text(number))).collect();
    // Read out of order, so it is listed among the read ones.
    world.by("a2").call("get_messages", json!({"acknowledge": [sent[25]]})).expect("read");
    for acknowledges_with_the_page in [true, false] {
        let (mut seen, mut query) = (BTreeSet::new(), json!({"all": true, "limit": 7}));
        for pages in 1.. {
            assert!(pages < 20, "it ends");
            let page = world.call("get_messages", query.clone()).expect("a page");
            let shown = page["messages"].as_array().unwrap();
            seen.extend(shown.iter().map(|one| one["text"].as_str().unwrap().to_owned()));
            query["after"] = page["next"].clone();
            if acknowledges_with_the_page && page["unread"] != 0 {
                query["acknowledge"] = shown.iter().map(|one| one["id"].clone()).collect();
            }
            if page["next"].is_null() {
                break;
            }
        }
        assert_eq!(
            seen,
            (0..30).map(text).collect(),
            "acknowledged meanwhile: {acknowledges_with_the_page}"
        );
    }
}

#[test]
fn what_all_have_read_retires_and_what_somebody_has_not_stays() {
    let mut world = team();
    world.replays_seldom = true;
    let kept = send(&mut world, "a1", "human", "stay");
    for _ in 0..6 {
        let sent: Vec<_> =
            (0..100).map(|number| send(&mut world, "a1", "a2", &number.to_string())).collect();
        world.by("a2").call("get_messages", json!({"acknowledge": sent})).expect("read");
    }
    assert_eq!(world.state.messages().len(), 601);
    send(&mut world, "a1", "a2", "last");
    assert_eq!(world.count_of("messages_retired"), 1);
    assert_eq!(world.state.messages().len(), limit::READ_MESSAGES_KEPT + 2);
    assert!(world.state.messages().any(|one| one.id.as_str() == kept));
    world.check();
}

/// A board with as many messages as allowed, in a hundred full inboxes. The `oldest` messages are
/// unread by the given reader, if any.
fn full(oldest: usize, unread_by: Option<&str>) -> World {
    let readers = limit::MESSAGES.max / limit::INBOX.max;
    let reader = |number: usize| AgentId::trusted(format!("reader-{}", number % readers));
    team().holding(|document| {
        let like = document.agents[&AgentId::trusted("a2")].clone();
        document
            .agents
            .extend((0..readers).map(reader).map(|id| (id.clone(), Agent { id, ..like.clone() })));
        let message = |number: usize| Message {
            id: MessageId::trusted(format!("msg-{number}")),
            from: AgentId::trusted("lead"),
            person: None,
            to: "all".to_owned(),
            kind: MessageKind::Inform,
            text: number.to_string(),
            reply_to: None,
            question: None,
            options: Vec::new(),
            task_id: None,
            sent_at: document.board.created_at,
            recipients: [reader(number), AgentId::trusted("human")].into(),
            unread_by: if number < oldest {
                unread_by.map(AgentId::trusted).into_iter().collect()
            } else {
                [reader(number)].into()
            },
        };
        document.messages = (0..limit::MESSAGES.max).map(message).map(Arc::new).collect();
    })
}

#[test]
fn on_a_full_board_all_goes_that_all_have_read() {
    let mut world = full(100, None);
    send(&mut world, "lead", "a2", "there is room again");
    assert_eq!(world.state.messages().len(), limit::MESSAGES.max - 100 + 1);
    assert_eq!(world.state.messages().next().expect("a message").text, "100");
}

#[test]
fn on_a_full_board_the_oldest_go_that_only_the_lost_have_not_read() {
    let mut world = full(10, Some("human"));
    let days = |days: i64| days * 24 * 60 * MINUTE;
    world.at(days(6));
    let refused = world
        .by("lead")
        .call("send_message", json!({"to": "a2", "text": "x"}))
        .refuses("over_limit");
    assert!(refused.contains("acknowledge"), "{refused}");
    world.at(days(2));
    send(&mut world, "lead", "a2", "there is room again");
    assert_eq!(world.state.messages().len(), limit::MESSAGES.max / 20 * 19 + 1);
    let texts: Vec<_> = world.state.messages().map(|one| one.text.as_str()).take(11).collect();
    assert_eq!(texts[9..], ["9", "1010"], "what a person has not read stays");
}

#[test]
fn sending_again_under_its_key_sends_nothing() {
    let mut world = team();
    let call = json!({"to": "a2", "text": "once", "idempotency_key": "k"});
    let first = world.by("a1").call("send_message", call.clone()).expect("sent");
    world
        .call("send_message", call)
        .replies(json!({"message_id": first["message_id"], "already": true, "recipients": 1}));
    assert_eq!(world.count_of("message_sent"), 1);
}

#[test]
fn everybody_is_who_was_heard_of_in_a_day_or_lives() {
    let mut world = team().agent_in("home", "laptop");
    world.at(25 * 60 * MINUTE);
    world.by("a1").call("heartbeat", json!({})).expect("alive");
    world.call("send_message", json!({"to": "all", "text": "x"})).replies(json!({"recipients": 1}));
    assert_eq!((unread(&world, "home"), unread(&world, "a2")), (1, 0));
}

#[test]
fn text_is_data_without_secrets_and_without_what_a_terminal_obeys() {
    let mut world = team();
    let secret = ["ghp_", &"a1B2c3D4e5".repeat(4)[..36]].concat();
    let text = format!("\u{1b}[2Jtoken {secret}\u{202e}");
    let reply =
        world.by("a1").call("send_message", json!({"to": "a2", "text": text})).expect("sent");
    assert_eq!(reply["redacted"], 1);
    let read = inbox(&mut world, "a2").concat();
    assert!(
        read.starts_with("token ") && !read.contains(&secret) && !read.contains('\u{202e}'),
        "{read:?}"
    );
}

#[test]
fn events_of_messages_are_seen_by_who_listens_for_the_task() {
    let mut world = team();
    let seq = world.state.seq();
    let message = world
        .by("a1")
        .call("send_message", json!({"to": "a2", "text": "x", "task_id": "t"}))
        .expect("sent");
    let wanted = json!({"since_seq": seq, "kinds": ["message_sent"], "task_id": "t"});
    world.nobody().call("wait_for_events", wanted).replies(json!({"events": [
        {"kind": "message_sent", "actor": "a1", "message": {"id": message["message_id"], "recipients": ["a2"]}},
    ]}));
}

#[test]
fn unread_messages_fit_the_budget_of_a_claim() {
    let (task, agent) = ("t".repeat(64), "a".repeat(64));
    let mut world = World::new().agent("b").agent(&agent).task_with(&task, json!({"priority": 10}));
    for _ in 0..limit::INBOX.max {
        send(&mut world, "b", &agent, "x");
    }
    let mut reply = world.next(&agent);
    assert_eq!(reply["unread_messages"]["count"], limit::INBOX.max);
    let text = reply["task"].as_object_mut().expect("a task");
    for field in ["id", "description"] {
        text.remove(field);
    }
    println!(
        "a claim with {} unread messages: {} bytes of 600",
        limit::INBOX.max,
        reply.to_string().len()
    );
    assert!(reply.to_string().len() <= 600, "{reply}");
}

#[test]
fn a_message_to_a_busy_agent_survives_kill_9_and_is_acknowledged_once() {
    let board = Board::new();
    let (mut busy, mut lead) = (board.mcp(), board.mcp());
    busy.register("busy");
    lead.register("lead");
    busy.ok("create_task", json!({"id": "t", "description": "d"}));
    busy.ok("claim_task", json!({"agent_id": "busy"}));
    let sent = lead.ok(
        "send_message",
        json!({"agent_id": "lead", "to": "task:t", "text": "stop at noon", "kind": "request"}),
    );
    lead.kill();
    let told = busy.ok("heartbeat", json!({"agent_id": "busy", "task_id": "t"}));
    assert_eq!(told["unread_messages"]["count"], 1, "{told}");
    busy.kill();
    let mut again = board.mcp();
    again.register("busy");
    let messages = again.ok("get_messages", json!({"agent_id": "busy"}));
    assert_eq!(messages["messages"][0]["text"], "stop at noon");
    assert_eq!(messages["messages"][0]["id"], sent["message_id"]);
    again.ok("get_messages", json!({"agent_id": "busy", "acknowledge": [sent["message_id"]]}));
    again.kill();
    let mut last = board.mcp();
    let reply =
        last.ok("get_messages", json!({"agent_id": "busy", "acknowledge": [sent["message_id"]]}));
    assert_eq!((&reply["unread"], &reply["messages"]), (&json!(0), &json!([])));
    drop(last);
    let read =
        board.events().iter().filter(|recorded| recorded.event.kind() == "messages_read").count();
    assert_eq!(read, 1);
    board.assert_file_is_the_replay();
}

#[test]
fn a_person_is_asked_on_the_status_and_answers_from_the_command_line() {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "a1", "role": "worker"}));
    let question =
        json!({"agent_id": "a1", "to": "human", "text": "Drop the table?", "kind": "request"});
    let id = board.cli_ok("send_message", question)["message_id"].as_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let finished = board.finish(board.command().args(arguments));
        assert!(finished.status.success(), "{arguments:?}: {}", finished.stderr);
        finished.stdout
    };
    let status = run(&["status"]);
    assert!(
        status.contains("question")
            && status.contains("a1: Drop the table?")
            && status.contains("answer Q1 TEXT"),
        "{status}"
    );
    let sent = run(&["--agent", "a1", "send", "human", "And the view?"]);
    assert!(sent.starts_with("sent to human (msg-"), "{sent}");
    let told = run(&["send", "all", "Wait"]);
    assert!(told.starts_with("sent to all, one reader (msg-"), "{told}");
    let shown = run(&["messages", "--done", sent.trim_end().rsplit(['(', ')']).nth(1).unwrap()]);
    assert!(
        shown.contains("Q1 request")
            && shown.contains("from a1")
            && shown.contains("Drop the table?"),
        "{shown}"
    );
    assert!(run(&["reply", &id, "No."]).contains("sent to a1 (msg-"));
    assert!(!run(&["status"]).contains("Drop the table?"));
    assert!(run(&["messages"]).contains("no unread messages"));
    let answer = run(&["--agent", "a1", "messages"]);
    assert!(answer.contains("reply from human") && answer.contains("No."), "{answer}");
    assert!(run(&["send", "a1", "Well done"]).contains("sent to a1 (msg-"));
    let put_away = board.document()["messages"].as_array().unwrap().last().unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(!run(&["--agent", "a1", "messages", "--done", &put_away]).contains("Well done"));
    board.assert_file_is_the_replay();
}

/// The default toolset has no tools for messages.
#[test]
fn what_a_reply_says_of_messages_works_in_a_shell() {
    let board = Board::new();
    let mut asked = Client::start(board.command().args(["--agent", "auto", "mcp"]));
    let id = asked.ok("register_agent", json!({"role": "worker"}))["agent_id"]
        .as_str()
        .unwrap()
        .to_owned();
    board.finish(board.command().args(["send", &id, "Which port?", "--request"]));
    let told = asked.ok("heartbeat", json!({}))["unread_messages"].clone();
    // The client's configuration names the board, but its agent's shell does not know it.
    let shell = |command: &str| {
        let words = shlex::split(command).unwrap();
        let finished =
            board.finish(board.command().env_remove("COORDINATION_DIR").args(&words[1..]));
        assert!(finished.status.success(), "{command}: {}", finished.stderr);
        finished.stdout
    };
    assert!(shell(told["cli"].as_str().unwrap()).contains("Which port?"), "{told}");
    let message = board.document()["messages"][0]["id"].as_str().unwrap().to_owned();
    let dir = board.dir().display();
    shell(&format!("callboard --dir {dir} --agent {id} reply {message} 8425"));
    assert_eq!(asked.ok("heartbeat", json!({}))["unread_messages"], json!(null));
    assert!(shell(&format!("callboard --dir {dir} messages")).contains(&format!("from {id}")));
}

#[test]
fn a_restore_takes_no_message_back() {
    let board = Board::new();
    board.cli_ok("register_agent", json!({"agent_id": "a1", "role": "worker"}));
    let seq = board.document()["seq"].as_u64().unwrap();
    let sent = board.cli_ok("send_message", json!({"agent_id": "a1", "to": "human", "text": "x"}));
    board.cli_ok("restore_snapshot", json!({"seq": seq}));
    assert_eq!(board.document()["messages"][0]["id"], sent["message_id"]);
    board.assert_file_is_the_replay();
}
