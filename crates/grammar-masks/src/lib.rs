//! Exact token masks: which tokens of a vocabulary may follow a text so that it can still become a
//! sentence of a grammar.
//!
//! A *residual* is the Brzozowski derivative of a terminal's expression by the bytes of the lexeme
//! read so far; residuals are hash-consed per vocabulary and shared by all grammars. For a
//! residual, one walk over the vocabulary trie yields its *token effect*: the tokens consumed
//! whole, and, for those within which the lexeme may end, a *suffix trie* of what remains. A mask
//! is the union, over the residuals that the tops of the LR stacks admit, of their consumed tokens
//! and of those suffixes that the parser accepts. Acceptance of a suffix is decided by a *stack
//! automaton* that reads the LR stack from the top; a reduction that pops below what was read is a *deferred
//! reduction*, resumed when those states are read ("template automata" of *Precomputing grammar
//! masks*). Effects and automaton are built lazily and memoised. Token sets are delta-encoded
//! against shared rows. A residual that is almost another has its effect computed as a *difference*
//! along the pair.
//!
//! [`MaskAutomaton`] is the engine. Its parts: `residuals` (token effects, and the simulation of
//! the parser that decides about suffixes), `stack_automaton`, `predecessors`, `mask_pool`, and
//! `automaton`, which puts them together under a lock. The trie [`walk`] is the definition,
//! executed; a third engine, by the sequences of terminals that tokens spell, is in a crate for
//! tests and measurements. None imports another, and they give the same masks.
//!
//! [`vocabulary`] is the trie below all of them, [`PreparedVocabulary`] what grammars over a
//! vocabulary share.
//!
//! # Life of a mask
//! `palmette grammar mask order.json --prefix '{"qu'`, and what `GrammarConstraint` does at every
//! step of a generation. `docs/how-masks-work.md` draws this example, and has the table from the
//! terms here to the names in the code; files are within `crates/grammar-masks/src` unless a crate
//! is named.
//!
//! 1. A front end (`palmette-grammar-syntax`) reads the source and makes a `Grammar`: rules over
//!    terminals, each with a regular expression. It makes nothing else, and what follows does not
//!    know which one it was.
//! 2. `Recognizer::new` makes lexer and parser. Terminals that stand in the same places of the same
//!    rules, a choice of thousands of labels, are made one first
//!    (`grammar-parser/src/rules/interchange.rs`). The lexer is a lazy DFA over derivatives of the
//!    terminals' expressions: one state at first, others when a byte leads there. The parser's
//!    tables are made at once: LALR(1), conflicts kept.
//! 3. A text so far is a `Position`: *branches*, each a state of the lexer (within the lexeme in
//!    progress) and the LR stacks (after the lexemes before it), as one graph (GLR). What is not
//!    known yet, above all whether the lexeme ends here, makes a branch more.
//! 4. A byte goes to every branch (`Recognizer::advance`): the lexeme goes on, or it ended and the
//!    parser shifts its terminal. A branch that nothing can complete is dropped, branches of one
//!    lexer state merge their stacks, and if none is left the text fits no more. This is also how a
//!    token is committed, and the definition that all masks are compared with. The scratch memoises
//!    shifts and whole steps, so those taken before are look-ups.
//! 5. What remains of a terminal within its lexeme is a **residual**, the Brzozowski derivative of
//!    its expression by the bytes read, hash-consed for all grammars over a vocabulary
//!    (`residuals/`). For a residual one walk over the vocabulary trie gives its **token effect**
//!    (`residuals/token_effect.rs`): the tokens consumed whole, and, for those within which the
//!    lexeme may end, the places where it does, with the **suffix trie** of what remains of them
//!    (`residuals/suffix_trie.rs`).
//!    - A residual that is almost a known one has its effect computed as a **difference**
//!      (`residuals/difference.rs`): both are walked through the trie together, and a subtree is
//!      left out where they are equal, or cannot be told apart by its bytes
//!      (`residuals/bounded_equivalence.rs`) or by so few; for counts, through the trie's quotient
//!      by the reference (`residuals/quotient_trie.rs`). The reference (`residuals/references.rs`)
//!      is the residual without counts and exceptions such as declared names, or one that is common
//!      in texts.
//! 6. A mask is the union, over the residuals that the stacks admit, of their consumed tokens and
//!    of those suffixes that the parser accepts. A **stack automaton** (`stack_automaton.rs`) reads
//!    the LR stack from the top, beginning with the lexer state; a node says what is certain on all
//!    stacks that begin so, and what is open; reading stops where nothing is. There are two of one
//!    kind, of suffixes and of masks (`residuals/stack_nodes.rs`).
//!    - A lexeme that begins within a token has the same **lexeme effect** there whatever the stack
//!      is (`residuals/lexeme_effect.rs`): the tokens that end with it, and the places where it has
//!      ended. The simulation of the parser puts effects together, and asks the stack only for
//!      terminals that begin with a byte that comes at the place.
//!    - A reduction that pops below what was read is a **deferred reduction**
//!      (`residuals/deferred_reduction.rs`): the place in the token, the rule's head, and the
//!      number of missing states. It resumes when these are read; each part is kept by itself,
//!      since whatever lexeme it was, it ended at the same few places.
//!    - Stacks that say the same and leave the same open are one node, so recursion comes back to
//!      known nodes. Lexer states that agree for as many bytes as the longest token has share
//!      theirs.
//! 7. Masks are interned, and **delta-encoded** against shared rows (`mask_pool/`): until somebody
//!    asks for its 25 KB nothing of a mask is written. Nodes and masks lie in lists that do not
//!    move, and all of it is memoised.
//! 8. End tokens are added where the position is accepting. `forced_bytes` follows a position as
//!    long as there is one way on.
//!
//! Where terminals compete for lexemes in the parser's context and that is not proven to be vacuous
//! (`grammar-parser/src/recognizer/vacuous.rs`), a residual is guarded by its rivals
//! (`grammar-parser/src/lexer/rivalry.rs`): its ends ask something of what follows, and the places
//! in tokens after them carry that condition (`residuals/stack_simulation.rs`). A guard against
//! dead ends is one more such condition. An expression that looks behind within its lexeme carries
//! what it has seen, and is a residual as it is. One that looks at the text before its lexeme is
//! brought forward by that text in the lexer's states (`grammar-parser/src/lexer/history.rs`);
//! masks of such a grammar are found by walking the vocabulary. Where residuals exceed their
//! limits, or stacks part into too many, the vocabulary is walked for the mask.
//!
//! Member terminals stand for sets that differ by request, and no lexeme is known of them. The
//! automaton, shared by all bindings of a grammar, says where one may begin (a part of a suffix
//! set, `residuals/member_begin.rs`); what tokens do there is asked of the set, and kept as a row
//! of the binding (`automaton/member_rows.rs`). Below the few nodes of the trie where a member ends
//! within tokens, stacks are found by reading the bytes that lead there, and the automaton goes on
//! (`automaton/member_masks.rs`). Where a token does not count, or names of objects matter, a
//! beginning is read instead. The definition with sets is [`member_walk`].
//!
//! Blocks by indentation are a layer between lexer and parser (`grammar-parser/src/blocks/mod.rs`):
//! it counts brackets and depths of lines and marks where blocks begin and end; lexer and parser do
//! not know of it. In a mask each place in a token has a state of the layer beside it
//! (`residuals/layer_states.rs`): line's ends within brackets are dropped, ends of a line within
//! tokens are told apart by the depth of the next line (`residuals/line_ends.rs`), and marks are
//! shifted before the next lexeme begins. What is left of a token that can end no line is the same
//! whatever blocks are open (`residuals/line_end_bounds.rs`), and blocks that no token tells apart
//! by their depths are one (`residuals/relative_layers.rs`).
//!
//! Scopes of distinct names are another layer (`grammar-parser/src/names/`): a position remembers
//! which names its open objects have seen, and a name that was seen is denied, so rules that count
//! members count names. A lexeme begins in a lexer state without the names that were seen; the
//! lexer makes such states as subsets are met. The engines of masks know no names: the few tokens
//! within or with which a name begins that may be one that was seen, or one of many names goes on,
//! are tried one by one and taken out (`grammar/src/constraint/names.rs`).
//!
//! The **mask store** (`palmette-mask-store`) finds the same masks by other means: token sets by
//! the sequence of terminals that a token spells (*rows*, found for a lexer state when it is first
//! visited), asked of the parser. It shares no code with the automaton but the trie, and serves as
//! its oracle where lexemes do not depend on the parser.
//!
//! Five crates depend one way: `palmette-grammar-regex` ← `palmette-grammar-parser` ←
//! `palmette-grammar-masks` ← `palmette-grammar`, and `palmette-grammar-syntax`, which makes
//! grammars, beside the masks. Each has tests of its own (`tests/` in each, with oracles of
//! `palmette-testkit`, which knows the parser and neither front ends nor masks), and a change of
//! the masks compiles neither parser nor front ends again; front ends and masks compile side by
//! side. Within the parser `grammar` ← `rules` (rules as graphs) ← `lr` ← `glr`, and `lexer`; both
//! below `recognizer`, with `blocks` and `names` between them. The definition (`walk.rs`), the
//! store and the automaton know nothing of each other, and so they are compared; they share the
//! trie (`core/src/vocabulary_trie/mod.rs`), its one depth-first walk, and the parser's partial
//! stack (`grammar-parser/src/glr/partial_stack.rs`). `cargo run -p xtask -- tidy` has the tables
//! of modules and words, and reads the sources. Tests and benches reach the engines through the
//! facade's hidden module `engine`.
//!
//! What a server needs besides is in `palmette-grammar`:
//!
//! - `BatchFiller` fills the rows of a batch on several threads, rows handed out one by one; each
//!   may be of another grammar.
//! - `GrammarConstraint::mask` lends a mask by reference and number instead of a copy.
//! - `MaskBudget` bounds the work of one mask. Where exploring takes too much, the vocabulary is
//!   walked for this one position, under a budget of its own; then it is an error. There is no
//!   third way out: a mask is exact or there is none. The same walk serves where a mask depends on
//!   too many ways through an ambiguous text's stacks.
//! - **Precomputing** (`precompute`) asks for masks before a text does, by one worklist, likeliest
//!   first (`grammar-masks/src/automaton/precompute/`). A mask depends on the residual in progress
//!   and on states from the top of the stack, whatever the text was: lexemes are followed byte by
//!   byte, once for each topmost state (`worklist.rs`), and what more of a stack says by going back
//!   through the parser's states, since any way back to the first is a stack
//!   (`residuals/stack_worklist.rs`). Where a text can be read in several ways its positions are
//!   visited after that, some times as many; where lexemes depend on the parser's contexts,
//!   positions alone. It only asks for masks, so it cannot change one; in the background it gives
//!   way to whoever waits for a mask (`core/src/budget.rs`).
//! - `GrammarCache` knows grammars by their `GrammarSource` and the vocabulary's fingerprint,
//!   compared whole; one compiles, others wait.
//! - A file of a compiled grammar (`grammar/src/saved.rs`) has the grammar's source and the stack
//!   automaton's nodes with their masks. The grammar is compiled again when it is opened, which
//!   takes milliseconds, so the file is no image of memory that only one version could read. Nodes
//!   belong to lexer states, whose numbers depend on what was asked before; the file names them by
//!   fingerprints of their meaning, and nodes are joined to a state when it is first met.
//!
//! # Invariants
//! - A mask is exact both ways: a token is allowed if and only if the text so far with its bytes
//!   can be completed. The automaton, the definition, which tries every token, and in tests the
//!   mask store give the same masks. With contextual lexing, what competition leaves nothing to
//!   follow is excluded when a grammar is made ready (`grammar-parser/src/recognizer/dead_ends`),
//!   or `dead_ends()` says that the grammar was too large for that. (With the longest lexemes
//!   everywhere, and with lookarounds outside contextual lexing, exactness supposes that neighbours
//!   can be spelled apart.)
//!
//! # Decisions
//! - **Masks built as they are asked for.** "Precomputing grammar masks" composes an automaton for
//!   the whole grammar ahead of time. A request cannot wait for that with a schema of its own, and
//!   most of it would never be read: here the same automaton is built node by node as stacks come
//!   by. The price is a slow first visit, which the benches show apart.
//! - **Tokens by name are spelled.** A token that a grammar asks for by name or number is spelled
//!   by a byte that no UTF-8 text holds and its number (`grammar-regex/src/tokens.rs`,
//!   `vocabulary/spellings.rs`). Lexer, parser and both engines read it as they read text; a mask
//!   of tokens beside them would have been another engine. Tokens with text have such a spelling
//!   only in the trie that grammars use which ask for them, made when the first does.
#![forbid(unsafe_code)]

mod automaton;
mod mask_pool;
pub mod member_walk;
mod predecessors;
mod residuals;
mod stack_automaton;
mod tables;
pub mod token_cut;
pub mod vocabulary;
pub mod walk;

pub use automaton::{
    AutomatonGraph, AutomatonStatistics, GraphFirst, GraphNode, MaskAutomaton, MemberMasks,
    MemberRows, MemberScratch, Precompute, PreparedVocabulary, SavedAutomaton, SavedMask, UNREAD,
};
pub use mask_pool::PoolId;
use palmette_grammar_parser::{
    Grammar, Interrupted, LexerError, LimitError, NonterminalId, TerminalId, TerminalSet,
};
use palmette_grammar_regex::{Budget, TokenPattern};
pub use vocabulary::VocabularyFingerprint;
