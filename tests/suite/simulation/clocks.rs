//! The clocks of a simulated machine, of which only those that nothing sets are right.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callboard::clock::Clock;
use callboard::state::deadline::STEP;
use callboard::state::event::{Event, Recorded};
use callboard::state::id::ParticipantId;
use callboard::state::time::Timestamp;

use super::machine::SEATS;

#[derive(Clone)]
pub(super) struct Clocks(Arc<Mutex<Times>>);

struct Times {
    /// The kernel's time of day, and by how many milliseconds each seat's differs from it.
    wall: Timestamp,
    ahead: [i64; SEATS],
    boots: u64,
    since_boot: i64,
    slept: i64,
    /// All milliseconds that have passed, whatever the clocks say.
    passed: i64,
}

impl Clocks {
    pub(super) fn new(wall: Timestamp) -> Self {
        let ahead = [0, -7_200_000, 18_000_000, 0];
        Self(Arc::new(Mutex::new(Times {
            wall,
            ahead,
            boots: 0,
            since_boot: 0,
            slept: 0,
            passed: 0,
        })))
    }

    pub(super) fn of(&self, seat: usize) -> SeatClock {
        SeatClock { clocks: self.clone(), seat, boot: format!("boot-{}", self.boots()) }
    }

    pub(super) fn moment(&self) -> Moment {
        let times = self.0.lock().unwrap();
        Moment { boot: times.boots, since_boot: times.since_boot, slept: times.slept }
    }

    pub(super) fn boots(&self) -> u64 {
        self.0.lock().unwrap().boots
    }

    /// Milliseconds since the beginning, whatever the clocks say.
    pub(super) fn passed(&self) -> i64 {
        self.0.lock().unwrap().passed
    }

    pub(super) fn pass(&self, millis: i64) {
        self.jump(millis);
        let mut times = self.0.lock().unwrap();
        times.since_boot += millis;
        times.passed += millis;
    }

    pub(super) fn sleep(&self, millis: i64) {
        self.pass(millis);
        self.0.lock().unwrap().slept += millis;
    }

    /// The machine is off for so long.
    pub(super) fn boot(&self, off: i64) {
        self.jump(off);
        let mut times = self.0.lock().unwrap();
        times.boots += 1;
        times.passed += off;
        (times.since_boot, times.slept) = (0, 0);
    }

    /// The wall clock is set.
    pub(super) fn jump(&self, millis: i64) {
        let mut times = self.0.lock().unwrap();
        times.wall = times.wall + millis;
    }

    /// The wall clock of one process is set.
    pub(super) fn jump_at(&self, seat: usize, millis: i64) {
        self.0.lock().unwrap().ahead[seat] += millis;
    }
}

/// A boot, and the milliseconds since it, in some of which the machine slept.
#[derive(Clone, Copy, Default)]
pub(super) struct Moment {
    pub(super) boot: u64,
    pub(super) since_boot: i64,
    pub(super) slept: i64,
}

pub(super) struct SeatClock {
    clocks: Clocks,
    seat: usize,
    boot: String,
}

impl Clock for SeatClock {
    fn wall(&self) -> Timestamp {
        let times = self.clocks.0.lock().unwrap();
        times.wall + times.ahead[self.seat]
    }

    fn kernel_wall(&self) -> Timestamp {
        self.clocks.0.lock().unwrap().wall
    }

    fn since_boot(&self) -> i64 {
        self.clocks.0.lock().unwrap().since_boot
    }

    fn slept(&self) -> i64 {
        self.clocks.0.lock().unwrap().slept
    }

    fn boot(&self) -> &str {
        &self.boot
    }
}

/// When each event was recorded in truth, and what time may bring.
#[derive(Default)]
pub(super) struct Truth {
    /// The boot and the milliseconds since it, by the event's number, participant and time. An
    /// attempt to append an event may have succeeded unnoticed, and the same participant may
    /// then try that number again.
    moments: BTreeMap<(u64, ParticipantId, Timestamp), (u64, i64)>,
    /// The boot of the last commit, and how long the machine had slept by then.
    slept: Option<(u64, i64)>,
    pub steps: u64,
}

impl Truth {
    /// Notes events that are about to be appended, and the moment at which they were decided.
    pub(super) fn note(&mut self, events: &[Recorded], moment: Moment) {
        let moment = (moment.boot, moment.since_boot);
        self.moments.extend(events.iter().map(|recorded| (key(recorded), moment)));
    }

    /// Checks the clock steps of a batch that began at `moment`. `is_attended` means that a process
    /// lives through which an agent acts.
    pub(super) fn check_steps(&mut self, events: &[Recorded], moment: Moment, is_attended: bool) {
        let Moment { boot, slept, .. } = moment;
        let before = self.slept.replace((boot, slept)).filter(|(before, _)| *before == boot);
        let since = before.map_or(0, |(_, before)| slept - before);
        let steps = events.iter().filter_map(|recorded| match recorded.event {
            Event::ClockStepped { gap_millis, .. } => Some(gap_millis),
            _ => None,
        });
        let steps: Vec<_> = steps.collect();
        self.steps += steps.len() as u64;
        if since > STEP {
            assert!(
                steps.len() == 1 && steps[0] >= since,
                "slept for {since} and recorded {steps:?}"
            );
        } else if is_attended && slept == 0 {
            assert_eq!(steps, [0; 0], "a step while somebody worked and nothing slept");
        }
    }

    /// Checks that between any two events of one boot as much time passed on the board as in truth.
    pub(super) fn verify(&self, events: &[Recorded]) {
        let moment = |one: &Recorded| self.moments.get(&key(one)).copied();
        let known = events.iter().filter_map(|one| Some((one.seq, one.at.millis(), moment(one)?)));
        let known: Vec<_> = known.collect();
        for pair in known.windows(2) {
            let [(_, at, (boot, since)), (seq, next_at, (next_boot, next_since))] = pair else {
                continue;
            };
            if boot == next_boot {
                assert_eq!(next_at - at, next_since - since, "the time before event {seq}");
            }
            assert!(next_at >= at, "time went back before event {seq}");
        }
    }
}

fn key(recorded: &Recorded) -> (u64, ParticipantId, Timestamp) {
    (recorded.seq, recorded.participant.clone(), recorded.at)
}
