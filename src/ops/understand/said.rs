//! What the reply to a call says of how its arguments were read.

use super::words;

/// Most arguments of one sort that are named.
const NAMED: usize = 5;

#[derive(Clone, Default)]
pub(super) struct Said {
    taken: Vec<String>,
    kept: Vec<String>,
    clamped: Vec<String>,
    ignored: Vec<String>,
}

impl Said {
    /// The argument at `at` was taken as `field`.
    pub(super) fn taken(&mut self, at: &str, field: &str) {
        self.taken.push(format!("`{at}` as {field}"));
    }

    pub(super) fn kept(&mut self, at: &str) {
        self.kept.push(format!("`{at}`"));
    }

    pub(super) fn clamped(&mut self, at: &str, number: i128) {
        self.clamped.push(format!("`{at}` is {number}"));
    }

    pub(super) fn ignored(&mut self, why: &str) {
        self.ignored.push(why.to_owned());
    }

    pub(super) fn in_words(&self) -> Option<String> {
        let sorts = [
            ("took ", &self.taken),
            ("kept in metadata: ", &self.kept),
            ("out of range, so ", &self.clamped),
            ("", &self.ignored),
        ];
        let told = sorts.into_iter().filter(|(_, all)| !all.is_empty()).map(|(what, all)| {
            let named: Vec<_> = all.iter().take(NAMED).map(String::as_str).collect();
            let more = all.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            words::line(&format!("{what}{}{more}", named.join(", ")))
        });
        let told: Vec<_> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}
