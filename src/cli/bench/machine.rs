//! The machine that was measured. What the system does not report is left out.

use std::path::Path;

use fs_err as fs;
use rustix::system::uname;
use serde::Serialize;

use crate::filesystem;

#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub cpu: Option<String>,
    pub cpus: usize,
    pub kernel: String,
    pub memory_gib: Option<u64>,
    pub file_system: String,
}

impl Machine {
    /// This machine, with the file system of `place`.
    pub(super) fn at(place: &Path) -> Self {
        let system = uname();
        let kernel = [system.sysname(), system.release(), system.machine()]
            .map(|part| part.to_string_lossy());
        Self {
            cpu: field("/proc/cpuinfo", "model name"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.join(" "),
            memory_gib: kilobytes("/proc/meminfo", "MemTotal").map(|size| size.div_ceil(1 << 20)),
            file_system: filesystem::kind(place).name,
        }
    }
}

/// Load averages of the last one, five and fifteen minutes.
pub(super) fn load() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut averages = text.split(' ').map(|average| average.parse().ok());
    Some([averages.next()??, averages.next()??, averages.next()??])
}

/// Memory of `process`, in bytes: its own, and its share of the rest.
pub(super) fn memory(process: u32) -> Option<u64> {
    kilobytes(&format!("/proc/{process}/smaps_rollup"), "Pss").map(|size| size * 1024)
}

/// Bytes that this process has passed to write calls. What the system counts as sent to a disk
/// (`write_bytes`) is useless: if its cache has large folios, a single byte counts as a whole
/// folio.
pub(super) fn written() -> Option<u64> {
    value(&fs::read_to_string("/proc/self/io").ok()?, "wchar")?.parse().ok()
}

fn kilobytes(path: &str, name: &str) -> Option<u64> {
    field(path, name)?.trim_end_matches("kB").trim().parse().ok()
}

fn field(path: &str, name: &str) -> Option<String> {
    value(&fs::read_to_string(path).ok()?, name).map(str::to_owned)
}

/// The value after `name` and a colon.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "Pss_Dirty:  7 kB\nPss:   12 kB\nwchar: 5\n";
        assert_eq!(value(text, "Pss"), Some("12 kB"));
        assert_eq!(value(text, "wchar"), Some("5"));
        assert_eq!(value(text, "char"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_written_is_counted() {
        let before = written().expect("/proc/self/io");
        let mut file = tempfile::tempfile().expect("a temporary file");
        std::io::Write::write_all(&mut file, &[1; 5_000]).expect("it takes 5,000 bytes");
        assert!(written().expect("/proc/self/io") >= before + 5_000);
        assert!(memory(std::process::id()).is_some_and(|size| size > 100_000));
    }
}
