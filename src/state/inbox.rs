//! Inboxes: the recipients of a message, and what each of them has not read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::agent::{Agent, Role};
use super::event::Event;
use super::guard::HUMAN;
use super::id::{AgentId, MessageId, TaskId};
use super::limit::{self, READ_MESSAGES_KEPT};
use super::message::{Mail, Message};
use super::refusal::Refusal;
use super::stored::Stored;
use super::time::{MINUTE, Timestamp};
use super::{Ordinal, State};

/// Milliseconds of silence after which an agent no longer belongs to "everyone".
const LOST: i64 = 24 * 60 * MINUTE;

/// The address of a message. A text in the form of another address is never taken for an agent's
/// id.
#[derive(Clone, Debug, PartialEq)]
pub enum Address {
    Agent(AgentId),
    Role(Role),
    OwnerOf(TaskId),
    Everyone,
    Human,
}

impl Address {
    pub fn checked(to: &str) -> Result<Self, Refusal> {
        match (to, to.split_once(':')) {
            ("all", _) => Ok(Self::Everyone),
            (HUMAN, _) => Ok(Self::Human),
            (_, Some(("role", "leader"))) => Ok(Self::Role(Role::Leader)),
            (_, Some(("role", "worker"))) => Ok(Self::Role(Role::Worker)),
            (_, Some(("role", "observer"))) => Ok(Self::Role(Role::Observer)),
            (_, Some(("role", _))) => Err(Refusal::UnknownRecipient { to: printable(to) }),
            (_, Some(("task", id))) => TaskId::checked(id).map(Self::OwnerOf),
            _ => AgentId::checked(to)
                .map(Self::Agent)
                .map_err(|_| Refusal::UnknownRecipient { to: printable(to) }),
        }
    }
}

fn printable(to: &str) -> String {
    to.chars().filter(|c| !c.is_control() && *c != '`').take(limit::ID.max).collect()
}

/// Agents that get a message, and those that would if their inboxes were not full.
#[derive(Debug, Default, PartialEq)]
pub struct Recipients {
    pub reached: BTreeSet<AgentId>,
    pub full: Vec<AgentId>,
}

