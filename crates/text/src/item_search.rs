//! Items that a search writes into a text: the exact beam search over what must come next.
//!
//! Where a grammar leaves nothing but a semantic ID to write, the likeliest token is not the
//! beginning of the likeliest item. A search keeps many beginnings side by side, as recommending
//! does, and the text goes on with the best item.

use palmette_core::TokenId;

/// Search for each item that a text must have next; without one, items are drawn token by token.
///
/// It takes the likeliest, whatever the temperature: bias, penalties and cuts of the sampler are
/// about tokens that are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemSearch {
    /// Beginnings of items that are kept side by side: at least 1, at most
    /// [`MAX_WIDTH`](Self::MAX_WIDTH).
    pub beam_width: usize,
    /// Items that are told beside each one that is written, the best of the others first: fewer
    /// than the width.
    pub alternatives: usize,
}

impl Default for ItemSearch {
    fn default() -> Self {
        Self { beam_width: 64, alternatives: 0 }
    }
}

/// Outcome of one search: the item that was written, and others that could have been.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchedItem {
    /// Tokens of the text before it.
    pub place: usize,
    /// The items, best first, of equals the one that was met first; the first was written.
    pub found: Vec<ScoredTokens>,
}

/// An item's tokens with their score.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredTokens {
    /// The tokens.
    pub tokens: Vec<TokenId>,
    /// Sum of the log-probabilities that the model gives them, each among all tokens.
    pub score: f32,
}

/// A search that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemSearchError {
    /// No beams, or too many.
    #[error("beam_width of item_search is {width}; it must be at least 1 and at most {max}")]
    Width {
        /// The width.
        width: usize,
        /// The limit.
        max: usize,
    },
    /// More items than the search has.
    #[error(
        "item_search asks for {alternatives} alternatives beside the item and keeps {width} beams: \
         ask for fewer, or a larger beam_width"
    )]
    Alternatives {
        /// Items asked for.
        alternatives: usize,
        /// The width.
        width: usize,
    },
    /// Likelihoods of tokens that are not drawn.
    #[error("log-probabilities are those of drawn tokens; leave out logprobs or item_search")]
    Logprobs,
}

/// Tokens of an item where its catalog does not say how many there are at most.
pub(crate) const MAX_ITEM_TOKENS: usize = 64;

impl ItemSearch {
    /// Limit on the width.
    pub const MAX_WIDTH: usize = 1024;

    /// # Errors
    /// When the width is out of range, or more items are asked for than there are beams.
    pub(crate) fn check(&self) -> Result<(), ItemSearchError> {
        let Self { beam_width: width, alternatives } = *self;
        if width == 0 || width > Self::MAX_WIDTH {
            return Err(ItemSearchError::Width { width, max: Self::MAX_WIDTH });
        }
        if alternatives >= width {
            return Err(ItemSearchError::Alternatives { alternatives, width });
        }
        Ok(())
    }
}
