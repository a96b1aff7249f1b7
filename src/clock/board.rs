//! The board's time. It runs as the machine's boot clock does, in all processes alike: nothing sets
//! that clock. The wall clock may be wrong or jump, so it counts only until the first mark of a
//! boot.

use std::fmt;

use super::Clock;
use crate::state::time::{MINUTE, SECOND, Timestamp};

/// How long a mark proves what the time was to a process whose boot clock says otherwise, in
/// milliseconds.
const FRESH: i64 = 15 * SECOND;
/// Time between two marks of one process, in milliseconds.
const BETWEEN_MARKS: i64 = 5 * SECOND;

/// A reading of the kernel's clocks with the board's time at that moment, as processes note it
/// beside the lock. Its text is the boot's ID and three numbers of milliseconds: since it, and
/// since 1970 by the board and by the wall clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    boot: String,
    since_boot: i64,
    time: Timestamp,
    wall: Timestamp,
}

impl Mark {
    pub fn parse(text: &str) -> Option<Self> {
        let [boot, numbers @ ..] = &text.split(' ').collect::<Vec<_>>()[..] else { return None };
        let numbers =
            numbers.iter().map(|number| number.parse().ok()).collect::<Option<Vec<i64>>>()?;
        let [since_boot, time, wall] = numbers[..] else { return None };
        let (time, wall) = (Timestamp::from_millis(time), Timestamp::from_millis(wall));
        Some(Self { boot: (*boot).to_owned(), since_boot, time, wall })
    }

    /// When the machine booted, in the board's time: the same in all marks of a boot unless the
    /// board's time was moved.
    fn origin(&self) -> i64 {
        self.time.millis() - self.since_boot
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.boot, self.since_boot, self.time.millis(), self.wall.millis())
    }
}

/// The board's time as one participant reads it. It never goes back.
pub struct BoardClock {
    clock: Box<dyn Clock>,
    /// A reading of the boot clock, and the board's time at that moment.
    since_boot: i64,
    time: Timestamp,
    /// Whether this process's boot clock differs from that of the others, so that its readings are
    /// of no use to them.
    is_astray: bool,
    /// The newest mark that this process has made or followed.
    marked: Mark,
}

impl BoardClock {
    /// `noted` is the board's newest mark, if it has one.
    pub fn new(clock: Box<dyn Clock>, noted: Option<&Mark>) -> Self {
        let (since_boot, time) = (clock.since_boot(), clock.wall());
        let mut new = Self { clock, since_boot, time, is_astray: false, marked: Mark::default() };
        noted.into_iter().for_each(|noted| new.follow(noted));
        new
    }

    /// Follows the newest mark, if this process's own reading is worth less: it has seen no mark of
    /// this boot yet, or its boot clock contradicted one.
    pub fn settle(&mut self, newest: impl FnOnce() -> Option<Mark>) {
        if self.is_astray || self.marked.boot != self.clock.boot() {
            newest().iter().for_each(|noted| self.follow(noted));
        }
    }

    /// Takes the board's time over from its newest mark.
    fn follow(&mut self, noted: &Mark) {
        let since_boot = self.clock.since_boot();
        let by_boot = since_boot - noted.since_boot;
        let by_wall = self.clock.kernel_wall().millis() - noted.wall.millis();
        let is_same_boot = self.clock.boot() == noted.boot;
        let is_fresh = is_same_boot && (0..=FRESH).contains(&by_wall);
        self.is_astray = is_fresh && (by_boot - by_wall).abs() > FRESH;
        self.since_boot = since_boot;
        self.time = if self.is_astray {
            noted.time + by_wall
        } else if is_same_boot && by_boot >= 0 {
            noted.time + by_boot
        } else {
            noted.time.max(self.clock.wall())
        };
        self.marked = noted.clone();
    }

    /// The board's time now, at least `floor`: what is recorded was not recorded in the future.
    pub fn now(&mut self, floor: Timestamp) -> Timestamp {
        let (since_boot, now) = self.reading();
        if floor > now {
            (self.since_boot, self.time) = (since_boot, floor);
        }
        now.max(floor)
    }

    fn reading(&self) -> (i64, Timestamp) {
        let since_boot = self.clock.since_boot();
        (since_boot, self.time + (since_boot - self.since_boot).max(0))
    }

    /// The mark to note now, if the last one is old or the board's time was moved since.
    pub fn mark(&mut self) -> Option<Mark> {
        let (since_boot, time) = self.reading();
        let mark = Mark {
            boot: self.clock.boot().to_owned(),
            since_boot,
            time,
            wall: self.clock.kernel_wall(),
        };
        let is_news = mark.boot != self.marked.boot
            || mark.origin() != self.marked.origin()
            || since_boot - self.marked.since_boot >= BETWEEN_MARKS;
        if self.is_astray || !is_news {
            return None;
        }
        self.marked.clone_from(&mark);
        Some(mark)
    }

    /// By how many milliseconds the wall clock is ahead of the board's time, if that is worth a
    /// word; negative when it is behind.
    pub fn ahead(&self) -> Option<i64> {
        Some(self.clock.wall().millis() - self.reading().1.millis())
            .filter(|ahead| ahead.abs() > MINUTE)
    }

