//! What agents write is shown on every page, and obeyed on none; pages stay small on large boards.

use std::fs;
use std::sync::Arc;

use html5ever::tendril::TendrilSink;
use html5ever::{ParseOpts, parse_document, tree_builder::TreeBuilderOpts};
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::task::Sheet;
use super::*;
use crate::git::change::{Change, Diff};
use crate::participant::Caller;
use crate::state::State;
use crate::state::id::{AgentId, TaskId};
use crate::state::policy::Policy;
use crate::state::snapshot::Listed;
use crate::state::time::Timestamp;
use crate::view::{
    Board, Detail, Filter, Found, Graph, Kind, Latest, List, Look, Named, Profile, Timeline, Tone,
    Tree,
};
use crate::web::visit::Visit;
use crate::web::{Page, shell};

const NOW: &str = "2026-03-01T12:00:00.000Z";
/// What would show that a text was obeyed.
const MARKUP: [&str; 16] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "'><svg/onload=alert(1)>",
    "</title><x-evil>",
    "</textarea></form><x-evil y=\"1\">",
    "<!-- -->--><x-evil>",
    "]]><x-evil>",
    "<a href=\"javascript:alert(1)\" x-evil>go</a>",
    "[go](javascript:alert(1)) ![x](http://x/y.png) <javascript:alert(1)>",
    "[go](https://example.org/\"onmouseover=\"alert(1))",
    "&lt;x-evil&gt; &amp; &#60;x-evil>",
    "\" autofocus onfocus=\"alert(1)",
    "` onmouseover=alert(1) `",
    "{{constructor.constructor('alert(1)')()}}",
    "<hx-partial hx-target=\"main\"><x-evil></hx-partial>",
    "<b hx-get=\"/x\" hx-trigger=\"load\" x-evil>",
];
const ELEMENTS: &str = "html head meta title link script body a header div h1 h2 h3 h4 h5 h6 span \
                        progress form input button nav main section p strong ul ol li details \
                        summary footer kbd time code select option label datalist b pre dl dt dd \
                        textarea table thead tbody tr th td svg path rect text line em blockquote \
                        ins del hr br";
const ATTRIBUTES: &str = "lang charset name content rel href src nonce defer class id role \
                          aria-label aria-labelledby aria-current aria-hidden title value max min \
                          type placeholder autocomplete required method action data-search \
                          data-now data-key data-order data-priority data-copy data-age data-load \
                          data-line data-notify datetime tabindex open draggable hidden list autofocus rows \
                          target for hx-sse:connect hx-config hx-nonce width height viewbox x y rx \
                          d x1 x2 y1 y2 text-anchor start data-seq data-done \
                          data-total data-wait data-since";

fn corpus() -> impl Strategy<Value = String> {
    let mut texts: Vec<String> = MARKUP.iter().map(|text| (*text).to_owned()).collect();
    texts.push(MARKUP.join("\n").repeat(16 * 1024 / MARKUP.join("\n").len() + 1));
    texts.push("漢".repeat(200));
    texts.push("a\u{301}👩‍💻".repeat(80));
    for file in ["harmless", "forms", "named", "places"] {
        let path = format!("{}/tests/data/redaction/{file}.txt", env!("CARGO_MANIFEST_DIR"));
        texts.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
    }
    // As they are on the board: cleaned when they came in.
    let clean = |text: String| crate::harmless::text(&text).unwrap_or(text);
    let texts: Vec<_> = texts.into_iter().map(clean).collect();
    prop_oneof![proptest::sample::select(texts), "[ -~\\n漢ü\u{202e}<>\"'&]{0,60}".prop_map(clean)]
}

fn now() -> Timestamp {
    Timestamp::of_text(NOW).unwrap()
}

fn visit() -> Visit {
    Visit {
        board: "board".into(),
        path: "/?text=%3Cx-evil%3E\"'".to_owned(),
        nonce: "n".to_owned(),
        caller: Some(Caller::default()),
        notice: None,
    }
}

