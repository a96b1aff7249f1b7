use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::send_message::{Draft, sent};
use super::{AgentArgument, Annotations, Call, Decision, Operation, Toolset, WRITE, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::guard::HUMAN;
use crate::state::limit;
use crate::state::message::{Message, MessageKind};
use crate::state::refusal::Refusal;

pub struct AskHuman;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    pub question: String,
    #[serde(default)]
    pub options: Vec<String>,
    pub task_id: Option<String>,
    /// 0 to 50
    #[serde(default)]
    pub wait_seconds: u64,
}

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// What people call it
    pub question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Name of who answered
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// What to do without an answer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Operation for AskHuman {
    const NAME: &'static str = "ask_human";
    const DESCRIPTION: &'static str = "Ask the person in charge. Without an answer yet, go on with \
                                       other work and ask the same again later.";
    const ANNOTATIONS: Annotations = WRITE;
    const TOOLSET: Toolset = Toolset::Worker;
    const AGENT: AgentArgument = AgentArgument::Required;
    const GOES_ON: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn wait_seconds(params: &Params) -> u64 {
        params.wait_seconds
    }

    /// A question that was not asked yet has to be asked first.
    fn waits(params: &Params, state: &State, call: &Call) -> bool {
        asked(params, state, call)
            .is_ok_and(|asked| asked.is_some_and(|asked| state.answer_to(&asked.id).is_none()))
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        limit::OPTIONS.check(params.options.len())?;
        for option in &params.options {
            input::checked_text("options", &limit::OPTION, option)?;
        }
        if asked(params, state, call)?.is_some() {
            return Ok(Vec::new());
        }
        // An agent asks about what it is doing, if it is doing one thing.
        let doing = || match state.agent(call.agent().ok()?)?.current_tasks.iter().as_slice() {
            [task] => Some(task.to_string()),
            _ => None,
        };
        let draft = Draft {
            to: Some(HUMAN.to_owned()),
            text: &params.question,
            what: "question",
            kind: Some(MessageKind::Request),
            reply_to: None,
            task_id: params.task_id.clone().or_else(doing),
            options: params.options.clone(),
        };
        sent(draft, state, call)
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let asked = asked(params, state, call)?;
        let asked = asked.ok_or(Refusal::Missing { what: "what the call created" })?;
        let given = state.answer_to(&asked.id);
        let answer = given.map(|answer| answer.text.clone());
        let answered_by = given.and_then(|answer| answer.person.clone());
        let next = answer.is_none().then(|| {
            "no answer yet: go on with what does not need it, and ask the same again later"
                .to_owned()
        });
        Ok(Reply { success: true, question: asked.name(), answer, answered_by, next })
    }

    fn delivered(params: &Params, state: &State, call: &Call) -> Vec<Event> {
        let answer = || {
            let (asked, agent) = (asked(params, state, call).ok()??, call.agent().ok()?);
            let answer = state.answer_to(&asked.id)?;
            answer.unread_by.contains(agent).then(|| Event::MessagesRead {
                agent: agent.clone(),
                messages: vec![answer.id.clone()],
            })
        };
        answer().into_iter().collect()
    }
}

/// The newest question of the agent in these words, if it is kept.
fn asked<'s>(
    params: &Params,
    state: &'s State,
    call: &Call,
) -> Result<Option<&'s Message>, Refusal> {
    let text = input::checked_text("question", &limit::MESSAGE, &params.question)?;
    Ok(state.asked_by(call.agent()?, &text))
}
