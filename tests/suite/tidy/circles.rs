//! Circles of imports: files of which each imports the next, and the last one the first. A small
//! circle is read as one thing; a large one has no place to begin.

use std::collections::{BTreeMap, BTreeSet};

use super::sources;

/// Most files in a circle, by module.
const LARGEST: [(&str, usize); 3] = [("state", 13), ("participant", 3), ("statefile", 1)];

#[test]
fn circles_of_imports_stay_small() {
    for (module, most) in LARGEST {
        let imports = imports_within(module);
        assert!(imports.len() > 5, "where is {module}?");
        let large: Vec<_> =
            circles(&imports).into_iter().filter(|circle| circle.len() > most).collect();
        assert!(large.is_empty(), "more than {most} files of {module} in a circle: {large:#?}");
    }
}

#[test]
fn files_that_import_each_other_are_a_circle() {
    let imports = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")];
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::from([("d".into(), [].into())]);
    for (from, to) in imports {
        all.entry(from.into()).or_default().insert(to.into());
    }
    assert_eq!(circles(&all), [BTreeSet::from(["a", "b", "c"].map(str::to_owned))].into());
}

#[test]
fn paths_are_read_from_every_form_of_import() {
    let text = "pub use own::Thing;\nuse super::{State, id::{self, TaskId}};\n\
                pub(in crate::state) fn f() { crate::state::time::now() }";
    let expected = [
        "self::own::Thing",
        "crate::state::time::now",
        "super::State",
        "super::id::self",
        "super::id::TaskId",
    ];
    assert_eq!(paths_named(text), expected);
    let names = ["state", "state::id", "state::run", "state::run::own"];
    let known: BTreeSet<String> = names.map(str::to_owned).into();
    let from = |path: &str| file_of("state::run", path, &known);
    assert_eq!(from("self::own::Thing").as_deref(), Some("state::run::own"));
    assert_eq!(from("super::id::TaskId").as_deref(), Some("state::id"));
    assert_eq!(from("crate::state::State").as_deref(), Some("state"));
    assert_eq!(from("crate::plan::Plan"), None);
}

/// The other files of the module that each of its files imports, tests left out.
fn imports_within(module: &str) -> BTreeMap<String, BTreeSet<String>> {
    let files = sources("src").into_iter().filter_map(|(name, text)| {
        let path = name.strip_prefix("src/")?.strip_suffix(".rs")?;
        let path = path.strip_suffix("/mod").unwrap_or(path).replace('/', "::");
        let is_of = path == module || path.starts_with(&format!("{module}::"));
        (is_of && !path.ends_with("::tests") && !path.contains("::tests::")).then_some((path, text))
    });
    let files: BTreeMap<String, String> = files.collect();
    let known: BTreeSet<String> = files.keys().cloned().collect();
    let imports = |name: &str, text: &str| {
        let shipped = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let named = paths_named(shipped);
        let others = named.iter().filter_map(|path| file_of(name, path, &known));
        others.filter(|other| other != name).collect()
    };
    files.iter().map(|(name, text)| (name.clone(), imports(name, text))).collect()
}

/// Paths that begin with `crate`, `super`, or in a `use` with a name of the file's own module.
fn paths_named(text: &str) -> Vec<String> {
    let code: Vec<_> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let code = code.join(" ");
    let mut paths = Vec::new();
    for word in ["use ", "crate::", "super::"] {
        for (start, _) in code.match_indices(word) {
            let before = code[..start].chars().next_back().unwrap_or(' ');
            let (prefix, tree) = match word {
                "use " => ("self::", &code[start + word.len()..]),
                _ => ("", &code[start..]),
            };
            let is_other =
                word == "use " && ["crate::", "super::"].iter().any(|one| tree.starts_with(one));
            let is_part = before.is_alphanumeric() || ['_', ':', '$'].contains(&before);
            if !is_other && !is_part && !code[..start].ends_with("(in ") {
                expand(prefix, tree, &mut paths);
            }
        }
    }
    paths
}

/// Adds the paths that a tree such as `a::{b, c::d}` stands for; returns what follows the tree.
fn expand<'t>(prefix: &str, tree: &'t str, paths: &mut Vec<String>) -> &'t str {
    let tree = tree.trim_start();
    let is_path = |c: char| c.is_alphanumeric() || ['_', ':'].contains(&c);
    let (path, mut rest) = tree.split_at(tree.find(|c| !is_path(c)).unwrap_or(tree.len()));
    let path = format!("{prefix}{path}");
    if !path.ends_with("::") || !rest.starts_with('{') {
        paths.push(path);
        return rest;
    }
    while rest.starts_with(['{', ',']) {
        rest = rest[1..].trim_start();
        if !rest.starts_with('}') {
            rest = expand(&path, rest, paths).trim_start();
        }
    }
    rest.strip_prefix('}').unwrap_or(rest)
}

/// The file, among those known, that the path in file `name` leads to.
fn file_of(name: &str, path: &str, known: &BTreeSet<String>) -> Option<String> {
    let mut place: Vec<&str> = name.split("::").collect();
    for part in path.split("::") {
        match part {
            "crate" => place.clear(),
            "self" => {}
            "super" => drop(place.pop()),
            part => place.push(part),
        }
    }
    let prefixes = (1..=place.len()).rev().map(|length| place[..length].join("::"));
    prefixes.into_iter().find(|prefix| known.contains(prefix))
}

/// The largest groups of files in which each reaches each other by imports.
fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<_, _> =
        imports.keys().map(|name| (name, reached_from(name, imports))).collect();
    let circle = |name: &String| -> BTreeSet<String> {
        reached[name].iter().filter(|other| reached[other].contains(name)).cloned().collect()
    };
    imports.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

fn reached_from(name: &str, imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name];
    while let Some(name) = open.pop() {
        for other in &imports[name] {
            if reached.insert(other.clone()) {
                open.push(other);
            }
        }
    }
    reached
}
