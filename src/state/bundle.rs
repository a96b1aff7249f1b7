//! Context bundles: refined prompts and settings, kept for whoever does such work next. They are
//! files beside the journal, not part of the state; here is what they contain and what can be asked
//! about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::digest::sha256;
use super::limit;
use super::refusal::Refusal;
pub use super::snapshot::{Problem, SnapshotName as BundleName};
use super::time::Timestamp;

/// Version of the files that this build writes and reads.
pub const VERSION: &str = "1";

/// Key of the bundles that belong together; bundles of other scopes are never looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scope(String);

impl Scope {
    /// `given`, else the hash of model, URL and toolset.
    pub fn of(given: Option<&str>, content: &Content) -> Result<Self, Refusal> {
        if let Some(given) = given {
            if given.trim().is_empty() {
                return Err(Refusal::Empty { what: "scope" });
            }
            limit::BUNDLE_SCOPE.check_text(given)?;
            return Ok(Self(given.to_owned()));
        }
        let Content { model_id, base_url, toolset_hash, .. } = content;
        if [model_id, base_url, toolset_hash].iter().all(|part| part.is_none()) {
            return Err(Refusal::ScopeMissing);
        }
        let part = |part: &Option<String>| part.clone().unwrap_or_default();
        Ok(Self(sha256(
            format!("{}|{}|{}", part(model_id), part(base_url), part(toolset_hash)).as_bytes(),
        )))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of the scope's directory. Scopes that are not plain lower-case names get their hash,
    /// behind a mark that plain names do not have, so that no two collide where the file system
    /// ignores case.
    pub fn folder(&self) -> String {
        if is_plain(&self.0) {
            self.0.clone()
        } else {
            format!("{HASHED}{}", sha256(self.0.as_bytes()))
        }
    }

    /// Whether a directory may belong to a scope.
    pub fn is_folder(name: &str) -> bool {
        is_plain(name)
            || name
                .strip_prefix(HASHED)
                .is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
    }
}

const HASHED: char = '~';

fn is_plain(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    first && name.len() <= limit::ID.max && bytes.all(fits)
}

/// What a caller saves in a bundle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Hash of the toolset that the prompts were written for
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset_hash: Option<String>,
    #[serde(default)]
    pub prompts: Map<String, Value>,
    #[serde(default)]
    pub settings: Map<String, Value>,
    #[serde(default)]
    pub context: Map<String, Value>,
}

/// Key in `context` of the list of refinement texts, oldest first.
const REFINEMENTS: &str = "refinements";

impl Content {
    pub fn check(&self) -> Result<(), Refusal> {
        for label in [&self.model_id, &self.base_url, &self.toolset_hash].into_iter().flatten() {
            limit::PATH.check_text(label)?;
        }
        let parts = [&self.prompts, &self.settings, &self.context];
        if self.is_empty() {
            return Err(Refusal::Empty { what: "a bundle (prompts, settings and context)" });
        }
        parts.into_iter().try_for_each(|part| {
            part.values().try_for_each(|value| limit::DEPTH.check(1 + depth(value)))
        })
    }

    /// This content with the fields of `other`, by name; null deletes one. `text` is appended to
    /// the refinements in the context.
    pub fn refined(mut self, other: &Self, text: Option<&str>) -> Self {
        for (part, new) in [
            (&mut self.prompts, &other.prompts),
            (&mut self.settings, &other.settings),
            (&mut self.context, &other.context),
        ] {
            for (name, value) in new {
                match value {
                    Value::Null => drop(part.shift_remove(name)),
                    value => drop(part.insert(name.clone(), value.clone())),
                }
            }
        }
        if let Some(text) = text {
            let mut refinements = match self.context.shift_remove(REFINEMENTS) {
                Some(Value::Array(refinements)) => refinements,
                other => other.into_iter().collect(),
            };
            refinements.push(Value::from(text));
            self.context.insert(REFINEMENTS.to_owned(), Value::from(refinements));
        }
        self
    }

    /// True if there is nothing to keep.
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty() && self.settings.is_empty() && self.context.is_empty()
    }

    fn hash(&self) -> String {
        sha256(serde_json::to_string(self).unwrap_or_default().as_bytes())
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// A bundle's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    pub version: String,
    pub created_at: Timestamp,
    pub scope_key: String,
    #[serde(flatten)]
    pub content: Content,
    /// SHA-256 of the content's JSON
    pub source_hash: String,
    /// SHA-256 of the file of the bundle before this one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev_sha: Option<String>,
}

impl Bundle {
    pub fn new(
        scope: &Scope,
        content: Content,
        prev_sha: Option<String>,
        created_at: Timestamp,
    ) -> Self {
        let (version, scope_key) = (VERSION.to_owned(), scope.as_str().to_owned());
        Self { version, created_at, scope_key, source_hash: content.hash(), content, prev_sha }
    }

