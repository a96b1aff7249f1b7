//! Where a page is among the others, and how its parts stand beside each other.

/// Where a page is among those that every page leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Board,
    Agents,
    Tasks,
    Plan,
    Graph,
    Timeline,
    Files,
    Discoveries,
    Events,
    /// None of them.
    None,
}

impl Place {
    pub(super) const ALL: [(Self, &'static str, &'static str); 9] = [
        (Self::Board, "/", "Board"),
        (Self::Agents, "/agents", "Agents"),
        (Self::Tasks, "/tasks", "Tasks"),
        (Self::Plan, "/plan", "Plan"),
        (Self::Graph, "/graph", "Graph"),
        (Self::Timeline, "/timeline", "Timeline"),
        (Self::Files, "/files", "Files"),
        (Self::Discoveries, "/discoveries", "Discoveries"),
        (Self::Events, "/events", "Events"),
    ];
}

/// What of an open page is kept up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    All,
    /// Nothing but its head, with what waits for the visitor: the rest takes long to make, or is to
    /// stay as it was asked for.
    Head,
    Nothing,
}

/// How the sections of a page stand beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In columns, as on the first screen.
    Screen,
    /// One thing, with its facts beside it.
    One,
    /// Below each other.
    Page,
    /// The same, for texts.
    Narrow,
    /// The same, as wide as the window.
    Wide,
}

impl Layout {
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Screen => "screen",
            Self::One => "page one",
            Self::Page => "page",
            Self::Narrow => "page narrow",
            Self::Wide => "page wide",
        }
    }
}
