//! Line's ends of grammars with blocks by indentation: their effects, with ends told apart by the depth of the line that follows.
//!
//! The token effect of a residual merges all ends of a lexeme that ask the same of what follows. After a line's end blocks begin or end
//! by the depth of the next line, so its ends are told apart by what the token's own bytes say of that line. Together with what is known
//! of the line before the token, and with the open blocks, that gives the marks that the parser is told.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_parser::blocks::Line;
use palmette_regex::ByteSet;

use super::Unread;
use super::layer_states::LayerId;
use super::lexeme_effect::{EffectWalk, HeadEffect, LexemeEffect};
use super::lexemes::LexemeId;
use super::place::Place;
use super::stack_simulation::Memos;
use super::suffix_trie::SuffixId;

/// Memo of the places where line's ends may begin.
#[derive(Debug, Default)]
pub(super) struct LineEnds {
    /// The bytes with which a line's end may begin.
    first_bytes: Option<ByteSet>,
    /// Places within tokens, with the answer if a line's end may begin in what is left of them.
    may_begin: HashMap<SuffixId, bool>,
}

impl LineEnds {
    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.may_begin.len() * 16
    }
}

impl Memos<'_, '_, '_> {
    /// The effect of a line's end at a place.
    pub(super) fn find_line_end(
        &mut self,
        place: SuffixId,
        lexeme: LexemeId,
    ) -> Result<LexemeEffect, Unread> {
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
    pub(super) fn layer_at(&mut self, place: SuffixId, layer: LayerId) -> Result<LayerId, Unread> {
        let Memos { fixed, lexemes, suffix_sets, budget } = self;
        let (recognizer, residuals) = (fixed.recognizer, fixed.residuals);
        let Some(marks) = &recognizer.layer().indentation else { return Ok(layer) };
        let lexer = recognizer.lexer();
        let line_ends = &mut suffix_sets.line_ends;
        let first_bytes = match line_ends.first_bytes {
            Some(known) => known,
            None => {
                let newline = lexemes.whole(lexer, marks.newline, budget)?;
                let newline = newline.map(|newline| lexemes.whole_residual(lexer, newline, budget));
                let mut found = ByteSet::default();
                if let Some(newline) = newline.transpose()?.flatten() {
                    for byte in 0..=u8::MAX {
                        if residuals.advance(newline, byte, budget)?.is_some() {
                            found.insert(byte);
                        }
                    }
                }
                *line_ends.first_bytes.insert(found)
            }
        };
        let has_below = || residuals.suffixes.has_below(fixed.trie, place, &first_bytes);
        Ok(match *line_ends.may_begin.entry(place).or_insert_with(has_below) {
            true => layer,
            false => suffix_sets.layer_states.without_blocks(layer),
        })
    }
}
