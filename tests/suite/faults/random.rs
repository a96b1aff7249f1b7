//! Random input that keeps its structure: values exchanged within valid JSON, then bytes of its
//! text. It is used for the state file, imported files, and a client's lines; texts are made from
//! the redaction corpus. `CALLBOARD_FUZZ_SECONDS` is the duration of each part, `CALLBOARD_SEED`
//! the seed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use callboard::redact;
use callboard::state::State;
use callboard::state::id::Chance;
use callboard::statefile::{self, Found};
use serde_json::{Value, json};

use crate::harness::{Board, STATE_FILE, size};

fn seconds() -> Duration {
    Duration::from_secs(size("CALLBOARD_FUZZ_SECONDS", 1) as u64)
}

struct Dice(Chance);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.0.draw() % end.max(1) as u64).unwrap()
    }

    /// A value that a program may not expect.
    fn value(&mut self) -> Value {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1.5e300),
            json!(""),
            json!("x".repeat(70_000)),
            json!("\u{0}\u{1b}[2J\u{202e}"),
            json!([]),
            json!({}),
            json!([[[[[]]]]]),
            json!({"": {"": ""}}),
            json!("t1"),
            json!("task-1"),
            json!("2026-03-01T12:00:00Z"),
            json!("-1"),
            json!("done"),
            json!("9999-12-31T23:59:59.999Z"),
            json!("in_progress"),
            json!(4_294_967_296_u64),
            json!("../../etc/passwd"),
        ];
        values[self.below(values.len())].clone()
    }

    /// Changes one value somewhere within `value`.
    fn change(&mut self, value: &mut Value) {
        let deeper = self.below(8) != 0;
        match value {
            Value::Object(fields) if deeper && !fields.is_empty() => {
                let name = fields.keys().nth(self.below(fields.len())).unwrap().clone();
                match self.below(16) {
                    0 => drop(fields.remove(&name)),
                    1 => drop(fields.insert(format!("{name}x"), json!(1))),
                    _ => self.change(fields.get_mut(&name).unwrap()),
                }
            }
            Value::Array(items) if deeper && !items.is_empty() => {
                let number = self.below(items.len());
                match self.below(12) {
                    0 => drop(items.remove(number)),
                    1 => items.push(items[number].clone()),
                    _ => self.change(&mut items[number]),
                }
            }
            other => *other = self.value(),
        }
    }

    /// `good` with one to four changes; every other time, some bytes are changed, too.
    fn text(&mut self, good: &Value) -> Vec<u8> {
        let mut changed = good.clone();
        (0..=self.below(4)).for_each(|_| self.change(&mut changed));
        let mut bytes = changed.to_string().into_bytes();
        if self.below(2) == 0 && !bytes.is_empty() {
            for _ in 0..=self.below(3) {
                let place = self.below(bytes.len());
                bytes[place] ^= 1 << self.below(8);
            }
        }
        bytes
    }
}

fn first_seed() -> u64 {
    size("CALLBOARD_SEED", 0) as u64
}

/// Whatever the state file contains, a process reports what is wrong or has a consistent board.
#[test]
fn random_state_files_are_refused_or_sound() {
    let board = Board::new();
    board.cli_ok(
        "create_tasks_batch",
        json!({"tasks": [{"id": "t1", "description": "d"},
        {"id": "t2", "description": "d", "dependencies": ["t1"]}]}),
    );
    board.cli_ok("register_agent", json!({"agent_id": "a", "role": "worker"}));
    board.cli_ok("claim_task", json!({"agent_id": "a"}));
    let brokers_file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/typescript-broker/mcp-state.json");
    let originals =
        [board.document(), serde_json::from_slice(&fs::read(brokers_file).unwrap()).unwrap()];
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (mut sound, mut imported, mut unsound, mut seed) = (0, 0, 0, first_seed());
    let start = Instant::now();
    while start.elapsed() < seconds() {
        seed += 1;
        let mut dice = Dice(Chance::new(seed));
        let original = dice.below(originals.len());
        let text = dice.text(&originals[original]);
        fs::write(dir.path().join(STATE_FILE), &text).unwrap();
        let checked = catch_unwind(AssertUnwindSafe(|| match statefile::load(dir.path()) {
            Ok(Some(Found::Sound(document))) => (1, 0, State::from_document(*document).check()),
            Ok(Some(Found::Foreign { document, .. })) => {
                (0, 1, State::from_document(*document).check())
            }
            _ => (0, 0, Vec::new()),
        }));
        let (is_sound, is_imported, wrong) =
            checked.unwrap_or_else(|_| panic!("seed {seed} panicked"));
        assert_eq!(wrong, [""; 0], "seed {seed}: {}", String::from_utf8_lossy(&text));
        sound += is_sound;
        imported += is_imported;
        unsound += 1 - is_sound - is_imported;
    }
    println!(
        "random state files: {sound} sound, {imported} imported, {unsound} refused; 0 panics, 0 \
         broken invariants"
    );
    assert!(imported > 0 && unsound > 0);
}

