//! Power losses: an ext4 file system on a loop device under load, whose backing file is copied
//! while everything is stopped, and mounted again: what had not reached the device is gone.
//! `CALLBOARD_IMAGES` is the number of copies.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{path, run};
use crate::harness::{Board, Client, PATIENCE, StopAtEnd, available, size, until};

const WRITERS: usize = 3;
/// Least number of acknowledged calls between two copies.
const LOAD: usize = 40;

/// A file system in a file, mounted until this is dropped.
pub(super) struct Mounted {
    device: String,
    place: PathBuf,
}

impl Mounted {
    /// Makes a new file system for `board` in the file `image` with these options, and mounts it.
    /// None, with the reason printed, if that is not possible here.
    pub(super) fn under(
        board: &Board,
        image: &Path,
        megabytes: u64,
        options: &[&str],
    ) -> Option<Self> {
        let config = fs::read(board.file("config.toml")).unwrap();
        fs::File::create(image).unwrap().set_len(megabytes << 20).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F"]).args(options).arg(image).output();
        let made = made.is_ok_and(|output| output.status.success());
        let mounted = if made {
            Self::of(image, board.dir())
        } else {
            Err("mkfs.ext4 cannot be run".to_owned())
        };
        let failure =
            mounted.as_ref().err().map(|reason| format!("no ext4 on a loop device: {reason}"));
        if !available("root", failure.as_deref()) {
            return None;
        }
        run("chmod", &["700", path(board.dir())]);
        // The settings must not be lost: without them, old tasks would leave the board.
        let mut file = fs::File::create(board.file("config.toml")).unwrap();
        file.write_all(&config).and_then(|()| file.sync_all()).unwrap();
        mounted.ok()
    }

    pub(super) fn of(image: &Path, place: &Path) -> Result<Self, String> {
        let device = Command::new("losetup").args(["-f", "--show"]).arg(image).output();
        let device = device.map_err(|error| error.to_string())?;
        if !device.status.success() {
            return Err(String::from_utf8_lossy(&device.stderr).trim().to_owned());
        }
        let device = String::from_utf8_lossy(&device.stdout).trim().to_owned();
        let mounted = Self { device, place: place.to_owned() };
        let output =
            Command::new("mount").args(["-t", "ext4", &mounted.device]).arg(place).output();
        let output = output.map_err(|error| error.to_string())?;
        if output.status.success() {
            Ok(mounted)
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
    }

    /// Sectors written or discarded on the device so far.
    fn written(&self) -> Vec<String> {
        let name = self.device.trim_start_matches("/dev/");
        let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
        let fields: Vec<_> = stat.split_whitespace().map(str::to_owned).collect();
        [6, 13].iter().filter_map(|field| fields.get(*field).cloned()).collect()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).output();
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

/// Tasks with the status that was last acknowledged.
type Acknowledged = Mutex<BTreeMap<String, &'static str>>;

fn load(
    mut client: Client,
    agent: &str,
    acknowledged: &Acknowledged,
    calls: &AtomicUsize,
    stop: &AtomicBool,
) {
    client.register(agent);
    let note = |task: &str, status| {
        acknowledged.lock().unwrap().insert(task.to_owned(), status);
        calls.fetch_add(1, Ordering::SeqCst);
    };
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        let task = format!("{agent}-{number}");
        // The processes were stopped for a while, so a call may find the lock taken.
        let mut call = |tool, arguments| drop(client.try_patiently(tool, &arguments).unwrap().ok());
        call("create_task", json!({"id": task, "description": "d"}));
        note(&task, "available");
        call("claim_task", json!({"agent_id": agent, "task_id": task}));
        note(&task, "claimed");
        call("complete_task", json!({"agent_id": agent, "task_id": task, "output": task}));
        note(&task, "done");
    }
}

/// Copies the image. None if something was written during every copy.
fn copy(image: &Path, to: &Path, mounted: &Mounted) -> Option<usize> {
    (0..100).find(|_| {
        let before = mounted.written();
        run("cp", &["--sparse=always", path(image), path(to)]);
        mounted.written() == before
    })
}

/// Acknowledged effects that are missing on the copied board, after a write to it.
fn missing(copy: &Path, acknowledged: &BTreeMap<String, &'static str>) -> Vec<String> {
    let board = Board::at(copy.to_owned());
    board.cli_ok("get_status", json!({}));
    board.cli_ok("create_task", json!({"id": "after", "description": "d"}));
    board.assert_file_is_the_replay();
    let tasks = board.tasks();
    // The next call may have taken effect without being answered.
    let order = ["available", "claimed", "in_progress", "done"];
    let rank = |status: &str| order.iter().position(|one| *one == status);
    let is_there = |id: &str, told: &str| {
        let found = tasks.get(id).and_then(|task| rank(task["status"].as_str()?));
        found.is_some_and(|found| Some(found) >= rank(told))
    };
    let missing = acknowledged.iter().filter(|(id, told)| !is_there(id, told));
    missing
        .map(|(id, told)| {
            format!("{id} was {told} and is {:?}", tasks.get(id).map(|task| &task["status"]))
        })
        .collect()
}

#[test]
fn power_may_fail_at_any_moment() {
    let images = size("CALLBOARD_IMAGES", 1);
    let board = Board::with_policy("keep_finished = 1000000");
    let (image, copied) = (board.base().join("disk"), board.base().join("copy"));
    let place = board.base().join("copied");
    fs::create_dir(&place).unwrap();
    let Some(mounted) = Mounted::under(&board, &image, 64, &[]) else { return };
    let (acknowledged, calls, stop) =
        (Acknowledged::default(), AtomicUsize::new(0), AtomicBool::new(false));
    let (mut lost, mut again, mut checked) = (Vec::new(), 0, 0);
    let start = Instant::now();
    let clients: Vec<_> = (0..WRITERS).map(|_| board.mcp()).collect();
    let pids: Vec<_> =
        clients.iter().map(|client| Pid::from_raw(client.pid().cast_signed()).unwrap()).collect();
    thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for (number, client) in clients.into_iter().enumerate() {
            let (acknowledged, calls, stop) = (&acknowledged, &calls, &stop);
            scope.spawn(move || load(client, &format!("w{number}"), acknowledged, calls, stop));
        }
        let mut target = 0;
        for number in 0..images {
            target += LOAD + number * 7 % 23;
            until(PATIENCE, "some load", || (calls.load(Ordering::SeqCst) >= target).then_some(()));
            pids.iter().for_each(|pid| kill_process(*pid, Signal::STOP).unwrap());
            let told = acknowledged.lock().unwrap().clone();
            let copies = copy(&image, &copied, &mounted);
            again += copies.expect("the device is written all the time");
            let survived = Mounted::of(&copied, &place).unwrap();
            lost.extend(
                missing(&place, &told).into_iter().map(|one| format!("image {number}: {one}")),
            );
            checked += told.len();
            drop(survived);
            // Not earlier: calls made meanwhile could fill the disk.
            pids.iter().for_each(|pid| kill_process(*pid, Signal::CONT).unwrap());
        }
    });
    println!(
        "{images} power losses in {:.0} s under {} acknowledged calls of {WRITERS} processes \
         ({again} copies made again): all mounted and started, {checked} acknowledged tasks \
         looked for, {} missing",
        start.elapsed().as_secs_f64(),
        calls.into_inner(),
        lost.len()
    );
    assert_eq!(lost, [""; 0]);
}
