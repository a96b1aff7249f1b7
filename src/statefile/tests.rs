use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Arc;

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::head::{parse_end, parse_head};
use super::rendering::hex;
use super::whole::Whole;
use super::*;
use crate::state::Envelope;
use crate::state::State;
use crate::state::document::{Document, SCHEMA_VERSION};
use crate::state::event::Event;
use crate::state::id::{AgentId, ParticipantId, TaskId};
use crate::state::task::Task;
use crate::state::time::Timestamp;

/// One event a line; the time moves on by a second for each.
const HISTORY: &str = r#"
    {"kind":"board_created","board_id":"board-7"}
    {"kind":"plan_set","goal":"A \"goal\"","master_plan":"line\nline ü\n  \"seq\": 9,\n"}
    {"kind":"participant_joined","participant":{"id":"p-1","pid":7,"joined_at":"2026-03-01T12:00:00Z"}}
    {"kind":"agent_registered","agent":"a2","role":"worker","max_concurrent":1}
    {"kind":"agent_registered","agent":"a1","role":"leader","max_concurrent":2,"tags":["gpu"]}
    {"kind":"tasks_created","tasks":[{"id":"t1","description":"one","priority":1,"max_attempts":3},{"id":"t2","description":"two","priority":5,"max_attempts":3,"dependencies":["t1"],"context":{"files":["a.rs"],"metadata":{"n":31.245270191439438,"m":-0.0,"empty":[]}}}]}
    {"kind":"claimed","task":"t1","agent":"a2","attempt":1,"lease_until":"2026-03-01T13:00:00Z","through":"p-1","branch":"main"}
    {"kind":"started","task":"t1"}
    {"kind":"discovery_added","discovery":"d1","agent":"a2","content":"tab\tand\u001bescape","tags":["x"]}
    {"kind":"completed","task":"t1","attempt":1,"result":{"output":"done","data":{"k":[1,2.5]}}}
    {"kind":"claimed","task":"t2","agent":"a1","attempt":1,"lease_until":"2026-03-01T13:00:00Z"}
    {"kind":"paused","reason":"lunch"}
    {"kind":"released","task":"t2"}
    {"kind":"participant_gone","participant":"p-1","grace_until":"2026-03-01T12:02:00Z"}
    {"kind":"resumed"}
    {"kind":"paused"}
    {"kind":"cancelled","task":"t2","reason":"no"}"#;

fn record(state: &mut State, event: &str) {
    let event: Event = serde_json::from_str(event.trim()).expect("an event");
    let at = Timestamp::from_millis(1_772_366_400_000) + state.seq().cast_signed() * 1_000;
    let participant = ParticipantId::trusted("p-1");
    state
        .record(event, &Envelope { at, participant, actor: None, idempotency: None })
        .expect("a change");
}

fn events() -> impl Iterator<Item = &'static str> {
    HISTORY.trim().lines()
}

