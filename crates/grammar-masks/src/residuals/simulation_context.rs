//! Context of simulations: what all of them read, and the memos that they add to.

use palmette_core::VocabularyTrie;
use palmette_grammar_parser::recognizer::Recognizer;
use palmette_grammar_regex::expressions::ExprId;

use super::Residuals;
use super::lexemes::{Lexeme, Lexemes};
use super::mask_failure::MaskFailure;
use super::place::{ExceptionsId, Place};
use super::residual_id::ResidualId;
use super::suffix_sets::SuffixSets;
use crate::Budget;

/// Context that all simulations read.
#[derive(Clone, Copy)]
pub(super) struct SimulationContext<'p> {
    pub(super) recognizer: &'p Recognizer,
    pub(super) trie: &'p VocabularyTrie,
    pub(super) num_words: usize,
    pub(super) residuals: &'p Residuals,
    pub(super) lexemes: &'p boxcar::Vec<Lexeme>,
}

/// Memos that all simulations add to.
pub(super) struct Memos<'p, 'g, 'b> {
    pub(super) fixed: SimulationContext<'p>,
    pub(super) lexemes: &'g mut Lexemes,
    pub(super) suffix_sets: &'g mut SuffixSets,
    pub(super) budget: &'g mut Budget<'b>,
}

impl<'p, 'b> Memos<'p, '_, 'b> {
    /// Lends them for a while.
    pub(super) fn reborrow(&mut self) -> Memos<'p, '_, 'b> {
        let Self { fixed, lexemes, suffix_sets, budget } = self;
        Memos { fixed: *fixed, lexemes, suffix_sets, budget }
    }
}

impl<'p> SimulationContext<'p> {
    /// The places where the lexeme of a residual may have ended with more of tokens to come.
    ///
    /// # Errors
    /// When a limit is exceeded, or the budget is used up.
    pub(super) fn ends_within(
        &self,
        residual: ResidualId,
        budget: &mut Budget<'_>,
    ) -> Result<impl Iterator<Item = Place> + use<'p>, MaskFailure> {
        let effect = self.residuals.effect(self.trie, self.num_words, residual, budget)?;
        Ok(effect.suffixes.iter().zip(0..).map(move |(ended, suffixes)| {
            let except = ended.except.as_ref().map(|_| ExceptionsId { residual, suffixes });
            Place { except, ..Place::FRONT.after_lexeme(ended.suffixes, ended.condition) }
        }))
    }

    /// True when more of tokens is to come at a place that meets its condition.
    pub(super) fn goes_on(
        &self,
        place: Place,
        budget: &mut Budget<'_>,
    ) -> Result<bool, MaskFailure> {
        let bytes = self.residuals.suffixes.node(place.suffix).bytes();
        if bytes.is_empty() || place.condition == ExprId::ALL {
            return Ok(!bytes.is_empty());
        }
        let allowed = self.residuals.allowed_by(place.condition, budget)?;
        Ok(bytes.iter().any(|&byte| allowed.contains(byte)))
    }
}
