//! Signals that ask a serving process to end.

use std::io;

use tokio::select;

/// Completes when somebody asks the process to end, by Ctrl-C or a polite kill (SIGINT, SIGTERM).
///
/// # Errors
/// When signals cannot be listened for.
pub fn interruption() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Completes like [`interruption`], and also when the terminal is closed (SIGHUP), unless the
/// process was told to ignore that: for one that must clean up in any case. Yields the number of
/// the signal.
///
/// # Errors
/// When signals cannot be listened for.
pub fn ending() -> io::Result<impl Future<Output = i32>> {
    use rustix::process::Signal;
    use tokio::signal::unix::{SignalKind, signal};

    let listen = |kind: SignalKind| Ok::<_, io::Error>((signal(kind)?, kind.as_raw_value()));
    // Asked before listening for it, which ends that it is ignored.
    let hangup = if is_ignored(Signal::HUP.as_raw()) {
        SignalKind::terminate()
    } else {
        SignalKind::hangup()
    };
    let [mut one, mut two, mut three] =
        [listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(hangup)?];
    Ok(async move {
        select! {
            _ = one.0.recv() => one.1,
            _ = two.0.recv() => two.1,
            _ = three.0.recv() => three.1,
        }
    })
}

/// Whether the signal is ignored, as `nohup` has it for this process and those it starts; false
/// where the system does not tell.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes a write beyond a limit on the size of files (`ulimit -f`) fail like one on a full disk,
/// instead of ending the process. To be called within a Tokio runtime.
///
/// # Errors
/// When signals cannot be listened for.
pub fn outlive_size_limit() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}
