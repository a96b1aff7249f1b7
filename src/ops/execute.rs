//! One call against the state: identity, renewal of leases, decision, events, reply. Pure; the
//! writer makes it durable.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::claim_task::shortened;
use super::identity::{free_slot, identify, is_ours};
use super::prepared::WithIds;
use super::{
    AgentArgument, Call, DefaultAgent, Listener, Operation, Prepared, RegisterAgent, page,
};
use crate::harmless::tags;
use crate::state::agent::Participant;
use crate::state::digest::sha256;
use crate::state::event::{Event, Idempotency, Recorded};
use crate::state::guard::HUMAN;
use crate::state::id::{AgentId, Chance, ParticipantId};
use crate::state::level::Older;
use crate::state::limit;
use crate::state::refusal::{Holding, Refusal};
use crate::state::{ApplyError, Created, Envelope, State};

/// Bytes of the title of a task that a refusal names.
const TITLE_SHOWN: usize = 60;

pub struct Executed {
    pub events: Vec<Recorded>,
    pub answer: Result<Value, Refusal>,
    /// The agent that acted.
    pub actor: Option<AgentId>,
}

/// Decides, applies the events and builds the reply. On an error the state is left as it was.
pub fn execute(
    state: &mut State,
    prepared: &dyn Prepared,
    call: Call<'_>,
) -> Result<Executed, ApplyError> {
    let start = state.savepoint();
    let level = state.board().schema_version;
    let mut run = Run { state, call, events: Vec::new(), key: None };
    match run.operation(prepared) {
        Ok(answer) => match run.unread_since(level) {
            older if older.is_empty() => {
                Ok(Executed { events: run.events, answer, actor: run.call.actor })
            }
            older => {
                run.state.rollback(start);
                let answer =
                    Err(Refusal::OlderProcesses { operation: prepared.name().to_owned(), older });
                Ok(Executed { events: Vec::new(), answer, actor: run.call.actor })
            }
        },
        Err(error) => {
            run.state.rollback(start);
            Err(error)
        }
    }
}

/// Whether the caller would rather wait than have the reply that `state` gives now.
pub fn waits(state: &State, prepared: &dyn Prepared, mut call: Call<'_>) -> bool {
    if prepared.wait_seconds() == 0 || limit::WAIT.check(prepared.wait_seconds() as usize).is_err()
    {
        return false;
    }
    let Ok(actor) = identify(state, prepared, &call) else { return false };
    call.actor = actor;
    let with_ids = prepared.with_ids(state, &call);
    with_ids.is_ok_and(|found| found.map_or(prepared, WithIds::call).waits(state, &call))
}

/// Checks whether the caller may have the archive work of this call done. Returns the call by which
/// to do it, if that is another: one in which tasks go by their ids.
pub fn admit(
    state: &State,
    prepared: &dyn Prepared,
    mut call: Call<'_>,
) -> Result<Option<Arc<dyn Prepared>>, Refusal> {
    call.actor = identify(state, prepared, &call)?;
    let with_ids = prepared.with_ids(state, &call)?;
    with_ids.map_or(prepared, WithIds::call).admit(state, &call)?;
    Ok(with_ids.map(|found| Arc::clone(&found.prepared)))
}

/// Adds a warning to a reply, behind those that it has.
pub fn add_warning(reply: &mut Map<String, Value>, warning: &str) {
    let all = match reply.get("warning").and_then(Value::as_str) {
        Some(before) => format!("{before}; {warning}"),
        None => warning.to_owned(),
    };
    reply.insert("warning".to_owned(), Value::from(all));
}

struct Run<'s, 'c> {
    state: &'s mut State,
    call: Call<'c>,
    events: Vec<Recorded>,
    key: Option<Idempotency>,
}

type Answer = Result<Value, Refusal>;

