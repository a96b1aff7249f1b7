use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AgentArgument, Annotations, Call, Decision, Operation, REPEATABLE, Toolset, input};
use crate::state::State;
use crate::state::event::Event;
use crate::state::id::ReservationId;
use crate::state::limit;
use crate::state::pattern::Pattern;
use crate::state::refusal::Refusal;
use crate::state::reservation::Reservation;

pub struct ReleaseFiles;

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub agent_id: Option<String>,
    /// Ids from reserve_files; default all of yours
    pub reservations: Option<Vec<String>>,
    /// Only these of their files, as in reserve_files; default all
    pub files: Option<Vec<String>>,
    /// What the call named that is not reserved, found while it was decided on.
    #[serde(skip)]
    pub unknown: Mutex<Vec<String>>,
}

#[derive(Serialize, JsonSchema)]
pub struct Reply {
    pub success: bool,
    /// Reservations you still have
    pub left: usize,
    /// Ids and files you named that are not reserved, or not any more
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

impl Operation for ReleaseFiles {
    const NAME: &'static str = "release_files";
    const DESCRIPTION: &'static str = "Give up reservations before their time, or some of their \
                                       files. A leader may name another's. The files of a task go with its claim.";
    const ANNOTATIONS: Annotations = REPEATABLE;
    const TOOLSET: Toolset = Toolset::Full;
    const AGENT: AgentArgument = AgentArgument::Required;
    type Params = Params;
    type Reply = Reply;

    fn agent_id(params: &Params) -> Option<&str> {
        params.agent_id.as_deref()
    }

    fn decide(params: &Params, state: &State, call: &Call) -> Decision {
        let agent = &state.known_agent(call.agent()?)?.id;
        let given = params.reservations.as_deref();
        limit::RESERVATIONS.check(given.unwrap_or_default().len())?;
        let mut unknown = Vec::new();
        let mut chosen: Vec<&Arc<Reservation>> = Vec::new();
        match given {
            None => chosen.extend(state.reservations().filter(|one| one.agent == *agent)),
            Some(ids) => {
                for id in ids {
                    let id = made_id(id)?;
                    // A reservation that has ended needs no release.
                    let Some(one) = state.reservation(&id) else {
                        unknown.push(id.to_string());
                        continue;
                    };
                    if one.agent != *agent {
                        state.leads(Some(agent), "release another's files")?;
                    }
                    chosen.push(one);
                }
            }
        }
        let mut narrowed = Vec::new();
        if let Some(files) = &params.files {
            let files = input::checked_patterns("files", files, call.place)?;
            (chosen, narrowed) = without(&files, chosen, &mut unknown)?;
        }
        if let Ok(mut noted) = params.unknown.lock() {
            *noted = unknown;
        }
        let reservations: Vec<_> = chosen.into_iter().map(|one| one.id.clone()).collect();
        let released = (!reservations.is_empty())
            .then_some(Event::FilesReleased { reservations, expired: false });
        Ok(released.into_iter().chain(narrowed).collect())
    }

    fn reply(params: &Params, state: &State, call: &Call) -> Result<Reply, Refusal> {
        let agent = call.agent()?;
        Ok(Reply {
            success: true,
            left: state.reservations().filter(|one| one.agent == *agent).count(),
            unknown: params.unknown.lock().map(|noted| noted.clone()).unwrap_or_default(),
        })
    }
}

/// An id as the board makes them; `all` or a path is none.
fn made_id(given: &str) -> Result<ReservationId, Refusal> {
    if !given.starts_with("res-") {
        let wanted = "ids from reserve_files, such as \"res-7f3k\"; files takes paths; all of yours \
                      are meant if both are left out";
        return Err(Refusal::BadArgument {
            argument: "reservations".to_owned(),
            wanted: wanted.to_owned(),
        });
    }
    ReservationId::checked(given)
}

/// Which of the reservations end if these files are given up, and the events that leave others
/// with the rest of their files.
fn without<'a>(
    files: &[String],
    reservations: Vec<&'a Arc<Reservation>>,
    unknown: &mut Vec<String>,
) -> Result<(Vec<&'a Arc<Reservation>>, Vec<Event>), Refusal> {
    let (mut ended, mut narrowed) = (Vec::new(), Vec::new());
    let given: Vec<_> = files.iter().filter_map(|file| Pattern::new(file)).collect();
    let mut is_held = vec![false; given.len()];
    for one in reservations {
        let mut left = Vec::new();
        for held in &one.files {
            let Some(pattern) = Pattern::new(held) else { continue };
            let mut goes = false;
            for (file, is_held) in given.iter().zip(&mut is_held) {
                let includes = file.includes(&pattern);
                goes |= includes;
                *is_held |= includes;
            }
            let in_part = given.iter().find(|file| file.overlaps(&pattern));
            match in_part.filter(|_| !goes) {
                Some(file) => {
                    return Err(Refusal::HeldInPart {
                        file: file.as_str().to_owned(),
                        held: held.clone(),
                        reservation: one.id.clone(),
                    });
                }
                None if goes => {}
                None => left.push(held.clone()),
            }
        }
        if left.is_empty() {
            ended.push(one);
        } else if left.len() < one.files.len() {
            let reservation = Reservation { files: left, ..Reservation::clone(one) };
            narrowed.push(Event::FilesReserved { reservation: Box::new(reservation) });
        }
    }
    let not_held = files.iter().zip(is_held).filter(|(_, is_held)| !is_held);
    unknown.extend(not_held.map(|(file, _)| file.clone()));
    Ok((ended, narrowed))
}
