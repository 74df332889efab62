//! Grammars as constraints: which tokens may follow so that the text can still become a sentence.
//!
//! A front end ([`frontends`]) reads a grammar as its author wrote it and makes a [`Grammar`]:
//! rules over *terminals*, each with the texts it matches as a [`Regex`].
//!
//! # The language
//! A text is in the language when it can be cut into *lexemes*, each matched by a terminal, such
//! that the terminals, less the ignored ones, are a sentence of the rules. How it may be cut is the
//! grammar's [`Lexing`]:
//!
//! - [`Lexing::Any`]: in any way. The grammar then is a context-free grammar over characters.
//! - [`Lexing::Contextual`]: each lexeme is the longest that any terminal matches at its place for
//!   which the parser's topmost state has an action.
//! - [`Lexing::Longest`]: each lexeme is the longest that any terminal matches at its place, as
//!   programming languages are read.
//!
//! In both, of the terminals that match it, those of the highest priority count; at equal priority
//! a [`TerminalKind::Literal`] goes before a [`TerminalKind::Pattern`] that is not ignored; if
//! several are left, each may be meant. A terminal that would lose every one of its lexemes in this
//! way loses none. A [`TerminalKind::Free`] terminal does not compete.
//!
//! No lexeme is empty. A terminal's regex may match the empty text only for a front end to split it
//! off.
//!
//! # Glossary
//! Words of this crate, each for one idea, in code and documentation. The engine's are in *How
//! masks work*, drawn.
//!
//! | word | meaning |
//! |---|---|
//! | token; terminal; lexeme | entry of a model's vocabulary; symbol of the rules that matches text; the text that it matched |
//! | *viable terminals* | those that the lexeme in progress can still become |
//! | *branch*, position | one reading of the text so far: a lexer state, and LR stacks; all readings |
//! | LR stack, *partial stack* | states of the parser, the topmost decides first; one of which only the first from the top are known |
//! | *residual* | Brzozowski derivative of a terminal's expression by the bytes of the lexeme read so far |
//! | *token effect* | what all tokens do to a residual: those *consumed* whole, and the ends within others |
//! | *suffix trie*, suffix set | what remains of tokens within which a lexeme ended; those of them that the parser accepts |
//! | *lexeme effect* | what tokens do with a lexeme that begins within them: those that end with it, and the ends within others |
//! | *reference*, *difference* | a residual that another is almost equal to; how their token effects differ |
//! | *bounded equivalence* | equality of residuals for so many bytes, or for all but certain bytes |
//! | *stack automaton* | memo that reads an LR stack from the top, and answers when nothing below can matter |
//! | *deferred reduction* | reduction that pops more of a stack than was read; resumed when that is read |
//! | *mask pool* | masks by number, delta-encoded: a shared row and patches |
//! | *precompute* | computing of masks before they are asked for, the likeliest first |
//! | mask store | a second engine, for tests: token sets by the sequence of terminals that a token spells |
//! | *budget* | bound on work, in steps that do not depend on a clock |
//!
//! # Use
//! A [`Recognizer`] is a grammar made ready; [`PreparedVocabulary`] a vocabulary, made ready once
//! for all grammars. Both together are a [`GrammarConstraint`], whose states are small: one for
//! each text being written.
//!
//! ```
//! use std::sync::Arc;
//!
//! use palmette_core::{Constraint, mask};
//! use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse};
//! use palmette_grammar::{Budget, GrammarConstraint, GrammarScratch, Recognizer, PreparedVocabulary};
//!
//! let loaded = palmette_vocabulary::load("r50k_base")?;
//! let vocabulary = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
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
//! - [`GrammarCache`]: compiled grammars by their [`GrammarSource`] and vocabulary; one thread
//!   compiles, others wait.
//! - [`BatchFiller`]: the masks of a batch on several threads, each row of its own grammar.
//! - [`GrammarConstraint::mask`]: a mask by reference and [number](MaskId) instead of a copy.
//! - [`MaskBudget`]: limits on the work of one mask, and a flag that calls it off.
//! - [`GrammarConstraint::precompute`] and
//!   [`precompute_in_background`](GrammarConstraint::precompute_in_background): masks computed
//!   while a prompt is read.
//! - [`GrammarConstraint::save`] and [`SavedGrammar`]: a compiled grammar with its masks as a file.
//! - [`GrammarFolder`]: such files between the processes of a machine; one finds masks, others read
//!   them.
//!
//! # Crates
//! This one is the facade: [`GrammarConstraint`], its cache, batches and files. Below it, each with
//! an introduction of its own: `palmette-grammar-regex` (expressions, derivatives) ←
//! `palmette-grammar-parser` (grammar, lexer, LR, GLR, recognizer) ← `palmette-grammar-masks`
//! (engines); `palmette-grammar-syntax` makes grammars beside. What a user of constraints needs of
//! them is exported here.
//!
//! # Invariants
//! - `palmette-grammar` and `palmette-catalog` do not know each other; what they share is
//!   `Constraint`, in `palmette-core`. Nor does `palmette-bench` know grammars: whoever measures
//!   one tells it how to compile (`Compile`).
//! - So it is with a file of a compiled grammar, of which everything is checked. One that was made
//!   by hand may have wrong masks. One whose parser would have other states now loses its nodes,
//!   and says so.
#![forbid(unsafe_code)]

