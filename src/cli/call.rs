use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::{Outcome, Session, read_input, usage_error};
use crate::ops;

#[derive(clap::Args)]
pub struct Arguments {
    /// The operation; without it, lists all
    name: Option<String>,
    /// Its arguments as a JSON object; `-` reads them from standard input
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
    /// Print the JSON Schema of its arguments and reply instead
    #[arg(long)]
    schema: bool,
}

pub fn run(session: &Session, arguments: Arguments) -> Outcome {
    let Some(name) = &arguments.name else { return list(session) };
    if arguments.schema {
        return schema(session, name);
    }
    let reply = session.call(name, Value::Object(object(&arguments.arguments)?))?;
    session.print_json(&reply)?;
    let refused = reply.get("success") == Some(&Value::Bool(false));
    Ok(ExitCode::from(if refused { super::REFUSED } else { 0 }))
}

fn object(text: &str) -> anyhow::Result<Map<String, Value>> {
    let text = if text == "-" { read_input(text) } else { text.to_owned() };
    match serde_json::from_str(&text) {
        Ok(object) => Ok(object),
        Err(error) => usage_error(format!("the arguments are not a JSON object: {error}")),
    }
}

fn list(session: &Session) -> Outcome {
    if session.json {
        let names = ops::all().iter().map(|entry| {
            serde_json::json!({"name": entry.name, "description": entry.description, "arguments": entry.input_schema(true)})
        });
        session.print_json(&Value::Array(names.collect()))?;
    } else {
        let mut out = io::stdout().lock();
        for entry in ops::all() {
            writeln!(out, "{:20} {}", entry.name, entry.description)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn schema(session: &Session, name: &str) -> Outcome {
    let Some(entry) = ops::find(name) else { usage_error(format!("there is no operation `{name}`")) };
    session.print_json(&entry.schema())?;
    Ok(ExitCode::SUCCESS)
}
