//! The SDKs that clients are built with, driving `callboard mcp` on stdio and `callboard serve`;
//! the drivers are in tests/clients.
//!
//! They run where there is a Python with `mcp` (`CALLBOARD_PYTHON`, else `python3`) and a Node with
//! the packages of tests/clients/package.json (`CALLBOARD_NODE`, else `node`;
//! `CALLBOARD_NODE_MODULES`). Elsewhere they are skipped, and the reason is printed, unless
//! `CALLBOARD_REQUIRE` names `python` or `node`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::available;

#[test]
fn python_sdk_drives_the_contract_in_both_eras_on_stdio() {
    python("stdio");
}

#[test]
fn python_sdk_drives_the_contract_in_both_eras_over_http() {
    python("http");
}

#[test]
fn typescript_sdks_drive_the_contract_in_both_eras_on_stdio() {
    typescript("stdio");
}

#[test]
fn typescript_sdks_drive_the_contract_in_both_eras_over_http() {
    typescript("http");
}

fn python(door: &str) {
    let python = env::var("CALLBOARD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let probe = "import mcp; from mcp import Client, MCPError, StdioServerParameters";
    match probed(Command::new(&python).args(["-c", probe])) {
        Ok(_) => drive(Command::new(python).arg(driver("python_sdk.py")), door),
        Err(reason) => skip("python", &format!("{python} has no `mcp` 2: {reason}")),
    }
}

fn typescript(door: &str) {
    let needed = ["@modelcontextprotocol/client", "@modelcontextprotocol/sdk", "sdk-1.18"];
    let (node, modules) = match node_with(&needed) {
        Ok(found) => found,
        Err(reason) => return skip("node", &reason),
    };
    drive(
        Command::new(node).arg(driver("typescript_sdk.mjs")).env("CALLBOARD_NODE_MODULES", modules),
        door,
    );
}

/// A Node of version 22 or newer and the directory of its packages, if these are there, else why
/// not.
pub(crate) fn node_with(packages: &[&str]) -> Result<(String, PathBuf), String> {
    let node = env::var("CALLBOARD_NODE").unwrap_or_else(|_| "node".to_owned());
    let modules = env::var_os("CALLBOARD_NODE_MODULES");
    let modules = modules.map_or_else(|| driver("node_modules"), PathBuf::from);
    let version = probed(Command::new(&node).arg("--version"));
    let version = version.map_err(|reason| format!("{node} does not run: {reason}"))?;
    let major = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    if major.is_none_or(|major| major < 22) {
        return Err(format!("{node} is {version}, not 22 or newer"));
    }
    match packages.iter().find(|package| !modules.join(package).is_dir()) {
        Some(package) => Err(format!("{} has no {package}", modules.display())),
        None => Ok((node, modules)),
    }
}

fn driver(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// Output of the command if it succeeds, or the last line of its complaint.
fn probed(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(complaint.lines().last().unwrap_or("it says nothing").to_owned())
}

/// Runs the driver on boards of its own, and prints what passed.
fn drive(command: &mut Command, door: &str) {
    let home = TempDir::new().unwrap();
    command
        .arg(env!("CARGO_BIN_EXE_callboard"))
        .arg(home.path())
        .arg(door)
        .env("HOME", home.path())
        .env_remove("COORDINATION_DIR");
    let output = command.output().unwrap();
    let (passed, log) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("{passed}");
    assert!(output.status.success(), "{}\n{passed}\n{log}", output.status);
    // At least three modes with seven parts each.
    let parts = passed.lines().filter(|line| line.starts_with("PASS ")).count();
    assert!(parts >= 21, "only {parts} parts ran:\n{passed}\n{log}");
}

fn skip(need: &str, reason: &str) {
    assert!(!available(need, Some(reason)));
}

#[test]
#[cfg(not(feature = "conformance"))]
fn no_option_of_a_normal_build_serves_without_the_token() {
    let home = TempDir::new().unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_callboard"));
    serve.arg("--dir").arg(home.path()).args(["serve", "--listen", "127.0.0.1:0", "--conformance"]);
    let output = serve.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
