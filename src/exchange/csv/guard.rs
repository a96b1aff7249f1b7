//! Cells that a spreadsheet would run: those that begin as a formula does and are no number. They
//! are written behind an apostrophe, as spreadsheets mark a text.

const MARK: char = '\'';

/// Whether a spreadsheet runs the cell, or takes a mark off it.
fn is_run(cell: &str) -> bool {
    let begins = ['=', '+', '@', '-', '\t', '\r', '\n', '＝', '＋', '＠', '－'];
    cell.trim_start_matches(MARK).starts_with(begins) && cell.parse::<f64>().is_err()
}

pub(super) fn guarded(cell: String) -> String {
    if is_run(&cell) { format!("{MARK}{cell}") } else { cell }
}

/// The cell without the mark of a text.
pub(super) fn plain(cell: &str) -> &str {
    cell.strip_prefix(MARK).filter(|_| is_run(cell)).unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_spreadsheet_would_run_is_a_text() {
        for cell in [
            "=1+1",
            "+A1",
            "@SUM(A1)",
            "-2+3",
            "\t=x",
            "\r=x",
            "＝1",
            "-",
            "- item",
            "=",
            "+1 555 0100",
            "-inf-",
            "'=x",
        ] {
            assert_eq!(guarded(cell.to_owned()), format!("'{cell}"));
        }
        for cell in ["", "-5", "+2.5", "-1e9", "a=b", "'quoted'", " =x", "{\"a\": 1}"] {
            assert_eq!(guarded(cell.to_owned()), cell);
        }
    }

    proptest! {
        #[test]
        fn cells_are_read_as_they_were(cell in "['=+@\t\r-]{0,4}[a-z0-9.]{0,3}") {
            let written = guarded(cell.clone());
            prop_assert_eq!(plain(&written), cell);
        }
    }
}
