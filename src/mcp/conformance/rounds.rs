//! Fixtures that ask before they answer, over several requests (2026-07-28): the questions, and the
//! state that the client carries from one request to the next.

use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequests, InputRequiredResult, InputResponses};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Answer, Request, typed};
use crate::state::digest::hex;

#[derive(Clone, Copy)]
pub(super) struct Rounds {
    /// Secret of this process: a state is worthless in another one.
    secret: [u8; 32],
}

pub(super) enum Next {
    Ask(InputRequiredResult),
    /// The final text of the fixture.
    Done(String),
}

struct Plan {
    name: &'static str,
    keeps_state: bool,
    rounds: &'static [&'static [(&'static str, Question)]],
}

#[derive(Clone, Copy)]
enum Question {
    /// Text from the user.
    Text(&'static str),
    Consent,
    Sample,
    Roots,
}

static PLANS: [Plan; 10] = [
    Plan {
        name: "test_streaming_elicitation",
        keeps_state: false,
        rounds: &[&[("name", Question::Text("name"))]],
    },
    Plan {
        name: "test_input_required_result_elicitation",
        keeps_state: false,
        rounds: &[&[("user_name", Question::Text("name"))]],
    },
    Plan {
        name: "test_input_required_result_sampling",
        keeps_state: false,
        rounds: &[&[("capital_question", Question::Sample)]],
    },
    Plan {
        name: "test_input_required_result_list_roots",
        keeps_state: false,
        rounds: &[&[("client_roots", Question::Roots)]],
    },
    Plan {
        name: "test_input_required_result_request_state",
        keeps_state: true,
        rounds: &[&[("confirm", Question::Consent)]],
    },
    Plan {
        name: "test_input_required_result_multiple_inputs",
        keeps_state: true,
        rounds: &[&[
            ("user_name", Question::Text("name")),
            ("greeting", Question::Sample),
            ("client_roots", Question::Roots),
        ]],
    },
    Plan {
        name: "test_input_required_result_multi_round",
        keeps_state: true,
        rounds: &[&[("step1", Question::Text("name"))], &[("step2", Question::Text("color"))]],
    },
    Plan {
        name: "test_input_required_result_tampered_state",
        keeps_state: true,
        rounds: &[&[("confirm", Question::Consent)]],
    },
    Plan {
        name: "test_input_required_result_capabilities",
        keeps_state: false,
        rounds: &[&[("user_name", Question::Text("name")), ("greeting", Question::Sample)]],
    },
    Plan {
        name: "test_input_required_result_prompt",
        keeps_state: false,
        rounds: &[&[("user_context", Question::Text("context"))]],
    },
];

impl Rounds {
    pub(super) fn new() -> Self {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).expect("the system gives random bytes");
        Self { secret }
    }

    /// The fixture's reaction to these answers; `None` if no fixture has this name.
    pub(super) fn next(
        &self,
        name: &str,
        answers: Option<&InputResponses>,
        state: Option<&str>,
        request: &Request,
    ) -> Answer<Option<Next>> {
        let Some(plan) = PLANS.iter().find(|plan| plan.name == name) else { return Ok(None) };
        let client = request.client_capabilities().unwrap_or_default();
        let before = state.map_or(Ok(0), |state| self.opened(plan, state))?;
        let questions = |round: usize| {
            plan.rounds[round].iter().filter(|(_, question)| question.suits(&client))
        };
        let is_answered = answers.is_some_and(|answers| {
            questions(before).all(|(key, question)| {
                answers.get(*key).is_some_and(|answer| question.takes(answer))
            })
        });
        let round = before + usize::from(is_answered);
        if round == plan.rounds.len() {
            return Ok(Some(Next::Done(format!("state-ok, {}", json!(answers)))));
        }
        let requests =
            questions(round).map(|(key, question)| ((*key).to_owned(), question.request()));
        let requests = typed::<InputRequests>(Value::Object(Map::from_iter(requests)))?;
        if requests.is_empty() {
            let needed = plan.rounds[round]
                .iter()
                .map(|(_, question)| (question.capability().to_owned(), json!({})));
            let needed = typed::<ClientCapabilities>(Value::Object(needed.collect()))?;
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        let state = plan.keeps_state.then(|| self.sealed(plan, round));
        Ok(Some(Next::Ask(InputRequiredResult::new(Some(requests), state))))
    }

    fn sealed(&self, plan: &Plan, round: usize) -> String {
        let mut seal = Sha256::new();
        seal.update(self.secret);
        seal.update(format!("{} {round}", plan.name));
        seal.update(self.secret);
        format!("{round}-{}", hex(&seal.finalize()))
    }

    fn opened(&self, plan: &Plan, state: &str) -> Answer<usize> {
        let mut rounds = 0..plan.rounds.len();
        let round = rounds.find(|round| plan.keeps_state && self.sealed(plan, *round) == state);
        round.ok_or_else(|| {
            ErrorData::invalid_params("the requestState is not one that this server gave", None)
        })
    }
}

impl Question {
    fn capability(self) -> &'static str {
        match self {
            Self::Text(_) | Self::Consent => "elicitation",
            Self::Sample => "sampling",
            Self::Roots => "roots",
        }
    }

    fn suits(self, client: &ClientCapabilities) -> bool {
        serde_json::to_value(client).is_ok_and(|client| client[self.capability()].is_object())
    }

    fn request(self) -> Value {
        let form = |message: &str, field: &str, kind: &str| {
            let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
            json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
        };
        match self {
            Self::Text(field) => form(&format!("What is your {field}?"), field, "string"),
            Self::Consent => form("Please confirm", "ok", "boolean"),
            Self::Sample => {
                let text = json!({"type": "text", "text": "What is the capital of France?"});
                let params =
                    json!({"messages": [{"role": "user", "content": text}], "maxTokens": 100});
                json!({"method": "sampling/createMessage", "params": params})
            }
            Self::Roots => json!({"method": "roots/list", "params": {}}),
        }
    }

    /// Whether this is an answer to the question. A refusal counts as one.
    fn takes(self, answer: &Value) -> bool {
        let consents = |is_given: bool| match answer["action"].as_str() {
            Some("accept") => is_given,
            action => matches!(action, Some("decline" | "cancel")),
        };
        match self {
            Self::Text(field) => consents(answer["content"][field].is_string()),
            Self::Consent => consents(answer["content"]["ok"].is_boolean()),
            Self::Sample => !answer["content"].is_null(),
            Self::Roots => answer["roots"].is_array(),
        }
    }
}
