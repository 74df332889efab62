//! Best sequences of a constraint: a beam search in one call, with owned results.

use std::num::NonZeroUsize;

use palmette_core::{Constraint, TokenId};

use crate::beam_search::{BeamOptions, BeamSearch};
use crate::error::DecodeError;
use crate::host::HostBackend;
use crate::logits_source::LogitsSource;

/// A sequence that a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredSequence {
    /// The generated tokens.
    pub tokens: Vec<TokenId>,
    /// Sum of the tokens' log-probabilities.
    pub score: f32,
}

/// The best sequences of a constraint by a model's logits, best first: at most `width`, each of at
/// most `max_tokens` tokens.
///
/// For a program that asks now and then. One that searches again and again keeps a [`BeamSearch`],
/// whose buffers it uses anew, and has widths that differ by step, gains and probes there.
///
/// # Errors
/// When a limit of the constraint is exceeded, a row has no distribution, or the source fails.
pub fn best_sequences<C: Constraint + ?Sized, L: LogitsSource>(
    constraint: &C,
    source: L,
    width: usize,
    max_tokens: usize,
) -> Result<Vec<ScoredSequence>, L::Error>
where
    L::Error: From<DecodeError>,
{
    let Some(width) = NonZeroUsize::new(width) else { return Ok(Vec::new()) };
    let mut search = BeamSearch::<C>::new(BeamOptions { width, max_tokens });
    search.run(constraint, &mut HostBackend::new(source))?;
    let owned = search.results();
    Ok(owned.map(|of| ScoredSequence { tokens: of.tokens.to_vec(), score: of.score }).collect())
}
