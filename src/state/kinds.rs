//! The kinds of records. A new kind is a file with its [`Record`](super::record::Record), and a
//! line here.

/// Calls the macro `$then` with a line for each kind: its field in a document, in the order of the
/// document, and its type in a module of the state.
macro_rules! kinds {
    ($then:ident) => {
        $then! {
            /// Tasks in order of creation
            tasks: task::Task,
            agents: agent::Agent,
            discoveries: discovery::Discovery,
            /// Messages in order of sending
            #[serde(default)]
            messages: message::Message,
            #[serde(default)]
            reservations: reservation::Reservation,
            #[serde(default)]
            participants: agent::Participant,
            #[serde(default)]
            retired: document::Retired,
            #[serde(default)]
            sessions: session::Session,
            #[serde(default)]
            workflows: workflow::Workflow,
            /// Checkpoints by workflow and place
            #[serde(default)]
            checkpoints: workflow::Checkpoint,
        }
    };
}
pub(crate) use kinds;
