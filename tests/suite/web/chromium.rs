//! The pages in Chromium; the scripts are in tests/web.
//!
//! They run where there is a Node with the packages of tests/clients/package.json, see
//! `crate::clients`, and a Chromium (`CALLBOARD_CHROMIUM`, else /usr/bin/chromium). Elsewhere they
//! are skipped, and the reason is printed, unless `CALLBOARD_REQUIRE` names `chromium`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::clients::node_with;
use crate::harness::available;

/// Where the pictures of all pages are left.
const PICTURES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/pages");

fn chromium() -> PathBuf {
    env::var_os("CALLBOARD_CHROMIUM").map_or_else(|| "/usr/bin/chromium".into(), PathBuf::from)
}

/// Runs a script, which says `PASS` for each of its parts.
#[track_caller]
fn drive(script: &str, parts: usize, more: &[&str]) {
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
        Err(reason) => return assert!(!available("chromium", Some(&reason))),
    };
    let home = TempDir::new().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(script);
    let mut command = Command::new(node);
    command.arg(path).arg(env!("CARGO_BIN_EXE_callboard")).arg(home.path()).args(more);
    command.env("CALLBOARD_NODE_MODULES", modules).env("CALLBOARD_CHROMIUM", chromium());
    command.env_remove("COORDINATION_DIR").env_remove("CALLBOARD_SERVER");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{complaint}", output.status);
    let passed = said.lines().filter(|line| line.starts_with("PASS ")).count();
    assert_eq!(passed, parts, "{said}\n{complaint}");
}

#[test]
fn open_pages_follow_eight_agents_through_200_tasks() {
    drive("live.mjs", 5, &[]);
}

#[test]
fn every_action_is_done_once_through_the_page() {
    drive("actions.mjs", 23, &[]);
}

#[test]
fn hostile_texts_do_nothing_in_any_page() {
    drive("pages.mjs", 3, &[PICTURES]);
}