    /// How many milliseconds the machine has slept since it booted.
    pub fn slept(&self) -> i64 {
        self.clock.slept()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ManualClock;
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);
    const HOURS: i64 = 3_600 * SECOND;

    fn start() -> Timestamp {
        Timestamp::from_millis(1_000_000_000)
    }

    fn board_clock() -> (ManualClock, BoardClock) {
        let manual = ManualClock::at(start());
        (manual.clone(), BoardClock::new(Box::new(manual), None))
    }

    fn marked(time: Timestamp, wall: Timestamp) -> Mark {
        Mark { boot: "manual".to_owned(), since_boot: 0, time, wall }
    }

    fn told(clock: &mut BoardClock) -> Timestamp {
        clock.now(Timestamp::default())
    }

    /// The clock of a process that begins when a mark is `age` old and the wall clock is ahead by
    /// `ahead`.
    fn beginner(noted: &Mark, age: Duration, ahead: Duration) -> BoardClock {
        let manual = ManualClock::at(start());
        manual.advance(age);
        manual.step(ahead);
        BoardClock::new(Box::new(manual), Some(noted))
    }

    #[test]
    fn time_passes_at_its_pace_however_often_it_is_asked_for() {
        let (manual, mut clock) = board_clock();
        let before = clock.now(start() + 10_000_000);
        for _ in 0..10_000 {
            manual.advance(Duration::from_micros(300));
            told(&mut clock);
        }
        assert_eq!(told(&mut clock).since(before), 3_000);
    }

    #[test]
    fn wall_clock_that_is_set_moves_nothing() {
        let (manual, mut clock) = board_clock();
        manual.step(5 * HOUR);
        assert_eq!((told(&mut clock), clock.ahead()), (start(), Some(5 * HOURS)));
        manual.set_back(48 * HOUR);
        assert_eq!(told(&mut clock), start());
        manual.sleep(HOUR);
        assert_eq!((told(&mut clock), clock.slept()), (start() + HOURS, HOURS));
    }

    #[test]
    fn process_with_a_wrong_wall_clock_reads_the_time_of_the_others() {
        let noted = marked(start() + 7, start());
        for ahead in [Duration::ZERO, 5 * HOUR, 300 * HOUR] {
            assert_eq!(told(&mut beginner(&noted, 2 * HOUR, ahead)), start() + 7 + 2 * HOURS);
        }
        let behind = ManualClock::at(start());
        behind.advance(3 * HOUR);
        behind.set_back(5 * HOUR);
        assert_eq!(
            told(&mut BoardClock::new(Box::new(behind), Some(&noted))),
            start() + 7 + 3 * HOURS
        );
    }

    #[test]
    fn after_another_boot_the_wall_clock_is_taken_and_never_backwards() {
        let before =
            Mark { boot: "earlier".to_owned(), since_boot: 99 * HOURS, ..marked(start(), start()) };
        assert_eq!(told(&mut beginner(&before, Duration::ZERO, 60 * HOUR)), start() + 60 * HOURS);
        let ahead = Mark { time: start() + HOURS, ..before };
        let mut clock = beginner(&ahead, Duration::ZERO, Duration::ZERO);
        assert_eq!(told(&mut clock), start() + HOURS);
        assert_eq!(
            clock.mark().map(|mark| mark.to_string()).as_deref(),
            Some("manual 0 1003600000 1000000000")
        );
    }

    #[test]
    fn boot_clock_that_contradicts_a_fresh_mark_is_not_used_and_not_noted() {
        let noted = Mark { since_boot: 5 * HOURS, ..marked(start(), start()) };
        let mut clock = beginner(&noted, Duration::from_secs(10), Duration::ZERO);
        assert_eq!((told(&mut clock), clock.mark()), (start() + 10 * SECOND, None));
        let ahead = Mark { since_boot: -5 * HOURS, ..noted.clone() };
        assert_eq!(
            told(&mut beginner(&ahead, Duration::from_secs(10), Duration::ZERO)),
            start() + 10 * SECOND
        );
        // Nothing proves an old mark: the process that made it may be the one with the wrong clock.
        let mut clock = beginner(&noted, Duration::from_secs(16), Duration::ZERO);
        assert!(told(&mut clock) == start() + 16 * SECOND && clock.mark().is_some());
    }

    #[test]
    fn mark_is_news_when_it_is_old_or_time_was_moved() {
        let (manual, mut clock) = board_clock();
        let first = clock.mark().expect("the first");
        assert_eq!(Mark::parse(&first.to_string()), Some(first));
        manual.advance(Duration::from_secs(4));
        assert_eq!(clock.mark(), None);
        manual.advance(Duration::from_secs(1));
        assert!(clock.mark().is_some());
        clock.now(start() + HOURS);
        assert!(clock.mark().is_some_and(|mark| mark.time == start() + HOURS));
        for garbled in ["", "a 1 2", "a 1 2 x", "a 1 2 3 4", " "] {
            assert_eq!(Mark::parse(garbled), None, "{garbled:?}");
        }
    }
}
