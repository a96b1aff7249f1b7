//! `callboard bundle`: refined prompts and settings, kept for the next run. With `--state-dir`,
//! they are kept in a directory of their own and need no board.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::print::{Column, Page, Tone, text};
use super::{FAILED, Outcome, REFUSED, Session, read_input, usage_error};
use crate::bundle::{self, Bundles};
use crate::participant::CallError;
use crate::participant::board_time;
use crate::state::bundle::{Asked, Content, Told};

#[derive(Args)]
pub(super) struct Arguments {
    /// Without it, the bundles are listed
    #[command(subcommand)]
    command: Option<Command>,
    /// Keep the bundles in this directory instead of on a board; it must be private to you
    /// [default: the board's `bundles`]
    #[arg(long, global = true, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Scope of the bundles [default: derived from model, URL and tools]
    #[arg(long, global = true, value_name = "SCOPE")]
    pub state_scope: Option<String>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Save prompts and settings as a new bundle
    Save(Save),
    /// Print the newest sound bundle; exit code 1 if there is none
    Load(Load),
    /// Save an improved successor of the stored bundle, which stays
    Refine(Refine),
    /// List the bundles, newest first in each scope
    List(List),
    /// Check every bundle against its hash and against the bundle before it
    Verify,
}

/// The model, server and tools that the prompts were written for.
#[derive(Args)]
struct Identity {
    /// Id of the model
    #[arg(long, value_name = "ID")]
    model_id: Option<String>,
    /// URL that serves the model
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Hash of the model's tools
    #[arg(long, value_name = "HASH")]
    toolset_hash: Option<String>,
}

#[derive(Args)]
struct Parts {
    /// JSON object with prompts, settings and context; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Prompt, such as `system=Be brief`; may be repeated
    #[arg(long, value_name = "NAME=TEXT")]
    prompt: Vec<String>,
    /// Setting, such as `temperature=0.2`, read as JSON if it is JSON and else as text; may be
    /// repeated
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
}

#[derive(Args)]
struct Save {
    #[command(flatten)]
    identity: Identity,
    #[command(flatten)]
    parts: Parts,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct Load {
    #[command(flatten)]
    identity: Identity,
    /// Leave damaged bundles where they are instead of moving them aside
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct Refine {
    #[command(flatten)]
    identity: Identity,
    #[command(flatten)]
    parts: Parts,
    /// What the new bundle is to do better
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    state_refine_text: Option<String>,
    /// File with the text for --state-refine-text; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "state_refine_text")]
    state_refine_file: Option<String>,
    /// Refuse unless this is the SHA-256 of the newest bundle
    #[arg(long, value_name = "SHA256")]
    prev_sha: Option<String>,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args)]
struct List {
    /// List at most N bundles
    #[arg(long, value_name = "N", value_parser = super::page_size())]
    limit: Option<NonZeroU32>,
    /// Continue after this bundle, which the previous page named as its last
    #[arg(long, value_name = "PATH")]
    after: Option<String>,
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Arguments { command, state_dir, state_scope: scope } = arguments;
    if state_dir.is_some() && session.server.is_some() {
        usage_error("--state-dir is a directory of this machine; leave --server out");
    }
    let place = Place { session, state_dir };
    match command.unwrap_or(Command::List(List { limit: None, after: None })) {
        Command::Save(arguments) => save(&place, scope, arguments),
        Command::Load(arguments) => load(&place, scope, arguments),
        Command::Refine(arguments) => refine(&place, scope, arguments),
        Command::List(arguments) => list(&place, scope, &arguments),
        Command::Verify => verify(&place, scope),
    }
}

/// Where the bundles are kept: on the board, or in a directory of their own.
struct Place<'a> {
    session: &'a Session,
    state_dir: Option<PathBuf>,
}

impl Place<'_> {
    /// Answers through the board's operation, or directly from the files: for `state_dir`, and for
    /// a dry run without a server.
    fn ask(&self, asked: Asked, dry_run: bool) -> anyhow::Result<Value> {
        let is_local = self.state_dir.is_some() || (dry_run && self.session.server.is_none());
        if !is_local {
            let (operation, arguments) = call_of(asked);
            return self.session.call(operation, arguments);
        }
        let writes = matches!(asked, Asked::Save { .. } | Asked::Refine { .. }) && !dry_run;
        if let Some(dir) = self.state_dir.as_deref().filter(|_| writes) {
            use std::os::unix::fs::DirBuilderExt;
            if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
            }
        }
        let path =
            self.state_dir.clone().unwrap_or_else(|| self.session.dir().join(bundle::DIRECTORY));
        let told = Bundles::at(&path)
            .answer(&asked, board_time(self.session.dir()))
            .map_err(CallError::Refused)?;
        Ok(match told {
            Told::Saved(saved) => serde_json::to_value(saved)?,
            Told::Loaded(loaded) => serde_json::to_value(loaded)?,
            Told::Listed(listing) => serde_json::to_value(listing)?,
            Told::Verified(report) => serde_json::to_value(report)?,
        })
    }
}