impl State {
    /// All messages, in order of sending.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> + ExactSizeIterator {
        self.records.messages.values()
    }

    pub fn message(&self, id: &MessageId) -> Option<&Arc<Message>> {
        self.records.messages.get(&self.mail.ordinal(id)?)
    }

    /// The question of that number, if it is kept.
    pub fn question(&self, number: u64) -> Option<&Message> {
        let is_it = |one: &&Arc<Message>| one.question == Some(number);
        self.messages().rev().find(is_it).map(AsRef::as_ref)
    }

    /// The newest question that the agent asked in these words.
    pub fn asked_by(&self, agent: &AgentId, text: &str) -> Option<&Message> {
        let is_it =
            |one: &&Arc<Message>| one.question.is_some() && one.from == *agent && one.text == text;
        self.messages().rev().find(is_it).map(AsRef::as_ref)
    }

    /// The first answer to a message.
    pub fn answer_to(&self, id: &MessageId) -> Option<&Message> {
        let asked = self.mail.ordinal(id)?;
        let mut later = self.records.messages.range(asked..).map(|(_, one)| one);
        later.find(|one| one.reply_to.as_ref() == Some(id)).map(AsRef::as_ref)
    }

    /// Position of the message in the order of sending.
    pub fn message_place(&self, id: &MessageId) -> Option<Ordinal> {
        self.mail.ordinal(id)
    }

    pub fn unread_count(&self, reader: &AgentId) -> usize {
        self.mail.boxes.get(reader).map_or(0, |mailbox| mailbox.unread.len())
    }

    /// Messages that `reader` has not acknowledged, oldest first.
    pub fn unread(&self, reader: &AgentId) -> impl Iterator<Item = &Arc<Message>> {
        let ordinals = self.mail.boxes.get(reader).into_iter().flat_map(|mailbox| &mailbox.unread);
        ordinals.filter_map(|ordinal| self.records.messages.get(ordinal))
    }

    /// Messages that `reader` has acknowledged, newest first.
    pub fn read(&self, reader: &AgentId) -> impl Iterator<Item = &Arc<Message>> {
        let ordinals =
            self.mail.boxes.get(reader).into_iter().flat_map(|mailbox| mailbox.read.iter().rev());
        ordinals.filter_map(|ordinal| self.records.messages.get(ordinal))
    }

    /// The recipients of a message from `sender`. If it is addressed to one inbox and that is full,
    /// it is refused; among many, full inboxes are left out, so that one who never reads cannot
    /// keep others from being told.
    pub fn recipients(
        &self,
        to: &Address,
        sender: &AgentId,
        now: Timestamp,
    ) -> Result<Recipients, Refusal> {
        let others = |wanted: &dyn Fn(&Agent) -> bool| -> Vec<AgentId> {
            let known =
                self.agents().filter(|agent| agent.id != *sender && agent.id.as_str() != HUMAN);
            known
                .filter(|agent| wanted(agent) && is_about(agent, now))
                .map(|agent| agent.id.clone())
                .collect()
        };
        let addressed = match to {
            Address::Human => return self.one(AgentId::trusted(HUMAN)),
            Address::Agent(id) if self.agent(id).is_some() => return self.one(id.clone()),
            Address::Agent(id) => return Err(Refusal::UnknownRecipient { to: id.to_string() }),
            Address::OwnerOf(task) => {
                let open = self.known_task(task)?.open_attempt();
                let owner = open.map(|attempt| attempt.agent.clone());
                return self.one(owner.ok_or_else(|| Refusal::NoOwner { task: task.clone() })?);
            }
            Address::Role(role) => others(&|agent| agent.role == *role),
            Address::Everyone => others(&|_| true),
        };
        limit::RECIPIENTS.check(addressed.len())?;
        let (full, reached): (Vec<_>, Vec<_>) =
            addressed.into_iter().partition(|id| self.is_full(id));
        match (reached.is_empty(), full.first()) {
            (true, Some(recipient)) => Err(self.inbox_full(recipient.clone())),
            (true, None) => Err(Refusal::NobodyThere),
            _ => Ok(Recipients { reached: reached.into_iter().collect(), full }),
        }
    }

    fn one(&self, recipient: AgentId) -> Result<Recipients, Refusal> {
        if self.is_full(&recipient) {
            return Err(self.inbox_full(recipient));
        }
        Ok(Recipients { reached: BTreeSet::from([recipient]), full: Vec::new() })
    }

    fn is_full(&self, reader: &AgentId) -> bool {
        self.unread_count(reader) >= limit::INBOX.max
    }

    fn inbox_full(&self, recipient: AgentId) -> Refusal {
        Refusal::InboxFull { unread: self.unread_count(&recipient), recipient }
    }

    /// Checks that there is room for one more message. Returns the event that retires the oldest
    /// messages read by all, beyond those that are kept, a tenth of these at a time. On a full
    /// board all read ones go, or if there are none, the oldest that only lost agents have not
    /// read.
    pub fn room_for_message(&self, now: Timestamp) -> Result<Option<Event>, Refusal> {
        let read = &self.mail.read_by_all;
        let room = limit::MESSAGES.check(self.records.messages.len() + 1);
        let surplus = read.len().saturating_sub(if room.is_ok() { READ_MESSAGES_KEPT } else { 0 });
        let mut going: Vec<_> = match &room {
            Ok(()) if surplus <= READ_MESSAGES_KEPT / 10 => return Ok(None),
            _ => read
                .iter()
                .take(surplus)
                .filter_map(|ordinal| self.records.messages.get(ordinal))
                .collect(),
        };
        if going.is_empty() {
            let is_lost = |id: &AgentId| {
                self.agent(id).is_some_and(|agent| agent.is_lost(now)) && id.as_str() != HUMAN
            };
            let waits_for_nobody = |message: &&Arc<Message>| message.unread_by.iter().all(is_lost);
            going.extend(
                self.records
                    .messages
                    .values()
                    .filter(waits_for_nobody)
                    .take(limit::MESSAGES.max / 20),
            );
        }
        limit::MESSAGES.check(self.records.messages.len() + 1 - going.len())?;
        Ok(Some(Event::MessagesRetired {
            messages: going.into_iter().map(|message| message.id.clone()).collect(),
        }))
    }

    /// Number of messages that all their recipients have read.
    pub(super) fn read_by_all(&self) -> usize {
        self.mail.read_by_all.len()
    }

    /// Marks a message as read by `reader`; does nothing if it is gone or was not sent to `reader`.
    pub(super) fn mark_read(&mut self, reader: &AgentId, id: &MessageId) {
        let Some(ordinal) = self.mail.ordinal(id) else { return };
        let Some(message) =
            self.records.messages.get(&ordinal).filter(|one| one.unread_by.contains(reader))
        else {
            return;
        };
        let mut message = Message::clone(message);
        message.unread_by.remove(reader);
        self.put(ordinal, Some(Arc::new(message)));
    }
}

fn is_about(agent: &Agent, now: Timestamp) -> bool {
    agent.is_present() || now.since(agent.last_heartbeat) <= LOST
}

impl Stored for Message {
    type Kept = BTreeMap<Ordinal, Arc<Self>>;

    fn key(state: &State, id: &MessageId) -> Option<Ordinal> {
        state.mail.ordinal(id)
    }

    fn follow(state: &mut State, ordinal: &Ordinal, old: Option<&Self>, new: Option<&Self>) {
        old.inspect(|old| state.mail.remove(*ordinal, old));
        new.inspect(|new| state.mail.add(*ordinal, new));
    }

    fn check(state: &State, wrong: &mut Vec<String>) {
        let mut mail = Mail::default();
        for (ordinal, message) in &state.records.messages {
            if mail.ordinal(&message.id).is_some() {
                wrong.push(format!("message {} is there twice", message.id));
            }
            mail.add(*ordinal, message);
            if !message.unread_by.is_subset(&message.recipients) {
                wrong.push(format!(
                    "message {} is unread by somebody it was not sent to",
                    message.id
                ));
            }
            let stranger = message
                .unread_by
                .iter()
                .find(|id| state.agent(id).is_none() && id.as_str() != HUMAN);
            wrong.extend(
                stranger
                    .map(|id| format!("message {} waits for {id}, who is not there", message.id)),
            );
        }
        if mail != state.mail {
            wrong.push(format!("the inboxes are {:?} and should be {mail:?}", state.mail));
        }
        let full = mail.boxes.iter().filter(|(_, mailbox)| mailbox.unread.len() > limit::INBOX.max);
        wrong.extend(
            full.map(|(id, mailbox)| format!("{id} has {} unread messages", mailbox.unread.len())),
        );
    }
}
