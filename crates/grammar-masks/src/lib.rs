//! Exact token masks: which tokens of a vocabulary may follow a text so that it can still become a sentence of a grammar.
//!
//! A *residual* is the Brzozowski derivative of a terminal's expression by the bytes of the lexeme read so far; residuals are
//! hash-consed per vocabulary and shared by all grammars. For a residual, one walk over the vocabulary trie yields its *token effect*:
//! the tokens consumed whole, and, for those within which the lexeme may end, a *suffix trie* of what remains. A mask is the union, over
//! the residuals that the tops of the LR stacks admit, of their consumed tokens and of those suffixes that the parser accepts.
//! Acceptance of a suffix is decided by a *stack automaton* that reads the LR stack from the top; a reduction that pops below what was
//! read is a *deferred reduction*, resumed when those states are read ("template automata" of *Precomputing grammar masks*). Effects
//! and automaton are built lazily and memoised. Token sets are delta-encoded against shared rows. A residual that is almost another has
//! its effect computed as a *difference* along the pair.
//!
//! [`MaskAutomaton`] is the engine. Its parts: `residuals` (token effects, and the simulation of the parser that decides about
//! suffixes), `stack_automaton`, `mask_pool`, and `automaton`, which puts them together under a lock. The trie [`walk`] is the definition,
//! executed; a third engine, by the sequences of terminals that tokens spell, is in a crate of tests. None imports another, and they
//! give the same masks.
//!
//! [`vocabulary`] is the trie below all of them, [`PreparedVocabulary`] what grammars over a vocabulary share.
#![forbid(unsafe_code)]

mod automaton;
mod mask_pool;
pub mod member_walk;
mod residuals;
mod stack_automaton;
mod tables;
pub mod vocabulary;
pub mod walk;

pub use automaton::{
    AutomatonStatistics, MaskAutomaton, Precompute, PreparedVocabulary, SavedAutomaton, SavedMask,
    UNREAD,
};
pub use mask_pool::PoolId;
use palmette_grammar_parser::{
    Grammar, Interrupted, LexerError, LimitError, NonterminalId, TerminalId, TerminalSet,
};
use palmette_grammar_regex::{Budget, TokenPattern};
pub use vocabulary::VocabularyFingerprint;
