//! Notifications of changes, in both protocol eras: on the stream of a `subscriptions/listen`
//! request or, before 2026-07-28, in a session that called `resources/subscribe`.
//!
//! A notification says that something has changed, not what; several changes at once become one.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use rmcp::model::{Extensions, ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::select;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::http::FORGOTTEN;
use super::resources::{self, Subject};
use crate::failpoint;
use crate::ops::EventFilter;
use crate::participant::{BoardError, CallError, Handle, Item, Listener};

/// Time within which changes are gathered into one notification.
const GATHERED: Duration = Duration::from_millis(50);
/// First and longest pause before a failed read of the changes is repeated.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Most resources that one session or stream may subscribe to.
const MAX_RESOURCES: usize = 256;

/// Changes since the last notification.
#[derive(Default)]
struct Changes {
    list: bool,
    uris: BTreeSet<String>,
}

/// What a client wants to be notified of.
#[derive(Clone, Default)]
struct Interest {
    list: bool,
    subjects: Vec<(String, Subject)>,
}

impl Interest {
    fn in_resource(uri: &str) -> Result<(String, Subject), ErrorData> {
        let subject = Subject::of(uri);
        let unknown = || {
            ErrorData::resource_not_found(
                format!("there is no resource `{uri}`; ask resources/list"),
                None,
            )
        };
        Ok((uri.to_owned(), subject.ok_or_else(unknown)?))
    }

