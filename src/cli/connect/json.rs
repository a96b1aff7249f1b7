use anyhow::{Context, ensure};
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

use super::client::TOKEN;
use super::entry::{Edited, Entry, SERVER, Secret, Setting, Table};
use crate::bom;

/// What a client's own parser accepts. A file that the client cannot read is refused here, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Plain,
    Comments,
    TrailingCommas,
}

/// Puts the entry at `servers.callboard`. Comments, order and layout of the rest stay.
pub(super) fn edit(
    text: &str,
    servers: &str,
    entry: &Entry,
    dialect: Dialect,
) -> anyhow::Result<Edited> {
    let (text, (new, changes)) = change(text, dialect, |root| {
        let servers_object = root
            .object_value_or_create(servers)
            .with_context(|| format!("`{servers}` is not an object"))?;
        let new = servers_object.get(SERVER).is_none();
        let mut server = servers_object
            .object_value_or_create(SERVER)
            .with_context(|| format!("`{servers}.{SERVER}` is not an object"))?;
        let mut changes = entry.merge_into(&mut server);
        changes.extend(match &entry.secret {
            Some(secret) => ask_for(root, secret)?,
            None => ask_no_more(root, &TOKEN),
        });
        Ok((new, changes))
    })?;
    let server = &read(&text, dialect)?[servers][SERVER];
    ensure!(
        entry.required().all(|(key, setting)| is_set(&server[key], setting)),
        "a key on the way to `{servers}.{SERVER}` is there twice, and the client reads the other \
         one"
    );
    Ok(Edited { text, new, changes })
}

/// The text without the entry at `servers.callboard`; none if there is none.
pub(super) fn remove(
    text: &str,
    servers: &str,
    dialect: Dialect,
) -> anyhow::Result<Option<String>> {
    let (text, removed) = change(text, dialect, |root| {
        let Some(servers_object) = root.object_value(servers) else { return Ok(false) };
        let Some(server) = servers_object.get(SERVER) else { return Ok(false) };
        server.remove();
        remove_if_empty(root, servers);
        ask_no_more(root, &TOKEN);
        Ok(true)
    })?;
    Ok(removed.then_some(text))
}

/// Removes the property if its object or list holds nothing, not even a comment.
pub(super) fn remove_if_empty(object: &CstObject, key: &str) {
    let Some(property) = object.get(key) else { return };
    let value = property.value().map(|value| value.to_string()).unwrap_or_default();
    let value: String = value.chars().filter(|c| !c.is_whitespace()).collect();
    if matches!(value.as_str(), "{}" | "[]") {
        property.remove();
    }
}

/// The text after `edit` has changed its top-level object.
pub(super) fn change<T>(
    text: &str,
    dialect: Dialect,
    edit: impl FnOnce(&CstObject) -> anyhow::Result<T>,
) -> anyhow::Result<(String, T)> {
    let (mark, text) = split_mark(text);
    let fresh = text.trim().is_empty();
    let root = parse(if fresh { "" } else { text }, dialect)?;
    let edited = edit(&root.object_value_or_create().context("the top level is not an object")?)?;
    let mut text = root.to_string();
    if fresh {
        text = format!("{}\n", text.trim_end());
    }
    Ok((format!("{mark}{text}"), edited))
}

/// Parses the text as clients do: the last of equal keys counts.
pub(super) fn read(text: &str, dialect: Dialect) -> anyhow::Result<Value> {
    Ok(parse(split_mark(text).1, dialect)?.to_serde_value().unwrap_or_default())
}

/// The words of a list in the entry; empty if there are none.
pub(super) fn words(text: &str, servers: &str, key: &str, dialect: Dialect) -> Vec<String> {
    let value = read(text, dialect).unwrap_or_default();
    let words = value[servers][SERVER][key].as_array().into_iter().flatten();
    words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

pub(super) fn split_mark(text: &str) -> (&str, &str) {
    text.split_at(text.len() - bom::skip(text).len())
}

/// Adds the secret to `inputs`, beside the servers, as VS Code does.
fn ask_for(top: &CstObject, secret: &Secret) -> anyhow::Result<Option<String>> {
    let inputs = top.array_value_or_create("inputs").context("`inputs` is not a list")?;
    if inputs.elements().iter().any(|input| asks_for(input, secret)) {
        return Ok(None);
    }
    let field = |name: &str, text: &str| (name.to_owned(), CstInputValue::from(text));
    inputs.append(CstInputValue::Object(vec![
        field("type", "promptString"),
        field("id", secret.id),
        field("description", secret.description),
        ("password".to_owned(), CstInputValue::Bool(true)),
    ]));
    Ok(Some(format!("inputs: `{}` added", secret.id)))
}

/// Removes the secret from `inputs` if no server uses it any more.
fn ask_no_more(top: &CstObject, secret: &Secret) -> Option<String> {
    let inputs = top.array_value("inputs")?;
    let asking = inputs.elements().into_iter().find(|input| asks_for(input, secret))?;
    if top.to_string().contains(&format!("${{input:{}}}", secret.id)) {
        return None;
    }
    asking.remove();
    if inputs.elements().is_empty() {
        top.get("inputs")?.remove();
    }
    Some(format!("inputs: `{}` removed", secret.id))
}

fn asks_for(input: &CstNode, secret: &Secret) -> bool {
    input.to_serde_value().is_some_and(|input| input["id"] == secret.id)
}

fn parse(text: &str, dialect: Dialect) -> anyhow::Result<CstRootNode> {
    let options = ParseOptions {
        allow_comments: dialect >= Dialect::Comments,
        allow_trailing_commas: dialect >= Dialect::TrailingCommas,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let reason = "it is not valid for this client";
    // The syntax tree keeps comments whatever the options say.
    parse_to_ast(text, &CollectOptions::default(), &options).context(reason)?;
    CstRootNode::parse(text, &options).context(reason)
}

impl Table for CstObject {
    fn shown(&self, key: &str) -> Option<String> {
        self.get(key)?.to_serde_value().map(|value| value.to_string())
    }

    fn holds(&self, key: &str, setting: &Setting) -> bool {
        let value = self.get(key).and_then(|property| property.to_serde_value());
        value.is_some_and(|value| is_set(&value, setting))
    }

    fn set(&mut self, key: &str, setting: &Setting) {
        if let Setting::Field(name, text) = setting {
            return self.object_value_or_set(key).set(name, &Setting::Text(text.clone()));
        }
        match self.get(key) {
            Some(property) => property.set_value(input_of(setting)),
            None => {
                self.append(key, input_of(setting));
            }
        }
    }

    fn remove(&mut self, key: &str) {
        if let Some(property) = self.get(key) {
            property.remove();
        }
    }
}

fn is_set(value: &Value, setting: &Setting) -> bool {
    match setting {
        Setting::Text(text) => value == text,
        Setting::List(list) => *value == Value::from(list.as_slice()),
        Setting::Number(number) => value == number,
        Setting::Flag(flag) => value == flag,
        Setting::Field(name, text) => value[name] == *text,
    }
}

fn input_of(setting: &Setting) -> CstInputValue {
    match setting {
        Setting::Text(text) => CstInputValue::from(text.as_str()),
        Setting::List(list) => CstInputValue::from(list.clone()),
        Setting::Number(number) => CstInputValue::from(*number),
        Setting::Flag(flag) => CstInputValue::Bool(*flag),
        Setting::Field(name, text) => {
            CstInputValue::Object(vec![((*name).to_owned(), text.as_str().into())])
        }
    }
}
