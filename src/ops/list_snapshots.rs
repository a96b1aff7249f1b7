use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::{Page, Part, Shown};
use super::{Annotations, Archive, Call, Fetched, Operation, READ, Toolset};
use crate::state::State;
use crate::state::refusal::Refusal;
use crate::state::snapshot::{Listed, SnapshotName};

pub struct ListSnapshots;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Default 50, at most 1000
    pub limit: Option<NonZeroU32>,
    /// `next` of the prior page
    pub after: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub part: Option<Part<SnapshotName>>,
    pub snapshots: Vec<Shown<Listed>>,
}

impl Operation for ListSnapshots {
    const NAME: &'static str = "list_snapshots";
    const DESCRIPTION: &'static str =
        "List the snapshots, newest first, with seq, time, occasion and label.";
    const ANNOTATIONS: Annotations = READ;
    const TOOLSET: Toolset = Toolset::Full;
    const FETCHES: bool = true;
    type Params = Params;
    type Reply = Reply;

    fn fetch(_: &Params, archive: &dyn Archive) -> Result<Fetched, Refusal> {
        archive.list().map(Fetched::Listed)
    }

    fn reply(params: &Params, _: &State, call: &Call) -> Result<Reply, Refusal> {
        let mut page = Page::new(call, params.limit, 50)?;
        let after = params.after.as_deref().map(SnapshotName::checked).transpose()?;
        let Fetched::Listed(all) = call.fetched else { return Err(Refusal::NoSnapshot) };
        let wanted =
            all.iter().rev().filter(|one| after.as_ref().is_none_or(|after| one.name < *after));
        let is_more = page.fill(wanted.cloned());
        let next = page.last().filter(|_| is_more).map(|last| last.name.clone());
        Ok(Reply {
            part: page.part(Some(all.len()), after.is_some(), next),
            snapshots: page.into_entries(),
        })
    }
}
