//! Line's ends of grammars with blocks by indentation: their effects, with ends told apart by the
//! depth of the line that follows.
//!
//! The token effect of a residual merges all ends of a lexeme that ask the same of what follows.
//! After a line's end blocks begin or end by the depth of the next line, so its ends are told apart
//! by what the token's own bytes say of that line. Together with what is known of the line before
//! the token, and with the open blocks, that gives the marks that the parser is told.

use std::sync::Arc;

use palmette_grammar_parser::blocks::Line;

use super::effect_walk::EffectWalk;
use super::layer_states::LayerId;
use super::lexeme_effect::{HeadEffect, LexemeEffect};
use super::lexemes::LexemeId;
use super::line_end_bounds::LineEndBounds;
use super::mask_failure::MaskFailure;
use super::place::Place;
use super::simulation_context::{Memos, SimulationContext};
use super::suffix_sets::SuffixSets;
use super::suffix_trie::SuffixId;

impl Memos<'_, '_, '_> {
    /// The effect of a line's end at a place.
    pub(super) fn find_line_end(
        &mut self,
        place: SuffixId,
        lexeme: LexemeId,
    ) -> Result<LexemeEffect, MaskFailure> {
        let Memos { fixed, lexemes, budget, .. } = self;
        let Some(whole) = lexemes.whole_residual(fixed.recognizer.lexer(), lexeme, budget)? else {
            return Ok(LexemeEffect::default());
        };
        let head = match place {
            SuffixId::WHOLE => HeadEffect::of_consumed(whole),
            _ => HeadEffect::default(),
        };
        let mut walk = EffectWalk::new(*fixed);
        walk.along(Place { suffix: place, ..Place::FRONT }, whole, Line::UNKNOWN, budget)?;
        walk.effect(Arc::new(head), budget)
    }

    /// A state of the layer as far as it matters to what is left of tokens at a place.
    pub(super) fn layer_at(&mut self, place: SuffixId, layer: LayerId) -> LayerId {
        let SimulationContext { recognizer, residuals, trie, .. } = self.fixed;
        if recognizer.layer().indentation.is_none() {
            return layer;
        }
        let SuffixSets { effects, layer_states, .. } = &mut *self.suffix_sets;
        let tail = || layer_states.relative.bounds().map(|all| all.tail).unwrap_or_default();
        let (bytes, known) = effects.line_ends(recognizer, tail);
        let find = || LineEndBounds::find(&residuals.suffixes, trie, place, &bytes);
        let ends = *known.entry(place).or_insert_with(find);
        layer_states.before(layer, ends)
    }
}
