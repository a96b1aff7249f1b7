//! The pages of `callboard serve`: the board in a browser.
//!
//! A page is made of models such as `view::Board` by pure functions in `pages`. It is a list of
//! sections; `shell` puts what is around them.

mod actions;
mod assets;
mod drawings;
mod entrance;
mod live;
mod login;
mod page;
mod pages;
mod parts;
mod routes;
mod said;
mod shell;
mod site;
mod visit;

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::header::{ACCEPT, LOCATION, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use maud::Markup;

use crate::ops::Operation;
use crate::participant::{self, CallError, Caller, Handle};

use actions::{Form, Outcome};
use drawings::Drawings;
use entrance::{dressed, is_own};
use live::Live;
use login::Logins;
pub use login::Secret;
pub use page::{Layout, Place, Renewed};
use said::Said;
pub use site::Site;
pub use visit::{Notice, Seq, Visit};

const LOGIN: &str = "/login";
const LOGOUT: &str = "/logout";
const FAVICON: &str = "/favicon.ico";
/// The header of requests by a page's script.
const BY_SCRIPT: &str = "hx-request";

/// A part of a page that is replaced as a whole when it changes.
pub struct Section {
    /// Id of the element.
    pub id: Cow<'static, str>,
    /// The element.
    pub html: Markup,
}

/// A page, without what is around all pages. The section `head` is at its top.
pub struct Page {
    /// Also what the browser shows above the page.
    pub title: String,
    pub place: Place,
    pub layout: Layout,
    /// In the order in which they are shown. They have no nonce, because open pages get them later.
    pub sections: Vec<Section>,
    pub renewed: Renewed,
}

/// Why there is no page: a status, and what it says.
struct Failure {
    status: StatusCode,
    text: String,
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let status = match &error {
            CallError::Refused(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self { status, text: error.message() }
    }
}

/// The way to the pages.
pub struct Door {
    handle: Handle,
    dir: PathBuf,
    site: Site,
    name: Arc<str>,
    logins: Logins,
    live: Live,
    drawings: Drawings,
    said: Said,
    /// Name of the person whose board it is.
    person: Option<Arc<str>>,
}

impl Door {
    pub fn new(
        handle: Handle,
        dir: &Path,
        site: Site,
        secret: Secret,
        person: Option<Arc<str>>,
    ) -> Self {
        let logins = Logins::new(secret, &site.label);
        // Frames of another process that listens on the same port are not ours.
        let epoch = format!("{:x}{:x}", participant::board_time(dir).millis(), std::process::id());
        let live = Live::new(epoch);
        Self {
            handle,
            dir: dir.to_owned(),
            name: site.name.as_str().into(),
            site,
            logins,
            live,
            drawings: Drawings::default(),
            said: Said::default(),
            person,
        }
    }

    /// Ends the streams of open pages, which connect again when there is a server.
    pub fn close(&self) {
        self.live.closing.cancel();
    }

    /// Whether a page answers the request, and not what programs call.
    pub fn is_for_pages(request: &Request) -> bool {
        let (path, headers) = (request.uri().path(), request.headers());
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        let has_page = |value: &HeaderValue| {
            value.to_str().is_ok_and(|value| value.to_ascii_lowercase().contains("text/html"))
        };
        [LOGIN, LOGOUT, FAVICON].contains(&path)
            || path.starts_with(assets::PREFIX)
            || path.starts_with(actions::PREFIX)
            || path == live::PATH
            || is_read && headers.get_all(ACCEPT).iter().any(has_page)
    }

    /// The hash of the token that the cookie of a request is bound to.
    pub fn visitor(&self, headers: &HeaderMap) -> Option<String> {
        self.logins.visitor(headers, participant::board_time(&self.dir))
    }

    /// A link that logs the bearer of the token with this hash in, once.
    ///
    /// # Errors
    /// If the system has no randomness.
    pub fn link(&self, token: &str) -> io::Result<String> {
        Ok(self.site.link(&self.logins.code(token, Instant::now())?))
    }

    /// Answers a request for a page. `caller` is the visitor, if the cookie is good.
    pub async fn answer(
        self: &Arc<Self>,
        request: &Parts,
        body: &[u8],
        caller: Option<Caller>,
    ) -> Response {
        let caller = caller.map(|caller| self.with_name(caller));
        let visit = match Visit::new(&self.name, &request.uri, caller) {
            Ok(visit) => Visit { notice: self.said.take(&request.uri), ..visit },
            Err(error) => {
                return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response();
            }
        };
        let response = self.lead(&visit, request, body).await;
        dressed(response, &visit.nonce)
    }

    /// The visitor under the owner's name, unless a token says who it is.
    fn with_name(&self, caller: Caller) -> Caller {
        match caller.principal {
            Some(_) => caller,
            None => Caller { person: self.person.clone(), ..caller },
        }
    }

    async fn lead(self: &Arc<Self>, visit: &Visit, request: &Parts, body: &[u8]) -> Response {
        let (path, headers) = (request.uri.path(), &request.headers);
        if let Some(name) = path.strip_prefix(assets::PREFIX) {
            return assets::answer(name, headers);
        }
        if path == FAVICON {
            return assets::answer(assets::ICON, headers);
        }
        if request.method == Method::POST {
            if !is_own(headers) {
                let text = "this was not sent by a page of this board, so nothing was done";
                return refused(visit, StatusCode::FORBIDDEN, text);
            }
            return match (path, path.strip_prefix(actions::PREFIX)) {
                (LOGIN, _) => self.log_in(visit, body),
                (LOGOUT, _) => away("/login", &self.logins.no_cookie()),
                (_, Some(action)) if visit.caller.is_some() => {
                    let form = Form::read(visit, body);
                    match self.act(visit, action, &form).await {
                        Some(outcome) => self.tell(visit, headers, &form, outcome).await,
                        None => self.missing(visit),
                    }
                }
                (_, Some(_)) => html(StatusCode::UNAUTHORIZED, pages::login::page(visit), 0),
                _ => self.missing(visit),
            };
        }
        if visit.caller.is_none() || path == LOGIN {
            let status = if path == LOGIN { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
            return html(status, pages::login::page(visit), 0);
        }
        if path == live::PATH {
            return live::answer(self, visit, request);
        }
        match self.page(visit).await {
            Ok((page, seq)) => html(StatusCode::OK, shell::page(visit, &page), seq),
            Err(failure) => refused(visit, failure.status, &failure.text),
        }
    }

    /// Says what an action came to: in the open page if its script asks, else in a new one.
    async fn tell(
        &self,
        visit: &Visit,
        headers: &HeaderMap,
        form: &Form,
        outcome: Outcome,
    ) -> Response {
        let Outcome { status, notice } = outcome;
        if headers.contains_key(BY_SCRIPT) {
            let seq = self.handle.look(|state| state.seq()).await.unwrap_or_default();
            let visit = Visit { notice: Some(notice), ..visit.clone() };
            return html(status, shell::notice(&visit), seq);
        }
        if status.is_success() {
            let path = self.said.keep(form.back(), notice);
            return (StatusCode::SEE_OTHER, [(LOCATION, path)]).into_response();
        }
        let visit = Visit { path: form.back().to_owned(), notice: Some(notice), ..visit.clone() };
        match self.page(&visit).await {
            Ok((page, seq)) => html(status, shell::page(&visit, &page), seq),
            Err(failure) => refused(&visit, failure.status, &failure.text),
        }
    }

    /// The page at the address of the visit, and the event that it shows.
    async fn page(&self, visit: &Visit) -> Result<(Page, u64), Failure> {
        routes::page(self, visit).await
    }

    /// What an operation replies to the visitor.
    async fn ask<O: Operation>(
        &self,
        visit: &Visit,
        params: O::Params,
    ) -> Result<O::Reply, CallError> {
        let caller = visit.caller.as_ref().ok_or(CallError::Gone)?;
        Ok(self.handle.call_typed::<O>(&params, caller).await?.0)
    }

    /// Where git is asked about work that has no worktree of its own.
    fn project(&self) -> PathBuf {
        self.dir.parent().unwrap_or(&self.dir).to_owned()
    }

    fn missing(&self, visit: &Visit) -> Response {
        refused(visit, StatusCode::NOT_FOUND, "there is no such page")
    }

    /// Exchanges a code for a cookie.
    fn log_in(&self, visit: &Visit, body: &[u8]) -> Response {
        let field = |wanted: &str| {
            form_urlencoded::parse(body).find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let now = Instant::now();
        let Some(token) = field("code").and_then(|code| self.logins.redeem(&code, now)) else {
            let notice = Notice {
                text: "this code has expired or was used, or is mistyped: a new one is printed by \
                       the command below"
                    .to_owned(),
                is_refusal: true,
            };
            let visit = Visit { notice: Some(notice), ..visit.clone() };
            return html(StatusCode::FORBIDDEN, pages::login::page(&visit), 0);
        };
        match self.logins.cookie(&token, participant::board_time(&self.dir)) {
            Ok(cookie) => away("/", &cookie),
            Err(error) => refused(visit, StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        }
    }
}

/// Sends the browser to another page, with another cookie.
fn away(path: &str, cookie: &str) -> Response {
    (StatusCode::SEE_OTHER, [(LOCATION, path), (SET_COOKIE, cookie)]).into_response()
}

fn html(status: StatusCode, page: Markup, seq: u64) -> Response {
    (status, Html(Seq::fill(&page.into_string(), seq))).into_response()
}

/// A page that says why there is no other.
fn refused(visit: &Visit, status: StatusCode, text: &str) -> Response {
    html(status, shell::page(visit, &pages::failure::page(text)), 0)
}