#[test]
fn random_lines_leave_the_server_and_the_board_whole() {
    let board = Board::new();
    let mut client = board.mcp();
    client.ok("create_task", json!({"id": "t1", "description": "d"}));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let tool = |name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        json!({"jsonrpc": "2.0", "id": 0, "method": "tools/call", "params": params})
    };
    let lines = [
        tool(
            "create_task",
            json!({"description": "d", "priority": 5, "dependencies": ["t1"], "tags": ["x"]}),
        ),
        tool(
            "create_tasks_batch",
            json!({"tasks": [{"description": "d"}, {"description": "e", "dependencies": ["#0"]}]}),
        ),
        tool(
            "register_agent",
            json!({"agent_id": "a", "role": "worker", "capabilities": ["gpu"], "max_concurrent": 2}),
        ),
        tool("claim_task", json!({"agent_id": "a", "task_id": "t1"})),
        tool(
            "complete_task",
            json!({"agent_id": "a", "task_id": "t1", "output": "o", "attempt": 1}),
        ),
        tool(
            "fail_task",
            json!({"agent_id": "a", "task_id": "t1", "error": "e", "retryable": true}),
        ),
        tool("update_task", json!({"task_id": "t1", "priority": 3, "dependencies": []})),
        tool(
            "apply_batch",
            json!({"operations": [{"name": "add_discovery", "arguments": {"content": "c"}}]}),
        ),
        json!({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {"_meta": meta}}),
        json!({"jsonrpc": "2.0", "id": 0, "method": "resources/read", "params": {"uri": "callboard://status", "_meta": meta}}),
    ];
    let (mut sent, mut seed, start) = (0, first_seed(), Instant::now());
    while start.elapsed() < seconds() {
        seed += 1;
        let mut dice = Dice(Chance::new(seed));
        let number = dice.below(lines.len());
        let mut text = dice.text(&lines[number]);
        // Line breaks would split the line. Nothing waits for the result of the call.
        text.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        client.write_bytes(&text);
        sent += 1;
        if sent % 8 == 0 {
            assert!(
                client.try_call("get_status", json!({})).is_some_and(|reply| !reply.is_error),
                "near seed {seed}"
            );
        }
    }
    client.ok("create_task", json!({"id": "after", "description": "d"}));
    drop(client);
    board.cli_ok("create_task", json!({"id": "after-all", "description": "d"}));
    println!(
        "random lines: {sent} sent, {} events; the server lives and the board is whole",
        board.events().len()
    );
    board.assert_file_is_the_replay();
}

/// Redacted text does not change when it is redacted again, in whatever combination.
#[test]
fn random_texts_are_redacted_once() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/redaction");
    let named = fs::read_to_string(data.join("named.txt")).unwrap().replace(['⟦', '⟧'], "");
    let harmless = fs::read_to_string(data.join("harmless.txt")).unwrap();
    let pieces: Vec<_> = named
        .lines()
        .chain(harmless.lines())
        .chain(["password: hunter2", ": ", "=", "\"", " "])
        .collect();
    let (mut tried, mut secrets, mut seed, start) = (0, 0, first_seed(), Instant::now());
    while start.elapsed() < seconds() {
        seed += 1;
        let mut dice = Dice(Chance::new(seed));
        let mut text = String::new();
        for _ in 0..=dice.below(5) {
            let piece: Vec<_> = pieces[dice.below(pieces.len())].chars().collect();
            let whole = dice.below(2) == 0;
            let (from, many) = if whole {
                (0, piece.len())
            } else {
                (dice.below(piece.len()), dice.below(piece.len()))
            };
            text.extend(&piece[from..piece.len().min(from + many)]);
        }
        tried += 1;
        let Some((once, found)) = redact::text(&text) else { continue };
        secrets += found;
        assert_eq!(redact::text(&once), None, "seed {seed}, of {text:?}");
    }
    println!("random texts: {tried} tried, {secrets} secrets found, 0 found when looked again");
    assert!(secrets > 0);
}
