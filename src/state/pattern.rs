//! Files as tasks and reservations name them: a path or a glob, relative to the worktree's root. A
//! path stands for itself and everything below it; one that ends in `/` is a directory. In a glob
//! `*` and `?` stop at `/` and `**` does not; brackets match one of the characters in them, but
//! also themselves, because names like `[id]` mean them so.

use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet};

use super::refusal::Refusal;

/// Characters that make a path a glob.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    /// Built when first needed; `None` if the text is a path or an unreadable glob.
    glob: OnceLock<Option<GlobSet>>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Pattern {
    /// The pattern, refused if it is empty or leaves the project. `place` is its position in the
    /// call.
    pub fn checked(text: &str, place: impl FnOnce() -> String) -> Result<Self, Refusal> {
        let shown = || text.chars().filter(|c| !c.is_control() && *c != '`').take(200).collect();
        Self::new(text).ok_or_else(|| Refusal::OutsideProject { place: place(), given: shown() })
    }

    /// The pattern; `None` if it is empty or leaves the project.
    pub fn new(text: &str) -> Option<Self> {
        let is_rooted = |part: &str| part.starts_with('/') || part.starts_with("~/");
        let alternatives = || text.split(['{', ',']);
        let leaves = text.split(['/', '{', ',', '}']).any(|part| part == "..");
        if text.is_empty()
            || leaves
            || is_rooted(text)
            || text.contains('{') && alternatives().any(is_rooted)
        {
            return None;
        }
        let parts: Vec<_> =
            text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        let mut normal = parts.join("/");
        if parts.is_empty() {
            normal.push_str("**");
        } else if text.ends_with('/') && !text.ends_with("**/") {
            normal.push_str("/**");
        }
        Some(Self { text: normal, glob: OnceLock::new() })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True if the pattern covers the file `path`, whose name may contain brackets.
    pub fn covers(&self, path: &str) -> bool {
        is_at_or_below(path, &self.text) || self.matches(path)
    }

    /// True if a file may match both. Of two globs only the fixed beginnings and ends are compared,
    /// so two that share no file may be said to overlap, but never the other way round.
    pub fn overlaps(&self, other: &Self) -> bool {
        if is_at_or_below(&self.text, &other.text) || is_at_or_below(&other.text, &self.text) {
            return true;
        }
        match (self.is_glob(), other.is_glob()) {
            (false, false) => false,
            (true, false) => self.meets(&other.text),
            (false, true) => other.meets(&self.text),
            (true, true) => {
                let (head, others) = (self.head(), other.head());
                let (tail, others_tail) = (self.tail(), other.tail());
                (head.starts_with(others) || others.starts_with(head))
                    && (tail.ends_with(others_tail) || others_tail.ends_with(tail))
            }
        }
    }

    /// True if the pattern surely covers all that the other matches.
    pub fn includes(&self, other: &Self) -> bool {
        let all_below = |root: &str| is_at_or_below(&other.text, root);
        let directory = self.text.strip_suffix("/**").filter(|root| !root.contains(SPECIAL));
        self.text == "**"
            || all_below(directory.unwrap_or(&self.text))
            || !other.is_glob() && self.covers(&other.text)
    }

    /// How little the pattern covers: of two that cover a file, the greater one is narrower.
    pub fn narrowness(&self) -> (usize, bool) {
        (self.head().len(), !self.is_glob())
    }

    /// True if the pattern may match anywhere in the project and the other only below one
    /// directory, or one file.
    pub fn yields_to(&self, other: &Self) -> bool {
        self.key().is_empty() && !other.key().is_empty()
    }

    /// Directory that contains everything the pattern matches, under which related patterns are
    /// found.
    pub fn key(&self) -> &str {
        if self.is_glob() {
            self.head().rsplit_once('/').map_or("", |(directory, _)| directory)
        } else {
            &self.text
        }
    }

    fn is_glob(&self) -> bool {
        self.text.contains(SPECIAL)
    }

    /// True if the pattern matches `path`, or matches only files below it.
    fn meets(&self, path: &str) -> bool {
        self.matches(path)
            || self.head().strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
    }

    fn matches(&self, path: &str) -> bool {
        let made = || {
            let in_brackets =
                |c: char| if matches!(c, '[' | ']') { format!("[{c}]") } else { c.to_string() };
            let literal = self.text.chars().map(in_brackets).collect();
            let globs = [self.text.clone(), literal]
                .map(|text| GlobBuilder::new(&text).literal_separator(true).build());
            let mut set = GlobSet::builder();
            for glob in globs.into_iter().flatten() {
                set.add(glob);
            }
            self.is_glob().then(|| set.build().ok()).flatten()
        };
        self.glob.get_or_init(made).as_ref().is_some_and(|glob| glob.is_match(path))
    }

    fn head(&self) -> &str {
        self.text.split(SPECIAL).next().unwrap_or_default()
    }

    /// Fixed end of the pattern. `**/` may match nothing, so its slash is not part of the end.
    fn tail(&self) -> &str {
        let tail = self.text.rsplit(SPECIAL).next().unwrap_or_default();
        tail.strip_prefix('/').unwrap_or(tail)
    }
}

fn is_at_or_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn what_leaves_the_project_is_none() {
        for text in [
            "",
            "/etc/passwd",
            "..",
            "../a",
            "a/../b",
            "a/{..,b}/c",
            "{/etc,a}/b",
            "{a,../b}",
            "~/x",
        ] {
            assert_eq!(Pattern::new(text), None, "{text}");
        }
        for (text, normal) in
            [("./a//b/./c", "a/b/c"), ("src/", "src/**"), (".", "**"), ("a..b/..c", "a..b/..c")]
        {
            assert_eq!(pattern(text).as_str(), normal);
        }
    }

    #[test]
    fn a_pattern_covers_its_files() {
        for (text, path, covered) in [
            ("src/a.rs", "src/a.rs", true),
            ("src", "src/a/b.rs", true),
            ("src", "srcs/a.rs", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**", "src/a/b.rs", true),
            ("**/*.rs", "a.rs", true),
            ("src/{a,b}.rs", "src/b.rs", true),
            ("src/{a,b}.rs", "src/c.rs", false),
            ("app/[id]/page.tsx", "app/[id]/page.tsx", true),
            ("app/[id]/", "app/[id]/page.tsx", true),
            ("app/[...slug]/**/*.tsx", "app/[...slug]/a/page.tsx", true),
            ("app/[id]/*.tsx", "app/[id]/page.tsx", true),
            ("app/[id]/*.tsx", "app/i/page.tsx", true),
            ("app/[id]/", "app/[slug]/page.tsx", false),
            ("a[", "a[", true),
            ("a[", "a", false),
        ] {
            assert_eq!(pattern(text).covers(path), covered, "{text} {path}");
        }
    }

    #[test]
    fn overlap_is_symmetric_and_leaves_no_common_file_out() {
        for (one, other, overlap) in [
            ("src/a.rs", "src/a.rs", true),
            ("src/a.rs", "src/b.rs", false),
            ("src", "src/a.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a.toml", false),
            ("src/**", "src", true),
            ("src/**", "lib/**", false),
            ("src/*.rs", "src/*.toml", false),
            ("src/**/*.rs", "src/state/*.rs", true),
            ("**/mod.rs", "src/*.rs", true),
            ("**/mod.rs", "*.rs", true),
            ("src/a*", "src/ab*", true),
            ("src/a*", "src/b*", false),
        ] {
            assert_eq!(pattern(one).overlaps(&pattern(other)), overlap, "{one} {other}");
            assert_eq!(pattern(other).overlaps(&pattern(one)), overlap, "{other} {one}");
        }
        let patterns = [
            "a", "a/", "a/*", "a/**", "**/b", "a/{b,c}", "*/b", "a/b", "?/c", "**/*c", "[ab]/*",
            "*", "**",
        ];
        for (one, other) in
            patterns.iter().flat_map(|one| patterns.iter().map(move |other| (one, other)))
        {
            let (one, other) = (pattern(one), pattern(other));
            for path in ["a", "b", "c", "a/b", "a/c", "b/b", "b/c", "a/b/c", "b/a/b"] {
                let both = one.covers(path) && other.covers(path);
                // A path alone does not show whether it is a directory.
                let below = [&one, &other].iter().any(|one| !one.is_glob() && one.as_str() != path);
                assert!(!both || below || one.overlaps(&other), "{one:?} {other:?} {path}");
            }
        }
    }
}
