//! Who reads replies: a program, which gets them exact and complete, or a model, which gets what it
//! can read.

use super::Toolset;
use crate::state::limit::{BESIDE_LISTS, REPLY};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    #[default]
    Program,
    /// A model whose client shows it this toolset.
    Model(Toolset),
}

impl Reader {
    pub fn is_model(self) -> bool {
        matches!(self, Self::Model(_))
    }

    /// Most bytes of a list in one reply. `None` means no limit.
    pub fn room(self) -> Option<usize> {
        self.is_model().then_some(REPLY - BESIDE_LISTS)
    }

    /// Whether the reader sees the tool of that toolset.
    pub fn sees(self, toolset: Toolset) -> bool {
        match self {
            Self::Program => true,
            Self::Model(shown) => toolset <= shown,
        }
    }
}
