//! Lexeme effects: what tokens do with a lexeme that begins at a place within them, memoised
//! whatever the parser's stack is.
//!
//! Lexemes that may begin at a place differ by the stack, what each of them does there does not:
//! some tokens end within it or with it, and at some places it has ended with more of tokens to
//! come. So it is found once by walking the suffix trie, and a [stack
//! simulation](super::stack_simulation) puts effects together. Many lexemes begin alike, such as
//! names with blanks and a quote: that is their *head*, an effect of its own.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_core::TokenId;
use palmette_grammar_parser::blocks::Line;
use palmette_grammar_parser::recognizer::Recognizer;
use palmette_grammar_regex::ByteSet;

use super::lexemes::LexemeId;
use super::line_end_bounds::{LineEndBounds, LineEndBytes};
use super::place::Place;
use super::residual_id::ResidualId;
use super::suffix_set::SuffixSetId;
use super::suffix_trie::SuffixId;
use crate::TerminalSet;
use crate::tables::table_bytes;
use crate::vocabulary::LineEndTail;

/// Effect of what lexemes have in common at their front: blanks, and the first byte of the text
/// then, if there is one.
#[derive(Debug, Default)]
pub(super) struct HeadEffect {
    /// Residual that consumes tokens whole; only before their first byte.
    pub(super) consuming: Option<ResidualId>,
    /// Tokens that end within it, with the lengths of what was left of them.
    pub(super) tokens: Box<[(TokenId, u32)]>,
    /// Places after it.
    pub(super) places: Box<[Place]>,
}

impl HeadEffect {
    /// Head by which tokens are consumed whole, and nothing else.
    pub(super) fn of_consumed(residual: ResidualId) -> Self {
        Self { consuming: Some(residual), ..Self::default() }
    }
}

/// Effect of a lexeme: its head's and its own.
#[derive(Debug, Default)]
pub(super) struct LexemeEffect {
    pub(super) head: Arc<HeadEffect>,
    /// Tokens that end within the lexeme or with it, with the lengths of what was left of them.
    pub(super) tokens: Box<[(TokenId, u32)]>,
    /// Set of these tokens, in place of them where they are many.
    pub(super) part: Option<SuffixSetId>,
    /// Places where it has ended and more of tokens is to come.
    pub(super) ends: Box<[LexemeEnd]>,
}

/// Place where a lexeme has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct LexemeEnd {
    pub(super) place: Place,
    /// Line that a line's end leads to, as the token's bytes tell; of no other lexeme.
    pub(super) line: Line,
}

/// A head at a place: the blanks at its front, and the byte then.
pub(super) type Head = (SuffixId, Option<ResidualId>, Option<u8>);

/// A lexeme at a place, taken as a line's end or not.
pub(super) type LexemeAt = (SuffixId, LexemeId, bool);

/// Effects found so far.
#[derive(Debug, Default)]
pub(super) struct LexemeEffects {
    pub(super) heads: HashMap<Head, Arc<HeadEffect>>,
    pub(super) effects: HashMap<LexemeAt, Arc<LexemeEffect>>,
    /// Terminals that may begin at a place.
    pub(super) viable: HashMap<SuffixId, Arc<TerminalSet>>,
    /// First bytes by terminal, once they were asked for.
    pub(super) first_bytes: Vec<ByteSet>,
    line_end_bytes: Option<LineEndBytes>,
    /// Lines' ends in what is left of tokens, by place.
    line_ends: HashMap<SuffixId, Option<LineEndBounds>>,
    /// Memory that they own.
    pub(super) bytes: usize,
}

impl LexemeEffects {
    /// About how much memory they take.
    pub(super) fn memory_bytes(&self) -> usize {
        table_bytes::<(Head, HeadEffect)>(self.heads.len())
            + table_bytes::<(LexemeAt, LexemeEffect)>(self.effects.len())
            + table_bytes::<(SuffixId, Arc<TerminalSet>)>(self.viable.len())
            + table_bytes::<(SuffixId, LineEndBounds)>(self.line_ends.len())
            + self.bytes
    }

    /// Bytes of lines' ends, and the memo of the places before them.
    pub(super) fn line_ends(
        &mut self,
        recognizer: &Recognizer,
        tail: impl FnOnce() -> LineEndTail,
    ) -> (LineEndBytes, &mut HashMap<SuffixId, Option<LineEndBounds>>) {
        self.find_first_bytes(recognizer);
        let first_bytes = &self.first_bytes;
        let bytes = *self.line_end_bytes.get_or_insert_with(|| {
            let mut bytes = LineEndBytes::default();
            if let Some(marks) = &recognizer.layer().indentation {
                bytes.first = first_bytes[marks.newline.index()];
                for close in &marks.close {
                    bytes.close.unite(&first_bytes[close.index()]);
                }
            }
            bytes.tail = tail();
            bytes
        });
        (bytes, &mut self.line_ends)
    }

    pub(super) fn find_first_bytes(&mut self, recognizer: &Recognizer) {
        if self.first_bytes.is_empty() {
            let terminals = recognizer.grammar().terminals().iter();
            self.first_bytes.extend(terminals.map(|terminal| terminal.regex.first_bytes()));
            self.bytes += size_of_val(&*self.first_bytes);
        }
    }
}