/// A board with a task in every state, all of whose texts are the given ones in turn.
fn state(texts: &[String]) -> State {
    let mut given = texts.iter().cycle();
    let mut text = || given.next().unwrap().clone();
    let at = "2026-03-01T11:00:00.000Z";
    let mut task = |id: &str, status: &str, attempt: Value| {
        let attempts: Vec<Value> = Some(attempt).into_iter().filter(|one| !one.is_null()).collect();
        json!({"id": id, "title": text(), "description": text(), "status": status, "priority": 5,
            "dependencies": [], "created_at": at, "tags": [text(), text()], "path": "P1",
            "context": {"files": [text()], "hints": text()}, "attempt": attempts.len(),
            "claimed_by": attempts.first().map(|one| one["agent"].clone()), "claimed_at": at,
            "result": {"output": text(), "branch": text(), "commit": text(), "error": text(),
                "files_modified": [text()], "files_created": [text()]},
            "artifacts": [{"name": text(), "bytes": 1, "sha256": "0", "at": at}],
            "attempts": attempts})
    };
    let open = |agent: &str, note: &str| {
        json!({"number": 1, "agent": agent, "claimed_at": at, "note": note, "branch": note,
            "lease_until": "2026-03-01T13:00:00.000Z", "worktree": note})
    };
    let ended = |outcome: &str, said: &str| {
        json!({"number": 1, "agent": "a", "claimed_at": at, "lease_until": at, "ended_at": at,
            "outcome": outcome, "error": {"category": said, "message": said}, "note": said,
            "reviewed": {"approved": false, "by": "b", "comment": said, "at": at}})
    };
    let said = &texts[0];
    let mut tasks = vec![
        task("ready", "available", Value::Null),
        task("held", "in_progress", open("a", said)),
        task("asks", "in_progress", open("b", said)),
        task("made", "review", ended("done", said)),
        task("bad", "failed", ended("failed", said)),
        task("over", "done", ended("done", said)),
        task("off", "cancelled", Value::Null),
        task("later", "available", ended("released", said)),
        task("behind", "available", Value::Null),
    ];
    tasks[7]["not_before"] = "2026-03-01T13:00:00.000Z".into();
    tasks[8]["dependencies"] = json!(["bad", "held"]);
    tasks[0]["kept_for"] = json!({"agent": "b", "until": "2026-03-01T13:00:00.000Z"});
    let message = |id: &str, kind: &str| {
        json!({"id": id, "from": "b", "to": "human", "kind": kind, "text": said, "sent_at": at,
            "recipients": ["human"], "unread_by": ["human"], "options": texts, "task_id": "asks",
            "question": (kind == "request").then_some(1)})
    };
    let agent = |id: &str, task: &str| {
        json!({"id": id, "role": "worker", "last_heartbeat": at, "current_task": task,
            "current_tasks": [task], "capabilities": texts, "tags": texts,
            "waiting": {"for": "permission", "what": said, "where": said, "since": at}})
    };
    let mut document = serde_json::to_value(State::new().to_document()).unwrap();
    document["goal"] = said.as_str().into();
    document["master_plan"] = said.as_str().into();
    document["paused"] = json!({"at": at, "reason": said});
    document["tasks"] = json!(tasks);
    document["agents"] = json!({"a": agent("a", "held"), "b": agent("b", "asks")});
    document["messages"] = json!([message("msg-1", "request"), message("msg-2", "inform")]);
    document["discoveries"] = json!([{"id": "disc-1", "agent_id": "a", "content": said,
        "tags": texts, "created_at": at, "task_id": "held", "files": texts}]);
    document["reservations"] = json!([{"id": "res-1", "agent": "a", "files": texts,
        "reason": said, "task": "held", "created_at": at}]);
    let mut state = State::from_document(serde_json::from_value(document).unwrap());
    state.wake(now());
    state
}

