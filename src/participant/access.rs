//! What this process may do in its directory.

use std::path::Path;
use std::sync::Arc;

use super::error::BoardError;
use super::message::Queued;
use super::opening::is_begun;
use crate::ops::Operation;
use crate::ops::init_coordination::InitCoordination;

pub(super) struct Access {
    /// Name of the state file that this process was started with.
    pub state_file: Option<String>,
    /// Why no board may be made or opened.
    pub forbidden: Option<String>,
    /// Why only a call that asks for a board makes one.
    pub unasked: Option<String>,
    /// Why nothing may be written.
    pub unwritable: Option<String>,
}

impl Access {
    pub(super) fn check_allowed(&self) -> Result<(), Arc<BoardError>> {
        let forbidden = self.forbidden.as_ref();
        forbidden.map_or(Ok(()), |reason| Err(Arc::new(BoardError::Forbidden(reason.clone()))))
    }

    pub(super) fn check_writable(&self) -> Result<(), BoardError> {
        let unwritable = self.unwritable.as_ref();
        unwritable.map_or(Ok(()), |reason| Err(BoardError::Forbidden(reason.clone())))
    }

    /// Refuses to make a board where no project is, unless the call asks for it.
    pub(super) fn check_asked(
        &self,
        call: &Queued,
        is_open: bool,
        dir: &Path,
    ) -> Result<(), BoardError> {
        let asks = call.prepared.name() == InitCoordination::NAME;
        match &self.unasked {
            Some(reason) if !is_open && !asks && !is_begun(dir) => {
                Err(BoardError::Forbidden(self.forbidden.as_ref().unwrap_or(reason).clone()))
            }
            _ => Ok(()),
        }
    }
}
