//! The backend over logits in this processor's memory.

use crate::error::DecodeError;
use crate::logits_source::LogitsSource;
use crate::step::{Extension, Pass, Step, StepBackend};
use crate::top_k::TopK;

/// A [`StepBackend`] over any [`LogitsSource`]: its logits over the whole vocabulary, and [`TopK`]
/// over them.
///
#[derive(Debug)]
pub struct HostBackend<L> {
    source: L,
    top_k: TopK,
}

impl<L: LogitsSource> HostBackend<L> {
    /// Over this source, or a mutable reference to one.
    pub fn new(source: L) -> Self {
        Self { source, top_k: TopK::default() }
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

    fn compute(&mut self, pass: &Pass<'_>) -> Result<(), L::Error> {
        match pass.index {
            0 => self.source.prompt_logits()?,
            _ => self.source.next_logits(pass.parents, pass.tokens)?,
        };
        Ok(())
    }

    fn select(&mut self, step: &Step<'_>, best: &mut Vec<Extension>) -> Result<(), L::Error> {
        let (logits, columns) = (self.source.logits()?, 0..step.num_tokens);
        Ok(self.top_k.select(step, logits, columns, |_, _| true, best)?)
    }
    fn dropped_at_most(&self, _: &Step<'_>, _: &[Extension]) -> Option<f32> {
        self.top_k.largest_dropped()
    }
}
