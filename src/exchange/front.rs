//! Front matter in YAML, as files have it whose tools are lenient.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

use super::record::Record;
use super::report::Fault;

/// Names that begin with an at sign, which stands for nothing in YAML.
static NAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?m)^(\s*(?:- +|[\w-]+: *\[?)|.*?, *)(@[^\s,\]]+)"#).ok());

/// The front matter of a file and what is below it.
pub(super) fn record<'t>(path: &str, text: &'t str) -> Result<(Record, &'t str), Fault> {
    let fault = |line: usize, problem: String| Fault { path: path.to_owned(), line, problem };
    let inside =
        text.strip_prefix("---").and_then(|text| text.split_once('\n')).map(|(_, inside)| inside);
    let end = inside.and_then(|inside| {
        if inside.starts_with("---") {
            Some((0, 0))
        } else {
            inside.find("\n---").map(|end| (end + 1, end))
        }
    });
    let (Some(inside), Some((end, last))) = (inside, end) else {
        return Err(fault(1, "it has no front matter between lines with ---".to_owned()));
    };
    let body = inside[end..].split_once('\n').map_or("", |(_, body)| body);
    let yaml = &inside[..last];
    let read = |yaml: &str| serde_saphyr::from_str::<Map<String, Value>>(yaml);
    let fields = read(yaml).or_else(|error| read(&quoted(yaml)).map_err(|_| error));
    let fields = fields.map_err(|error: serde_saphyr::Error| {
        let line = error.location().map_or(1, |at| at.line() as usize);
        fault(line + 1, format!("the front matter cannot be read: {}", error.without_snippet()))
    })?;
    Ok((Record::new(&Arc::from(path), 1, fields), body))
}

/// The same with quotes around such names.
fn quoted(yaml: &str) -> String {
    let mut text = yaml.to_owned();
    // Each pass finds one name a line.
    while let Some(name) = NAME.as_ref().filter(|name| name.is_match(&text)) {
        text = name.replace_all(&text, "$1\"$2\"").into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_an_at_sign_need_no_quotes() {
        for (yaml, expected) in [
            ("assignee: @ann", "assignee: \"@ann\""),
            ("assignee: [@ann, @ben]", "assignee: [\"@ann\", \"@ben\"]"),
            ("assignee:\n  - @ann\n  - ben", "assignee:\n  - \"@ann\"\n  - ben"),
            ("title: write to a@b.c", "title: write to a@b.c"),
        ] {
            assert_eq!(quoted(yaml), expected);
        }
    }
}