fn retire_first_task(state: &mut State) {
    let task = state.tasks().next().map(|task| serde_json::to_string(&**task).unwrap()).unwrap();
    record(state, &format!(r#"{{"kind":"tasks_retired","tasks":[{task}]}}"#));
}

fn sample() -> State {
    let mut state = State::new();
    events().take(16).for_each(|event| record(&mut state, event));
    retire_first_task(&mut state);
    state
}

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn text(state: &State) -> Vec<u8> {
    text_of(state).expect("a text")
}

fn sound(document: Document) -> Found {
    Found::Sound(Box::new(document))
}

/// A projection and what it has left, as the board's lock would keep it.
struct Kept {
    dir: PathBuf,
    projection: Projection,
    left: Left,
    is_whole: bool,
}

impl Kept {
    fn new(projection: Projection) -> Self {
        Self {
            dir: projection.dir.to_path_buf(),
            projection,
            left: Left::default(),
            is_whole: false,
        }
    }

    /// One that writes slots.
    fn flat(dir: &Path) -> Self {
        Self::new(Projection::with_slots_from(dir, 0))
    }

    fn both(dir: &Path) -> [Self; 2] {
        let dirs = ["flat", "whole"].map(|name| dir.join(name));
        dirs.iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let whole = Self::new(Projection::new(&dirs[1]));
        [Self::flat(&dirs[0]), Self { is_whole: true, ..whole }]
    }

    fn write(&mut self, state: &mut State) -> Option<PathBuf> {
        let left = std::mem::take(&mut self.left);
        let note = |left| {
            self.left = left;
            Ok(())
        };
        self.projection.write_keeping(state, left, note).unwrap()
    }

    #[track_caller]
    fn shows(&self, state: &State) {
        assert_eq!(
            load(&self.dir).unwrap(),
            Some(sound(state.to_document())),
            "at event {}",
            state.seq()
        );
        let head = Head { board_id: state.board().board_id.clone(), seq: state.seq() };
        assert_eq!(seq_of(&self.dir).unwrap(), Some(head));
    }
}

#[test]
fn every_state_of_a_history_comes_back_as_it_was() {
    let dir = dir();
    for mut kept in Kept::both(dir.path()) {
        let mut state = State::new();
        let mut step = |state: &mut State| {
            assert_eq!(kept.write(state), None);
            assert!(kept.left.files.contains(&FileIdentity::of(&kept.dir).unwrap().unwrap()));
            kept.shows(state);
            let written = fs::read(kept.dir.join(FILE_NAME)).unwrap();
            if kept.is_whole {
                assert_eq!(
                    written,
                    text(state),
                    "kept fragments and new ones are the same at event {}",
                    state.seq()
                );
            }
        };
        step(&mut state);
        for event in events() {
            record(&mut state, event);
            state.settle();
            step(&mut state);
        }
        let savepoint = state.savepoint();
        retire_first_task(&mut state);
        state.rollback(savepoint);
        step(&mut state);
        retire_first_task(&mut state);
        retire_first_task(&mut state);
        state.settle();
        step(&mut state);
    }
}

/// Top-level fields of a whole file, in their order.
const FIELDS: [&str; 22] = [
    "goal",
    "progress",
    "attention",
    "agents",
    "tasks",
    "discoveries",
    "messages",
    "master_plan",
    "reservations",
    "sessions",
    "workflows",
    "checkpoints",
    "participants",
    "retired",
    "created_at",
    "last_activity",
    "paused",
    "archived",
    "schema_version",
    "board_id",
    "seq",
    "checksum",
];

#[test]
fn a_whole_file_is_pretty_json_in_the_order_that_a_reader_wants() {
    let mut state = State::new();
    for event in events() {
        record(&mut state, event);
        state.settle();
        let text = String::from_utf8(text(&state)).unwrap();
        let mut shown: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, serde_json::to_string_pretty(&shown).unwrap());
        let keys: Vec<_> = shown.as_object().unwrap().keys().map(String::as_str).collect();
        let expected =
            FIELDS.iter().filter(|key| **key != "paused" || state.board().paused.is_some());
        assert!(keys.iter().eq(expected.chain(&[derived::CHECKSUM])), "{keys:?}");
        // Without what callboard derives, it is the document.
        let fields = shown.as_object_mut().unwrap();
        fields.retain(|key, _| {
            ![derived::PROGRESS, derived::ATTENTION, "checksum", derived::CHECKSUM]
                .contains(&key.as_str())
        });
        for (id, agent) in fields["agents"].as_object_mut().unwrap() {
            let title = agent.as_object_mut().unwrap().shift_remove(derived::TITLE);
            let task = state.agent(&AgentId::trusted(id.as_str())).unwrap().current_task.clone();
            let headline = task.map(|task| state.task(&task).unwrap().headline().to_owned());
            assert_eq!(title, headline.map(serde_json::Value::from));
        }
        assert_eq!(shown, serde_json::to_value(state.to_document()).unwrap());
    }
}

#[test]
fn what_is_shown_beside_the_state_follows_it() {
    let mut state = sample();
    record(
        &mut state,
        r#"{"kind":"tasks_created","tasks":[{"id":"t3","description":"three\nof them","priority":1,"max_attempts":1},{"id":"t4","description":"four","priority":1,"max_attempts":1,"dependencies":["t3"]}]}"#,
    );
    let shown = |state: &State| serde_json::from_slice::<serde_json::Value>(&text(state)).unwrap();
    let mut whole = Whole::new();
    let mut is_kept_up = |state: &mut State, event: &str| {
        record(state, event);
        state.settle();
        assert!(whole.render(state).unwrap() == text(state));
        shown(state)
    };
    let claimed = is_kept_up(
        &mut state,
        r#"{"kind":"claimed","task":"t3","agent":"a1","attempt":1,"lease_until":"2026-03-01T13:00:00Z"}"#,
    );
    assert_eq!(claimed["agents"]["a1"][derived::TITLE], "three");
    let renamed =
        is_kept_up(&mut state, r#"{"kind":"task_updated","task":"t3","change":{"title":"Three"}}"#);
    assert_eq!(renamed["agents"]["a1"][derived::TITLE], "Three");
    let failed = is_kept_up(
        &mut state,
        r#"{"kind":"failed","task":"t3","attempt":1,"error":{"category":"broken","message":"no way"}}"#,
    );
    assert_eq!(failed["agents"]["a1"].get(derived::TITLE), None);
    assert_eq!(failed["attention"]["parked"][0]["task"], "t3");
    assert_eq!(failed["attention"]["stuck"], serde_json::json!([{"task": "t4", "by": ["t3"]}]));
    assert_eq!(
        (&failed["progress"]["counts"]["failed"], &failed["progress"]["percent"]),
        (&1.into(), &25.into())
    );
}

#[test]
fn edit_of_what_follows_from_the_state_is_rejected_with_the_reason() {
    let state = sample();
    let shown: serde_json::Value = serde_json::from_slice(&text(&state)).unwrap();
    let compared = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut edited = shown.clone();
        change(&mut edited);
        let bytes = edited.to_string();
        assert!(matches!(load::recognise(bytes.as_bytes()), Ok(Found::Unsound { .. })), "{bytes}");
        edit::read(bytes.as_bytes()).unwrap().compare(&state)
    };
    let why = "callboard makes it from the rest of the board";
    let reasons = compared(&|edited| edited["progress"]["percent"] = 99.into()).unwrap_err();
    assert_eq!(reasons, [format!("progress.percent: it was changed; {why}")]);
    let reasons =
        compared(&|edited| drop(edited.as_object_mut().unwrap().shift_remove("attention")))
            .unwrap_err();
    assert_eq!(reasons, [format!("attention: it was removed; {why}")]);
    let reasons =
        compared(&|edited| edited["agents"]["a1"][derived::TITLE] = "mine".into()).unwrap_err();
    assert_eq!(reasons, [format!("agents.a1.current_task_title: it was added; {why}")]);
    // Whose file it is stays known without it.
    let without =
        compared(&|edited| drop(edited.as_object_mut().unwrap().shift_remove(derived::CHECKSUM)));
    assert!(without.unwrap().is_empty());
    let goal = compared(&|edited| edited["goal"] = "another".into()).unwrap();
    assert_eq!(goal.goal.unwrap().to, "another");
}

#[test]
fn a_file_of_a_build_that_derives_other_things_is_sound() {
    let state = sample();
    let mut file: serde_json::Value = serde_json::from_slice(&text(&state)).unwrap();
    file["attention"] = serde_json::json!({"other": [1]});
    let sum =
        ["progress", "attention"].map(|name| rendering::sum_of(name, "", &file[name]).unwrap());
    file[derived::CHECKSUM] = hex(sum[0].wrapping_add(sum[1])).into();
    file["goal"] = "another".into();
    let edit = edit::read(file.to_string().as_bytes()).unwrap().compare(&state).unwrap();
    assert_eq!(edit.goal.unwrap().to, "another");
    file["goal"] = state.board().goal.to_string().into();
    assert_eq!(load::recognise(file.to_string().as_bytes()).unwrap(), sound(state.to_document()));
}

#[test]
fn entities_that_are_gone_are_forgotten() {
    let mut state = sample();
    let mut whole = Whole::new();
    whole.render(&state).unwrap();
    record(&mut state, r#"{"kind":"cancelled","task":"t2"}"#);
    retire_first_task(&mut state);
    whole.render(&state).unwrap();
    assert_eq!((whole.sections.tasks.len(), whole.sections.retired.len()), (0, 2));
}

#[test]
fn no_flipped_bit_changes_what_is_read() {
    let state = sample();
    let bytes = text(&state);
    let original = sound(state.to_document());
    let mut flipped = bytes.clone();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            flipped[at] ^= 1 << bit;
            match load::recognise(&flipped) {
                Ok(Found::Unsound { .. }) | Err(LoadError::Newer { .. }) => {}
                other => assert_eq!(other.unwrap(), original, "byte {at}, bit {bit}"),
            }
            flipped[at] = bytes[at];
        }
    }
}

