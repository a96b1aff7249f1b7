//! Questions of agents to the person in charge, and their answers.

use serde_json::{Value, json};

use crate::harness::{Board, PATIENCE, until};

fn asking(board: &Board) -> crate::harness::Client {
    let mut client = board.mcp();
    client.register("ada");
    client
}

#[track_caller]
fn run(board: &Board, arguments: &[&str]) -> (Option<i32>, String) {
    let finished = board.finish(board.command().args(arguments));
    (finished.status.code(), finished.stdout + &finished.stderr)
}

#[test]
fn the_answer_comes_back_in_the_call_that_waits_for_it() {
    let board = Board::new();
    let mut ada = asking(&board);
    ada.ok("create_task", json!({"id": "t", "description": "Port the lexer"}));
    ada.ok("claim_task", json!({"agent_id": "ada"}));
    let options = ["Keep the old syntax", "Drop it"];
    let asked = json!({"agent_id": "ada", "question": "Which syntax?", "options": options, "wait_seconds": 50});
    let call = ada.send("ask_human", asked);
    until(PATIENCE, "the question is there", || {
        let (_, said) = run(&board, &["answer"]);
        said.contains("Q1 from ada").then_some(said)
    });
    let (code, said) = run(&board, &["answer"]);
    assert!(code == Some(0) && said.contains("2. Drop it"), "{said}");
    let (code, said) = run(&board, &["answer", "q1", "2"]);
    assert_eq!(code, Some(0), "{said}");
    let reply = ada.reply(call).unwrap().ok();
    assert_eq!((&reply["question"], &reply["answer"]), (&json!("Q1"), &json!("Drop it")));
    let message = &board.document()["messages"][0];
    assert_eq!(message["task_id"], "t", "an agent asks about what it does");
    let unread = board.document()["messages"][1].get("unread_by").cloned();
    assert_eq!(unread, None, "who has the answer has read it");
}

#[test]
fn the_answer_comes_back_with_the_next_call_and_there_is_only_one() {
    let board = Board::new();
    let mut ada = asking(&board);
    let question = json!({"agent_id": "ada", "question": "Tabs?"});
    let first = ada.ok("ask_human", question.clone());
    assert_eq!((&first["question"], first.get("answer")), (&json!("Q1"), None));
    assert!(first["next"].as_str().unwrap().contains("ask the same again"), "{first}");
    let again = ada.ok("ask_human", question.clone());
    assert_eq!(again["question"], "Q1", "asked once");
    let second =
        ada.ok("ask_human", json!({"agent_id": "ada", "question": "Spaces?", "wait_seconds": 1}));
    assert_eq!(second["question"], "Q2");
    let (code, said) = run(&board, &["answer", "Tabs, please"]);
    assert!(
        code == Some(1) && said.contains("Q1 from ada") && said.contains("Q2 from ada"),
        "{said}"
    );
    assert_eq!(run(&board, &["answer", "Q2", "Never"]).0, Some(0));
    let (code, said) = run(&board, &["answer", "Tabs, please"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(ada.ok("ask_human", question)["answer"], "Tabs, please");
    let (code, said) = run(&board, &["answer", "Q1", "No"]);
    assert!(
        code == Some(1) && said.contains("Q1 is answered already, by human: Tabs, please"),
        "{said}"
    );
    let (code, said) = run(&board, &["answer", "Q9", "No"]);
    assert!(code == Some(1) && said.contains("Q9"), "{said}");
    assert_eq!(run(&board, &["answer", "Q1"]).0, Some(2));
    assert_eq!(run(&board, &["answer"]), (Some(0), "no question waits for an answer\n".to_owned()));
    board.assert_file_is_the_replay();
}

#[test]
fn questions_come_before_other_messages_in_what_waits_for_the_person() {
    let board = Board::new();
    let mut ada = asking(&board);
    for number in 0..6 {
        let text = format!("note {number}");
        ada.ok("send_message", json!({"agent_id": "ada", "to": "human", "text": text}));
    }
    ada.ok("ask_human", json!({"agent_id": "ada", "question": "Tabs?", "options": ["yes", "no"]}));
    let status = ada.ok("get_status", json!({}));
    let first = &status["for_human"][0];
    assert_eq!((&first["question"], &first["options"]), (&json!("Q1"), &json!(["yes", "no"])));
}

#[test]
fn what_is_too_much_or_from_nobody_is_refused() {
    let board = Board::new();
    let mut ada = asking(&board);
    let many: Vec<Value> = (0..11).map(|number| json!(number.to_string())).collect();
    for (arguments, word) in [
        (json!({"question": "Which?", "options": many}), "options"),
        (json!({"question": "Which?", "options": ["x".repeat(201)]}), "option"),
        (json!({"question": " "}), "question"),
        (json!({"question": "Which?", "task_id": "none"}), "none"),
    ] {
        let mut call = arguments.clone();
        call["agent_id"] = json!("ada");
        let reply = ada.call("ask_human", call);
        assert!(reply.is_error && reply.text.contains(word), "{arguments}: {}", reply.text);
    }
    let reply = ada.call("ask_human", json!({"agent_id": "nobody", "question": "Which?"}));
    assert!(reply.is_error, "{}", reply.text);
    assert!(board.document()["messages"].as_array().unwrap().is_empty());
}
