use std::process::ExitCode;

use super::{Outcome, Session};
use crate::ops;
use crate::ops::resume::Params;

pub(super) fn run(session: &Session) -> Outcome {
    let reply = session.ask::<ops::ResumeBoard>(&Params::default())?;
    session.show(reply.json(), |page| page.line("claims are allowed"))?;
    Ok(ExitCode::SUCCESS)
}
