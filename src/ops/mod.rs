//! Operations: what the board can be asked. Each operation is one file. From the list in [`all`]
//! come the MCP tools, the JSON-RPC methods, `callboard call`, the schemas and the README's table.
//!
//! A program calls them by their types through `Board::call`. Each has a module with its `Params`
//! and its `Reply`: `board.call::<ops::ClaimTask>(ops::claim_task::Params { … })`. Parameters that
//! are left to `..Default::default()` are as if they were left out; one that is required is refused
//! if it is empty.
#![doc = include_str!("operations.md")]

pub mod add_discovery;
pub mod apply_batch;
pub mod approve_task;
mod archive;
pub mod ask_human;
pub mod assign_task;
mod assigned;
pub mod attach_artifact;
mod batch;
mod call;
pub mod cancel_task;
pub mod claim_run;
pub mod claim_task;
pub mod complete_task;
pub mod create_run;
pub mod create_snapshot;
pub mod create_task;
pub mod create_tasks_batch;
pub mod delete_checkpoints;
pub mod diff_plans;
pub mod diff_snapshots;
mod entry;
mod execute;
pub mod explain_task;
pub mod export_plan;
pub mod fail_task;
pub mod find_tasks;
pub mod forget_agent;
pub mod get_agents;
pub mod get_all_tasks;
pub mod get_board;
pub mod get_checkpoint;
pub mod get_discoveries;
pub mod get_history;
pub mod get_master_plan;
pub mod get_messages;
pub mod get_report;
pub mod get_results;
pub mod get_run;
pub mod get_session;
pub mod get_status;
pub mod get_task;
#[doc(hidden)]
pub mod hand_edit;
mod handoff;
pub mod health_check;
pub mod heartbeat;
mod held;
mod identity;
pub mod import_plan;
pub mod init_coordination;
pub(crate) mod input;
pub mod list_bundles;
pub mod list_checkpoints;
pub mod list_plans;
pub mod list_runs;
pub mod list_sessions;
pub mod list_snapshots;
pub mod load_bundle;
mod naming;
mod operation;
mod page;
mod parts;
pub mod pause;
mod prepared;
mod principal;
mod privacy;
mod reader;
mod recall;
pub mod refine_bundle;
pub mod register_agent;
pub mod reject_task;
pub mod release_files;
pub mod release_task;
pub mod remove_plan;
pub mod report_run;
pub mod report_waiting;
pub mod reserve_files;
pub mod reset_tasks;
pub mod restore_snapshot;
pub mod resume;
pub mod retry_task;
pub mod save_bundle;
pub mod save_checkpoint;
pub(crate) mod save_state;
#[doc(hidden)]
pub mod schema;
pub mod send_message;
mod spoken;
pub mod start_task;
pub mod stop_agent;
pub mod stop_run;
mod task_filter;
mod telling;
mod typed;
mod understand;
pub mod undo;
pub mod update_run;
pub mod update_task;
pub mod verify_bundles;
pub mod verify_snapshots;
pub mod wait_for_events;

pub use add_discovery::AddDiscovery;
pub use apply_batch::ApplyBatch;
pub use approve_task::ApproveTask;
pub use archive::{Archive, Fetched};
pub use ask_human::AskHuman;
pub use assign_task::AssignTask;
pub use assigned::Assigned;
pub use attach_artifact::AttachArtifact;
#[doc(hidden)]
pub use batch::{Due, Recorder};
pub use call::{Call, DefaultAgent, History, NoHistory};
pub use cancel_task::CancelTask;
pub use claim_run::ClaimRun;
pub use claim_task::ClaimTask;
pub use complete_task::CompleteTask;
pub use create_run::CreateRun;
pub use create_snapshot::CreateSnapshot;
pub use create_task::CreateTask;
pub use create_tasks_batch::CreateTasksBatch;
pub use delete_checkpoints::DeleteCheckpoints;
pub use diff_plans::DiffPlans;
pub use diff_snapshots::DiffSnapshots;
pub use entry::{Entry, schema_of, schema_of_written};
#[doc(hidden)]
pub use execute::{Executed, add_warning, admit, execute, waits};
pub use explain_task::ExplainTask;
pub use export_plan::ExportPlan;
pub use fail_task::FailTask;
pub use find_tasks::FindTasks;
pub use forget_agent::ForgetAgent;
pub use get_agents::GetAgents;
pub use get_all_tasks::GetAllTasks;
pub use get_board::GetBoard;
pub use get_checkpoint::GetCheckpoint;
pub use get_discoveries::GetDiscoveries;
pub use get_history::GetHistory;
pub use get_master_plan::GetMasterPlan;
pub use get_messages::GetMessages;
pub use get_report::GetReport;
pub use get_results::GetResults;
pub use get_run::GetRun;
pub use get_session::GetSession;
pub use get_status::GetStatus;
pub use get_task::GetTask;
pub use handoff::Handoff;
pub use health_check::{HealthCheck, Vitals};
pub use heartbeat::Heartbeat;
pub use held::{Held, Lost};
pub use identity::{Door, Inside};
pub use import_plan::ImportPlan;
pub use init_coordination::InitCoordination;
pub use input::{Success, TaskInput};
pub use list_bundles::ListBundles;
pub use list_checkpoints::ListCheckpoints;
pub use list_plans::ListPlans;
pub use list_runs::ListRuns;
pub use list_sessions::ListSessions;
pub use list_snapshots::ListSnapshots;
pub use load_bundle::LoadBundle;
pub use operation::{
    AgentArgument, Annotations, AskGit, Checkout, DESTRUCTIVE, Decision, Merge, Operation, READ,
    REPEATABLE, Rejected, Steps, Toolset, WRITE,
};
pub use page::{Part, Shown};
pub use pause::PauseBoard;
pub use prepared::Prepared;
pub(crate) use prepared::received;
pub use principal::Principal;
#[doc(hidden)]
pub use privacy::{may_read, without_texts};
pub use reader::Reader;
pub use refine_bundle::RefineBundle;
pub use register_agent::RegisterAgent;
pub use reject_task::RejectTask;
pub use release_files::ReleaseFiles;
pub use release_task::ReleaseTask;
pub use remove_plan::RemovePlan;
pub use report_run::ReportRun;
pub use report_waiting::ReportWaiting;
pub use reserve_files::ReserveFiles;
pub use reset_tasks::ResetTasks;
pub use restore_snapshot::RestoreSnapshot;
pub use resume::ResumeBoard;
pub use retry_task::RetryTask;
pub use save_bundle::SaveBundle;
pub use save_checkpoint::SaveCheckpoint;
pub use send_message::SendMessage;
pub(crate) use spoken::in_commands;
pub use spoken::{Listener, acts_as_agent, subcommand};
pub use start_task::StartTask;
pub use stop_agent::StopAgent;
pub use stop_run::StopRun;
pub use task_filter::{SORTS, Sort};
pub(crate) use typed::{Typed, typed};
#[doc(hidden)]
pub use understand::{Understood, understand};
pub(crate) use understand::{no_operation, unwrapped};
pub use undo::Undo;
pub use update_run::UpdateRun;
pub use update_task::UpdateTask;
pub use verify_bundles::VerifyBundles;
pub use verify_snapshots::VerifySnapshots;
pub use wait_for_events::{EventFilter, WaitForEvents};

