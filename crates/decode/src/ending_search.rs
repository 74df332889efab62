//! Beam search of sequences that end at different lengths, ranked by score and length.
//!
//! A [`BeamSearch`] over the sequences as they end keeps the live hypotheses; what has ended stands
//! beside them in a list of its own, since a length penalty may rank a longer sequence before one
//! of a larger sum.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use palmette_core::{Constraint, TokenId};

use crate::beam_search::{BeamOptions, BeamSearch};
use crate::driver::{Control, Stage};
use crate::ended_sequences::EndedSequences;
use crate::error::DecodeError;
use crate::gains::Objective;
use crate::generate::GenerateOptions;
use crate::length_penalty::LengthPenalty;
use crate::step::StepBackend;

/// Options of a search for sequences that end.
#[derive(Clone, Debug, PartialEq)]
pub struct EndingSearch {
    /// Ends and lengths of sequences. A [gentle](crate::LengthRule::Gentle) rule is the promised
    /// one, and there are no parts.
    pub ends: GenerateOptions,
    /// Hypotheses kept at each step.
    pub width: NonZeroUsize,
    /// Sequences wanted, at most.
    pub results: usize,
    /// Rank of sequences of different lengths.
    pub penalty: LengthPenalty,
}

/// A sequence that a search found, to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct EndedSequence {
    /// The tokens, with the one that ended it.
    pub tokens: Vec<TokenId>,
    /// Sum of the tokens' log-probabilities.
    pub sum: f32,
    /// Score by which it is ranked.
    pub score: f32,
}

/// Sequences that have ended, best first.
struct EndedList<'k> {
    most: usize,
    penalty: LengthPenalty,
    key: &'k mut dyn FnMut(&[TokenId]) -> Vec<u32>,
    found: Vec<(Vec<u32>, EndedSequence)>,
}

impl EndingSearch {
    /// The best sequences that end, best first.
    ///
    /// At each step the best extensions of all live hypotheses survive, as many as the width, by
    /// the sum of their log-probabilities; those that end are results, the others stay live. Of
    /// results with the same `key` the better counts, of equal scores the one that was found first:
    /// the shorter, then by parent's place and token. The search ends early where no live
    /// hypothesis can come to a better score than the last result has; that changes nothing.
    ///
    /// # Errors
    /// When a limit of the constraint is exceeded, no sequence is whole within its tokens where
    /// that is promised, a row has no distribution, the backend fails, or the control broke off.
    pub fn run<C: Constraint + ?Sized, B: StepBackend>(
        &self,
        constraint: &C,
        backend: &mut B,
        key: &mut dyn FnMut(&[TokenId]) -> Vec<u32>,
        control: &mut Control<'_>,
    ) -> Result<Vec<EndedSequence>, B::Error> {
        let (model, constrained) = (backend.num_tokens(), constraint.num_tokens());
        if model != constrained {
            return Err(DecodeError::VocabularyMismatch { model, constraint: constrained }.into());
        }
        let Self { ends, width, results: most, penalty } = self;
        let sequences = EndedSequences::new(constraint, ends)?;
        let mut ended = EndedList { most: *most, penalty: *penalty, key, found: Vec::new() };
        let options = BeamOptions { width: *width, max_tokens: ends.max_tokens };
        let mut search = BeamSearch::<EndedSequences<'_, C>>::new(options);
        search.start(&sequences)?;
        ended.take_from(&mut search);
        let mut best = Vec::with_capacity(width.get());
        while let Some(&sum) = search.pass().scores.first() {
            let step = search.pass().index;
            if ended.is_settled(sum, (step + 1, ends.max_tokens)) {
                break;
            }
            backend.compute(&search.pass())?;
            let stage = if step == 0 { Stage::Prefill } else { Stage::Decode };
            if let ControlFlow::Break(()) = control(stage) {
                return Err(DecodeError::Cancelled { step }.into());
            }
            search.fill_masks(&sequences)?;
            backend.select(&search.step(), &mut best)?;
            search.advance(Objective::from(&sequences), &best, None)?;
            ended.take_from(&mut search);
        }
        Ok(ended.found.into_iter().map(|(_, sequence)| sequence).collect())
    }
}

impl EndedList<'_> {
    /// Takes the results of the latest step.
    fn take_from<C: Constraint + ?Sized>(&mut self, search: &mut BeamSearch<C>) {
        search.drain_results(|found| {
            let score = self.penalty.score(found.score, found.tokens.len());
            let place = self.found.partition_point(|(_, other)| other.score >= score);
            if place >= self.most {
                return;
            }
            let key = (self.key)(found.tokens);
            let (better, worse) = self.found.split_at(place);
            if better.iter().any(|(other, _)| *other == key) {
                return;
            }
            // One of the same key is put out by the better one; else the last where it is one too
            // many.
            let same = worse.iter().position(|(other, _)| *other == key);
            same.into_iter().for_each(|behind| drop(self.found.remove(place + behind)));
            let tokens = found.tokens.to_vec();
            self.found.insert(place, (key, EndedSequence { tokens, sum: found.score, score }));
            self.found.truncate(self.most);
        });
    }

    /// True where nothing that comes of a hypothesis of this sum can change what was found.
    fn is_settled(&self, sum: f32, lengths: (usize, usize)) -> bool {
        let last = self.most.checked_sub(1).map(|last| self.found.get(last));
        match last {
            None => true,
            Some(None) => false,
            Some(Some((_, last))) => self.penalty.bound(sum, lengths) <= last.score,
        }
    }
}
