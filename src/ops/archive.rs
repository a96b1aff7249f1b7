//! Earlier states and other files, for the few operations that need them.

use super::reader::Reader;
use crate::state::State;
use crate::state::artifact::{Artifact, Source};
use crate::state::bundle;
use crate::state::document::Document;
use crate::state::id::TaskId;
use crate::state::refusal::Refusal;
use crate::state::snapshot::{Listed, Occasion, SnapshotName, Verification};
use crate::state::undo::Command;

/// Earlier states, for the few operations that need them. Slow, unlike everything else that an
/// operation may use.
pub trait Archive {
    fn reader(&self) -> Reader;
    /// The state at the time of the call.
    fn present(&self) -> &State;
    /// All snapshots, oldest first.
    fn list(&self) -> Result<Vec<Listed>, Refusal>;
    /// The state in the snapshot `name`.
    fn load(&self, name: &SnapshotName) -> Result<Document, Refusal>;
    /// The newest sound snapshot.
    fn newest_sound(&self) -> Result<(SnapshotName, Document), Refusal>;
    /// The state after event `seq`.
    fn at(&self, seq: u64) -> Result<Document, Refusal>;
    /// The command that event `seq` is of: the events beside it by the same actor and process at the
    /// same time.
    fn command(&self, seq: u64) -> Result<Command, Refusal>;
    /// Takes a snapshot of the present state; it is durable when this returns.
    fn take(&self, occasion: Occasion, label: Option<String>) -> Result<Listed, Refusal>;
    fn verify(&self) -> Result<Verification, Refusal>;
    fn bundles(&self, asked: &bundle::Asked) -> Result<bundle::Told, Refusal>;
    /// Writes the file of an artifact; it is on disk when this returns.
    fn keep_artifact(
        &self,
        task: &TaskId,
        name: &str,
        source: &Source,
    ) -> Result<Artifact, Refusal>;
}

/// What a call fetched from the archive before it was decided on.
#[derive(Debug, Default)]
pub enum Fetched {
    #[default]
    Nothing,
    Listed(Vec<Listed>),
    Taken(Listed),
    Verified(Verification),
    Document(Box<Document>),
    Pair(Box<Document>, Box<Document>),
    Bundles(bundle::Told),
    Artifact(Artifact),
    Command(Box<Command>),
    /// An earlier state and the snapshot taken of the present one. `snapshot` is `None` if the
    /// state came from the journal.
    Earlier {
        document: Box<Document>,
        snapshot: Option<SnapshotName>,
        before: SnapshotName,
    },
}
