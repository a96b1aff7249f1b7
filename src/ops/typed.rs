//! A call by the type of its operation, whose reply comes back as that type, too.

use std::sync::{Arc, Mutex, PoisonError};

use super::naming::Open;
use super::operation::Operation;
use super::prepared::{Prepared, parse};
use crate::state::refusal::Refusal;

/// A call that has been prepared, and the place where its reply will be.
pub(crate) struct Typed<O: Operation> {
    pub prepared: Box<dyn Prepared>,
    pub reply: Slot<O>,
}

/// Holds the newest reply that was built for a call: a call that waits is tried several times.
pub(crate) struct Slot<O: Operation>(Arc<Mutex<Option<O::Reply>>>);

impl<O: Operation> Clone for Slot<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: Operation> Slot<O> {
    pub(super) fn put(&self, reply: O::Reply) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
    }

    pub(crate) fn take(&self) -> Option<O::Reply> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Prepares a call. The parameters pass the same checks as those that come as JSON.
pub(crate) fn typed<O: Operation>(params: &O::Params) -> Result<Typed<O>, Refusal> {
    let reply = Slot(Arc::default());
    let arguments = serde_json::to_value(params).unwrap_or_default();
    let open = Open::of_ids(O::NAME, &arguments);
    let mut parsed = parse::<O>(arguments)?;
    parsed.open = open;
    parsed.reply = Some(reply.clone());
    Ok(Typed { prepared: Box::new(parsed), reply })
}
