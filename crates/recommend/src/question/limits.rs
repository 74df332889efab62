//! Limits of questions: what a surface takes at most, and widths where a question names none.

use crate::bounds::MAX_BEAM_WIDTH;
use crate::bounds::MAX_FREE_TOKENS;
use crate::request::Request;

/// Limits of questions. The default is the engine's own; a server takes less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuestionLimits {
    /// The width of a search whose question names none.
    pub default_beam_width: usize,
    /// Items of an answer.
    pub max_k: usize,
    /// Hypotheses of a level.
    pub max_beam_width: usize,
    /// Items of a history.
    pub max_history: usize,
    /// Tokens of reasoning, and of the text after an item: each is a pass of the model.
    pub max_free_tokens: usize,
    /// Limit on items that text is written for: each reads the prompt again.
    pub max_explained_items: usize,
}

impl Default for QuestionLimits {
    fn default() -> Self {
        Self {
            default_beam_width: Request::DEFAULT_BEAM_WIDTH,
            max_k: MAX_BEAM_WIDTH,
            max_beam_width: MAX_BEAM_WIDTH,
            max_history: usize::MAX,
            max_free_tokens: MAX_FREE_TOKENS,
            max_explained_items: MAX_BEAM_WIDTH,
        }
    }
}
