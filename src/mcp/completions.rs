//! Completions: the ids and tags that begin as a person has typed.

use rmcp::model::{CompleteRequestParams, CompletionInfo, ErrorData, Reference};

use super::{prompts, resources};
use crate::state::State;

/// Values that complete what was typed; none if the argument has no known values.
///
/// # Errors
/// If there is no such prompt.
pub(super) fn complete(
    request: &CompleteRequestParams,
    state: &State,
) -> Result<CompletionInfo, ErrorData> {
    let blank = request.argument.name.as_str();
    let values = match &request.r#ref {
        Reference::Resource(template) => resources::values(&template.uri, blank, state),
        Reference::Prompt(prompt) => prompts::values(&prompt.name, blank, state)?,
        _ => None,
    };
    let typed = request.argument.value.to_lowercase();
    let goes_on = |value: &String| value.to_lowercase().starts_with(&typed);
    let mut values: Vec<_> = values.unwrap_or_default().into_iter().filter(goes_on).collect();
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let more = total > values.len();
    Ok(CompletionInfo::with_pagination(values, u32::try_from(total).ok(), more).unwrap_or_default())
}