impl Run<'_, '_> {
    fn operation(&mut self, prepared: &dyn Prepared) -> Result<Answer, ApplyError> {
        match identify(self.state, prepared, &self.call) {
            Ok(actor) => self.act_as(actor),
            Err(refusal) => return Ok(Err(refusal)),
        }
        match self.known_key(prepared) {
            Ok(key) => self.key = key,
            Err(refusal) => return Ok(Err(refusal)),
        }
        let with_ids = match prepared.with_ids(self.state, &self.call) {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let prepared = with_ids.map_or(prepared, WithIds::call);
        if let Err(refusal) = self.renew(prepared)? {
            return Ok(Err(refusal));
        }
        if let Err(refusal) = self.recall(prepared)? {
            return Ok(Err(refusal));
        }
        let answer = if self.call.repeated {
            prepared.reply(self.state, &self.call)
        } else {
            self.decide(prepared)?
        };
        let answer = answer.map(|reply| warned(reply, with_ids));
        Ok(answer.map(|value| self.readable(value, prepared.rest())).map(|mut reply| {
            if prepared.redacted() > 0
                && let Some(fields) = reply.as_object_mut()
            {
                fields.insert("redacted".to_owned(), Value::from(prepared.redacted()));
            }
            reply
        }))
    }

    /// The living processes that could not read what the call has recorded, if it has raised the
    /// board's level.
    fn unread_since(&self, level: u32) -> Vec<Older> {
        let raised = self.state.board().schema_version;
        if raised == level {
            Vec::new()
        } else {
            self.state.older(&(self.call.vitals.living)(), raised)
        }
    }

    /// Sets the acting agent, and what is known of it before the call.
    fn act_as(&mut self, actor: Option<AgentId>) {
        let known = actor.as_ref().and_then(|actor| self.state.agent(actor));
        self.call.heard = known.map(|agent| agent.last_heartbeat);
        self.call.is_known_here = known.is_some_and(|agent| is_ours(agent, &self.call));
        self.call.actor = actor;
    }

    /// Brings back the stubs of the tasks that the call names, so that it is decided as if none had
    /// ever left the state.
    fn recall(&mut self, prepared: &dyn Prepared) -> Result<Result<(), Refusal>, ApplyError> {
        if self.state.board().dropped_stubs == 0 || prepared.annotations().read_only {
            return Ok(Ok(()));
        }
        match super::recall::stubs(prepared, self.state, &self.call) {
            Err(refusal) => return Ok(Err(refusal)),
            Ok(stubs) if stubs.is_empty() => {}
            Ok(stubs) => self.record(Event::StubsRecalled { stubs })?,
        }
        Ok(Ok(()))
    }

    fn decide(&mut self, prepared: &dyn Prepared) -> Result<Answer, ApplyError> {
        match prepared.steps() {
            Ok(None) => self.single(prepared),
            Ok(Some(steps)) => self.batch(prepared, steps),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn single(&mut self, prepared: &dyn Prepared) -> Result<Answer, ApplyError> {
        match prepared.decide(self.state, &self.call) {
            Ok(events) => {
                for event in events {
                    self.record(event)?;
                }
                let reply = prepared.reply(self.state, &self.call);
                if reply.is_ok() {
                    let delivered = prepared.delivered(self.state, &self.call);
                    delivered.into_iter().try_for_each(|event| self.record(event))?;
                }
                Ok(reply)
            }
            Err(rejected) => {
                for event in rejected.keep {
                    self.record(event)?;
                }
                Ok(Err(self.with_holding(prepared, rejected.refusal)))
            }
        }
    }

    /// The refusal, with what the agent holds if it named a task of another.
    fn with_holding(&self, prepared: &dyn Prepared, refusal: Refusal) -> Refusal {
        let actor =
            self.call.actor.as_ref().filter(|_| prepared.agent_argument() != AgentArgument::None);
        let Some(agent) = actor.and_then(|actor| self.state.agent(actor)) else { return refusal };
        let held = agent.current_tasks.iter().filter_map(|id| self.state.task(id));
        let holding = held.map(|task| Holding {
            task: task.id.clone(),
            title: shortened(task.headline(), TITLE_SHOWN),
            attempt: task.attempt,
        });
        refusal.while_holding(holding.collect())
    }

    /// Runs all steps or none: a refused step rolls back those before it. The steps after it are
    /// still tried, so that the refusal can name all that would be refused.
    fn batch(
        &mut self,
        prepared: &dyn Prepared,
        steps: &[Box<dyn Prepared>],
    ) -> Result<Answer, ApplyError> {
        let (savepoint, recorded) = (self.state.savepoint(), self.events.len());
        let actor = self.call.actor.clone();
        let mut chance = Chance::new(self.call.seed);
        let mut results = Vec::with_capacity(steps.len());
        let mut refused = Vec::new();
        for (index, step) in steps.iter().enumerate() {
            self.call.seed = chance.draw();
            self.call.created.clear();
            self.call.events = 0;
            let answer = match identify(self.state, step.as_ref(), &self.call) {
                Ok(actor) => {
                    self.act_as(actor);
                    self.step(step.as_ref())?
                }
                Err(refusal) => Err(refusal),
            };
            match answer {
                Ok(value) => results.push(self.addressed(value)),
                // The events that a refusal would have kept are rolled back with the rest.
                Err(refusal) => refused.push((
                    index,
                    step.name().to_owned(),
                    Box::new(refusal.without_keeping()),
                )),
            }
        }
        self.call.actor = actor;
        if !refused.is_empty() {
            self.state.rollback(savepoint);
            self.events.truncate(recorded);
            return Ok(Err(super::apply_batch::refused_all(refused)));
        }
        self.call.events = self.events.len() - recorded;
        Ok(prepared.reply(self.state, &self.call).map(|mut reply| {
            reply["results"] = Value::from(results);
            reply
        }))
    }

    fn step(&mut self, step: &dyn Prepared) -> Result<Answer, ApplyError> {
        let with_ids = match step.with_ids(self.state, &self.call) {
            Ok(found) => found,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let step = with_ids.map_or(step, WithIds::call);
        match self.renew(step)? {
            Ok(()) => Ok(self.single(step)?.map(|reply| warned(reply, with_ids))),
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn record(&mut self, event: Event) -> Result<(), ApplyError> {
        self.call.created.extend(Created::by(&event));
        // A recall brings back a stub and changes nothing else, so a repeated call may do it again.
        let is_recall = matches!(event, Event::StubsRecalled { .. });
        let envelope = Envelope {
            at: self.call.now,
            participant: self.call.participant.clone(),
            actor: Some(self.author()),
            idempotency: self.key.clone().filter(|_| !is_recall),
        };
        let is_beside =
            is_recall || matches!(event, Event::AgentSeen { .. } | Event::RunnerSeen { .. });
        self.events.push(self.state.record(event, &envelope)?);
        self.call.events += usize::from(!is_beside);
        Ok(())
    }

    /// Renews the leases of the agent that the call names; any call that changes the board does.
    /// The agent's first such call through a living process begins its presence there.
    fn renew(&mut self, prepared: &dyn Prepared) -> Result<Result<(), Refusal>, ApplyError> {
        let actor = self.call.actor.clone();
        let Some(agent) = actor.filter(|_| !prepared.annotations().read_only) else {
            return Ok(Ok(()));
        };
        let implied = prepared.agent_argument() == AgentArgument::Required
            && prepared.name() != RegisterAgent::NAME;
        let stands_for =
            *self.call.default_agent != DefaultAgent::None && prepared.agent_id().is_none();
        let is_unasked = stands_for && implied && self.state.agent(&agent).is_none();
        let room = match is_unasked
            .then(|| super::register_agent::room_for(&agent, self.state, &self.call))
            .transpose()
        {
            Ok(room) => room.flatten(),
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.call.renewed = false;
        // The idempotency key belongs to the events of the operation itself.
        let key = self.key.take();
        if let Some(participant) = self.call.presence
            && self.state.participant(&participant.id).is_none()
        {
            let joined = Participant { joined_at: self.call.now, ..participant.clone() };
            self.record(Event::ParticipantJoined { participant: joined })?;
        }
        if let Some(room) = room {
            self.record(room)?;
        }
        if is_unasked {
            self.record(super::register_agent::unasked(&agent))?;
        }
        let through = self.call.presence.map(|participant| &participant.id);
        let is_elsewhere = through.is_some_and(|own| self.is_elsewhere(&agent, own));
        // These may be refused because the agent belongs to another process: `register_agent`
        // renews with its own event, a batch leaves it to its steps, and a claim renews
        // without joining the agent to this process.
        let (renews, through) = match prepared.name() {
            RegisterAgent::NAME => (false, through),
            "apply_batch" => (!is_elsewhere, through),
            "claim_task" | "claim_run" => (true, through.filter(|_| !is_elsewhere)),
            _ => (true, through),
        };
        if renews
            && let Some(seen) = self.state.seen(&agent, through, self.call.policy, self.call.now)
        {
            self.record(seen)?;
            self.call.renewed = true;
        }
        self.call.events = 0;
        self.key = key;
        Ok(Ok(()))
    }

    /// True if the agent is present through other processes, but not through `own`.
    fn is_elsewhere(&self, agent: &AgentId, own: &ParticipantId) -> bool {
        let through = self.state.agent(agent).map(|agent| &agent.present_through);
        through.is_some_and(|through| !through.is_empty() && !through.contains(own))
    }

    /// The call's idempotency key. If it was used before, sets `created` and `repeated`.
    fn known_key(&mut self, prepared: &dyn Prepared) -> Result<Option<Idempotency>, Refusal> {
        let Some(key) = prepared.idempotency_key().filter(|key| !key.is_empty()) else {
            return Ok(None);
        };
        limit::IDEMPOTENCY_KEY.check_text(key)?;
        let params = digest(&prepared.params());
        let full = |scope: String| format!("{scope}/{}/{key}", prepared.name());
        let mut keys = self.key_scopes(prepared).into_iter().map(full);
        let own = keys.next().unwrap_or_default();
        if let Some(known) =
            std::iter::once(own.clone()).chain(keys).find_map(|key| self.state.remembered(&key))
        {
            if known.params != params
                && known.params != digest(&self.with_agent_or_without(prepared.params()))
            {
                return Err(Refusal::KeyReused { key: key.to_owned() });
            }
            self.call.created.clone_from(&known.created);
            self.call.repeated = true;
        }
        Ok(Some(Idempotency { key: own, params }))
    }

    /// The same parameters with the acting agent filled in where it was left out, or left out where
    /// it was given: the key belongs to that agent either way.
    fn with_agent_or_without(&self, mut params: Value) -> Value {
        if let Some(agent) = params.get_mut("agent_id") {
            *agent = if agent.is_null() { json!(self.call.actor) } else { Value::Null };
        }
        params
    }

    /// The scopes in which the call's idempotency key is looked up; it is recorded in the first. A
    /// process with `auto` uses the name it has taken, because that outlasts the process, else
    /// its own id; it also looks under its own id and under the name that it would take.
    fn key_scopes(&self, prepared: &dyn Prepared) -> Vec<String> {
        let actor = self.call.actor.as_ref().map(AgentId::to_string);
        if prepared.agent_argument() != AgentArgument::None || self.call.principal.is_some() {
            return vec![actor.unwrap_or_else(|| self.nobody().to_string())];
        }
        match (self.call.started_as, self.call.presence) {
            (DefaultAgent::Named(agent), _) => vec![agent.to_string()],
            (DefaultAgent::Auto { prefix }, Some(process)) => {
                let process = &process.id;
                match actor {
                    Some(own) => vec![own, process.to_string()],
                    None if self
                        .state
                        .agents()
                        .any(|agent| agent.present_through.contains(process)) =>
                    {
                        vec![process.to_string()]
                    }
                    None => vec![
                        process.to_string(),
                        free_slot(self.state, prefix, &self.call).to_string(),
                    ],
                }
            }
            _ => vec![HUMAN.to_owned()],
        }
    }

    /// The actor recorded. A person is recorded by name.
    fn author(&self) -> AgentId {
        let agent = self.call.actor.clone().filter(|agent| agent.as_str() != HUMAN);
        agent.unwrap_or_else(|| self.nobody())
    }

    /// The actor where no agent acts: the bearer of a token, an agent's session, or the board's
    /// owner.
    fn nobody(&self) -> AgentId {
        let token = self.call.principal.map(|principal| principal.token.as_str());
        match (token, self.call.session) {
            (None, Some(session)) => AgentId::trusted(session),
            (token, _) => {
                let name = token.or(self.call.person);
                name.map_or_else(|| AgentId::trusted(HUMAN), AgentId::of_person)
            }
        }
    }

    /// The reply as its reader gets it: a model no more than it can read, no tool that it does not
    /// see, and nothing that ends a tag of its host.
    fn readable(&self, reply: Value, rest: &str) -> Value {
        if !self.call.reader.is_model() {
            return self.addressed(reply);
        }
        let agent = self.call.actor.as_ref().map(AgentId::as_str);
        let listener = Listener { reader: self.call.reader, command: self.call.command, agent };
        let mut reply = self.addressed(page::fit(reply, &listener.reworded(rest)));
        listener.reword(&mut reply);
        tags::value(&mut reply);
        reply
    }

    /// Adds what every reply to an agent carries: its id, its unread messages and the stop requests
    /// for what it holds.
    fn addressed(&self, mut reply: Value) -> Value {
        let Some(fields) = reply.as_object_mut() else { return reply };
        if self.call.repeated {
            fields.insert("already".to_owned(), Value::Bool(true));
        }
        let Some(agent) = &self.call.actor else { return reply };
        fields.insert("agent_id".to_owned(), Value::from(agent.as_str()));
        let unread = self.state.unread_count(agent);
        if unread > 0 {
            let mut told = json!({"count": unread, "next": "get_messages"});
            // The toolset may hide the tool, and many clients call no hidden one.
            if let Some(command) = self.call.command {
                told["cli"] = Value::from(format!("{command} --agent {agent} messages"));
            }
            fields.insert("unread_messages".to_owned(), told);
        }
        let held =
            self.state.agent(agent).map(|agent| agent.current_tasks.clone()).unwrap_or_default();
        let stops: Vec<_> = held
            .iter()
            .filter_map(|id| {
                let request = self.state.task(id)?.stop_requested.as_ref()?;
                Some(json!({"task": id, "reason": request.reason}))
            })
            .collect();
        if !stops.is_empty() {
            fields.insert("stop_requested".to_owned(), Value::from(stops));
        }
        reply
    }
}

/// The reply, with what was meant by the names in the call.
fn warned(mut reply: Value, with_ids: Option<&WithIds>) -> Value {
    let said = with_ids.and_then(|found| found.said.as_deref());
    if let (Some(fields), Some(said)) = (reply.as_object_mut(), said) {
        add_warning(fields, said);
    }
    reply
}

fn digest(params: &Value) -> String {
    sha256(params.to_string())[..32].to_owned()
}
