//! The pages in Chromium; the scripts are in tests/web.
//!
//! They run where there is a Node with the packages of tests/clients/package.json, see
//! `crate::clients`, and a Chromium (`CALLBOARD_CHROMIUM`, else /usr/bin/chromium). Elsewhere they
//! are skipped, and the reason is printed, unless `CALLBOARD_REQUIRE` names `chromium`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::clients::node_with;
use crate::harness::{available, example_program};

/// Where the pictures of all pages are left.
const PICTURES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/pages");

fn chromium() -> PathBuf {
    env::var_os("CALLBOARD_CHROMIUM").map_or_else(|| "/usr/bin/chromium".into(), PathBuf::from)
}

/// Runs a script, which says `PASS` for each of its parts, in a directory of its own.
#[track_caller]
fn drive(script: &str, parts: usize, more: &[&str]) {
    let home = TempDir::new().unwrap();
    drive_in(home.path(), script, parts, more);
}

/// Returns whether it was run.
#[track_caller]
fn drive_in(home: &Path, script: &str, parts: usize, more: &[&str]) -> bool {
    let found = node_with(&["playwright-core", "axe-core"]).and_then(|node| {
        let chromium = chromium();
        if chromium.is_file() {
            Ok(node)
        } else {
            Err(format!("there is no {}", chromium.display()))
        }
    });
    let (node, modules) = match found {
        Ok(found) => found,
        Err(reason) => return available("chromium", Some(&reason)),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(script);
    let mut command = Command::new(node);
    command.arg(path).arg(env!("CARGO_BIN_EXE_callboard")).arg(home).args(more);
    command.env("CALLBOARD_NODE_MODULES", modules).env("CALLBOARD_CHROMIUM", chromium());
    command.env_remove("COORDINATION_DIR").env_remove("CALLBOARD_SERVER");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complaint}", output.status);
    let passed = said.lines().filter(|line| line.starts_with("PASS ")).count();
    assert_eq!(passed, parts, "{said}\n{complaint}");
    true
}

#[test]
fn open_pages_follow_eight_agents_through_200_tasks() {
    drive("live.mjs", 5, &[]);
}

#[test]
fn every_action_is_done_once_through_the_page() {
    drive("actions.mjs", 26, &[]);
}

#[test]
fn hostile_texts_do_nothing_in_any_page() {
    drive("pages.mjs", 3, &[PICTURES]);
}

#[test]
fn person_is_helped_by_keys_the_clipboard_and_notifications() {
    drive("person.mjs", 6, &[]);
}

#[test]
fn remarks_on_lines_become_one_rejection() {
    drive("review.mjs", 5, &[]);
}

/// With `CALLBOARD_BLESS=pictures` it becomes that of the README; look at it. It is a little
/// different each time.
#[test]
fn board_of_the_scene_is_the_picture_of_the_readme() {
    let home = TempDir::new().unwrap();
    let made = Command::new(example_program("scene")).arg(home.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::create_dir_all(PICTURES).unwrap();
    let picture = Path::new(PICTURES).join("readme.jpg");
    let was_run = drive_in(home.path(), "picture.mjs", 2, &[picture.to_str().unwrap()]);
    if was_run && env::var("CALLBOARD_BLESS").is_ok_and(|wanted| wanted == "pictures") {
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pictures/board.jpg");
        fs::copy(picture, kept).unwrap();
    }
}