/// A flat file of `state`.
fn flat_text(state: &State) -> Vec<u8> {
    slots::books::Books::arrange(state, None).unwrap().1
}

#[test]
fn no_flipped_bit_changes_what_is_read_by_slots() {
    let state = sample();
    let bytes = flat_text(&state);
    let original = state.to_document();
    assert_eq!(slots::read::by_slots(&bytes).unwrap().0, original);
    let mut flipped = bytes.clone();
    // One bit of each byte, another one each time: most of the file is room for more.
    for at in 0..bytes.len() {
        flipped[at] ^= 1 << (at % 8);
        if let Some((read, _)) = slots::read::by_slots(&flipped) {
            assert_eq!(read, original, "byte {at}");
            let whole = load::recognise(&flipped).unwrap();
            assert_eq!(
                whole,
                sound(read),
                "byte {at}: the reader of the whole sees something else"
            );
        }
        flipped[at] = bytes[at];
    }
    for length in (0..bytes.len()).step_by(7) {
        assert!(slots::read::by_slots(&bytes[..length]).is_none(), "{length} bytes");
    }
}

#[test]
fn tasks_are_the_same_however_many_threads_read_them() {
    let mut document = sample().to_document();
    let task = Task::clone(&document.tasks[0]);
    let more = (0..100)
        .map(|number| Task { id: TaskId::trusted(format!("more-{number}")), ..task.clone() });
    document.tasks.extend(more.map(Arc::new));
    let bytes = flat_text(&State::from_document(document));
    let header = slots::header::Header::parse(&bytes).unwrap();
    let tasks = header.layout.span(slots::layout::Field::Task);
    let (start, end) = (tasks.start as usize, tasks.end as usize);
    let read = |count| slots::read::read_tasks(&bytes[start..end], start as u64, count).unwrap();
    let one = read(1);
    assert_eq!(one.all.len(), 101);
    for count in [2, 3, 7, 200, 5_000] {
        assert_eq!(read(count), one, "{count} threads");
    }
}