    /// The bundle with the hash of the content that it has now.
    pub fn whole(mut self) -> Self {
        self.source_hash = self.content.hash();
        self
    }

    pub fn is_whole(&self) -> bool {
        self.source_hash == self.content.hash()
    }
}

/// What is asked of the bundles. A scope left out is derived from the content.
#[derive(Debug)]
pub enum Asked {
    Save {
        scope: Option<String>,
        content: Content,
        dry_run: bool,
    },
    Refine {
        scope: Option<String>,
        change: Content,
        text: Option<String>,
        prev_sha: Option<String>,
        dry_run: bool,
    },
    Load {
        scope: Option<String>,
        content: Content,
        dry_run: bool,
    },
    List {
        scope: Option<String>,
        after: Option<String>,
        limit: usize,
    },
    Verify {
        scope: Option<String>,
    },
}

#[derive(Debug)]
pub enum Told {
    Saved(Saved),
    Loaded(Box<Loaded>),
    Listed(Listing),
    Verified(Verification),
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Saved {
    pub success: bool,
    /// True if a file was written; false if the newest bundle has the same content (`already`),
    /// and in a dry run
    pub saved: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    pub scope: String,
    /// Path in the board's directory of bundles
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev_sha: Option<String>,
    pub bytes: usize,
    /// Number of secrets that were redacted
    #[serde(skip_serializing_if = "is_none")]
    pub redacted: usize,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Problem>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Loaded {
    pub success: bool,
    /// True if there is a sound bundle
    pub restored: bool,
    pub scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Bundle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Damaged files, which are kept as `*.quarantined-N`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<Problem>,
    /// What is still wrong
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Listing {
    pub bundles: Vec<Listed>,
    /// Cursor for `after`; there are more
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Listed {
    pub path: String,
    pub bytes: u64,
    pub created_at: Timestamp,
    /// Why the bundle cannot be loaded; nothing else is known of it then
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prev_sha: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// True if nothing is wrong
    pub sound: bool,
    pub scopes: usize,
    pub bundles: usize,
    pub problems: Vec<Problem>,
    /// Files that were moved aside earlier
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(value: Value) -> Content {
        serde_json::from_value(value).unwrap()
    }

    fn folder(scope: &str) -> String {
        Scope::of(Some(scope), &Content::default()).unwrap().folder()
    }

    #[test]
    fn only_a_plain_scope_names_its_directory() {
        for plain in ["docs-demo", "a", "7_x", &"a".repeat(64)] {
            assert_eq!(folder(plain), plain);
        }
        let odd = [
            "..",
            ".",
            "a/b",
            "/etc",
            "A",
            "a.b",
            "~a",
            "-a",
            "ä",
            "a b",
            "latest.json",
            &"a".repeat(65),
        ];
        let mut folders: Vec<_> = odd.iter().map(|scope| folder(scope)).collect();
        assert!(
            folders
                .iter()
                .all(|name| name.len() == 65 && name.starts_with('~') && Scope::is_folder(name))
        );
        folders.sort();
        folders.dedup();
        assert_eq!(folders.len(), odd.len(), "each has its own");
        assert_eq!(
            folder(&folder("A")),
            format!("~{}", sha256(folder("A").as_bytes())),
            "a folder's name is no way in"
        );
    }

    #[test]
    fn scope_follows_from_what_the_prompts_were_written_for() {
        let of =
            |value: Value| Scope::of(None, &content(value)).map(|scope| scope.as_str().to_owned());
        assert_eq!(of(json!({"prompts": {"system": "x"}})), Err(Refusal::ScopeMissing));
        let one = of(json!({"model_id": "m", "base_url": "u", "toolset_hash": "t"})).unwrap();
        assert_eq!(one, sha256(b"m|u|t"));
        assert_ne!(of(json!({"model_id": "m", "base_url": "u"})).unwrap(), one);
        assert_eq!(
            Scope::of(Some(" "), &Content::default()),
            Err(Refusal::Empty { what: "scope" })
        );
    }

    #[test]
    fn refinement_replaces_adds_and_takes_away() {
        let stored = content(
            json!({"prompts": {"system": "old", "user": "u"}, "settings": {"temperature": 0.7}}),
        );
        let change =
            content(json!({"prompts": {"system": "new", "user": null}, "settings": {"top_p": 1}}));
        let once = stored.refined(&change, Some("be brief"));
        let twice = once.refined(&Content::default(), Some("be briefer"));
        assert_eq!(
            serde_json::to_value(&twice).unwrap(),
            json!({"prompts": {"system": "new"}, "settings": {"temperature": 0.7, "top_p": 1},
                "context": {"refinements": ["be brief", "be briefer"]}})
        );
    }
}
