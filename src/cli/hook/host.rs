//! Which processes belong to the same session: the client starts its hooks and its MCP server, so
//! both have the same host.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Programs that may stand between a client and what it starts, also as a hook of git.
const LAUNCHERS: [&str; 16] = [
    "git", "sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "nice", "nohup",
    "timeout", "setsid", "xargs", "make",
];
/// Longest chain of launchers; a longer one is not followed.
const LONGEST_CHAIN: usize = 16;
/// Most processes above another that are looked at.
const MOST_ABOVE: usize = 64;
/// Programs that adopt orphaned processes, so they are nobody's host. The same is true of process
/// 1, whatever it is.
const FOSTERERS: [&str; 4] = ["systemd", "init", "launchd", "tini"];
const FIRST_PROCESS: u32 = 1;

#[derive(Clone, Debug, PartialEq)]
struct Process {
    parent: u32,
    /// A script has its own name and that of its interpreter.
    names: Vec<String>,
}

impl Process {
    fn is_one_of(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }
}

/// The processes that are visible from here.
pub(in crate::cli) struct Processes(Source);

enum Source {
    /// Linux: each process is read from /proc when needed.
    Proc,
    Listed(HashMap<u32, Process>),
}

impl Processes {
    pub(in crate::cli) fn look() -> Self {
        if Path::new("/proc/self/stat").exists() {
            return Self(Source::Proc);
        }
        let listed = Command::new("/bin/ps").args(["-axo", "pid=,ppid=,comm="]).output();
        let text = listed
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default();
        Self(Source::Listed(text.lines().filter_map(parse_listed).collect()))
    }

    /// The nearest process above `pid` that is no launcher. None if it is not visible, or there is
    /// none.
    pub(in crate::cli) fn host_of(&self, pid: u32) -> Option<u32> {
        let mut host = self.get(pid)?.parent;
        for _ in 0..LONGEST_CHAIN {
            if host <= FIRST_PROCESS {
                return None;
            }
            let process = self.get(host)?;
            if process.is_one_of(&FOSTERERS) {
                return None;
            }
            if !process.is_one_of(&LAUNCHERS) {
                return Some(host);
            }
            host = process.parent;
        }
        None
    }

    /// The processes above `pid`, the nearest first.
    pub(in crate::cli) fn above(&self, pid: u32) -> Vec<u32> {
        let parent = |pid: &u32| Some(self.get(*pid)?.parent).filter(|one| *one > FIRST_PROCESS);
        std::iter::successors(parent(&pid), parent).take(MOST_ABOVE).collect()
    }

    pub(in crate::cli) fn is_one_of(&self, pid: u32, names: &[&str]) -> bool {
        self.get(pid).is_some_and(|process| process.is_one_of(names))
    }

    /// The terminal of the process or, since clients start hooks without one, of its host: `pts/3`.
    pub(super) fn terminal_of(&self, pid: u32) -> Option<String> {
        [Some(pid), self.host_of(pid)].into_iter().flatten().find_map(|pid| self.terminal(pid))
    }

    fn terminal(&self, pid: u32) -> Option<String> {
        match &self.0 {
            Source::Proc => {
                terminal_in(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
            }
            Source::Listed(_) => {
                let listed = Command::new("/bin/ps")
                    .args(["-o", "tty=", "-p", &pid.to_string()])
                    .output()
                    .ok()?;
                let name = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
                (!name.is_empty() && !name.starts_with('?')).then_some(name)
            }
        }
    }

    fn get(&self, pid: u32) -> Option<Process> {
        match &self.0 {
            Source::Proc => {
                let mut process = parse_stat(&String::from_utf8_lossy(
                    &fs::read(format!("/proc/{pid}/stat")).ok()?,
                ))?;
                // The link of another user's process cannot be read.
                process.names.extend(
                    fs::read_link(format!("/proc/{pid}/exe")).ok().as_deref().and_then(program),
                );
                Some(process)
            }
            Source::Listed(processes) => processes.get(&pid).cloned(),
        }
    }
}

/// The file name of the running program, even if the file was replaced meanwhile.
fn program(exe: &Path) -> Option<String> {
    let name = exe.file_name()?.to_string_lossy();
    Some(name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned())
}

/// Parses `17 (name) S 1 …`, see proc_pid_stat(5). The name may contain spaces and parentheses.
fn parse_stat(stat: &str) -> Option<Process> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let parent = after.split_whitespace().nth(1)?.parse().ok()?;
    Some(Process { parent, names: vec![name.to_owned()] })
}

