//! A pseudo-terminal with `callboard ui` in it, and what a person sees there.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{Board, PATIENCE, until};

pub(super) struct Terminal {
    child: Child,
    /// None once the terminal is closed.
    window: Option<Window>,
    seen: Arc<Shared>,
}

/// What is seen; the condition tells that it has changed.
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

struct Window {
    keyboard: File,
    /// The side of the process, so that its settings can be read after its end.
    device: File,
    /// Ends the reader when it is closed.
    _open: PipeWriter,
    reader: JoinHandle<()>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Terminal {
    pub(super) fn start(
        board: &Board,
        columns: u16,
        lines: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        Self::with(board, &["ui"], columns, lines, environment)
    }

    pub(super) fn with(
        board: &Board,
        words: &[&str],
        columns: u16,
        lines: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let device = File::options().read(true).write(true).open(&name).unwrap();
        tcsetwinsize(&master, size(columns, lines)).unwrap();
        let callboard = board.command();
        // They make the terminal the process's own, as a shell does; `nohup` before the tests does
        // not reach it.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", "setsid", "--ctty"]);
        command.arg(callboard.get_program()).args(words);
        command.envs(callboard.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
        command.envs(environment.iter().copied()).current_dir(board.base());
        let side = || Stdio::from(OwnedFd::from(device.try_clone().unwrap()));
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let screen = vt100::Parser::new(lines.try_into().unwrap(), columns.try_into().unwrap(), 0);
        let seen = Mutex::new(Seen { screen, raw: Vec::new() });
        let seen = Arc::new(Shared { seen, changed: Condvar::new() });
        let keyboard = File::from(master);
        let (closed, _open) = pipe().unwrap();
        let reader = watch(keyboard.try_clone().unwrap(), closed, Arc::clone(&seen));
        Self { child, window: Some(Window { keyboard, device, _open, reader }), seen }
    }

    /// Waits until the text is on the screen, wherever its lines end.
    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        let unbroken = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = unbroken(text);
        self.until(&text, |screen| unbroken(&screen.contents()).contains(&text));
    }

    /// Waits until the screen is as it is wanted, and returns how long that took.
    #[track_caller]
    pub(super) fn until(&self, what: &str, is: impl Fn(&vt100::Screen) -> bool) -> Duration {
        let begin = Instant::now();
        let seen = self.seen.seen.lock().unwrap();
        let is_not = |seen: &mut Seen| !is(seen.screen.screen());
        let (seen, waited) = self.seen.changed.wait_timeout_while(seen, PATIENCE, is_not).unwrap();
        let contents = seen.screen.screen().contents();
        drop(seen);
        assert!(!waited.timed_out(), "no {what:?} on:\n{contents}");
        begin.elapsed()
    }

    pub(super) fn look(&self, mut at: impl FnMut(&vt100::Screen)) {
        at(self.seen.seen.lock().unwrap().screen.screen());
    }

    /// What is on the screen.
    pub(super) fn contents(&self) -> String {
        self.seen.seen.lock().unwrap().screen.screen().contents()
    }

    pub(super) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.seen.lock().unwrap().raw).into_owned()
    }

    pub(super) fn keys(&mut self, keys: &str) {
        let mut keyboard = &self.window().keyboard;
        keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn window(&self) -> &Window {
        self.window.as_ref().unwrap()
    }

    /// Filters for these words, and types the keys when only what has them is left.
    #[track_caller]
    pub(super) fn on(&mut self, words: &str, keys: &str) {
        self.keys(&format!("/{words}\r"));
        let (found, none) = (format!("/{words}: "), format!("/{words}: 0 found"));
        self.until(&found, |screen| {
            let contents = screen.contents();
            contents.contains(&found) && !contents.contains(&none)
        });
        self.keys(keys);
    }

    pub(super) fn resize(&self, columns: u16, lines: u16) {
        let (rows, width) = (lines.try_into().unwrap(), columns.try_into().unwrap());
        self.seen.seen.lock().unwrap().screen.set_size(rows, width);
        tcsetwinsize(&self.window().keyboard, size(columns, lines)).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Ticks of the processor that the process has used.
    pub(super) fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// Its exit code, once it has ended.
    #[track_caller]
    pub(super) fn code(&mut self) -> Option<i32> {
        until(PATIENCE, "it ends", || self.child.try_wait().unwrap()).code()
    }

    /// Whether lines are edited and echoed again, on the screen that was there before.
    pub(super) fn is_given_back(&self) -> bool {
        let modes = tcgetattr(&self.window().device).unwrap().local_modes;
        // What the process wrote last may still be on its way.
        let seen = self.seen.seen.lock().unwrap();
        let is_left = |screen: &vt100::Screen| !screen.alternate_screen() && !screen.hide_cursor();
        let is_not = |seen: &mut Seen| !is_left(seen.screen.screen());
        let (seen, _) = self.seen.changed.wait_timeout_while(seen, PATIENCE, is_not).unwrap();
        modes.contains(LocalModes::ICANON | LocalModes::ECHO) && is_left(seen.screen.screen())
    }

    /// Closes the terminal, as its window does, and waits for the end of the process.
    #[track_caller]
    pub(super) fn hang_up(&mut self) {
        let Window { keyboard, device, _open, reader } = self.window.take().unwrap();
        drop((keyboard, device, _open));
        reader.join().unwrap();
        until(PATIENCE, "it ends", || self.child.try_wait().unwrap());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn size(columns: u16, lines: u16) -> Winsize {
    Winsize { ws_col: columns, ws_row: lines, ws_xpixel: 0, ws_ypixel: 0 }
}

/// Takes what the process writes, until the terminal is closed.
fn watch(mut master: File, closed: PipeReader, seen: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        loop {
            let mut watched =
                [PollFd::new(&master, PollFlags::IN), PollFd::new(&closed, PollFlags::IN)];
            poll(&mut watched, None).unwrap();
            if !watched[1].revents().is_empty() {
                return;
            }
            let Ok(count @ 1..) = master.read(&mut buffer) else { return };
            let mut now = seen.seen.lock().unwrap();
            now.screen.process(&buffer[..count]);
            now.raw.extend_from_slice(&buffer[..count]);
            drop(now);
            seen.changed.notify_all();
        }
    })
}