    /// The next changes of interest. After an error, the listener continues where it was.
    async fn next(&self, listener: &mut Listener) -> Result<Changes, CallError> {
        let mut changes = Changes::default();
        let mut until = None;
        loop {
            let gathered = async {
                match until {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            let item = select! {
                item = next_item(listener) => item,
                () = gathered => return Ok(changes),
            };
            let item = match item {
                Ok(item) => item,
                // The error will come again; the gathered changes would not.
                Err(_) if until.is_some() => return Ok(changes),
                Err(error) => return Err(error),
            };
            changes.list |= self.list && resources::is_list_changed_by(&item.recorded);
            let touched =
                self.subjects.iter().filter(|(_, subject)| subject.is_touched_by(&item.recorded));
            changes.uris.extend(touched.map(|(uri, _)| uri.clone()));
            if changes.list || !changes.uris.is_empty() {
                until.get_or_insert_with(|| Instant::now() + GATHERED);
            }
        }
    }
}

async fn next_item(listener: &mut Listener) -> Result<Arc<Item>, CallError> {
    failpoint::hit("listen")
        .map_err(|source| BoardError::Io { action: "cannot listen".to_owned(), source })?;
    listener.next().await
}

async fn listen_from_now(handle: &Handle) -> Result<Listener, ErrorData> {
    let listener = handle.listen(None, EventFilter::default()).await;
    listener.map_err(|error| ErrorData::internal_error(error.message(), Some(error.data())))
}

/// The part of the request that can be granted.
pub(super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let known = |uris: &Vec<String>| -> Vec<String> {
        uris.iter().filter(|uri| Subject::of(uri).is_some()).take(MAX_RESOURCES).cloned().collect()
    };
    let mut accepted = requested.clone();
    accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(known);
    accepted
}

/// Serves one `subscriptions/listen` request until it is cancelled.
pub(super) async fn run(handle: &Handle, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let accepted = context.accepted();
    let uris = accepted.resource_subscriptions.iter().flatten();
    let subjects = uris.map(|uri| Interest::in_resource(uri)).collect::<Result<_, _>>()?;
    let interest = Interest { list: accepted.resources_list_changed == Some(true), subjects };
    let mut listener = listen_from_now(handle).await?;
    let sink = context.sink();
    // The client was told that it is heard before this began to listen: all may have changed in
    // between.
    let mut changes = Changes {
        list: interest.list,
        uris: accepted.resource_subscriptions.iter().flatten().cloned().collect(),
    };
    loop {
        // An error means that the stream is closed.
        if changes.list && sink.notify_resource_list_changed().await.is_err() {
            return Ok(());
        }
        for uri in changes.uris {
            if sink.notify_resource_updated(uri).await.is_err() {
                return Ok(());
            }
        }
        let next = select! {
            () = context.cancelled() => return Ok(()),
            next = interest.next(&mut listener) => next,
        };
        changes =
            next.map_err(|error| ErrorData::internal_error(error.message(), Some(error.data())))?;
    }
}

/// Subscriptions of one session, before 2026-07-28, each served by a task that ends when this is
/// dropped. Each session has its own clone of the server, whose subscriptions begin empty.
#[derive(Default)]
pub(super) struct Session(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// Notifications that the list has changed.
    list: Option<AbortOnDropHandle<()>>,
    /// Notifications of resources that the client has subscribed to.
    resources: HashMap<String, AbortOnDropHandle<()>>,
}

impl Clone for Session {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Session {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called when the session begins. Over HTTP, notifications have a stream of their own. On
    /// standard output they would come between replies, which not every client expects before
    /// it has subscribed to anything.
    pub(super) fn open(&self, handle: &Handle, extensions: &Extensions, peer: &Peer<RoleServer>) {
        if is_http(extensions) {
            let is_forgotten =
                peer.peer_info().is_some_and(|client| client.client_info.name == FORGOTTEN);
            let subjects = if is_forgotten { resources::fixed() } else { Vec::new() };
            self.told().tell_unasked(handle, peer, subjects);
        }
    }

    /// `resources/subscribe`; repeating it is no error.
    pub(super) async fn subscribe(
        &self,
        handle: &Handle,
        uri: &str,
        extensions: &Extensions,
        peer: &Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let interest = Interest { list: false, subjects: vec![Interest::in_resource(uri)?] };
        // It listens from before the reply on, so that no later change is missed.
        let listener = listen_from_now(handle).await?;
        let mut told = self.told();
        if !is_http(extensions) {
            told.tell_unasked(handle, peer, Vec::new());
        }
        told.resources.retain(|_, telling| !telling.is_finished());
        if told.resources.contains_key(uri) {
            return Ok(());
        }
        if told.resources.len() >= MAX_RESOURCES {
            let why = format!(
                "the session is subscribed to {MAX_RESOURCES} resources; unsubscribe from some"
            );
            return Err(ErrorData::invalid_params(why, None));
        }
        let peer = peer.clone();
        let telling = tokio::spawn(async move { tell(&peer, &interest, listener).await });
        told.resources.insert(uri.to_owned(), AbortOnDropHandle::new(telling));
        Ok(())
    }

    /// `resources/unsubscribe`; it is no error if there was no subscription.
    pub(super) fn unsubscribe(&self, uri: &str, extensions: &Extensions) {
        let mut told = self.told();
        told.resources.remove(uri);
        if told.resources.is_empty() && !is_http(extensions) {
            told.list = None;
        }
    }
}

fn is_http(extensions: &Extensions) -> bool {
    extensions.get::<Parts>().is_some()
}

impl Told {
    /// Notifies of changes of the list, which before 2026-07-28 needs no request, once per change;
    /// and of `subjects`, as if the client had subscribed to them.
    fn tell_unasked(
        &mut self,
        handle: &Handle,
        peer: &Peer<RoleServer>,
        subjects: Vec<(String, Subject)>,
    ) {
        if self.list.as_ref().is_some_and(|telling| !telling.is_finished()) {
            return;
        }
        let (handle, peer) = (handle.clone(), peer.clone());
        self.list = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let interest = Interest { list: true, subjects };
            match listen_from_now(&handle).await {
                Ok(listener) => tell(&peer, &interest, listener).await,
                Err(error) => {
                    tracing::debug!(error = %error.message, "changes of the list are not told")
                }
            }
        })));
    }
}

/// Sends notifications until the session is closed.
async fn tell(peer: &Peer<RoleServer>, interest: &Interest, mut listener: Listener) {
    let mut pause = FIRST_PAUSE;
    loop {
        let changes = match interest.next(&mut listener).await {
            Ok(changes) => changes,
            Err(CallError::Failed(error)) if matches!(*error, BoardError::Ended) => return,
            Err(error) => {
                tracing::warn!(%error, "what has changed could not be read; trying again");
                sleep(pause).await;
                if peer.is_transport_closed() {
                    return;
                }
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
        };
        pause = FIRST_PAUSE;
        if peer.is_transport_closed()
            || changes.list && peer.notify_resource_list_changed().await.is_err()
        {
            return;
        }
        for uri in changes.uris {
            let update = ResourceUpdatedNotificationParam::new(uri);
            if peer.notify_resource_updated(update).await.is_err() {
                return;
            }
        }
    }
}