#[test]
fn a_truncated_file_is_unsound() {
    let bytes = text(&sample());
    for length in 0..bytes.len() {
        let found = load::recognise(&bytes[..length]).unwrap();
        assert!(matches!(found, Found::Unsound { .. }), "{length} bytes: {found:?}");
    }
}

#[test]
fn a_consistent_file_with_impossible_entities_is_unsound() {
    let mut document = sample().to_document();
    document.tasks.push(document.tasks[0].clone());
    let found = load::recognise(&text(&State::from_document(document))).unwrap();
    assert!(
        matches!(&found, Found::Unsound { reason } if reason.contains("t2 is there twice")),
        "{found:?}"
    );
    let mut document = sample().to_document();
    let agent = document.agents.pop_last().unwrap().1;
    document.agents.insert(AgentId::trusted("b"), agent);
    let checksum = hex(load::checksum_of(&document).unwrap());
    let mut file = serde_json::to_value(&document).unwrap();
    file["checksum"] = checksum.into();
    let found = load::recognise(&serde_json::to_vec(&file).unwrap()).unwrap();
    assert!(
        matches!(&found, Found::Unsound { reason } if reason.contains("another id inside")),
        "{found:?}"
    );
}

#[test]
fn a_reformatted_file_is_sound_and_one_of_a_newer_schema_is_refused() {
    let state = sample();
    let mut file: serde_json::Value = serde_json::from_slice(&text(&state)).unwrap();
    assert_eq!(
        load::recognise(&serde_json::to_vec(&file).unwrap()).unwrap(),
        sound(state.to_document())
    );
    file["schema_version"] = (SCHEMA_VERSION + 1).into();
    file["tasks"] = "elsewhere".into();
    let newer = load::recognise(&serde_json::to_vec(&file).unwrap()).unwrap_err();
    assert!(matches!(newer, LoadError::Newer { supported: SCHEMA_VERSION, .. }), "{newer}");
}

