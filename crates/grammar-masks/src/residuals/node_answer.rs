//! Answers of stack-automaton nodes: keys of masks, subjects, what some states are sure of.

use palmette_grammar_parser::lexer::LexerState;

use super::deferred_reduction::DeferredId;
use super::layer_states::LayerId;
use super::suffix_set::SuffixSetId;

/// Answer of some states of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeAnswer {
    /// The tokens that they are sure of.
    pub(crate) suffix_set: SuffixSetId,
    pub(super) deferred: DeferredId,
    pub(super) asked: QuerySubject,
}

/// Subject of a mask beside the stack: the lexeme in progress, and the state of the layer between
/// lexer and parser.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeKey {
    /// Number that the answers are kept by; that of the lexer state where there are no blocks.
    pub(crate) number: u32,
    pub(crate) lexer: LexerState,
    pub(crate) layer: LayerId,
}

impl NodeKey {
    /// Key of a lexer state in a grammar without blocks.
    pub(crate) fn from_lexer(lexer: LexerState) -> Self {
        Self { number: lexer.0, lexer, layer: LayerId::NONE }
    }
}

/// Subject of a question to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum QuerySubject {
    /// A mask, whose suffix sets are kept apart: other masks have them without the others.
    Mask,
    /// The front of tokens.
    Front,
    /// A place within tokens.
    Within,
}
