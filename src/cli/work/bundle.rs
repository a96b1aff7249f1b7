//! The bundle of prompts and settings for the command, overridden by the command line.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::bundle::{self, Bundles};
use crate::cli::bundle::{pairs, setting};
use crate::cli::read_input;
use crate::participant::CallError;
use crate::participant::board_time;
use crate::state::bundle::{Asked, Content, Loaded, Problem, Told};
use crate::state::time::Timestamp;

#[derive(Args)]
pub(super) struct Wanted {
    /// Give the command the newest sound bundle of this scope, as it is when the work begins
    #[arg(long, value_name = "SCOPE", help_heading = "Bundle")]
    state_scope: Option<String>,
    /// Directory of the bundles [default: the board's `bundles`]
    #[arg(long, value_name = "DIR", requires = "state_scope", help_heading = "Bundle")]
    state_dir: Option<PathBuf>,
    /// Refine the bundle by this text first: a new one, with what the command is to do better
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        requires = "state_scope",
        help_heading = "Bundle"
    )]
    state_refine_text: Option<String>,
    /// File with the text for --state-refine-text; `-` reads standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "state_refine_text",
        requires = "state_scope",
        help_heading = "Bundle"
    )]
    state_refine_file: Option<String>,
    /// Id of the model, overriding the bundle's
    #[arg(long, value_name = "ID", env = MODEL_ID, hide_env_values = true, help_heading = "Bundle")]
    model_id: Option<String>,
    /// URL that serves the model, overriding the bundle's
    #[arg(long, value_name = "URL", env = BASE_URL, hide_env_values = true, help_heading = "Bundle")]
    base_url: Option<String>,
    /// Prompt that overrides the bundle's of that name; may be repeated
    #[arg(long, value_name = "NAME=TEXT", help_heading = "Bundle")]
    prompt: Vec<String>,
    /// Setting that overrides the bundle's of that name, read as JSON if it is JSON; may be
    /// repeated
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Bundle")]
    setting: Vec<String>,
}

const MODEL_ID: &str = "CALLBOARD_MODEL_ID";
const BASE_URL: &str = "CALLBOARD_BASE_URL";

/// What each try of the command is given of the bundle.
pub(super) struct Handed {
    /// None if no bundle was asked for.
    loaded: Option<Loaded>,
    /// Content of the bundle, overridden by the command line.
    content: Content,
}

impl Wanted {
    /// Saves the bundle that the text makes of the newest one, if a text is given.
    fn refine(
        &self,
        bundles: &Bundles,
        scope: &str,
        now: Timestamp,
        dry_run: bool,
    ) -> Result<(), CallError> {
        let of_file = || self.state_refine_file.as_deref().map(read_input);
        let Some(text) = self.state_refine_text.clone().or_else(of_file) else { return Ok(()) };
        let asked = Asked::Refine {
            scope: Some(scope.to_owned()),
            change: Content::default(),
            text: Some(text),
            prev_sha: None,
            dry_run,
        };
        bundles.answer(&asked, now).map(drop).map_err(CallError::Refused)
    }
}

impl Handed {
    /// Refines the bundle if that is asked for, and loads the newest sound bundle. Damaged ones are skipped and, unless it is a `dry_run`, moved
    /// aside.
    pub(super) fn load(board: &Path, wanted: &Wanted, dry_run: bool) -> Result<Self, CallError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let explicit = Content {
            model_id: given(&wanted.model_id),
            base_url: given(&wanted.base_url),
            prompts: pairs("--prompt", wanted.prompt.clone(), |text| Value::from(text)),
            settings: pairs("--setting", wanted.setting.clone(), setting),
            ..Content::default()
        };
        let loaded = match &wanted.state_scope {
            None => None,
            Some(scope) => {
                let dir = wanted.state_dir.clone().unwrap_or_else(|| board.join(bundle::DIRECTORY));
                let bundles = Bundles::at(&dir);
                wanted.refine(&bundles, scope, board_time(board), dry_run)?;
                let asked = Asked::Load {
                    scope: Some(scope.clone()),
                    content: Content::default(),
                    dry_run,
                };
                match bundles.answer(&asked, board_time(board)).map_err(CallError::Refused)? {
                    Told::Loaded(loaded) => Some(*loaded),
                    _ => None,
                }
            }
        };
        let stored =
            loaded.as_ref().and_then(|loaded| Some(loaded.bundle.as_ref()?.content.clone()));
        let stored = stored.unwrap_or_default();
        let content = Content {
            model_id: explicit.model_id.clone().or_else(|| stored.model_id.clone()),
            base_url: explicit.base_url.clone().or_else(|| stored.base_url.clone()),
            ..stored.refined(&explicit, None)
        };
        Ok(Self { loaded, content })
    }

    /// What to report about the bundle; none if none was asked for.
    pub(super) fn news(&self) -> Option<News<'_>> {
        let Loaded { restored, scope, path, sha256, quarantined, warning, .. } =
            self.loaded.as_ref()?;
        Some(News {
            scope,
            restored: *restored,
            path: path.as_deref(),
            sha256: sha256.as_deref(),
            damaged: quarantined,
            warning: warning.as_deref(),
        })
    }

    /// The `bundle` in the command's input; null if there is nothing to give.
    pub(super) fn input(&self) -> Value {
        if self.loaded.is_none() && self.content == Content::default() {
            return Value::Null;
        }
        let told: Map<String, Value> = match json!(self.news()) {
            Value::Object(news) => news,
            _ => [("restored".to_owned(), Value::from(false))].into_iter().collect(),
        };
        let content = match json!(self.content) {
            Value::Object(content) => content,
            _ => Map::new(),
        };
        told.into_iter()
            .filter(|(name, _)| !matches!(name.as_str(), "damaged" | "warning"))
            .chain(content)
            .collect()
    }

    /// Environment variables for the command; empty where there is no value.
    pub(super) fn variables(&self) -> [(&'static str, String); 4] {
        let of_bundle =
            |part: fn(&Loaded) -> Option<&String>| self.loaded.as_ref().and_then(part).cloned();
        [
            ("CALLBOARD_STATE_SCOPE", of_bundle(|loaded| Some(&loaded.scope))),
            ("CALLBOARD_BUNDLE_SHA256", of_bundle(|loaded| loaded.sha256.as_ref())),
            (MODEL_ID, self.content.model_id.clone()),
            (BASE_URL, self.content.base_url.clone()),
        ]
        .map(|(name, value)| (name, value.unwrap_or_default()))
    }
}

/// Report on the bundle that was asked for.
#[derive(Debug, serde::Serialize)]
pub(super) struct News<'a> {
    pub scope: &'a str,
    /// There is a sound bundle, and the command gets it.
    pub restored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<&'a str>,
    /// Newer bundles that are damaged.
    #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
    pub damaged: &'a [Problem],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<&'a str>,
}

impl News<'_> {
    pub(super) fn sentence(&self) -> String {
        let damaged =
            self.damaged.iter().map(|one| format!("; damaged: {}, {}", one.file, one.problem));
        let damaged: String =
            damaged.chain(self.warning.map(|warning| format!("; {warning}"))).collect();
        match self.path {
            Some(path) => format!("the command gets bundle {path}{damaged}"),
            None => format!(
                "scope {} has no sound bundle, so the command gets none; `callboard bundle save` \
                 keeps one{damaged}",
                self.scope
            ),
        }
    }
}
