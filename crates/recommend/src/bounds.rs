//! Bounds of the numbers that requests may name.

use std::num::NonZeroUsize;

use crate::error::RecommendError;

/// Widest beam, and most recommendations of one request: caches and logits grow with it.
pub const MAX_BEAM_WIDTH: usize = 1 << 16;

/// Limit on the tokens of free text.
pub const MAX_FREE_TOKENS: usize = 1 << 16;

/// Checks that a number is neither zero nor larger than its bound.
pub(crate) fn checked(
    what: &'static str,
    value: usize,
    max: usize,
) -> Result<NonZeroUsize, RecommendError> {
    match NonZeroUsize::new(value) {
        None => Err(RecommendError::Zero { what }),
        Some(_) if value > max => Err(RecommendError::TooLarge { what, value, max }),
        Some(value) => Ok(value),
    }
}
