//! Grammars as constraints: which tokens may follow so that the text can still become a sentence.
//!
//! A front end ([`frontends`]) reads a grammar as its author wrote it and makes a [`Grammar`]: rules over
//! *terminals*, each with the texts it matches as a [`Regex`].
//!
//! # The language
//! A text is in the language when it can be cut into *lexemes*, each matched by a terminal, such that the
//! terminals, less the ignored ones, are a sentence of the rules. How it may be cut is the grammar's [`Lexing`]:
//!
//! - [`Lexing::Any`]: in any way. The grammar then is a context-free grammar over characters.
//! - [`Lexing::Contextual`]: each lexeme is the longest that any terminal matches at its place for which the parser's topmost
//!   state has an action.
//! - [`Lexing::Longest`]: each lexeme is the longest that any terminal matches at its place, as programming
//!   languages are read.
//!
//! In both, of the terminals that match it, those of the highest priority count; at equal priority a
//! [`TerminalKind::Literal`] goes before a [`TerminalKind::Pattern`] that is not ignored; if several are left, each may be
//! meant. A terminal that would lose every one of its lexemes in this way loses none. A [`TerminalKind::Free`] terminal does
//! not compete.
//!
//! No lexeme is empty. A terminal's regex may match the empty text only for a front end to split it off.
//!
//! # Use
//! A [`Recognizer`] is a grammar made ready; [`VocabularySlices`] a vocabulary, made ready once for all
//! grammars. Both together are a [`GrammarConstraint`], whose states are small: one for each text being written.
//!
//! ```
//! use std::sync::Arc;
//!
//! use palmette_core::{Constraint, mask};
//! use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse};
//! use palmette_grammar::{Budget, GrammarConstraint, GrammarScratch, Recognizer, VocabularySlices};
//!
//! let loaded = palmette_vocabulary::load("r50k_base")?;
//! let vocabulary = Arc::new(VocabularySlices::new(loaded.vocabulary));
//!
//! let schema = r#"{"type": "array", "items": {"enum": ["red", "green"]}, "minItems": 1}"#;
//! let grammar = Arc::new(parse(schema, &JsonSchemaOptions::default())?);
//! let recognizer = Recognizer::new(grammar, &Default::default(), &mut Budget::new(1 << 30))?;
//! let constraint = GrammarConstraint::new(Arc::new(recognizer), vocabulary);
//!
//! let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
//! let mut allowed = vec![0; mask::num_words(constraint.num_tokens())];
//! for token in loaded.tokenizer.unwrap().encode(r#"["green", "red"]"#)? {
//!     // Here a model would choose among the allowed tokens.
//!     constraint.fill_mask(&state, &mut scratch, &mut allowed)?;
//!     assert!(mask::contains(&allowed, token));
//!     constraint.commit(&mut state, token, &mut scratch)?;
//! }
//! assert!(constraint.is_accepting(&state, &mut scratch)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # In a server
//! - [`GrammarCache`]: compiled grammars by their [`GrammarSource`] and vocabulary; one thread compiles, others wait.
//! - [`BatchFiller`]: the masks of a batch on several threads, each row of its own grammar.
//! - [`GrammarConstraint::mask`]: a mask by reference and [number](MaskId) instead of a copy.
//! - [`MaskWork`]: limits on the work of one mask, and a flag that calls it off.
//! - [`GrammarConstraint::complete`] and [`complete_in_background`](GrammarConstraint::complete_in_background): masks
//!   found out while a prompt is read.
//! - [`GrammarConstraint::save`] and [`SavedGrammar`]: a compiled grammar with its masks as a file.
#![forbid(unsafe_code)]

mod analysis;
mod blocks;
mod budget;
mod byte_set;
mod cache;
mod common_json;
mod constraint;
#[doc(hidden)]
pub mod engine;
pub mod frontends;
mod glr;
mod grammar;
mod lexer;
mod lr;
mod masks;
mod names;
mod recognizer;
mod regex;
mod rules;
mod saved;
mod source;
mod span;
mod store;
mod vocabulary;
mod walk;

pub use analysis::{Analysis, Conflict, Diagnostic, Severity, analyse};
pub use budget::{Budget, Interrupted};
pub use cache::{
    CacheError, CacheLimits, CacheOutcome, CacheStatistics, Cached, CompiledGrammar, GrammarCache,
};
pub use constraint::{
    BackgroundCompletion, BatchFiller, BatchRow, CommitBytesError, Completion, CompletionLimits,
    CompletionStop, DictionaryStatistics, GrammarConstraint, GrammarScratch, GrammarState, MaskId,
    MaskRef, MaskWork, RowError, RowErrorKind,
};
pub use glr::{LimitError, ParserLimits};
pub use grammar::{
    DistinctNames, EmbedError, Grammar, GrammarBuilder, Indentation, Lexing, Nonterminal,
    NonterminalId, Rule, Symbol, Terminal, TerminalId, TerminalKind, TerminalSet,
};
pub use lexer::{LexerError, LexerLimits};
pub use lr::{TableError, TableLimits};
pub use masks::{AutomatonStatistics, VocabularySlices};
pub use recognizer::{
    CompileError, DeadEnd, DeadEnds, Expected, Position, Recognizer, RecognizerError,
    RecognizerLimits, RecognizerScratch,
};
pub use regex::{CharClass, Multiple, Regex, TokenError, TokenPart, TokenPattern};
pub use saved::{ReopenError, Reopened, SaveError, SavedGrammar};
pub use source::{GrammarSource, SourceError};
pub use span::Span;
pub use vocabulary::VocabularyFingerprint;
