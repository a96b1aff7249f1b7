//! Time that a socket adds to a call.

use std::time::{Duration, Instant};

use callboard::clock::SystemClock;
use callboard::participant::{self, Caller, Options, Stay};
use serde_json::json;

use super::{Times, Way};
use crate::harness::Board;
use crate::harness::http::Server;

const CALLS: usize = 50;
/// Half the shortest time by which the kernel delays an acknowledgement.
const TOO_MUCH: Duration = Duration::from_millis(20);

/// Without TCP_NODELAY on the server, the second segment of a reply waits for the acknowledgement
/// of the first, which the reader's side delays by 40 ms.
#[test]
fn no_reply_waits_for_an_acknowledgement() {
    let board = Board::new();
    let server = Server::on(&board);
    board.cli_ok("create_task", json!({"description": "d", "id": "one"}));
    let handle = participant::spawn(Options {
        dir: board.dir().to_owned(),
        state_file: None,
        stay: Stay::Brief,
        forbidden: None,
        unasked: None,
        unwritable: None,
        clock: Box::new(SystemClock),
        seed: 1,
        worktree: None,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task = json!({"task_id": "one"});
    for mut way in Way::of_server(&server) {
        for at_once in [true, false] {
            let (mut inside, mut outside) = (Vec::new(), Vec::new());
            for _ in 0..CALLS {
                let start = Instant::now();
                runtime
                    .block_on(handle.call("get_task", task.clone(), &Caller::default()))
                    .unwrap();
                inside.push(start.elapsed());
                way.connection().unwrap().acknowledge(at_once);
                let start = Instant::now();
                assert_eq!(way.ok("get_task", &task)["task"]["id"], "one");
                outside.push(start.elapsed());
            }
            let (inside, outside) = (Times::of(inside), Times::of(outside));
            let acknowledged = if at_once { "at once" } else { "late" };
            println!(
                "{}, acknowledging {acknowledged}: {outside}; in process: {inside}",
                way.name()
            );
            let added = outside.median().saturating_sub(inside.median());
            assert!(added < TOO_MUCH, "{} acknowledging {acknowledged} adds {added:?}", way.name());
        }
    }
}
