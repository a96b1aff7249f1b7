//! Prompts that a person picks to make an agent a worker of the board, or its leader.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};

use crate::state::State;

struct Template {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    argument: Argument,
    text: &'static str,
}

/// An argument, which the text contains as `{name}`.
struct Argument {
    name: &'static str,
    description: &'static str,
    /// Value of an argument that is not given; `None` if it must be given.
    default: Option<&'static str>,
}

static TEMPLATES: [Template; 2] = [
    Template {
        name: "work",
        title: "Work on the board",
        description: "Take tasks from the board and do them until none is left",
        argument: Argument {
            name: "agent_id",
            description: "The name to work under; without it the board gives one",
            default: Some("none given, so register without one"),
        },
        text: include_str!("prompts/work.md"),
    },
    Template {
        name: "lead",
        title: "Lead a goal",
        description: "Plan a goal into tasks, put them on the board and see them through",
        argument: Argument { name: "goal", description: "What is to be reached", default: None },
        text: include_str!("prompts/lead.md"),
    },
];

pub(super) fn list() -> Vec<Prompt> {
    TEMPLATES.iter().map(Template::prompt).collect()
}

pub(super) fn get(name: &str, arguments: &JsonObject) -> Result<GetPromptResult, ErrorData> {
    let template = find(name)?;
    let text = template.fill(arguments)?;
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(template.description))
}

/// Values for an argument; none if it has no known values.
pub(super) fn values(
    name: &str,
    argument: &str,
    state: &State,
) -> Result<Option<Vec<String>>, ErrorData> {
    let template = find(name)?;
    let is_agent = template.argument.name == argument && argument == "agent_id";
    Ok(is_agent.then(|| state.agents().map(|agent| agent.id.to_string()).collect()))
}

fn find(name: &str) -> Result<&'static Template, ErrorData> {
    TEMPLATES.iter().find(|template| template.name == name).ok_or_else(|| {
        let names = TEMPLATES.each_ref().map(|template| template.name).join(", ");
        ErrorData::invalid_params(format!("there is no prompt `{name}`, only {names}"), None)
    })
}

impl Template {
    fn prompt(&self) -> Prompt {
        let argument = PromptArgument::new(self.argument.name)
            .with_description(self.argument.description)
            .with_required(self.argument.default.is_none());
        Prompt::new(self.name, Some(self.description), Some(vec![argument])).with_title(self.title)
    }

    fn fill(&self, arguments: &JsonObject) -> Result<String, ErrorData> {
        let Argument { name, default, .. } = self.argument;
        let value = match arguments.get(name) {
            Some(value) => value.as_str().filter(|value| !value.trim().is_empty()).or(default),
            None => default,
        };
        let Some(value) = value else {
            let text = format!("the prompt `{}` needs the argument `{name}`, a text", self.name);
            return Err(ErrorData::invalid_params(text, None));
        };
        Ok(self.text.replace(&format!("{{{name}}}"), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_holds_its_argument() {
        for template in &TEMPLATES {
            assert!(
                template.text.contains(&format!("{{{}}}", template.argument.name)),
                "{}",
                template.name
            );
        }
    }

    /// Some clients show or send no more of a text than this.
    const SEEN_BY_ALL: usize = 512;

    #[test]
    fn the_loop_stands_at_the_beginning() {
        let filled = |name: &str, argument: &str, value: &str| {
            let arguments = serde_json::json!({argument: value});
            find(name)
                .expect("a template")
                .fill(arguments.as_object().expect("an object"))
                .expect("filled")
        };
        let work = filled("work", "agent_id", "");
        let beginning = &work[..SEEN_BY_ALL];
        let words = [
            "register_agent",
            "agent_id of its reply",
            "claim_task",
            "bring in",
            "heartbeat",
            "complete_task",
        ];
        for word in words.into_iter().chain([
            "fail_task",
            "release_task",
            "Claim again",
            "`finished`",
            "`paused`",
        ]) {
            assert!(beginning.contains(word), "{word}: {beginning}");
        }
        let lead = filled("lead", "goal", "Port the parser");
        let beginning = &lead[..SEEN_BY_ALL];
        for word in ["get_status", "init_coordination", "create_tasks_batch", "wait_for_events"] {
            assert!(beginning.contains(word), "{word}: {beginning}");
        }
    }

    #[test]
    fn argument_that_is_required_and_missing_is_named_in_the_refusal() {
        let refusal = get("lead", &JsonObject::new()).unwrap_err();
        assert!(refusal.message.contains("`goal`"), "{}", refusal.message);
    }
}
