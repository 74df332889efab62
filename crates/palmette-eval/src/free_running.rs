//! Generation by the model alone.

use std::num::NonZeroUsize;

use palmette_core::{TokenId, Unconstrained};
use palmette_decode::BeamSearch;
use palmette_model::{Session, SessionError};
use palmette_recommend::Recommender;

use crate::evaluate::EvalOptions;

/// Generation without the constraint: the buffers of one thread.
pub(crate) struct FreeRunning<'r> {
    session: Session<'r>,
    search: BeamSearch<Unconstrained>,
    every: Unconstrained,
    prompt: Vec<TokenId>,
}

impl<'r> FreeRunning<'r> {
    pub(crate) fn new(
        recommender: &'r Recommender,
        options: &EvalOptions,
    ) -> Result<Self, SessionError> {
        let widths: Vec<NonZeroUsize> = recommender
            .level_widths(options.beam_width)
            .into_iter()
            .map(|width| NonZeroUsize::new(width.max(options.k)).unwrap_or(NonZeroUsize::MIN))
            .collect();
        let beams: Vec<usize> =
            widths[..widths.len() - 1].iter().map(|width| width.get()).collect();
        let max_prompt_tokens = recommender.format().max_prompt_tokens();
        let vocab = recommender.model().config().vocab_size;
        let levels = recommender.catalog().num_levels();
        Ok(Self {
            session: Session::of_passes(recommender.model(), max_prompt_tokens, &beams, 1)?,
            search: BeamSearch::with_widths(&widths),
            every: Unconstrained::new(vocab, levels),
            prompt: Vec::new(),
        })
    }

    /// Runs the model after `history`, and returns the tokens it generated, best first.
    pub(crate) fn generate(
        &mut self,
        recommender: &Recommender,
        history: &[u64],
    ) -> Result<impl ExactSizeIterator<Item = &[TokenId]>, SessionError> {
        let catalog = recommender.catalog();
        let codes: Vec<Vec<u32>> = history.iter().map(|&rank| catalog.codes(rank)).collect();
        recommender.format().write_prompt(&codes, &mut self.prompt);
        self.session.set_prompt(&self.prompt)?;
        self.search.run(&self.every, &mut self.session)?;
        Ok(self.search.results().map(|found| found.tokens))
    }
}

/// The codes that tokens spell; `None` where one is no code of its level.
pub(crate) fn spelled(recommender: &Recommender, generated: &[TokenId]) -> Option<Vec<u32>> {
    let tokens = recommender.constraint().tokens();
    generated.iter().enumerate().map(|(level, &token)| tokens.code(level, token)).collect()
}
