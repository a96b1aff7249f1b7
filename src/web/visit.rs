//! One look at a page: who looks, what they may do, and what the page is made for.

use std::fmt;
use std::io;
use std::sync::Arc;

use axum::http::Uri;

use super::said;
use crate::ops::Principal;
use crate::participant::Caller;
use crate::state::agent::Role;
use crate::state::digest::hex;
use crate::state::guard::HUMAN;
use crate::state::id::AgentId;
use crate::view::Reader;

/// Who looks at which page.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Name of the board, for titles.
    pub board: Arc<str>,
    /// Path and query of the page, as links to it have them.
    pub path: String,
    /// Of the scripts in the page, and of what htmx may act on.
    pub nonce: String,
    /// Who looks. `None` for a page that anybody may see.
    pub caller: Option<Caller>,
    /// What the last action came to, if the page is shown because of one.
    pub notice: Option<Notice>,
}

/// What an action came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub text: String,
    pub is_refusal: bool,
}

/// The number of the event that a page shows. Forms carry it, so that an action that was decided on
/// an older state can be refused.
///
/// Pages are rendered once for all who look, before the number that each shows is known: it is
/// written as a mark that [`Seq::fill`] replaces.
pub struct Seq;

impl Seq {
    /// A control character, which no text of the board has.
    const MARK: &str = "\u{1}";

    pub fn fill(html: &str, seq: u64) -> String {
        html.replace(Self::MARK, &seq.to_string())
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::MARK)
    }
}

impl Visit {
    pub(super) fn new(board: &Arc<str>, uri: &Uri, caller: Option<Caller>) -> io::Result<Self> {
        let mut nonce = [0; 16];
        getrandom::fill(&mut nonce).map_err(io::Error::other)?;
        let path = own_path(uri);
        Ok(Self { board: Arc::clone(board), path, nonce: hex(&nonce), caller, notice: None })
    }

    /// Whether the page has forms: an observer's and a worker's have none.
    pub fn may_act(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| role(caller.principal.as_deref()) == Role::Leader)
    }

    /// Name of the visitor's token; none for the person whose board it is.
    pub(super) fn viewer(&self) -> Option<String> {
        Some(self.caller.as_ref()?.principal.as_ref()?.token.clone())
    }

    /// Whose token let the visitor in; none for the person whose board it is.
    pub(super) fn principal(&self) -> Option<Arc<Principal>> {
        self.caller.as_ref()?.principal.clone()
    }

    /// The visitor as who reads. The person whose board it is is also whoever acted in charge of it
    /// without a name.
    pub fn reader(&self) -> Reader {
        let Some(caller) = &self.caller else { return Reader::default() };
        let own = match (&caller.principal, &caller.person) {
            (Some(principal), _) => vec![AgentId::of_person(&principal.token)],
            (None, Some(name)) => vec![AgentId::of_person(name), AgentId::trusted(HUMAN)],
            (None, None) => vec![AgentId::trusted(HUMAN)],
        };
        Reader::new(own)
    }

    /// Who is logged in, as the page says it.
    pub fn name(&self) -> Option<&str> {
        let caller = self.caller.as_ref()?;
        Some(caller.principal.as_ref().map_or("you", |principal| &principal.token))
    }
}

/// Path and query of a page, without what it says only once.
fn own_path(uri: &Uri) -> String {
    let query = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut own = form_urlencoded::Serializer::new(String::new());
    own.extend_pairs(query.filter(|(name, _)| name != said::NAME));
    match own.finish().as_str() {
        "" => uri.path().to_owned(),
        query => format!("{}?{query}", uri.path()),
    }
}

/// Without a token of their own, the visitor is the person whose board it is.
fn role(principal: Option<&Principal>) -> Role {
    principal.map_or(Role::Leader, |principal| principal.role)
}
