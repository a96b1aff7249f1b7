//! What is wrong with a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is wrong with a plan, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    pub line: usize,
    pub problem: String,
}
