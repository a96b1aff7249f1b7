use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::{Outcome, Session, print, read_input, usage_error};
use crate::bom;
use crate::ops;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Operation to call; without it, all are listed
    name: Option<String>,
    /// Arguments of the operation as a JSON object; `-` reads standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Print the JSON Schemas of its arguments and reply instead of calling it
    #[arg(long)]
    schema: bool,
}

impl Arguments {
    /// Whether this only asks what can be called, which needs no board.
    pub(super) fn is_for_help(&self) -> bool {
        self.schema || self.name.is_none()
    }
}

pub(super) fn help(arguments: &Arguments, json: bool) -> Outcome {
    match &arguments.name {
        Some(name) => schema(name),
        None => list(json),
    }
}

pub(super) fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Some(name) = &arguments.name else { return list(session.json) };
    let reply = session.call(name, Value::Object(object(&arguments.arguments)?))?;
    session.say_made();
    print::json(&reply)?;
    let refused = reply.get("success") == Some(&Value::Bool(false));
    Ok(ExitCode::from(if refused { super::REFUSED } else { 0 }))
}

fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    let text = if text == "-" { read_input(text) } else { text.to_owned() };
    match serde_json::from_str(bom::skip(&text)) {
        Ok(object) => Ok(object),
        Err(error) => usage_error(format!("the arguments are not a JSON object: {error}")),
    }
}

fn list(json: bool) -> Outcome {
    if json {
        let names = ops::all().iter().map(|entry| {
            serde_json::json!({"name": entry.name, "description": entry.description, "arguments": entry.input_schema(true)})
        });
        print::json(&Value::Array(names.collect()))?;
    } else {
        let mut out = io::stdout().lock();
        for entry in ops::all() {
            writeln!(out, "{:20} {}", entry.name, entry.description)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn schema(name: &str) -> Outcome {
    let Some(entry) = ops::find(name) else {
        usage_error(format!("there is no operation `{name}`; `callboard call` lists them"))
    };
    print::json(&entry.schema())?;
    Ok(ExitCode::SUCCESS)
}
