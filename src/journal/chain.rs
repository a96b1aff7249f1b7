//! A row of the journal, and the hash that ties it to the row before.

use sha2::{Digest, Sha256};

use super::{BatchId, JournalError};
use crate::state::event::{Event, Idempotency, Recorded, VERSION};
use crate::state::id::{AgentId, ParticipantId};
use crate::state::time::Timestamp;

pub type Hash = [u8; 32];

/// The seq and hash of an event, to which the next one is chained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub seq: u64,
    pub hash: Hash,
}

impl Link {
    /// The link before the first event.
    pub(super) const ROOT: Self = Self { seq: 0, hash: [0; 32] };
}

/// The columns of `events` without the hash.
#[derive(Clone)]
pub(super) struct Row {
    pub seq: u64,
    pub batch_id: String,
    pub v: u32,
    pub kind: String,
    pub at_ms: i64,
    pub participant: String,
    pub agent: Option<String>,
    pub idem_key: Option<String>,
    pub idem_params: Option<String>,
    pub body: String,
}

impl Row {
    pub(super) fn of(recorded: &Recorded, batch: &BatchId) -> Result<Self, JournalError> {
        let idempotency = recorded.idempotency.as_ref();
        Ok(Self {
            seq: recorded.seq,
            batch_id: batch.as_str().to_owned(),
            v: recorded.event.level(),
            kind: recorded.event.kind().to_owned(),
            at_ms: recorded.at.millis(),
            participant: recorded.participant.as_str().to_owned(),
            agent: recorded.actor.as_ref().map(|actor| actor.as_str().to_owned()),
            idem_key: idempotency.map(|one| one.key.clone()),
            idem_params: idempotency.map(|one| one.params.clone()),
            body: serde_json::to_string(&recorded.event)?,
        })
    }

    /// SHA-256 of the previous row's hash and every column, each as its length in eight bytes and
    /// then its bytes. Numbers are little-endian; NULL has the length 2^64 - 1 and no bytes.
    pub(super) fn hash(&self, previous: &Hash) -> Hash {
        let seq = self.seq.to_le_bytes();
        let v = self.v.to_le_bytes();
        let at_ms = self.at_ms.to_le_bytes();
        let columns: [Option<&[u8]>; 10] = [
            Some(&seq),
            Some(self.batch_id.as_bytes()),
            Some(&v),
            Some(self.kind.as_bytes()),
            Some(&at_ms),
            Some(self.participant.as_bytes()),
            self.agent.as_deref().map(str::as_bytes),
            self.idem_key.as_deref().map(str::as_bytes),
            self.idem_params.as_deref().map(str::as_bytes),
            Some(self.body.as_bytes()),
        ];
        let mut digest = Sha256::new();
        digest.update(previous);
        for column in columns {
            digest.update(column.map_or(u64::MAX, |bytes| bytes.len() as u64).to_le_bytes());
            digest.update(column.unwrap_or_default());
        }
        digest.finalize().into()
    }

    /// The link of this row, if it is what was written after `previous`.
    pub(super) fn verify(&self, previous: &Link, stored: &[u8]) -> Result<Link, JournalError> {
        if self.seq != previous.seq + 1 {
            return Err(damaged(previous.seq + 1, "it is missing"));
        }
        let hash = self.hash(&previous.hash);
        if hash != stored {
            return Err(damaged(
                self.seq,
                "its hash does not follow from its content and the event before",
            ));
        }
        Ok(Link { seq: self.seq, hash })
    }

    /// The event of a verified row. Its body is as it was written, so what cannot be read is newer
    /// than this build.
    pub(super) fn recorded(self) -> Result<Recorded, JournalError> {
        let event = match serde_json::from_str::<Event>(&self.body) {
            Ok(event) if self.v <= VERSION => event,
            _ => {
                return Err(JournalError::UnknownKind {
                    seq: self.seq,
                    kind: self.kind,
                    v: self.v,
                });
            }
        };
        if event.kind() != self.kind {
            return Err(damaged(self.seq, "its kind is not that of its body"));
        }
        let idempotency = self.idem_key.zip(self.idem_params);
        Ok(Recorded {
            seq: self.seq,
            at: Timestamp::from_millis(self.at_ms),
            participant: ParticipantId::trusted(self.participant),
            actor: self.agent.map(AgentId::trusted),
            idempotency: idempotency.map(|(key, params)| Idempotency { key, params }),
            event,
        })
    }
}

pub(super) fn damaged(seq: u64, detail: impl Into<String>) -> JournalError {
    JournalError::Damaged { seq, detail: detail.into() }
}
