//! What `status` knows of the board: the model of the first screen, and the replies that have the
//! rest.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::board::Board;
use crate::cli::{Session, plan_files};
use crate::view;

pub(in crate::cli) struct Seen {
    pub board: view::Board,
    /// The reply to `get_status` with what is added to it, as `--json` prints it.
    pub json: Value,
}

impl Seen {
    /// `rows` of each list; without, a screenful.
    pub(in crate::cli) async fn of(
        session: &Session,
        board: &Board,
        scope: Option<&str>,
        rows: Option<usize>,
    ) -> anyhow::Result<Self> {
        // What a process has to say of the board comes with its first reply.
        let mut json = board.call("get_status", json!({"scope": scope})).await?;
        if !json["plan"].is_null() {
            let versions = board.call("get_master_plan", json!({})).await?["plans"].take();
            let changed = plan_files::changed(session, &Vec::deserialize(&versions)?);
            if !changed.is_empty() {
                json["plan_files"] = serde_json::to_value(changed)?;
            }
            json["plans"] = board.call("list_plans", json!({})).await?["plans"].take();
        }
        let mut health = board.call("health_check", json!({})).await?;
        for field in ["clock_ahead_seconds", "wrong_clocks"] {
            if let Some(found) = health.get_mut(field) {
                json[field] = found.take();
            }
        }
        let mut asked = json!({"scope": scope});
        if let Some(rows) = rows {
            asked["limit"] = rows.into();
        }
        let seen = board.call("get_board", asked).await?;
        let model = view::Board::deserialize(&seen)?;
        json["board"] = seen;
        Ok(Self { board: model, json })
    }

    /// Whether nothing was ever written here.
    pub(super) fn is_without_board(&self) -> bool {
        self.json["seq"] == 0 && self.json["total_tasks"] == 0
    }
}
