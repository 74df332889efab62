//! Generation by the model alone.

use std::num::NonZeroUsize;
use std::sync::Arc;

use palmette_core::{TokenId, Unconstrained};
use palmette_decode::{BeamSearch, HostBackend};
use palmette_model::{Reading, ReadingShape, SessionError};
use palmette_recommend::{PromptFields, RecommendError, Recommender, SpelledView};

use crate::evaluate::EvalOptions;
use crate::split::Question;

/// Generation without the constraint: the buffers of one thread.
pub(crate) struct FreeRunning {
    backend: HostBackend<Box<dyn Reading>>,
    search: BeamSearch<Unconstrained>,
    every: Unconstrained,
    recommender: Arc<Recommender>,
    view: Arc<SpelledView>,
    prompt: Vec<TokenId>,
}

impl FreeRunning {
    pub(crate) fn new(
        recommender: &Arc<Recommender>,
        view: &Arc<SpelledView>,
        options: &EvalOptions,
    ) -> Result<Self, SessionError> {
        let widths: Vec<NonZeroUsize> = recommender
            .level_widths(options.beam_width)
            .into_iter()
            .map(|width| NonZeroUsize::new(width.max(options.k)).unwrap_or(NonZeroUsize::MIN))
            .collect();
        let beams: Vec<usize> =
            widths[..widths.len() - 1].iter().map(|width| width.get()).collect();
        let vocab = recommender.engine().config().vocab_size;
        let width = widths.iter().map(|width| width.get()).max().unwrap_or(1);
        let max_prompt_tokens = recommender.max_prompt_tokens();
        let shape = ReadingShape::new(max_prompt_tokens, &beams, width);
        let reading = recommender.engine().open(&shape, 1)?;
        Ok(Self {
            backend: HostBackend::new(reading),
            search: BeamSearch::with_widths(&widths),
            every: Unconstrained::new(vocab, view.view().num_levels()),
            recommender: Arc::clone(recommender),
            view: Arc::clone(view),
            prompt: Vec::new(),
        })
    }

    /// Runs the model after a question's prompt, and returns the tokens it generated, best first.
    pub(crate) fn generate(
        &mut self,
        question: &Question<'_>,
    ) -> Result<impl ExactSizeIterator<Item = &[TokenId]>, RecommendError> {
        let none = PromptFields::default();
        let (history, fields) = (question.history, question.fields.unwrap_or(&none));
        self.recommender.write_prompt(history, &self.view, fields, &mut self.prompt)?;
        self.backend.source_mut().set_prompt(&self.prompt)?;
        self.search.run(&self.every, &mut self.backend)?;
        Ok(self.search.results().map(|found| found.tokens))
    }
}

/// The codes that tokens spell; `None` where one is no code of its level.
pub(crate) fn spelled(view: &SpelledView, generated: &[TokenId]) -> Option<Vec<u32>> {
    let codes = generated.iter().enumerate();
    codes.map(|(level, &token)| view.tokens().code(level, token)).collect()
}
