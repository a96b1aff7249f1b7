//! Secrets in a column of a table whose head names them: in Markdown, separated by commas, and in
//! rows that are inserted into a database.

use std::sync::LazyLock;

use regex::Regex;

use super::Finding;
use super::named::may_name;
use super::plain::{may_be_password, may_be_token};
use super::telling::{Habit, Telling};
use super::value::{is_reference, is_secret};

/// Most columns of a table.
const COLUMNS: usize = 40;
/// What stands around the text of a cell.
const AROUND: [char; 6] = [' ', '\t', '`', '*', '"', '\''];

/// A cell without what stands around it, and its place in the text.
type Cell<'t> = (usize, &'t str);

/// Always present, because the patterns are constants; a test builds them.
static INSERTED: LazyLock<Option<(Regex, Regex)>> = LazyLock::new(|| {
    let rows = r"(?i)insert\s{1,9}into\s{1,9}\S{1,99}\s{0,9}\(([^()]{1,999})\)\s{0,9}values\s{0,9}((?:\([^()]{0,4000}\)[,\s]{0,9})+)";
    Some((Regex::new(rows).ok()?, Regex::new(r"\(([^()]*)\)").ok()?))
});

pub(super) fn findings(text: &str) -> Vec<Finding> {
    let mut found = inserted(text);
    if !text.contains('\n') || !may_name(text) {
        return found;
    }
    for separator in ['|', ',', ';', '\t'].into_iter().filter(|one| text.contains(*one)) {
        let mut columns: Vec<Option<Telling>> = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let cells = cells(line.trim_end_matches(['\n', '\r']), at, separator);
            at += line.len();
            if cells.len() < 2 || cells.len() > COLUMNS {
                columns.clear();
            } else if columns.len() == cells.len() {
                found.extend(
                    columns.iter().zip(cells).filter_map(|(head, cell)| finding(*head, cell)),
                );
            } else {
                let is_head = may_name(line) && cells.iter().all(|(_, cell)| is_name(cell));
                let heads = cells.iter().filter(|_| is_head).map(|(_, cell)| Telling::of(cell));
                columns = heads.collect();
                if columns.iter().all(Option::is_none) {
                    columns.clear();
                }
            }
        }
    }
    found
}

fn inserted(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_possible = text.contains("VALUES") || text.contains("values");
    let Some((insert, row)) = INSERTED.as_ref().filter(|_| is_possible) else { return found };
    for captures in insert.captures_iter(text) {
        let (Some(heads), Some(rows)) = (captures.get(1), captures.get(2)) else { continue };
        let heads: Vec<_> =
            cells(heads.as_str(), 0, ',').into_iter().map(|(_, head)| Telling::of(head)).collect();
        for row in row.captures_iter(rows.as_str()).filter_map(|row| row.get(1)) {
            let cells = cells(row.as_str(), rows.start() + row.start(), ',');
            if cells.len() == heads.len() {
                let pairs = heads.iter().zip(cells);
                found.extend(pairs.filter_map(|(head, cell)| finding(*head, cell)));
            }
        }
    }
    found
}

fn cells(line: &str, at: usize, separator: char) -> Vec<Cell<'_>> {
    let mut start = at;
    let mut cells: Vec<Cell> = Vec::new();
    for cell in line.split(separator).take(COLUMNS + 3) {
        let begun = cell.trim_start_matches(AROUND);
        cells.push((start + cell.len() - begun.len(), begun.trim_end_matches(AROUND)));
        start += cell.len() + separator.len_utf8();
    }
    // The lines at both ends of a row of Markdown.
    if separator == '|' && line.trim_start().starts_with('|') {
        cells.remove(0);
        cells.pop_if(|(_, cell)| cell.is_empty());
    }
    cells
}

/// Whether the text can be the name of a column; code has other signs.
fn is_name(cell: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || " _-./".contains(c);
    !cell.is_empty() && cell.len() <= 40 && cell.chars().all(is_part)
}

fn finding(head: Option<Telling>, (start, cell): Cell<'_>) -> Option<Finding> {
    let head = head.filter(|head| head.habit != Habit::Code)?;
    let is_word = !cell.contains(' ');
    let is_real = match head.habit {
        Habit::Password => is_secret(cell, head.habit, true) || may_be_password(cell),
        habit => is_secret(cell, habit, true) || may_be_token(cell),
    };
    let place = start..start + cell.len();
    (is_word && is_real && !is_reference(cell)).then_some(Finding { place, kind: head.kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_below_a_telling_head_are_found_and_others_are_not() {
        let found = |text: &str| {
            findings(text).into_iter().map(|one| text[one.place].to_owned()).collect::<Vec<_>>()
        };
        let table = "| Host | Password |\n|---|:-:|\n| db1 | `s3same-open` |\n| db2 | required |\n";
        assert_eq!(found(table), ["s3same-open"]);
        assert_eq!(found("user,api_key\nci,kqzvbnwtrplm42\nada,none\n\nx,y1"), ["kqzvbnwtrplm42"]);
        let rows = "INSERT INTO users (id, password) VALUES (1, 's3same-open'), (2, 'kq7z');";
        assert_eq!(found(rows), ["s3same-open"]);
        for text in [
            "Host,User\ndb1,s3same\n",
            "a, password, b\n",
            "x.password,\nfirst1,\n",
            "a(), token\nb2c3d4e5, f6g7h8i9\n",
            "| Password |\n\n| s3same |",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