/// Every page of the board.
fn pages(state: &State, text: &str, visit: &Visit) -> Vec<(&'static str, Page)> {
    let (filter, policy) = (Filter::default(), Policy::default());
    let look = Look { now: now(), policy: &policy, scope: None, filter: &filter, rows: 12 };
    let mut board = Board::of(state, &look);
    let event = Latest {
        seq: 1,
        at: now(),
        actor: Some(AgentId::trusted("a")),
        word: "noted".to_owned(),
        tone: Tone::Plain,
        text: text.to_owned(),
        task: Some(TaskId::trusted("held")),
        undoable: true,
    };
    board.latest = vec![event];
    let query = Query {
        scope: Some(text.to_owned()),
        q: Some(text.to_owned()),
        filter: Filter {
            text: Some(text.to_owned()),
            tag: Some(text.to_owned()),
            agent: Some(text.to_owned()),
        },
        ..Query::default()
    };
    let sheet = |id: &str| Sheet {
        task: state.task(&TaskId::trusted(id)).map(|task| (**task).clone()).unwrap(),
        detail: Detail::of(state, &TaskId::trusted(id), now()),
        latest: board.latest.clone(),
    };
    let diff = Diff::Change(Change {
        what: text.to_owned(),
        text: format!("diff --git a/{text} b/{text}\n@@ -1 +1 @@\n-{text}\n+{text}"),
    });
    let none = Diff::Nothing(text.to_owned());
    let profile = Profile::of(state, &AgentId::trusted("a"), &look).unwrap();
    let list = List::of(state, Kind::All, None, &Filter::default(), 0, now());
    let files: Vec<_> = state
        .reservations()
        .map(|one| (Arc::clone(one), one.task.as_ref().map(|id| Named::find(state, id))))
        .collect();
    let found: Vec<_> = state.discoveries().cloned().collect();
    let snapshots: Vec<Listed> = serde_json::from_value(json!([{
        "name": "state-20260301T120000.000Z-1a2b3c4d.json", "bytes": 1,
        "head": {"format": 1, "board_id": "b", "seq": 1, "taken_at": NOW, "occasion": "on_demand", "label": text},
    }]))
    .unwrap();
    let plan: Arc<str> = text.into();
    vec![
        ("board", board::page(&board, &query, visit)),
        ("task", task::page(&board, &sheet("held"), visit)),
        ("failed task", task::page(&board, &sheet("bad"), visit)),
        ("reviewed task", task::page(&board, &sheet("made"), visit)),
        ("diff", task::diff(&board, &sheet("held").task, &diff, visit)),
        ("reviewed diff", task::diff(&board, &sheet("made").task, &diff, visit)),
        ("no diff", task::diff(&board, &sheet("held").task, &none, visit)),
        ("agents", agents::page(&board)),
        ("agent", agents::one(&board, &profile, &board.latest, visit)),
        ("list", list::page(&board, &list, &query)),
        ("graph", graph::page(&board, graph::drawn(&graph_of(state), &query))),
        ("timeline", timeline::page(&board, &Timeline::of(state, now(), timeline::millis(4)), 4)),
        ("events", events::page(&board, &board.latest, Some(3), &query, visit)),
        ("plan", plan::page(&board, &Tree::of(state, None), &plan, &query)),
        ("files", files::page(&board, &files)),
        ("search", search::page(&board, &Found::of(state, "a", now()), &query, visit)),
        ("discoveries", discoveries::page(&board, &found, 1, &query, visit)),
        ("snapshots", snapshots::page(&board, &snapshots)),
        ("keys", keys::page(&board)),
        ("add", add::page(&board, visit)),
        ("failure", failure::page(text)),
    ]
}

fn graph_of(state: &State) -> Graph {
    Graph::of(state, None, true, &|| false).unwrap()
}

fn parsed(html: &str) -> RcDom {
    let tree_builder = TreeBuilderOpts { exact_errors: true, ..Default::default() };
    parse_document(RcDom::default(), ParseOpts { tree_builder, ..Default::default() })
        .one(html.to_owned())
}

/// What the page has that no page has of its own.
fn foreign(node: &Handle, found: &mut Vec<String>, text: &mut String) {
    let is_known = |known: &str, name: &str| known.split_whitespace().any(|one| one == name);
    match &node.data {
        NodeData::Text { contents } => text.push_str(&contents.borrow()),
        NodeData::Comment { contents } => found.push(format!("comment {contents}")),
        NodeData::Element { name, attrs, .. } => {
            let name = &*name.local;
            if !is_known(ELEMENTS, name) {
                found.push(format!("<{name}>"));
            }
            for attribute in attrs.borrow().iter() {
                let (key, value) = (attribute.name.local.to_lowercase(), &*attribute.value);
                let is_link = ["href", "src", "action", "data-load"].contains(&key.as_str());
                let is_near =
                    value.starts_with('/') && !value.starts_with("//") || value.starts_with('#');
                let is_far = value.starts_with("https://") || value.starts_with("http://");
                if !is_known(ATTRIBUTES, &key) || is_link && !is_near && !(is_far && name == "a") {
                    found.push(format!("<{name} {key}={value:?}>"));
                }
            }
            if name == "script" && !node.children.borrow().is_empty() {
                found.push("a script with a text".to_owned());
            }
        }
        _ => {}
    }
    node.children.borrow().iter().for_each(|child| foreign(child, found, text));
}

