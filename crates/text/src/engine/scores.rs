//! Likelihoods of a prompt's tokens, found as it is read.

use palmette_core::{TokenId, TokenMask};
use palmette_decode::LogProbabilities;
use palmette_model::{SequenceStore, SequencesError};

/// The log-probabilities of a prompt's tokens so far.
pub(super) struct Scores {
    top: usize,
    allowed: TokenMask,
    found: Vec<LogProbabilities>,
}

impl Scores {
    /// None found yet, of `num_tokens` that there are.
    pub(super) fn new(top: usize, num_tokens: usize) -> Self {
        let mut allowed = TokenMask::new(num_tokens);
        (0..num_tokens as u32).for_each(|token| allowed.insert(TokenId(token)));
        Self { top, allowed, found: Vec::new() }
    }

    /// Takes the log-probabilities of all tokens of a prompt except the first, once found.
    pub(super) fn take(&mut self, prompt: usize) -> Option<Vec<LogProbabilities>> {
        (self.found.len() + 1 >= prompt).then(|| std::mem::take(&mut self.found))
    }

    /// Adds what the latest pass tells of a prompt, of which it read the tokens from `first` on in
    /// the stretch at `place`. A place that was read before is not looked at again.
    ///
    /// # Errors
    /// When what computes the logits fails.
    pub(super) fn add(
        &mut self,
        sequences: &mut dyn SequenceStore,
        place: usize,
        prompt: &[TokenId],
        (first, count): (usize, usize),
    ) -> Result<(), SequencesError> {
        let most = sequences.options().max_sequences;
        let mut at = self.found.len().max(first);
        // After the last token no token of the prompt follows.
        let end = (first + count).min(prompt.len().saturating_sub(1));
        while at < end {
            let rows = (end - at).min(most);
            let from = at - first;
            let logits = sequences.logits_of_rows(place, from..from + rows)?;
            let Some(logits) = logits else { return Ok(()) };
            for row in logits.chunks_exact(logits.len() / rows) {
                let next = prompt[self.found.len() + 1];
                let found = LogProbabilities::of(next, row, self.allowed.as_words(), self.top);
                self.found.push(found);
            }
            at += rows;
        }
        Ok(())
    }
}
