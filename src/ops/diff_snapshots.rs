use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{Page, Part, Shown};
use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset, input};
use crate::state::State;
use crate::state::diff::{Change, Kind, diff};
use crate::state::document::Document;
use crate::state::refusal::Refusal;
use crate::state::snapshot::SnapshotName;

pub struct DiffSnapshots;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Name of a snapshot, or a seq
    pub from: String,
    /// Name of a snapshot, or a seq; default the present
    pub to: Option<String>,
    /// Default 200, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    #[serde(default)]
    pub after: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<usize>>,
    pub from_seq: u64,
    pub to_seq: u64,
    pub added: usize,
    pub removed: usize,
    pub changed: usize,
    /// Changes ordered by table and id
    pub changes: Vec<Shown<Change>>,
}

impl Operation for DiffSnapshots {
    const NAME: &'static str = "diff_snapshots";
    const DESCRIPTION: &'static str =
        "What was added, removed and changed between two snapshots, or up to now.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn fetch(params: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        input::page(params.limit, 200)?;
        let from = earlier(&params.from, archive)?;
        let to = match &params.to {
            Some(to) => earlier(to, archive)?,
            None => archive.present().to_document(),
        };
        Ok(Fetched::Pair(Box::new(from), Box::new(to)))
    }

    fn reply(params: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 200)?.cut("callboard snapshot diff");
        let Fetched::Pair(from, to) = call.fetched else { return Err(Refusal::NoSnapshot) };
        let changes = diff(from, to);
        let count = |kind| changes.iter().filter(|change| change.kind == kind).count();
        let (added, removed, changed) =
            (count(Kind::Added), count(Kind::Removed), count(Kind::Changed));
        let total = changes.len();
        let is_more = page.fill(changes.into_iter().skip(params.after));
        let next = is_more.then_some(params.after + page.len());
        Ok(Reply {
            part: page.part(Some(total), params.after > 0, next),
            from_seq: from.board.seq,
            to_seq: to.board.seq,
            added,
            removed,
            changed,
            changes: page.into_entries(),
        })
    }
}

fn earlier(text: &str, archive: &dyn Archive) -> Result<Document, Refusal> {
    match text.parse() {
        Ok(seq) => archive.at(seq),
        Err(_) => archive.load(&SnapshotName::checked(text)?),
    }
}