fn call_of(asked: Asked) -> (&'static str, Value) {
    let named = |mut content: Value, more: Value| {
        let fields = content.as_object_mut().zip(more.as_object().cloned());
        fields.into_iter().for_each(|(content, more)| content.extend(more));
        content
    };
    match asked {
        Asked::Save { scope, content, dry_run } => {
            ("save_bundle", named(json!(content), json!({"scope": scope, "dry_run": dry_run})))
        }
        Asked::Refine { scope, change, text, prev_sha, dry_run } => {
            let more =
                json!({"scope": scope, "text": text, "prev_sha": prev_sha, "dry_run": dry_run});
            ("refine_bundle", named(json!(change), more))
        }
        Asked::Load {
            scope, content: Content { model_id, base_url, toolset_hash, .. }, ..
        } => (
            "load_bundle",
            json!({"scope": scope, "model_id": model_id, "base_url": base_url, "toolset_hash": toolset_hash}),
        ),
        Asked::List { scope, after, limit } => {
            let limit = Some(limit).filter(|limit| *limit < usize::MAX);
            ("list_bundles", json!({"scope": scope, "after": after, "limit": limit}))
        }
        Asked::Verify { scope } => ("verify_bundles", json!({"scope": scope})),
    }
}

fn save(place: &Place, scope: Option<String>, arguments: Save) -> Outcome {
    let content = content(arguments.identity, arguments.parts);
    let reply =
        place.ask(Asked::Save { scope, content, dry_run: arguments.dry_run }, arguments.dry_run)?;
    tell_saved(place, &reply)
}

fn refine(place: &Place, scope: Option<String>, arguments: Refine) -> Outcome {
    let Refine { identity, parts, state_refine_text, state_refine_file, prev_sha, dry_run } =
        arguments;
    let text = state_refine_text.or_else(|| state_refine_file.map(|file| read_input(&file)));
    let asked = Asked::Refine { scope, change: content(identity, parts), text, prev_sha, dry_run };
    tell_saved(place, &place.ask(asked, dry_run)?)
}

