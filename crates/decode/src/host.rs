//! The backend over logits in this processor's memory.

use crate::error::DecodeError;
use crate::logits_source::LogitsSource;
use crate::step::{Extension, Step, StepBackend};
use crate::top_k::TopK;

/// A [`StepBackend`] over any [`LogitsSource`]: its logits over the whole vocabulary, and [`TopK`]
/// over them.
///
/// A source lends its logits for one call, so both halves of a step are done in
/// [`compute`](StepBackend::compute); [`select`](StepBackend::select) hands over what was chosen
/// there.
#[derive(Debug)]
pub struct HostBackend<L> {
    source: L,
    top_k: TopK,
    chosen: Vec<Extension>,
}

impl<L: LogitsSource> HostBackend<L> {
    /// Over this source, or a mutable reference to one.
    pub fn new(source: L) -> Self {
        Self { source, top_k: TopK::default(), chosen: Vec::new() }
    }

    /// The source.
    pub fn source_mut(&mut self) -> &mut L {
        &mut self.source
    }
}

impl<L: LogitsSource> StepBackend for HostBackend<L>
where
    L::Error: From<DecodeError>,
{
    type Error = L::Error;

    fn num_tokens(&self) -> usize {
        self.source.num_tokens()
    }

    fn compute(&mut self, step: &Step<'_>) -> Result<(), L::Error> {
        let logits = match step.index {
            0 => self.source.prompt_logits()?,
            _ => self.source.next_logits(step.parents, step.tokens)?,
        };
        let columns = 0..step.num_tokens;
        Ok(self.top_k.select(step, logits, columns, |_, _| true, &mut self.chosen)?)
    }

    fn select(&mut self, _: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), L::Error> {
        std::mem::swap(best, &mut self.chosen);
        Ok(())
    }
}
