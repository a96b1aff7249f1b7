//! Generated files match the operations. A test that finds a stale file rewrites it and fails:
//! commit the result.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use callboard::ops::{self, Toolset};
use callboard::state::limit;
use callboard::statefile::Shown;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Whether the file was up to date; if not, it is rewritten.
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
    let mut files: Vec<_> = ops::all()
        .iter()
        .map(|entry| (format!("{}.json", entry.name), pretty(&entry.schema())))
        .collect();
    let document = ops::schema_of_written::<Shown>("mcp-state.json");
    files.push(("mcp-state.json".to_owned(), pretty(&document)));
    let plan = ops::schema_of::<callboard::plan::Document>("plan.json");
    files.push(("plan.json".to_owned(), pretty(&plan)));
    files.push(("openrpc.json".to_owned(), pretty(&callboard::rpc::discover::document())));
    files.push(("README.md".to_owned(), reference()));
    files.push(("tables.md".to_owned(), tables()));
    let stale: Vec<_> =
        files.iter().filter(|(name, wanted)| repaired(&dir.join(name), wanted)).collect();
    let unknown: Vec<_> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !files.iter().any(|(known, _)| known == name))
        .collect();
    assert!(
        stale.is_empty(),
        "written anew: {:?}",
        stale.iter().map(|(name, _)| name).collect::<Vec<_>>()
    );
    assert!(unknown.is_empty(), "no operation has these: {unknown:?}");
}

/// The tables of runs for SQL, of which each column's line says what is in it.
fn tables() -> String {
    let mut text = "# Tables of runs in `journal.db`\n\n\
        For queries in SQL, such as `sqlite3 -readonly .coordination/journal.db 'SELECT run_id, status \
        FROM runs'`. They follow\nfrom the events, and nothing reads what else is written to them; \
        `callboard doctor --repair` makes them anew. Times are\nRFC 3339 in UTC, so that they sort \
        as texts.\n"
        .to_owned();
    for line in callboard::journal::sqlite::RUN_TABLES.lines().map(str::trim) {
        if let Some(table) = line.strip_prefix("CREATE TABLE IF NOT EXISTS ") {
            let name = table.trim_end_matches('(');
            write!(text, "\n## `{name}`\n\n| column | type | what it is |\n|---|---|---|\n")
                .unwrap();
        }
        let Some((column, meaning)) = line.split_once(" -- ") else { continue };
        let mut words = column.trim_end_matches(',').split(' ');
        let (name, kind) = (words.next().unwrap(), words.next().unwrap());
        let null =
            if column.contains("NOT NULL") || column.contains("PRIMARY") { "" } else { " or null" };
        writeln!(text, "| `{name}` | {kind}{null} | {meaning} |").unwrap();
    }
    text
}

#[test]
fn every_column_of_the_tables_of_runs_is_documented() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(callboard::journal::sqlite::RUN_TABLES).unwrap();
    let mut columns = connection
        .prepare(
            "SELECT t.name, c.name, c.type FROM pragma_table_list AS t JOIN \
             pragma_table_info(t.name) AS c WHERE t.name IN ('sessions', 'runs', 'attempts')",
        )
        .unwrap();
    let columns = columns.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    });
    let text = tables();
    let columns: Vec<_> = columns.unwrap().map(Result::unwrap).collect();
    assert_eq!(columns.len(), 9 + 17 + 10);
    for (table, column, kind) in columns {
        let (_, of_table) = text.split_once(&format!("## `{table}`")).unwrap();
        let of_table = of_table.split("## ").next().unwrap();
        assert!(of_table.contains(&format!("| `{column}` | {kind}")), "{table}.{column}: {text}");
    }
}

#[test]
fn documentation_of_the_library_lists_the_operations() {
    let path = root().join("src/ops/operations.md");
    let rows =
        ops::all().iter().map(|entry| format!("| [`{}`] | {} |\n", entry.name, entry.description));
    let wanted = format!("\n| operation | what it does |\n|---|---|\n{}", rows.collect::<String>());
    assert!(!repaired(&path, &wanted), "{} was written anew", path.display());
}

#[test]
fn every_reference_leads_somewhere() {
    for entry in fs::read_dir(root().join("schemas")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let document = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            assert_references(&document, &document, &path);
        }
    }
}

fn assert_references(part: &Value, document: &Value, path: &Path) {
    match part {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value.as_str() {
            Some(target) if name == "$ref" => {
                let found = target.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
                assert!(found.is_some(), "{}: {target}", path.display());
            }
            _ => assert_references(value, document, path),
        }),
        Value::Array(items) => {
            items.iter().for_each(|item| assert_references(item, document, path))
        }
        _ => {}
    }
}

#[test]
fn readme_says_how_many_tools_a_toolset_has() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let worker = of(Toolset::Worker).count();
    let core = worker + of(Toolset::Core).count();
    for part in [format!("{worker} tools in 5 kB"), format!("{core} in 14 kB")] {
        assert!(readme.contains(&part), "README.md does not say {part:?}");
    }
}

/// The page beside the schemas: every tool and every limit.
fn reference() -> String {
    let mut page = "# Tools, schemas and limits\n\n\
        Every tool is also a JSON-RPC method and a command (`callboard call NAME JSON`) of the same name. Its schema file has\n\
        its arguments and its reply. A toolset has the tools of those before it; `--toolset` hides, it does not forbid.\n"
        .to_owned();
    let toolsets = [(Toolset::Worker, "worker"), (Toolset::Core, "core"), (Toolset::Full, "full")];
    for (toolset, name) in toolsets {
        write!(page, "\n## Toolset `{name}`\n\n{}", tool_table(toolset)).unwrap();
    }
    page.push_str(
        "\n## Other schemas\n\n\
         - [mcp-state.json](mcp-state.json): the state file, which has checksums besides, the `current_task_title` of agents and, on a large board, a `layout`\n\
         - [plan.json](plan.json): a plan as `import_plan` takes it in JSON\n\
         - [openrpc.json](openrpc.json): all methods of `/rpc`, as `rpc.discover` answers\n\
         - [tables.md](tables.md): the tables of sessions, runs and attempts in `journal.db`, for SQL\n\
         \n## Limits\n\n\
         What is over a limit is refused with a message that names the limit.\n\n\
         | what | most | unit |\n|---|---:|---|\n",
    );
    for limit in limit::ALL {
        writeln!(page, "| {} | {} | {} |", limit.what, grouped(limit.max), limit.unit).unwrap();
    }
    page
}

fn of(toolset: Toolset) -> impl Iterator<Item = &'static ops::Entry> {
    ops::all().iter().filter(move |entry| entry.toolset == toolset)
}

fn tool_table(toolset: Toolset) -> String {
    let mut table = "| tool | what it does |\n|---|---|\n".to_owned();
    for entry in of(toolset) {
        writeln!(table, "| [`{name}`]({name}.json) | {} |", entry.description, name = entry.name)
            .unwrap();
    }
    table
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let parts: Vec<_> =
        digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}