#[test]
fn what_is_no_state_file_is_unsound() {
    for text in [
        "",
        "[]",
        "{}",
        "null",
        "{\"schema_version\":0}",
        "{\"tasks\":[],\"checksum\":\"x\"}",
        "{\"tasks\":7}",
    ] {
        let found = load::recognise(text.as_bytes()).unwrap();
        assert!(matches!(found, Found::Unsound { .. }), "{text}: {found:?}");
    }
}

#[test]
fn the_first_version_still_loads() {
    let Found::Sound(document) =
        load::recognise(include_bytes!("../../tests/data/state-v1.json")).unwrap()
    else {
        panic!("the file is not sound");
    };
    assert_eq!(State::from_document((*document).clone()).check(), Vec::<String>::new());
    assert_eq!(*document, sample().to_document());
}

#[test]
fn a_flat_file_of_a_version_with_fewer_lists_loads_and_is_arranged_anew() {
    let before = include_bytes!("../../tests/data/state-v1-flat.json");
    let dir = dir();
    fs::write(dir.path().join(FILE_NAME), before).unwrap();
    let mut kept = Kept::flat(dir.path());
    kept.left.files.extend(FileIdentity::of(dir.path()).unwrap());
    let Some(Found::Sound(document)) = kept.projection.load().unwrap() else {
        panic!("the file is not sound")
    };
    assert_eq!(*document, sample().to_document());
    let mut state = State::from_document(*document);
    let spans = |kept: &Kept| {
        let file: serde_json::Value =
            serde_json::from_slice(&fs::read(kept.dir.join(FILE_NAME)).unwrap()).unwrap();
        (
            file["layout"]["generation"].clone(),
            ["messages", "reservations"].map(|list| file["layout"][list].is_object()),
        )
    };
    let (old, known) = spans(&kept);
    assert_eq!(known, [false; 2]);
    record(&mut state, r#"{"kind":"resumed"}"#);
    state.settle();
    assert_eq!(kept.write(&mut state), None);
    kept.shows(&state);
    let (new, known) = spans(&kept);
    assert_eq!(known, [true; 2]);
    assert_ne!(new, old);
    // From here on it is written in slots.
    record(&mut state, r#"{"kind":"paused"}"#);
    state.settle();
    assert_eq!(kept.write(&mut state), None);
    kept.shows(&state);
    assert_eq!(spans(&kept), (new, [true; 2]));
}

/// An edit of such a file is still recognised as one.
#[test]
fn a_renewed_reservation_that_outgrows_its_slot_keeps_its_place() {
    let dir = dir();
    let mut kept = Kept::flat(dir.path());
    let mut state = sample();
    let reserve = |state: &mut State, id: &str, reason: &str| {
        let reservation = serde_json::json!({"id": id, "agent": "a1", "files": ["a.rs"], "reason": reason,
            "until": "2026-03-01T13:00:00Z", "created_at": "2026-03-01T12:00:00Z"});
        record(
            state,
            &serde_json::json!({"kind": "files_reserved", "reservation": reservation}).to_string(),
        );
        state.settle();
    };
    ["r2", "r1"].iter().for_each(|id| reserve(&mut state, id, "short"));
    kept.write(&mut state);
    reserve(&mut state, "r2", &"long ".repeat(200));
    kept.write(&mut state);
    kept.shows(&state);
    let mut file: serde_json::Value =
        serde_json::from_slice(&fs::read(kept.dir.join(FILE_NAME)).unwrap()).unwrap();
    assert_eq!(
        [&file["reservations"][0]["id"], &file["reservations"][1]["id"]],
        ["r1", "r2"],
        "it has moved"
    );
    file["goal"] = "another".into();
    let edit = edit::read(file.to_string().as_bytes()).unwrap().compare(&state).unwrap();
    assert_eq!(edit.goal.unwrap().to, "another");
    file["reservations"][0]["agent"] = "a2".into();
    let reasons = edit::read(file.to_string().as_bytes()).unwrap().compare(&state).unwrap_err();
    assert_eq!(reasons, ["reservations: it was changed; only the board's operations can do that"]);
}

#[test]
fn no_file_is_nothing() {
    let dir = dir();
    assert_eq!(load(dir.path()).unwrap(), None);
    assert_eq!(seq_of(dir.path()).unwrap(), None);
    assert_eq!(FileIdentity::of(dir.path()).unwrap(), None);
}

#[test]
fn links_pipes_and_directories_are_refused_at_once() {
    let dir = dir();
    let path = dir.path().join(FILE_NAME);
    let refused = || {
        assert!(matches!(load(dir.path()), Err(LoadError::Io { .. })));
        assert!(seq_of(dir.path()).is_err());
    };
    fs::write(dir.path().join("elsewhere"), text(&sample())).unwrap();
    symlink(dir.path().join("elsewhere"), &path).unwrap();
    refused();
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused();
    fs::remove_dir(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    refused();
}

#[test]
fn an_endless_file_is_refused() {
    let dir = dir();
    fs::File::create(dir.path().join(FILE_NAME)).unwrap().set_len(load::MAX_BYTES + 1).unwrap();
    assert!(matches!(load(dir.path()), Err(LoadError::TooLarge { .. })));
}

#[test]
fn a_write_follows_no_link_and_leaves_nothing_behind() {
    let dir = dir();
    for (name, mut kept) in ["spare", "tmp"].iter().zip(Kept::both(dir.path())) {
        let victim = kept.dir.join("victim");
        fs::write(&victim, "untouched").unwrap();
        symlink(&victim, kept.dir.join(format!(".{FILE_NAME}.{name}"))).unwrap();
        symlink(&victim, kept.dir.join(FILE_NAME)).unwrap();
        kept.projection.write(&mut sample()).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(fs::read_dir(&kept.dir).unwrap().count(), 2);
        let mode = fs::symlink_metadata(kept.dir.join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_failed_write_leaves_the_file_and_no_litter() {
    let dir = dir();
    fs::create_dir_all(dir.path().join(FILE_NAME).join("in the way")).unwrap();
    assert!(Projection::new(dir.path()).write(&mut sample()).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn an_unknown_head_is_nothing() {
    let head = Some(Head { board_id: "board-7".to_owned(), seq: 17 });
    let whole = text(&sample());
    assert_eq!(
        (parse_end(&whole), parse_end(&whole[whole.len() - 300..]), parse_head(&whole)),
        (head.clone(), head.clone(), None)
    );
    assert_eq!(parse_end(&whole[..whole.len() - 1]), None, "the file goes on");
    let text = flat_text(&sample());
    assert_eq!((parse_end(&text), parse_head(&text)), (head.clone(), None));
    // A file of an older build begins with it.
    let older = include_bytes!("../../tests/data/state-v1.json");
    assert_eq!(parse_head(&older[..200]), head);
    let seq_ends = older.windows(4).position(|window| window == b" 17,").unwrap() + 3;
    assert_eq!(parse_head(&older[..seq_ends]), None, "the number may go on");
    assert_eq!(
        parse_head(include_bytes!("../../tests/data/typescript-broker/mcp-state.json")),
        None
    );
}

/// Beside padding at the ends of lines, `layout` and the tasks' `order`, a file with slots is a
/// whole file.
#[test]
fn a_file_with_slots_has_the_fields_of_a_whole_file_in_the_same_order() {
    let mut state = State::new();
    for event in events() {
        record(&mut state, event);
        state.settle();
        let [flat, whole] =
            [flat_text(&state), text(&state)].map(|text| String::from_utf8(text).unwrap());
        let is_extra = |line: &str| {
            ["  \"layout\": ", "      \"order\": "].iter().any(|start| line.starts_with(start))
                || line.contains("checksum\": ")
        };
        let without_commas = |line: &str| {
            let line = line.trim_end().trim_end_matches(',');
            line.strip_prefix("   ,").map_or(line.to_owned(), |rest| format!("    {rest}"))
        };
        let lines = |text: &str| {
            text.lines().filter(|line| !is_extra(line)).map(without_commas).collect::<Vec<_>>()
        };
        assert_eq!(lines(&flat), lines(&whole));
    }
}

#[test]
fn files_set_aside_replace_none_before() {
    let dir = dir();
    for number in 1..=3 {
        fs::write(dir.path().join(FILE_NAME), number.to_string()).unwrap();
        let aside = set_aside(dir.path(), "quarantined").unwrap();
        assert_eq!(aside, dir.path().join(format!("mcp-state.json.quarantined-{number}")));
        assert_eq!(fs::read_to_string(aside).unwrap(), number.to_string());
    }
    assert!(set_aside(dir.path(), "quarantined").is_err());
}

#[test]
fn a_file_that_no_projection_has_left_is_kept() {
    let dir = dir();
    let path = dir.path().join(FILE_NAME);
    let mut projection = Projection::new(dir.path());
    let mut left = Left::default();
    for round in 0..3 {
        let known = std::mem::take(&mut left);
        let kept = projection.write_keeping(&mut sample(), known, |new| {
            left = new;
            Ok(())
        });
        let kept = kept.unwrap();
        assert_eq!(kept.is_some(), round > 0, "round {round}");
        let kept = kept.map(|kept| fs::read_to_string(kept).unwrap());
        assert_eq!(kept, (round > 0).then(|| format!("edit {round}")));
        fs::write(&path, format!("edit {}", round + 1)).unwrap();
    }
    let waiting = displaced::all_waiting(dir.path());
    assert_eq!(waiting.len(), 2);
    let now = Timestamp::from_millis(1_772_366_400_000);
    let names = waiting
        .iter()
        .map(|file| displaced::reject(&dir.path().into(), file, "because", now).unwrap());
    let names: Vec<_> =
        names.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    let name = "mcp-state.json.rejected-20260301T120000.000Z";
    assert_eq!(names, [name.to_owned(), format!("{name}-2")]);
    assert_eq!(fs::read_to_string(dir.path().join(format!("{name}.txt"))).unwrap(), "because");
    assert_eq!(displaced::all_rejected(&dir.path().into()), [format!("{name}-2"), name.to_owned()]);
}

#[test]
fn edit_that_cannot_be_put_away_leaves_no_reason_behind_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    displaced::reject(&dir.path().into(), &gone, "because", Timestamp::default()).unwrap_err();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_somebody_saved_is_kept_under_the_spares_name_and_what_a_projection_left_is_not() {
    let dir = dir();
    for mut kept in Kept::both(dir.path()) {
        let (spare, mut state) = (spare::path(&kept.dir), sample());
        let half = [b" ", &flat_text(&state)[1..900]].concat();
        for (content, is_somebodys) in
            [(&b"[]"[..], true), (&text(&state), false), (&half, false), (b"", false)]
        {
            // A file with the inode number of one that was left and, unless a projection has
            // written it, one with a new inode number.
            for is_known in [true, false].into_iter().filter(|is_known| *is_known || is_somebodys) {
                kept.write(&mut state);
                let _ = fs::remove_file(&spare);
                fs::write(&spare, content).unwrap();
                if is_known {
                    let found = identity(&spare).unwrap().unwrap();
                    kept.left.files.push(FileIdentity { size: 1 << 40, ..found });
                }
                kept.projection = if !kept.is_whole {
                    Projection::with_slots_from(&kept.dir, 0)
                } else {
                    Projection::new(&kept.dir)
                };
                assert_eq!(kept.write(&mut state), None);
                kept.shows(&state);
                let waiting = displaced::all_waiting(&kept.dir);
                assert_eq!(waiting.len(), usize::from(is_somebodys), "{content:?} {is_known}");
                waiting.iter().for_each(|path| {
                    assert_eq!(fs::read(path).unwrap(), content);
                    fs::remove_file(path).unwrap();
                });
            }
        }
    }
}

#[test]
fn edits_wait_in_the_order_in_which_they_were_found() {
    let dir = dir();
    let keep = |content: &str| {
        fs::write(dir.path().join(FILE_NAME), content).unwrap();
        displaced::keep(&dir.path().join(FILE_NAME), &dir.path().join(FILE_NAME)).unwrap()
    };
    let first = keep("one");
    keep("two");
    fs::remove_file(first).unwrap();
    keep("three");
    let waiting = displaced::all_waiting(dir.path());
    assert_eq!(
        waiting.iter().map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>(),
        ["two", "three"]
    );
    // A foreign file's name does not use up the numbers.
    fs::write(dir.path().join(format!(".{FILE_NAME}.edited-{}", u64::MAX)), "").unwrap();
    keep("four");
    assert_eq!(displaced::all_waiting(dir.path()).len(), 3);
}

#[test]
fn an_edit_is_what_differs_and_may_be_changed() {
    let base = sample();
    let shown: serde_json::Value = serde_json::from_slice(&text(&sample())).unwrap();
    let compared = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut edited = shown.clone();
        change(&mut edited);
        edit::read(edited.to_string().as_bytes()).unwrap().compare(&base)
    };
    assert!(compared(&|_| {}).unwrap().is_empty());
    let goal = compared(&|edited| edited["goal"] = "another".into()).unwrap();
    assert_eq!(goal.goal.unwrap().to, "another");
    for (path, change) in [
        ("created_at", "created_at"),
        ("archived", "archived"),
        ("tasks", "tasks"),
        ("goal: it must be a text", "goal"),
        ("new\u{1b}[31m", "new\u{1b}[31m"),
    ] {
        let reasons = compared(&|edited| edited[change] = 7.into()).unwrap_err();
        let path: String = path.chars().filter(|c| !c.is_control()).collect();
        assert!(reasons.len() == 1 && reasons[0].starts_with(&path), "{change:?}: {reasons:?}");
    }
    let earlier = compared(&|edited| {
        edited.as_object_mut().unwrap().retain(|key, _| key != "messages" && key != "reservations");
    });
    assert!(earlier.unwrap().is_empty(), "a version without such lists has left them out");
    assert!(
        edit::read(br#"{"schema_version": 1, "board_id": "b", "seq": 1, "goal": 1, "goal": 2}"#)
            .is_err()
    );
    let many: Vec<_> = (0..25).map(|number| format!("path {number}")).collect();
    assert_eq!(edit::listed(&many).lines().last(), Some("- and 5 more"));
}

#[test]
fn note_of_another_boot_does_not_say_what_the_file_shows() {
    let dir = dir();
    let mut kept = Kept::new(Projection::new(dir.path()));
    let mut state = sample();
    assert_eq!(kept.write(&mut state), None);
    let found = FileIdentity::of(dir.path()).unwrap().unwrap();
    assert_eq!(kept.left.shows(&found), Some(state.seq()));
    let before = Left { boot: "another".to_owned(), ..kept.left };
    assert_eq!((before.shows(&found), before.has(&found)), (None, true));
}

#[test]
fn of_a_large_file_that_was_left_only_what_agents_hold_is_read() {
    let dir = dir();
    let mut kept = Kept::flat(dir.path());
    let mut state = sample();
    // A status in a text or in metadata is none, and a task may be longer than what is read first.
    let (words, long) = (r#" \"status\": \"claimed\" "#.repeat(40), "x".repeat(20_000));
    let tasks = |range: std::ops::Range<u32>| {
        let one = |number| {
            let text = if number == 77 { &long } else { &words };
            format!(
                r#"{{"id":"n{number}","description":"{text}","priority":5,"max_attempts":3,"dependencies":[{}],"context":{{"metadata":{{"status":"in_progress"}}}}}}"#,
                if number > 0 { format!(r#""n{}""#, number - 1) } else { String::new() }
            )
        };
        range.map(one).collect::<Vec<_>>().join(",")
    };
    record(&mut state, &format!(r#"{{"kind":"tasks_created","tasks":[{}]}}"#, tasks(0..4_000)));
    let held = ["n0", "n77", "n1999", "n3999"];
    for id in held {
        record(
            &mut state,
            &format!(
                r#"{{"kind":"claimed","task":"{id}","agent":"a1","attempt":1,"lease_until":"2026-03-01T13:00:00Z"}}"#
            ),
        );
    }
    record(&mut state, r#"{"kind":"started","task":"n1999"}"#);
    state.settle();
    kept.write(&mut state);
    let read = load_held(dir.path(), &kept.left).unwrap().expect("a large file that was left");
    let whole = state.to_document();
    let ids = read.tasks.iter().map(|task| task.id.as_str());
    assert_eq!(ids.collect::<Vec<_>>(), held);
    for task in &read.tasks {
        let known = state.task(&task.id).unwrap();
        assert_eq!((&task.attempts, task.status), (&known.attempts, known.status));
        assert_eq!(task.description, known.description);
    }
    assert_eq!(Document { tasks: Vec::new(), ..read }, Document { tasks: Vec::new(), ..whole });

    let copy = dir.path().join("copy");
    fs::copy(dir.path().join(FILE_NAME), &copy).unwrap();
    fs::rename(copy, dir.path().join(FILE_NAME)).unwrap();
    assert_eq!(load_held(dir.path(), &kept.left).unwrap(), None, "a person may have changed it");
}
