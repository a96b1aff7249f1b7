//! Whatever is asked of the operations: one call a line, `NAME ARGUMENTS`, or a number of seconds that pass. After each,
//! every invariant holds and the replay gives the same state.
#![no_main]

#[path = "../../suite/schemas.rs"]
mod schemas;
#[expect(dead_code, reason = "the suite uses the rest")]
#[path = "../../suite/world.rs"]
mod world;

use callboard::ops::find;
use callboard::state::policy::Policy;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use world::World;

/// Eleven days.
const LONGEST: u32 = 1_000_000;

fuzz_target!(|input: &str| {
    // Small, so that tasks retire while they are worked on.
    let mut world = World::with_policy(Policy { keep_finished: 2, ..Policy::default() });
    for line in input.lines().take(40) {
        let (name, arguments) = line.split_once(' ').unwrap_or((line, "{}"));
        if let Ok(seconds) = name.parse::<u32>() {
            world.at(i64::from(seconds % LONGEST) * 1_000);
        } else if find(name).is_some()
            && let Ok(arguments) = serde_json::from_str::<Value>(arguments)
        {
            drop(world.call(name, arguments));
        }
    }
    world.check();
});