use crate::state::limit;

/// Largest arguments that are read, in bytes.
pub const LARGEST_INPUT: u64 = limit::ARGUMENTS.max as u64;

/// All operations, in the order in which clients are shown them.
pub fn all() -> &'static [Entry] {
    const ALL: &[Entry] = &[
        Entry::of::<RegisterAgent>(),
        Entry::of::<ClaimTask>(),
        Entry::of::<StartTask>(),
        Entry::of::<CompleteTask>(),
        Entry::of::<FailTask>(),
        Entry::of::<ReleaseTask>(),
        Entry::of::<Heartbeat>(),
        Entry::of::<AddDiscovery>(),
        Entry::of::<GetTask>(),
        Entry::of::<InitCoordination>(),
        Entry::of::<CreateTask>(),
        Entry::of::<CreateTasksBatch>(),
        Entry::of::<GetStatus>(),
        Entry::of::<GetBoard>(),
        Entry::of::<GetReport>(),
        Entry::of::<GetAllTasks>(),
        Entry::of::<GetResults>(),
        Entry::of::<GetDiscoveries>(),
        Entry::of::<GetMasterPlan>(),
        Entry::of::<UpdateTask>(),
        Entry::of::<CancelTask>(),
        Entry::of::<RetryTask>(),
        Entry::of::<ApproveTask>(),
        Entry::of::<RejectTask>(),
        Entry::of::<WaitForEvents>(),
        Entry::of::<GetAgents>(),
        Entry::of::<ReportWaiting>(),
        Entry::of::<HealthCheck>(),
        Entry::of::<PauseBoard>(),
        Entry::of::<ResumeBoard>(),
        Entry::of::<Undo>(),
        Entry::of::<AssignTask>(),
        Entry::of::<StopAgent>(),
        Entry::of::<ForgetAgent>(),
        Entry::of::<ApplyBatch>(),
        Entry::of::<AskHuman>(),
        Entry::of::<SendMessage>(),
        Entry::of::<GetMessages>(),
        Entry::of::<ReserveFiles>(),
        Entry::of::<ReleaseFiles>(),
        Entry::of::<ImportPlan>(),
        Entry::of::<ExportPlan>(),
        Entry::of::<DiffPlans>(),
        Entry::of::<ListPlans>(),
        Entry::of::<RemovePlan>(),
        Entry::of::<FindTasks>(),
        Entry::of::<ExplainTask>(),
        Entry::of::<ResetTasks>(),
        Entry::of::<GetHistory>(),
        Entry::of::<CreateSnapshot>(),
        Entry::of::<ListSnapshots>(),
        Entry::of::<DiffSnapshots>(),
        Entry::of::<RestoreSnapshot>(),
        Entry::of::<VerifySnapshots>(),
        Entry::of::<SaveBundle>(),
        Entry::of::<LoadBundle>(),
        Entry::of::<RefineBundle>(),
        Entry::of::<ListBundles>(),
        Entry::of::<VerifyBundles>(),
        Entry::of::<CreateRun>(),
        Entry::of::<ClaimRun>(),
        Entry::of::<ReportRun>(),
        Entry::of::<UpdateRun>(),
        Entry::of::<StopRun>(),
        Entry::of::<GetRun>(),
        Entry::of::<ListRuns>(),
        Entry::of::<GetSession>(),
        Entry::of::<ListSessions>(),
        Entry::of::<SaveCheckpoint>(),
        Entry::of::<GetCheckpoint>(),
        Entry::of::<ListCheckpoints>(),
        Entry::of::<DeleteCheckpoints>(),
        Entry::of::<AttachArtifact>(),
    ];
    ALL
}

pub fn find(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.name == name)
}
