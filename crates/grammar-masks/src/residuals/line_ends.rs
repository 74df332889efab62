//! Line's ends of grammars with blocks by indentation: their effects, with ends told apart by the
//! depth of the line that follows.
//!
//! The token effect of a residual merges all ends of a lexeme that ask the same of what follows.
//! After a line's end blocks begin or end by the depth of the next line, so its ends are told apart
//! by what the token's own bytes say of that line. Together with what is known of the line before
//! the token, and with the open blocks, that gives the marks that the parser is told.

use std::convert::Infallible;
use std::sync::Arc;

use palmette_core::VocabularyTrie;
use palmette_core::vocabulary_trie::Visit;
use palmette_grammar_parser::blocks::Line;
use palmette_grammar_regex::ByteSet;

use super::effect_walk::EffectWalk;
use super::layer_states::LayerId;
use super::lexeme_effect::{HeadEffect, LexemeEffect};
use super::lexemes::LexemeId;
use super::mask_failure::MaskFailure;
use super::place::Place;
use super::relative_layers::TakenByLines;
use super::simulation_context::{Memos, SimulationContext};
use super::suffix_sets::SuffixSets;
use super::suffix_trie::{SuffixId, SuffixTries};

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
        let taken = || layer_states.relative.bounds().map(|all| all.taken).unwrap_or_default();
        let (bytes, known) = effects.line_ends(recognizer, taken);
        let find = || LineEndsBelow::find(&residuals.suffixes, trie, place, &bytes);
        let ends = *known.entry(place).or_insert_with(find);
        layer_states.before(layer, ends)
    }
}

/// Lines' ends in what is left of tokens at a place: bounds of what they ask of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineEndsBelow {
    /// Most brackets that are closed before one begins.
    pub(super) num_closed: u32,
    /// True where one may end after a line break, so that depths matter.
    pub(super) may_end: bool,
}

/// Bytes that bound where lines' ends are in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineEndBytes {
    /// First bytes of lines' ends.
    pub(super) first: ByteSet,
    /// First bytes of brackets that close.
    pub(super) close: ByteSet,
    /// Bytes with which all lines' ends go on after a line break, beside blanks.
    pub(super) taken: TakenByLines,
}

/// What is known of a line on the way along a token.
#[derive(Clone, Copy)]
enum Along {
    /// No line break was read.
    OneLine,
    /// After a line break.
    Broken,
    /// After a carriage return that a line break should follow.
    Returned,
}

impl LineEndsBelow {
    /// Looks at all that is left of tokens at a place; `None` where no line's end may begin in it.
    fn find(
        suffixes: &SuffixTries,
        trie: &VocabularyTrie,
        place: SuffixId,
        bytes: &LineEndBytes,
    ) -> Option<Self> {
        let (mut found, mut path) = (None::<Self>, Vec::new());
        for (member, _) in suffixes.node(place).members() {
            let below = member..trie.end(member);
            let looked =
                trie.walk(below, (0, Along::OneLine), &mut path, |node, &(closed, along)| {
                    if bytes.first.contains(node.byte) {
                        let found = found.get_or_insert_default();
                        found.num_closed = found.num_closed.max(closed);
                    }
                    let (along, may_end) = match (along, node.byte) {
                        (Along::OneLine | Along::Returned, b'\n') => (Along::Broken, false),
                        (Along::OneLine, _) => (Along::OneLine, false),
                        (Along::Broken, b'\n') => (Along::Broken, !bytes.taken.breaks),
                        (Along::Broken, b' ' | b'\t') => (Along::Broken, false),
                        (Along::Broken, b'\r') if bytes.taken.carriage_returns => {
                            // A token may end there, and then a lexeme that begins with it too.
                            (Along::Returned, !trie.own_ranks(node.index).is_empty())
                        }
                        (Along::Broken | Along::Returned, _) => (Along::Broken, true),
                    };
                    if may_end {
                        found.get_or_insert_default().may_end = true;
                    }
                    let closed = closed + u32::from(bytes.close.contains(node.byte));
                    Ok::<_, Infallible>(Visit::Below((closed, along)))
                });
            match looked {
                Ok(_) => {}
                Err(never) => match never {},
            }
        }
        found
    }
}
