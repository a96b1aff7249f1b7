//! Generated files are what the operations say. A test that finds one stale writes it anew and fails: commit the result.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use callboard::ops::{self, Toolset};
use callboard::state::{document::Document, limit};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Answers whether the file was as it should be.
fn repaired(path: &Path, wanted: &str) -> bool {
    if fs::read_to_string(path).is_ok_and(|found| found == wanted) {
        return false;
    }
    fs::write(path, wanted).unwrap();
    true
}

fn pretty(schema: &serde_json::Value) -> String {
    format!("{}\n", serde_json::to_string_pretty(schema).unwrap())
}

#[test]
fn schemas_are_what_the_operations_say() {
    let dir = root().join("schemas");
    let mut files: Vec<_> =
        ops::all().iter().map(|entry| (format!("{}.json", entry.name), pretty(&entry.schema()))).collect();
    let document = ops::schema_of_written::<Document>("mcp-state.json");
    files.push(("mcp-state.json".to_owned(), pretty(&document)));
    let plan = ops::schema_of::<callboard::plan::Document>("plan.json");
    files.push(("plan.json".to_owned(), pretty(&plan)));
    files.push(("openrpc.json".to_owned(), pretty(&callboard::rpc::discover::document())));
    let stale: Vec<_> = files.iter().filter(|(name, wanted)| repaired(&dir.join(name), wanted)).collect();
    let unknown: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !files.iter().any(|(known, _)| known == name))
        .collect();
    assert!(stale.is_empty(), "written anew: {:?}", stale.iter().map(|(name, _)| name).collect::<Vec<_>>());
    assert!(unknown.is_empty(), "no operation has these: {unknown:?}");
}

#[test]
fn readme_shows_the_operations_and_limits() {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let wanted = replaced(&replaced(&readme, "tools", &tools_table()), "limits", &limits_table());
    assert!(!repaired(&path, &wanted), "README.md was written anew");
}

/// `text` with what stands between the markers of `name` replaced.
fn replaced(text: &str, name: &str, table: &str) -> String {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    let (before, rest) = text.split_once(&start).unwrap_or_else(|| panic!("README.md has no {start}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("README.md has no {end}"));
    format!("{before}{start}{table}{end}{after}")
}

fn tools_table() -> String {
    let of = |toolset: Toolset| ops::all().iter().filter(move |entry| entry.toolset == toolset);
    let listed = |toolset| {
        let all = of(toolset).map(|entry| format!("`{}` ({})", entry.name, entry.description.trim_end_matches('.')));
        all.collect::<Vec<_>>().join(" · ")
    };
    let mut table = "| tool | what it does |\n|---|---|\n".to_owned();
    for entry in of(Toolset::Worker) {
        writeln!(table, "| `{}` | {} |", entry.name, entry.description).unwrap();
    }
    let (core, full) = (listed(Toolset::Core), listed(Toolset::Full));
    format!("{table}\nThese are toolset `worker`. In `core` there are besides: {core}.\n\nOnly in `full`: {full}.\n")
}

fn limits_table() -> String {
    let all = limit::ALL.iter().map(|limit| format!("{} {} {}", limit.what, grouped(limit.max), limit.unit));
    format!("{}.\n", all.collect::<Vec<_>>().join(" · "))
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}

#[test]
fn tool_lists_keep_within_their_budgets() {
    for (toolset, name, budget) in [(Toolset::Worker, "worker", 5_000), (Toolset::Core, "core", 14_000)] {
        let listed = callboard::mcp::tool_list(toolset, true);
        let bytes = serde_json::to_string(&listed).unwrap().len();
        println!("tools/list of {name}: {bytes} bytes of {budget}, {} tools", listed.len());
        assert!(bytes <= budget, "{name}: {bytes} bytes");
    }
}
