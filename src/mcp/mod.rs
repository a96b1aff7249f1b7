//! MCP over stdio and Streamable HTTP: every operation is a tool, and a few reads are resources.
//!
//! Both protocol eras work on one connection: 2026-07-28, where each request carries its version
//! and client in `_meta`, and the handshake of 2025-11-25 and before. Nothing about a caller is
//! kept between requests, except the client's name from that handshake.

mod accept;
mod completions;
#[cfg(feature = "conformance")]
mod conformance;
mod elicitation;
mod http;
mod opening;
mod prompts;
pub mod resources;
mod server;
mod skeleton;
mod stdio;
mod subscriptions;
mod tools;
mod watched;

use std::io;
use std::pin::pin;
use std::time::Duration;

use rmcp::service::serve_directly;
use tokio::select;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::signal;

#[cfg(feature = "conformance")]
pub use conformance::Fixtures;
pub use http::{Answering, Door, SESSION};
pub use server::Server;
use stdio::Stdio;
pub use tools::tool_list;
pub use watched::Watched;

/// Time for calls in progress when the input ends: a script may write its requests, close its end
/// and read on.
const ANSWER_GRACE: Duration = Duration::from_millis(300);
const CLOSE_GRACE: Duration = Duration::from_millis(250);

/// Serves until the client closes standard input or a signal asks to end, and then for less than a
/// second more.
///
/// # Errors
/// If signals cannot be listened for, the threads cannot be started, or the session's own task
/// fails.
pub async fn serve_stdio(server: Server) -> io::Result<()> {
    let interruption = signal::interruption()?;
    let ended = CancellationToken::new();
    let stdio = Stdio::open(ended.clone())?;
    // rmcp's opening phase is skipped: it ends the process if a notification comes early, and ties
    // a client that once spoke without a handshake to that for ever. `Stdio` and
    // `Server::initialize` do the rest of its work.
    let session = serve_directly(server, stdio, None);
    let calls = session.cancellation_token();
    let mut session = pin!(session.waiting());
    let deadline = async {
        select! {
            () = ended.cancelled() => {}
            () = interruption => ended.cancel(),
        }
        sleep(ANSWER_GRACE).await;
    };
    select! {
        quit = &mut session => return quit.map(drop).map_err(io::Error::from),
        () = deadline => calls.cancel(),
    }
    if timeout(CLOSE_GRACE, session).await.is_err() {
        tracing::warn!("the client did not read its last answers");
    }
    Ok(())
}
