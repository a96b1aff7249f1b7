//! Signals that ask a serving process to end.

use std::io;

use tokio::select;

/// Ends when somebody asks the process to: Ctrl-C, or a polite kill.
///
/// # Errors
/// When signals cannot be listened for.
#[cfg(unix)]
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

/// A write beyond a limit on the size of files (`ulimit -f`) then fails like one on a full disk, instead of ending the
/// process. Within a runtime.
///
/// # Errors
/// When signals cannot be listened for.
#[cfg(unix)]
pub fn outlive_size_limit() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

#[cfg(not(unix))]
pub fn outlive_size_limit() -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub fn interruption() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
