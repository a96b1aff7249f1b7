//! Places where a test makes the process die or an operation fail. Release builds have none.
//!
//! `CALLBOARD_FAILPOINT=name` kills the process with SIGKILL at the first hit of `name`, `name:N`
//! at the N-th; `name:N:error` makes that hit fail with EIO instead, and `name:N:panic` panic.

use std::io;

#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn hit(_name: &str) -> io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
pub(crate) fn hit(name: &str) -> io::Result<()> {
    use std::sync::OnceLock;
    static ARMED: OnceLock<Option<armed::Failpoint>> = OnceLock::new();
    let armed =
        ARMED.get_or_init(|| armed::Failpoint::parse(&std::env::var("CALLBOARD_FAILPOINT").ok()?));
    armed.as_ref().map_or(Ok(()), |failpoint| failpoint.hit(name))
}

#[cfg(debug_assertions)]
mod armed {
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    pub(super) struct Failpoint {
        name: String,
        at: u64,
        effect: Effect,
        hits: AtomicU64,
    }

    enum Effect {
        Kill,
        Fail,
        Panic,
    }

    impl Failpoint {
        /// `None` for what is not `name[:N[:error|:panic]]`.
        pub(super) fn parse(text: &str) -> Option<Self> {
            let mut parts = text.split(':');
            let name = parts.next().filter(|name| !name.is_empty())?.to_owned();
            let at = parts.next().map_or(Some(1), |number| number.parse().ok())?;
            let effect = match parts.next() {
                None => Effect::Kill,
                Some("error") => Effect::Fail,
                Some("panic") => Effect::Panic,
                Some(_) => return None,
            };
            Some(Self { name, at, effect, hits: AtomicU64::new(0) })
        }

        pub(super) fn hit(&self, name: &str) -> io::Result<()> {
            if name != self.name || self.hits.fetch_add(1, Ordering::SeqCst) + 1 != self.at {
                return Ok(());
            }
            match self.effect {
                Effect::Kill => kill_process(getpid(), Signal::KILL)?,
                Effect::Fail => {}
                Effect::Panic => panic!("failpoint {name}"),
            }
            Err(io::Error::from(rustix::io::Errno::IO))
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::armed::Failpoint;

    #[test]
    fn only_the_named_hit_fails() {
        let failpoint = Failpoint::parse("before-commit:2:error").expect("a failpoint");
        let fails = ["before-commit", "after-commit", "before-commit", "before-commit"]
            .map(|name| failpoint.hit(name));
        assert_eq!(fails.map(|hit| hit.is_err()), [false, false, true, false]);
    }

    #[test]
    fn what_is_not_a_failpoint_arms_nothing() {
        for text in ["", "x:y", "x:1:explode", ":1"] {
            assert!(Failpoint::parse(text).is_none(), "{text}");
        }
    }
}