fn tell_saved(place: &Place, reply: &Value) -> Outcome {
    place.session.show(reply, |page| {
        tell_quarantined(page, reply);
        match (&reply["dry_run"], &reply["already"]) {
            (_, Value::Bool(true)) => {
                page.line(format_args!("{} says the same already", text(&reply["path"])))
            }
            (Value::Bool(true), _) => {
                let after = reply["prev_sha"]
                    .as_str()
                    .map_or_else(String::new, |prev| format!(", after {prev}"));
                let (bytes, scope) = (&reply["bytes"], text(&reply["scope"]));
                page.line(format_args!(
                    "would write {bytes} bytes in scope {scope}{after}; nothing was written"
                ));
            }
            _ => page.line(text(&reply["path"])),
        }
        if let Some(redacted) = reply["redacted"].as_u64() {
            page.line(format_args!("{redacted} secrets were taken out"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn load(place: &Place, scope: Option<String>, arguments: Load) -> Outcome {
    let Identity { model_id, base_url, toolset_hash } = arguments.identity;
    let content = Content { model_id, base_url, toolset_hash, ..Content::default() };
    let reply =
        place.ask(Asked::Load { scope, content, dry_run: arguments.dry_run }, arguments.dry_run)?;
    let restored = reply["restored"] == true;
    place.session.show(&reply, |page| {
        tell_quarantined(page, &reply);
        if !restored {
            return page.line(format_args!("nothing is kept in scope {}", text(&reply["scope"])));
        }
        page.field("path", text(&reply["path"]));
        page.field("sha256", text(&reply["sha256"]));
        for name in ["scope_key", "created_at", "model_id", "base_url", "toolset_hash", "prev_sha"]
        {
            page.field(name, text(&reply["bundle"][name]));
        }
        for part in ["prompts", "settings", "context"] {
            for (name, value) in reply["bundle"][part].as_object().into_iter().flatten() {
                page.field(&super::print::harmless(&format!("{part}.{name}")), text(value));
            }
        }
    })?;
    Ok(ExitCode::from(if restored { 0 } else { REFUSED }))
}

fn tell_quarantined(page: &mut Page, reply: &Value) {
    for one in reply["quarantined"].as_array().into_iter().flatten() {
        page.marked(
            "damaged",
            Tone::Bad,
            format_args!("{}: {}", text(&one["file"]), text(&one["problem"])),
        );
    }
}

fn list(place: &Place, scope: Option<String>, arguments: &List) -> Outcome {
    let limit = arguments.limit.map_or(usize::MAX, |limit| limit.get() as usize);
    let reply = place.ask(Asked::List { scope, after: arguments.after.clone(), limit }, false)?;
    place.session.show(&reply, |page| {
        let bundles = reply["bundles"].as_array().map_or(&[][..], Vec::as_slice);
        if bundles.is_empty() {
            return page.line(format_args!(
                "no bundles; {} keeps one",
                place.session.wording.command("bundle save")
            ));
        }
        let rows: Vec<_> = bundles.iter().map(|one| row(page, one)).collect();
        page.table(["bundle", "scope", "model", "saved", "bytes"], rows.into_iter());
        if let Some(next) = reply["next"].as_str() {
            page.line(format_args!("there are more: --after {next}"));
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(page: &Page, one: &Value) -> [Column; 5] {
    let saved = serde_json::from_value(one["created_at"].clone())
        .map(|at| page.when(at))
        .unwrap_or_default();
    let scope = match &one["problem"] {
        Value::Null => Column::from(text(&one["scope"])),
        _ => Column::toned("damaged", Tone::Bad),
    };
    [
        text(&one["path"]).into(),
        scope,
        text(&one["model_id"]).into(),
        saved.into(),
        text(&one["bytes"]).into(),
    ]
}

fn verify(place: &Place, scope: Option<String>) -> Outcome {
    let report = place.ask(Asked::Verify { scope }, false)?;
    let sound = report["sound"] == true;
    place.session.show(&report, |page| {
        for problem in report["problems"].as_array().into_iter().flatten() {
            page.marked(
                "fail",
                Tone::Bad,
                format_args!("{}: {}", text(&problem["file"]), text(&problem["problem"])),
            );
        }
        for name in report["quarantined"].as_array().into_iter().flatten() {
            page.line(format_args!("moved aside earlier: {}", text(name)));
        }
        let (bundles, scopes) = (&report["bundles"], &report["scopes"]);
        if sound {
            page.line(format_args!("{bundles} bundles in {scopes} scopes, all sound"))
        } else {
            page.line(format_args!(
                "{} moves what is damaged aside and takes the newest sound one",
                place.session.wording.command("bundle load")
            ))
        }
    })?;
    Ok(ExitCode::from(if sound { 0 } else { FAILED }))
}

/// The content of the file, overridden by the options.
fn content(identity: Identity, parts: Parts) -> Content {
    let mut content: Content = match &parts.file {
        Some(file) => written(&read_input(file)).unwrap_or_else(|error| {
            usage_error(format!(
                "{file} is no JSON object with prompts, settings and context: {error}"
            ))
        }),
        None => Content::default(),
    };
    content.model_id = identity.model_id.or(content.model_id);
    content.base_url = identity.base_url.or(content.base_url);
    content.toolset_hash = identity.toolset_hash.or(content.toolset_hash);
    content.prompts.extend(pairs("--prompt", parts.prompt, |text| Value::from(text)));
    content.settings.extend(pairs("--setting", parts.setting, setting));
    content
}

/// A [`Content`] as a person writes it: unknown fields are refused, since a misspelt one would be
/// lost.
#[derive(Deserialize)]
#[serde(remote = "Content", deny_unknown_fields)]
struct Written {
    model_id: Option<String>,
    base_url: Option<String>,
    toolset_hash: Option<String>,
    #[serde(default)]
    prompts: Map<String, Value>,
    #[serde(default)]
    settings: Map<String, Value>,
    #[serde(default)]
    context: Map<String, Value>,
}

fn written(text: &str) -> serde_json::Result<Content> {
    let mut input = serde_json::Deserializer::from_str(text);
    let content = Written::deserialize(&mut input)?;
    input.end().map(|()| content)
}

/// The text parsed as JSON, or a string if it is not JSON.
pub(super) fn setting(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

pub(super) fn pairs(
    option: &str,
    given: Vec<String>,
    value: impl Fn(&str) -> Value,
) -> Map<String, Value> {
    let pair = |pair: String| match pair.split_once('=') {
        Some((name, text)) if !name.is_empty() => (name.to_owned(), value(text)),
        _ => usage_error(format!("{option} takes NAME=VALUE, not `{pair}`")),
    };
    given.into_iter().map(pair).collect()
}