mod cache;
mod common_json;
mod constraint;
#[doc(hidden)]
pub mod engine;
mod grammar_folder;
mod limits;
mod pattern_search;
mod saved;
mod source;

pub use cache::{CacheError, CacheOutcome, CacheStatistics, Cached, CompiledGrammar, GrammarCache};
pub use common_json::prepare_json;
pub use constraint::{
    BackgroundPrecompute, BatchFiller, BatchRow, BindError, CommitBytesError, DictionaryStatistics,
    DraftTree, DraftTreeError, Ending, EndingError, GrammarConstraint, GrammarScratch,
    GrammarState, MaskBudget, MaskId, MaskRef, PrecomputeLimits, PrecomputeStop, Precomputed,
    RowError, RowErrorKind, SetBinding,
};
pub use grammar_folder::{FolderLimits, FolderStatistics, GrammarFolder, HostProgram};
pub use limits::{CacheLimits, UnknownLimit};
pub use palmette_grammar_masks::{
    AutomatonGraph, AutomatonStatistics, GraphFirst, GraphNode, PreparedVocabulary,
    VocabularyFingerprint,
};
pub use palmette_grammar_parser::recognizer::{BoundRecognizer, MemberPlace, WrittenMember};
pub use palmette_grammar_parser::scopes::ScopeShortage;
pub use palmette_grammar_parser::{
    Analysis, Budget, CharClass, CompileError, Conflict, DeadEnd, DeadEnds, Diagnostic,
    DistinctNames, EmbedError, Expected, Grammar, GrammarBuilder, GroupLimit, Indentation,
    Interrupted, LexerError, LexerLimits, Lexing, LimitError, MemberScope, MemberSpelling,
    Multiple, Nonterminal, NonterminalId, OwnSet, ParserLimits, Position, Recognizer,
    RecognizerError, RecognizerLimits, RecognizerScratch, Regex, Rule, ScopeId, ScopeKind,
    Severity, Slot, SlotKind, Span, SubstringRule, SubstringUnit, Symbol, TableError, TableLimits,
    Terminal, TerminalId, TerminalKind, TerminalSet, TokenError, TokenLimit, TokenPart,
    TokenPattern, analyse,
};
pub use palmette_grammar_syntax as frontends;
pub use pattern_search::{PatternError, PatternSearch};
pub use saved::{ReopenError, Reopened, SaveError, SavedGrammar};
pub use source::{GrammarSource, OptionsError, SourceError};
