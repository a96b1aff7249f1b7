//! Drawings of the graph. Each is made once for all who look, one at a time, beside the threads
//! that serve calls; what nobody waits for any more is given up.

use maud::{Markup, PreEscaped};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::pages::{self, Query};
use super::{Door, Visit};
use crate::participant::{BoardError, CallError, Turns};
use crate::state::limit::DRAWINGS;
use crate::view::Graph;

#[derive(Default)]
pub(super) struct Drawings {
    /// So that not all who wait for a drawing are one visitor.
    turns: Turns,
    kept: Mutex<Vec<Drawing>>,
}

/// The graph of a scope at one event.
struct Drawing {
    scope: Option<String>,
    all: bool,
    seq: u64,
    html: String,
}

impl Drawings {
    /// The drawing that the query asks for, and the event that it shows.
    pub(super) async fn of(
        &self,
        door: &Door,
        visit: &Visit,
        query: &Query,
    ) -> Result<(Markup, u64), CallError> {
        let (scope, all) = (query.scope.clone(), query.is.as_deref() == Some("all"));
        let _turn = self.turns.take(visit.viewer()).await.ok_or(BoardError::Ended)?;
        let mut kept = self.kept.lock().await;
        let seq = door.handle.look(|state| state.seq()).await?;
        kept.retain(|one| one.seq == seq);
        if let Some(one) = kept.iter().find(|one| one.scope == scope && one.all == all) {
            return Ok((PreEscaped(one.html.clone()), seq));
        }
        let gone = CancellationToken::new();
        let _gone_with_the_reader = gone.clone().drop_guard();
        let query = query.clone();
        let draw = move |state: &_, _: &_, _| {
            let graph = Graph::of(state, query.scope.as_deref(), all, &|| gone.is_cancelled())?;
            Some((pages::graph::drawn(&graph, &query).into_string(), graph.seq))
        };
        let made = door.handle.survey(visit.viewer(), draw).await?;
        let (html, seq) = made.ok_or(CallError::Gone)?;
        kept.truncate(DRAWINGS - 1);
        kept.push(Drawing { scope, all, seq, html: html.clone() });
        Ok((PreEscaped(html), seq))
    }
}
