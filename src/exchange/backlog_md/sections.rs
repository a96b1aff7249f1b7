//! The sections of a task's file: headings, and texts between marks in comments.

/// Sections by their headings, in the order of the file.
#[derive(Default)]
pub(super) struct Sections {
    before: String,
    sections: Vec<(String, String)>,
}

impl Sections {
    pub(super) fn of(body: &str) -> Self {
        let mut sections = Self::default();
        let mut open: Option<&str> = None;
        for line in body.lines() {
            if open.is_none()
                && let Some(heading) = line.strip_prefix("## ")
            {
                sections.sections.push((heading.trim().to_owned(), String::new()));
                continue;
            }
            match mark(line) {
                Some((name, true)) if open.is_none() => open = Some(name),
                Some((name, false)) if open == Some(name) => open = None,
                _ => {
                    let text =
                        sections.sections.last_mut().map_or(&mut sections.before, |(_, text)| text);
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        sections
    }

    /// The text below a heading.
    pub(super) fn take(&mut self, heading: &str) -> Option<String> {
        let at = self.sections.iter().position(|(other, _)| other.eq_ignore_ascii_case(heading))?;
        let (_, text) = self.sections.remove(at);
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The sections that were not taken.
    pub(super) fn rest(self) -> String {
        let sections = self
            .sections
            .into_iter()
            .map(|(heading, text)| format!("## {heading}\n\n{}\n\n", text.trim()));
        format!("{}\n\n{}", self.before.trim(), sections.collect::<String>()).trim().to_owned()
    }
}

impl PartialEq for Sections {
    /// White space around a text says nothing.
    fn eq(&self, other: &Self) -> bool {
        let said = |all: &Self| {
            let sections = all.sections.iter();
            let sections =
                sections.map(|(name, text)| (name.to_lowercase(), text.trim().to_owned()));
            let mut sections: Vec<_> = sections.filter(|(_, text)| !text.is_empty()).collect();
            sections.sort();
            (all.before.trim().to_owned(), sections)
        };
        said(self) == said(other)
    }
}

/// The name in `<!-- SECTION:NAME:BEGIN -->` or `<!-- AC:BEGIN -->`, and whether it begins there.
fn mark(line: &str) -> Option<(&str, bool)> {
    let inside = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let inside = inside.strip_prefix("SECTION:").unwrap_or(inside);
    let (name, end) = inside.rsplit_once(':')?;
    match end {
        "BEGIN" => Some((name, true)),
        "END" => Some((name, false)),
        _ => None,
    }
}