/// The controlling terminal in `17 (name) S 1 1 1 34819 …`: its number holds the driver's, and that
/// of the device.
fn terminal_in(stat: &str) -> Option<String> {
    let (_, after) = stat.rsplit_once(')')?;
    let number: u32 = after.split_whitespace().nth(4)?.parse().ok()?;
    let (driver, device) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xf_ff00);
    match driver {
        4 => Some(format!("tty{device}")),
        136..=143 => Some(format!("pts/{}", (driver - 136) * 256 + device)),
        _ => None,
    }
}

/// Parses `  17     1 /bin/name`. The name may contain spaces, and begins with a dash in a login
/// shell.
fn parse_listed(line: &str) -> Option<(u32, Process)> {
    let (pid, rest) = line.trim_start().split_once(' ')?;
    let (parent, path) = rest.trim_start().split_once(' ')?;
    let name = path.trim().rsplit('/').next()?.trim_start_matches('-').to_owned();
    Some((pid.parse().ok()?, Process { parent: parent.parse().ok()?, names: vec![name] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Processes {
        Processes(Source::Listed(text.lines().filter_map(parse_listed).collect()))
    }

    #[test]
    fn shells_between_client_and_hook_are_passed_over() {
        let processes = listed(
            "    1     0 /sbin/launchd\n  10     1 -zsh\n  20    10 claude\n  30    20 callboard\n  40    20 /bin/sh\n\
             \x20 41    40 /usr/bin/timeout\n  50    41 callboard\n  60    10 callboard\n",
        );
        assert_eq!((processes.host_of(30), processes.host_of(50)), (Some(20), Some(20)));
        assert_eq!((processes.host_of(60), processes.host_of(99)), (None, None));
    }

    #[test]
    fn a_session_inside_another_is_its_own_host() {
        let processes =
            listed("20 1 claude\n30 20 bash\n40 30 claude\n50 40 callboard\n60 20 callboard\n");
        assert_eq!((processes.host_of(50), processes.host_of(60)), (Some(40), Some(20)));
    }

    #[test]
    fn a_loop_of_launchers_ends() {
        assert_eq!(listed("2 3 sh\n3 2 sh\n4 3 x\n").host_of(4), None);
    }

    #[test]
    fn names_with_spaces_and_parentheses_are_read() {
        let node = Process { parent: 7, names: vec!["a) (b".to_owned()] };
        assert_eq!(parse_stat("17 (a) (b) S 7 17 17 0 -1"), Some(node));
        assert_eq!(parse_stat("17 (a"), None);
        let listed = Process { parent: 7, names: vec!["Code Helper (Plugin)".to_owned()] };
        assert_eq!(
            parse_listed("  17   7 /Applications/Code.app/Code Helper (Plugin)"),
            Some((17, listed))
        );
    }

    #[test]
    fn the_terminal_is_named_as_its_device_is() {
        assert_eq!(terminal_in("17 (a) (b) S 1 17 17 34819 -1 4").as_deref(), Some("pts/3"));
        assert_eq!(terminal_in("17 (a) S 1 17 17 1025 -1").as_deref(), Some("tty1"));
        assert_eq!(terminal_in("17 (a) S 1 17 17 0 -1"), None);
        assert_eq!(terminal_in("17 (a"), None);
    }

    #[test]
    fn a_script_is_passed_over_for_its_interpreter() {
        let script = Process { parent: 7, names: vec!["pre-commit".to_owned(), "dash".to_owned()] };
        assert!(script.is_one_of(&LAUNCHERS));
        let client = Process { parent: 7, names: vec!["claude".to_owned(), "node".to_owned()] };
        assert!(!client.is_one_of(&LAUNCHERS));
        assert_eq!(program(Path::new("/usr/bin/bash (deleted)")).as_deref(), Some("bash"));
    }

    #[test]
    fn this_process_has_the_parent_that_the_system_says() {
        let own = Processes::look().get(std::process::id()).expect("visible");
        assert_eq!(own.parent, std::os::unix::process::parent_id());
    }
}