/// Checks a page and returns its text.
fn checked(name: &str, html: &str) -> String {
    let dom = parsed(html);
    let (mut found, mut text) = (Vec::new(), String::new());
    foreign(&dom.document, &mut found, &mut text);
    assert!(found.is_empty(), "{name}: {found:#?}");
    let errors = dom.errors.borrow();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn texts_of_agents_are_shown_and_never_obeyed(texts in proptest::collection::vec(corpus(), 1..4)) {
        let visit = visit();
        let state = state(&texts);
        for (name, page) in pages(&state, &texts[0], &visit) {
            let html = shell::page(&visit, &page).into_string();
            let text = checked(name, &html);
            let line = texts[0].lines().next().unwrap_or_default().trim();
            let is_told = ["events", "no diff", "snapshots", "failure"].contains(&name);
            prop_assert!(!is_told || text.contains(line), "{name} does not show {line:?}");
        }
    }
}

#[test]
fn visitors_who_may_only_look_get_no_forms() {
    let looker = Visit { caller: None, ..visit() };
    let state = state(&["text".to_owned()]);
    for (name, page) in pages(&state, "text", &looker) {
        let html = shell::page(&looker, &page).into_string();
        assert!(!html.contains("method=\"post\""), "{name}");
    }
}

#[test]
fn ids_on_a_page_are_different() {
    let state = state(&["text".to_owned()]);
    for (name, page) in pages(&state, "text", &visit()) {
        let html = shell::page(&visit(), &page).into_string();
        let mut ids: Vec<_> =
            html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: {ids:?}");
    }
}

/// A board with so many tasks and agents.
fn large(tasks: usize, agents: usize) -> State {
    let task = |number: usize| {
        let status = ["available", "done", "failed"][number % 3];
        json!({"id": format!("t{number}"), "title": format!("Task {number} ").repeat(12), "description": "d",
            "status": status, "priority": 5, "dependencies": [], "created_at": NOW, "completed_at": NOW,
            "tags": ["tag"]})
    };
    let agent = |number: usize| {
        let id = format!("agent-{number}");
        (id.clone(), json!({"id": id, "role": "worker", "last_heartbeat": NOW}))
    };
    let mut document = serde_json::to_value(State::new().to_document()).unwrap();
    document["tasks"] = (0..tasks).map(task).collect();
    document["agents"] = (0..agents).map(agent).collect::<serde_json::Map<_, _>>().into();
    let mut state = State::from_document(serde_json::from_value(document).unwrap());
    state.wake(now());
    state
}

#[test]
fn first_screen_of_a_large_board_is_small() {
    let state = large(10_000, 1_000);
    let (filter, policy) = (Filter::default(), Policy::default());
    let rows = usize::try_from(board::ROWS).unwrap();
    let look = Look { now: now(), policy: &policy, scope: None, filter: &filter, rows };
    let board = Board::of(&state, &look);
    let page = board::page(&board, &Query::default(), &visit());
    let html = shell::page(&visit(), &page).into_string();
    checked("board", &html);
    let assets: usize = [
        "board.css",
        "board.js",
        "live.js",
        "vendor/htmx.min.js",
        "vendor/hx-csp.min.js",
        "vendor/hx-sse.min.js",
    ]
    .iter()
    .map(|name| {
        let path = format!("{}/src/web/assets/{name}", env!("CARGO_MANIFEST_DIR"));
        usize::try_from(fs::metadata(path).unwrap().len()).unwrap()
    })
    .sum();
    assert!(html.len() + assets <= 150_000, "{} and {assets}", html.len());
    let list = List::of(&state, Kind::All, None, &filter, 400, now());
    let page = list::page(&board, &list, &Query { after: Some(400), ..Query::default() });
    let html = shell::page(&visit(), &page).into_string();
    assert!(html.contains("401 to 600 of 10000") && html.len() < 150_000, "{}", html.len());
    let drawn = graph::drawn(&graph_of(&state), &Query::default());
    let graph = graph::page(&board, drawn);
    let html = shell::page(&visit(), &graph).into_string();
    assert!(html.len() < 1_000_000 && html.contains("more do not fit"), "{}", html.len());
}

#[test]
fn empty_board_says_what_to_do_next() {
    let (filter, policy) = (Filter::default(), Policy::default());
    let look = Look { now: now(), policy: &policy, scope: None, filter: &filter, rows: 12 };
    let board = |state: &State| {
        let board = Board::of(state, &look);
        let page = board::page(&board, &Query::default(), &visit());
        checked("board", &shell::page(&visit(), &page).into_string())
    };
    let empty = board(&State::new());
    assert!(empty.contains("callboard plan import PLAN.md"), "{empty}");
    let waiting = board(&large(4, 0));
    assert!(waiting.contains("callboard connect"), "{waiting}");
}
