//! Grammars, and the parser that reads texts by them byte by byte: a streaming lexer, LALR(1)
//! tables, GLR.
//!
//! 1. A [`Grammar`] is rules over *terminals*, each with a regular expression. Front ends make it.
//! 2. The [`lexer`] is a lazy DFA: its states are derivatives of the terminals' expressions, made
//!    when a byte leads there.
//! 3. [`rules`] reduces the grammar, [`lr`] makes its LALR(1) tables; conflicts are kept, and
//!    [`analyse`] reports them.
//! 4. [`glr`] parses with a graph-structured stack: all LR stacks that the text may have led to,
//!    sharing what they have in common. Its partial stacks are stacks of which only the top is
//!    known.
//! 5. [`blocks`] and [`names`] stand between lexer and parser: indentation, and scopes of distinct
//!    names.
//! 6. The [`Recognizer`] reads bytes with all of these. Its [`Position`] is every reading of a text
//!    so far, and is live by its existence.
//!
//! Nothing here knows tokens of a vocabulary.
//!
//! # Invariants
//! - Building the parser's tables spends a `Budget` of steps, not of time: the same grammar stops
//!   at the same step. Another thread can call it off. Front ends and the lexer bound their work by
//!   limits of their own. States of the lexer, tables, links of stacks have limits; one that is
//!   passed while a text is read is an error of that step, not a mask with less in it. Only the
//!   automaton's memory is different: when full, it is dropped and built again, once for a
//!   question; a mask that needs more than all of it is found by walking the vocabulary.
//!
//! # Decisions
//! - **Contextual lexing by the topmost state.** A lexeme begins with the terminals for which the
//!   parser's topmost state has an action (`grammar-parser/src/recognizer/contexts.rs`), as in
//!   lark's contextual lexer. The exact set of terminals that can follow would depend on the whole
//!   stack: masks could not be read from its top, and stacks of an ambiguous text would have to be
//!   told apart by it. The price is LALR(1)'s: a lookahead of another place may compete, which
//!   reductions done without lookahead make rare. Most grammars with free text are proven to be cut
//!   in any way (`recognizer/vacuous.rs`), and have no dead ends then.
//! - **Dead ends are found ahead, not when a text is there.** Where the proof fails, a lexeme could
//!   be followed by nothing that can be told from it. Whether a text can be completed is a question
//!   about a pushdown system: what earlier lexemes ask of the text, and the parser's stack. Asked
//!   for each mask it would read whole stacks. So it is answered once for all stacks
//!   (`grammar-parser/src/recognizer/dead_ends`): places that are safe on every stack first, which
//!   mostly are all, then the predecessors of those for the rest. The answer is put where the
//!   engines have it anyway: states of the parser are split until the topmost one tells, and a
//!   terminal's lexemes have a guard in its context, a condition on what follows
//!   (`Lexer::restricted_to_guarded`).
//! - **One lexer for the whole grammar.** With `Lexing::Longest`, lexemes are longest among all
//!   terminals of the grammar: how a text is cut then does not depend on the parser's state, and
//!   lexer states can be shared by all of them. A lexeme that could still have been longer is not
//!   waited for: the branch goes on with that inhibition in its lexer state and dies when the
//!   longer one comes true. Where any cutting counts (`Lexing::Any`, as in JSON Schemas), terminals
//!   do not compete, and a lexeme begins in a state that knows only those which the parser takes
//!   there (`Lexer::restricted_to`): in a schema of a thousand names a quote is a step of the few
//!   that may come, and a free string is not followed through every pattern of other properties. A
//!   new state takes the time of its terminals, so first commits are what shows it.
//! - **LALR(1) tables, and stacks as a graph.** Conflicts are not errors but more stacks, sharing
//!   what they have in common (GLR). `max_links` counts each look at a link between their entries,
//!   so it bounds the time of a step however ambiguous the grammar. LR(1) tables would decide some
//!   conflicts and be many times larger; since a terminal is shifted only where a sentence still
//!   follows, both give the same answers. Hidden left recursion is taken out beforehand.
//! - **Names in the position, not in the rules.** A grammar of members in any order, each once,
//!   needs `2ⁿ` nonterminals, and for distinct names that are not listed there is none. Making the
//!   parser's states as subsets are met would bound the first and not do the second, and tables
//!   would grow while masks are read. With the names in the position, rules only count: objects
//!   with up to four declared members still have the subsets in the rules, where masks are memoised
//!   whole. Remembering names everywhere was measured on JSONSchemaBench and makes the median first
//!   mask three times as long, so it is for objects with more required members, or that count.
#![forbid(unsafe_code)]

mod analysis;
pub mod blocks;
pub mod completion;
pub mod glr;
mod grammar;
pub mod lexer;
pub mod lr;
pub mod names;
pub mod recognizer;
pub mod rules;
pub mod scopes;
mod span;

pub use analysis::{Analysis, Conflict, Diagnostic, Severity, analyse};
pub use glr::{LimitError, ParserLimits};
pub use grammar::{
    DistinctNames, EmbedError, Grammar, GrammarBuilder, GroupLimit, Indentation, Lexing,
    MemberScope, Nonterminal, NonterminalId, OwnSet, Rule, ScopeKind, Slot, SlotKind, Symbol,
    Terminal, TerminalId, TerminalKind, TerminalSet, TokenLimit, ignored_terminals,
};
pub use lexer::{LexerError, LexerLimits};
pub use lr::{TableError, TableLimits};
pub use palmette_core::{MemberSpelling, ScopeId, SlotId, SubstringRule, SubstringUnit};
pub use palmette_grammar_regex::{
    Budget, CharClass, Interrupted, Multiple, Regex, TokenError, TokenPart, TokenPattern,
};
pub use recognizer::{
    CompileError, DeadEnd, DeadEnds, Expected, Position, Recognizer, RecognizerError,
    RecognizerLimits, RecognizerScratch,
};
pub use span::Span;
