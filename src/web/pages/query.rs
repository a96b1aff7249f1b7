//! What the address of a page asks for.

use form_urlencoded::{Serializer, parse};

use crate::harmless::shown::harmless;
use crate::view::Filter;

/// What the first screen is narrowed to, and where lists go on. What is not understood is passed
/// over: an address may have been typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::web) struct Query {
    pub scope: Option<String>,
    pub filter: Filter,
    /// Rows of each list
    pub rows: Option<u32>,
    /// Which tasks a list has: a word of `Kind`
    pub is: Option<String>,
    /// Number of entries before those that are shown, or of the event
    pub after: Option<u64>,
    /// What is looked for
    pub q: Option<String>,
}

/// Most rows of each list that an address can ask for.
const MOST: u32 = 1_000;

impl Query {
    pub(in crate::web) fn of(query: &str) -> Self {
        let mut asked = Self::default();
        for (name, value) in parse(query.as_bytes()) {
            // It is shown in the page and in its title, and anybody can write an address.
            let text = Some(harmless(value.trim())).filter(|value| !value.is_empty());
            match &*name {
                "scope" => asked.scope = text,
                "text" => asked.filter.text = text,
                "tag" => asked.filter.tag = text,
                "agent" => asked.filter.agent = text,
                "rows" => asked.rows = value.parse().ok().map(|rows: u32| rows.clamp(1, MOST)),
                "is" => asked.is = text,
                "after" => asked.after = value.parse().ok(),
                "q" => asked.q = text,
                _ => {}
            }
        }
        asked
    }

    /// Whether something is left out.
    pub(in crate::web) fn narrows(&self) -> bool {
        self.scope.is_some() || !self.filter.is_empty()
    }

    /// What the page is narrowed to, in words.
    pub(in crate::web) fn said(&self) -> String {
        let Filter { text, tag, agent } = &self.filter;
        let named = [("part", &self.scope), ("text", text), ("tag", tag), ("agent", agent)];
        let said =
            named.iter().filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        said.collect::<Vec<_>>().join(" · ")
    }

    /// The first screen at another part of the plan.
    pub(in crate::web) fn at(&self, scope: Option<&str>) -> String {
        address("/", &Self { scope: scope.map(str::to_owned), ..self.clone() })
    }

    /// The list of these tasks, narrowed in the same way.
    pub(in crate::web) fn list(&self, is: &str) -> String {
        address("/tasks", &Self { is: Some(is.to_owned()), ..self.clone() })
    }

    /// The same from the beginning.
    pub(in crate::web) fn first_page(&self) -> Self {
        Self { after: None, ..self.clone() }
    }

    /// The page of a list that goes on after so many entries.
    pub(in crate::web) fn further(&self, path: &str, after: u64) -> String {
        address(path, &Self { after: Some(after), ..self.clone() })
    }
}

fn address(path: &str, query: &Query) -> String {
    let Filter { text, tag, agent } = &query.filter;
    let (rows, after) = (query.rows.map(|n| n.to_string()), query.after.map(|n| n.to_string()));
    let named = [
        ("scope", &query.scope),
        ("text", text),
        ("tag", tag),
        ("agent", agent),
        ("rows", &rows),
        ("is", &query.is),
        ("q", &query.q),
        ("after", &after),
    ];
    let mut written = Serializer::new(String::new());
    for (name, value) in named {
        if let Some(value) = value {
            written.append_pair(name, value);
        }
    }
    match written.finish() {
        empty if empty.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_what_they_were_made_of() {
        let query = "scope=P1.M2&text=a%26b+%C3%BC&tag=x&agent=claude-1&rows=5000&is=&junk=1";
        let asked = Query::of(query);
        assert_eq!(asked.scope.as_deref(), Some("P1.M2"));
        assert_eq!(asked.filter.text.as_deref(), Some("a&b ü"));
        assert_eq!((asked.rows, asked.is.as_deref()), (Some(1_000), None));
        assert_eq!(asked.said(), "part P1.M2 · text a&b ü · tag x · agent claude-1");
        let list = asked.list("done");
        assert_eq!(
            Query::of(list.strip_prefix("/tasks?").unwrap()),
            Query { is: Some("done".to_owned()), ..asked.clone() }
        );
        assert_eq!(Query::default().at(None), "/");
        assert!(!asked.at(None).contains("scope"));
    }

    #[test]
    fn any_query_is_read() {
        let odd = Query::of("q=a%E2%80%AEb%E2%80%8Bc%1B%5B2J");
        assert_eq!(odd.q.as_deref(), Some("a\u{fffd}b\u{fffd}c\u{fffd}[2J"));
        for query in ["", "&&=&", "rows=x&after=-1", "%ff%fe=%00", "text=%20"] {
            assert!(!Query::of(query).narrows(), "{query}");
        }
    }
}
