//! The streaming lexer: where lexemes may end, byte by byte, without looking ahead.
//!
//! A text is read from its front, and nothing is known of what follows. A lexeme that may end here
//! may often also go on, so a reader keeps several *branches*. Each has a [`LexerState`] and
//! whatever the reader makes of the terminals so far. For a byte, each branch is continued in two
//! ways:
//!
//! - the lexeme goes on: [`Lexer::advance`];
//! - it ended before the byte, as one of [`Lexer::ends`]: the branch takes one of its terminals and
//!   advances from [`LexemeEnd::next`].
//!
//! What an end asks of the text that follows, its next state carries along: that no longer lexeme
//! is found after all ([`Lexing::Longest`](crate::Lexing::Longest)), that lookaheads hold. A branch
//! that breaks this is dead: its `advance` gives `None`. Conditions that are still open when the
//! text ends are judged by [`Lexer::may_end`].
//!
//! ```
//! use palmette_grammar_parser::{lexer::*, *};
//! let mut grammar = GrammarBuilder::new();
//! let terminal = |name: &str, regex, kind| Terminal { name: name.into(), regex, priority: 0, kind, span: None };
//! let letters = Regex::Class(CharClass::new([('a', 'z')])).repeat(1, None);
//! let name = grammar.terminal(terminal("NAME", letters, TerminalKind::Pattern));
//! let keyword = grammar.terminal(terminal("if", Regex::literal("if"), TerminalKind::Literal));
//! let start = grammar.nonterminal("start", None);
//! grammar.rule(start, [Symbol::Terminal(name), Symbol::Terminal(keyword)]);
//! let lexer = Lexer::new(&grammar.build(start, Lexing::Longest), &LexerLimits::default())?;
//!
//! let i = lexer.advance(lexer.start(), b'i')?.unwrap();
//! let if_ = lexer.advance(i, b'f')?.unwrap();
//! assert!(lexer.matched(i)?.contains(name) && !lexer.matched(i)?.contains(keyword));
//! assert!(lexer.matched(if_)?.contains(keyword) && !lexer.matched(if_)?.contains(name));
//! assert!(lexer.viable_terminals(if_).contains(name), "as in `iffy`");
//! // The keyword ended, so no letter can follow it.
//! let after = &lexer.ends(if_)?[0];
//! assert!(lexer.advance(after.next, b'f')?.is_none());
//! # Ok::<(), palmette_grammar_parser::LexerError>(())
//! ```

mod determinise;
mod error;
mod history;
mod rivalry;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use determinise::{Determiniser, Transition};
pub use error::LexerError;

use palmette_grammar_regex::expressions::{ByteClasses, ExprId, Expressions, Horizon};

use crate::{Budget, Grammar, Symbol, TerminalId, TerminalSet};

/// A row's entry that was not asked for yet.
const UNKNOWN: u32 = 0;
/// A row's entry for a byte that leads nowhere.
const DEAD: u32 = 1;
/// A row's entry for state 0; others follow.
const FIRST_STATE: u32 = 2;

/// The lexer of a grammar: a deterministic automaton over bytes that is built as it is used.
///
/// Threads may share it: a step that was taken before is two look-ups without a lock; a new one
/// takes a lock. States are numbered as they are found, so their numbers depend on what was asked
/// before; nothing else does.
#[derive(Debug)]
pub struct Lexer {
    start: LexerState,
    shadowed: TerminalSet,
    looking_back: TerminalSet,
    states: boxcar::Vec<State>,
    determiniser: Mutex<Determiniser>,
    max_step_work: u64,
}

/// A position of a [`Lexer`]: what the lexeme in progress may become and what earlier ones still
/// ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LexerState(pub u32);

/// End of a lexeme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexemeEnd {
    /// Terminals of the lexeme: one of these, not empty.
    pub terminals: TerminalSet,
    /// State in which the next lexeme begins. Knows what the end asks of the text that follows.
    pub next: LexerState,
}

/// Limits of a [`Lexer`]. Exceeding one is an error that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexerLimits {
    /// Limit on the number of states.
    pub max_states: usize,
    /// Limit on the number of expressions (residuals of terminals and their parts).
    pub max_expressions: usize,
    /// Limit on the nesting of expressions: chains of optional parts, trees of front ends.
    pub max_nesting: u32,
    /// Limit on the expressions that one search for a text of an intersection or complement may
    /// visit.
    pub max_visited: usize,
    /// Limit on the work of one step of the lexer after it was made, in the units of a [`Budget`]:
    /// a byte in a state that was not asked for it before.
    pub max_step_work: u64,
}

/// Guards: demands on the text after lexemes of some terminals, beside those of competition; by
/// terminal, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Guards(Box<[(TerminalId, ExprId)]>);

impl Guards {
    /// True when nothing is asked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The terminals after which something is asked, ascending.
    pub fn terminals(&self) -> impl Iterator<Item = TerminalId> + '_ {
        self.0.iter().map(|&(terminal, _)| terminal)
    }

    /// The memory that they take elsewhere.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Terminals that decide what a lexeme of one of them is, with that one itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Deciding {
    /// Every rival but those in `finite`.
    pub infinite: TerminalSet,
    /// Rivals that only take some few of its lexemes by their rank, such as keywords of a name.
    pub finite: TerminalSet,
}

/// Demand of earlier lexemes on the text from a state. States with equal ones ask the same; those
/// with others may.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Demand {
    may_end: bool,
    /// Conditions on what follows, by the next byte.
    after: Box<[ExprId]>,
}

/// Size of what a [`Lexer`] has built so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexerStatistics {
    /// States.
    pub states: usize,
    /// Transitions, of a state by a class of bytes, that are known.
    pub transitions: usize,
    /// Expressions.
    pub expressions: usize,
    /// About how much memory all of it takes.
    pub bytes: usize,
}

#[derive(Debug)]
struct State {
    classes: Arc<ByteClasses>,
    /// Transitions by class: [`UNKNOWN`], [`DEAD`], or a state's number after [`FIRST_STATE`].
    row: Box<[AtomicU32]>,
    possible: TerminalSet,
    /// True when no byte of the lexeme was read.
    is_fresh: bool,
    may_end: bool,
    ends: OnceLock<Ends>,
}

#[derive(Debug)]
struct Ends {
    matched: TerminalSet,
    ends: Box<[LexemeEnd]>,
}

/// Residuals of the terminals that can still match in a state.
#[derive(Debug)]
pub struct Remainders<'a> {
    /// Condition that earlier lexemes put on the text from here.
    pub pending: ExprId,
    /// Residuals by terminal, ascending.
    pub live: &'a [(TerminalId, ExprId)],
    /// Meaning of the ids.
    pub expressions: &'a mut Expressions,
}

impl Default for LexerLimits {
    fn default() -> Self {
        Self {
            max_states: 1_000_000,
            max_expressions: 4_000_000,
            max_nesting: 1_000,
            max_visited: 200_000,
            max_step_work: 1 << 30,
        }
    }
}

impl Lexer {
    /// The lexer of the terminals that are in rules reachable from the start, or ignored.
    ///
    /// # Errors
    /// When a terminal matches the empty text, uses what the lexer cannot honour, or exceeds a
    /// limit: the error names the terminal.
    pub fn new(grammar: &Grammar, limits: &LexerLimits) -> Result<Self, LexerError> {
        Self::with_budget(grammar, limits, &mut Budget::unlimited())
    }

    /// [`new`](Self::new), as long as the budget lasts and nobody calls it off. The budget is for
    /// making the lexer; a step of it later is bounded by [`LexerLimits::max_step_work`].
    ///
    /// # Errors
    /// As [`new`](Self::new), and when the work is [`interrupted`](LexerError::interrupted).
    pub fn with_budget(
        grammar: &Grammar,
        limits: &LexerLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Self, LexerError> {
        let used = used_terminals(grammar);
        let mut determiniser = Determiniser::new(grammar, &used, limits, budget)?;
        let states = boxcar::Vec::new();
        let shadowed = determiniser.shadowed().clone();
        let looking_back = determiniser.looking_back();
        let start = determiniser.start(&states, budget)?;
        let (max_step_work, determiniser) = (limits.max_step_work, Mutex::new(determiniser));
        Ok(Self { start, shadowed, looking_back, states, determiniser, max_step_work })
    }

    /// The state before the first lexeme.
    pub fn start(&self) -> LexerState {
        self.start
    }

    /// `state`, in which no byte of a lexeme was read, for a lexeme that can only become one of
    /// these terminals. What is left of others is not followed, so that a grammar of a thousand
    /// names takes the time of those that may come.
    ///
    /// With [`Lexing::Longest`](crate::Lexing::Longest), that is `state` itself: a lexeme is what
    /// it is whether the parser takes it or not. With
    /// [`Lexing::Contextual`](crate::Lexing::Contextual), only these terminals compete.
    ///
    /// # Errors
    /// When a limit is exceeded.
    ///
    /// # Panics
    /// When a byte of the lexeme was read.
    pub fn restricted_to(
        &self,
        state: LexerState,
        terminals: &TerminalSet,
    ) -> Result<LexerState, LexerError> {
        self.restricted_to_guarded(state, terminals, &Guards::default())
    }

    /// [`restricted_to`](Self::restricted_to), where lexemes of some terminals end only before a
    /// text that passes their guards. A terminal competes with others whether its guard would be
    /// passed or not.
    ///
    /// # Errors
    /// When a limit is exceeded.
    ///
    /// # Panics
    /// When a byte of the lexeme was read.
    pub(crate) fn restricted_to_guarded(
        &self,
        state: LexerState,
        terminals: &TerminalSet,
        guards: &Guards,
    ) -> Result<LexerState, LexerError> {
        assert!(self.is_fresh(state), "a byte of the lexeme was read");
        self.step(|determiniser, budget| {
            determiniser.restricted_to(&self.states, state, (terminals, guards), budget)
        })
    }

    /// Guards that keep lexemes of each of these terminals, ascending, from ending where the next
    /// one would begin in a state with the condition of one of those that it is listed with.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn guards_against(
        &self,
        states: impl IntoIterator<Item = (TerminalId, Vec<LexerState>)>,
    ) -> Result<Guards, LexerError> {
        let guard = |(terminal, states): (TerminalId, Vec<LexerState>)| {
            let guard =
                self.step(|determiniser, budget| determiniser.guard_against(&states, budget))?;
            Ok((terminal, guard))
        };
        Ok(Guards(states.into_iter().map(guard).collect::<Result<_, LexerError>>()?))
    }

    /// Deciding terminals of one: all that decide what a lexeme of it is, among whatever others.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn rivals(&self, terminal: TerminalId) -> Result<TerminalSet, LexerError> {
        self.step(|determiniser, budget| determiniser.rivals(terminal, budget))
    }

    /// Deciding terminals among some: those that decide what a lexeme of one of them is. Others
    /// take none of its lexemes, nor are longer than some.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn deciding(
        &self,
        terminal: TerminalId,
        among: &TerminalSet,
    ) -> Result<Deciding, LexerError> {
        self.step(|determiniser, budget| determiniser.deciding(terminal, among, budget))
    }

    /// Demand of earlier lexemes on the text from a state in which no byte was read.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn demand(&self, state: LexerState) -> Result<Demand, LexerError> {
        self.step(|determiniser, budget| determiniser.demand(state, budget))
    }

    /// `state`, in which no byte of a lexeme was read, for lexemes of all terminals that do not
    /// compete: an upper bound of what [`restricted_to`](Self::restricted_to) gives for any
    /// terminals.
    ///
    /// # Errors
    /// When a limit is exceeded.
    ///
    /// # Panics
    /// When a byte of the lexeme was read.
    pub fn unrivalled(&self, state: LexerState) -> Result<LexerState, LexerError> {
        assert!(self.is_fresh(state), "a byte of the lexeme was read");
        self.step(|determiniser, budget| determiniser.unrivalled(&self.states, state, budget))
    }

    /// True when no byte of the lexeme in progress was read.
    #[inline]
    pub fn is_fresh(&self, state: LexerState) -> bool {
        self.state(state).is_fresh
    }

    /// The lexeme in progress goes on with `byte`; `None` when it cannot, or earlier lexemes could
    /// then not have ended where they did.
    ///
    /// # Errors
    /// When a limit is exceeded.
    #[inline]
    pub fn advance(&self, state: LexerState, byte: u8) -> Result<Option<LexerState>, LexerError> {
        let from = self.state(state);
        let class = from.classes.class(byte);
        match from.row[class].load(Ordering::Acquire) {
            UNKNOWN => self.find(state, class),
            DEAD => Ok(None),
            found => Ok(Some(LexerState(found - FIRST_STATE))),
        }
    }

    /// Ends of the lexeme in progress here: by what they ask of what follows, in the order of their
    /// least terminals. No terminal is in two of them unless under different conditions.
    ///
    /// # Errors
    /// When a limit is exceeded.
    #[inline]
    pub fn ends(&self, state: LexerState) -> Result<&[LexemeEnd], LexerError> {
        Ok(&self.found_ends(state)?.ends)
    }

    /// The terminals of all [`ends`](Self::ends).
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn matched(&self, state: LexerState) -> Result<&TerminalSet, LexerError> {
        Ok(&self.found_ends(state)?.matched)
    }

    /// The terminals that the lexeme in progress can still become, ending here included, for some
    /// text that follows.
    #[inline]
    pub fn viable_terminals(&self, state: LexerState) -> &TerminalSet {
        &self.state(state).possible
    }

    /// True when no byte of the lexeme was read yet and the text may end here: nothing that earlier
    /// lexemes ask of what follows is left open.
    pub fn may_end(&self, state: LexerState) -> bool {
        self.state(state).may_end
    }

    /// A state that goes on as `state` does for all texts of a horizon: after each of their bytes,
    /// as many lexemes end, as the same terminals, and the same terminals are possible. So states
    /// that differ only in counts that are far from used up (`maxLength: 100000`) are one, and what
    /// is known of the one for tokens within the horizon holds for the others.
    ///
    /// It may be `state` itself.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn bounded_equivalent(
        &self,
        state: LexerState,
        within: Horizon,
    ) -> Result<LexerState, LexerError> {
        self.step(|determiniser, budget| {
            determiniser.bounded_equivalent(&self.states, state, within, budget)
        })
    }

    /// Fingerprint of what a state means, whatever numbers states and expressions have here. Lexers
    /// of equal grammars have equal ones for it, unless an expression was simplified in another
    /// way, which may depend on what was asked before.
    pub fn fingerprint(&self, state: LexerState) -> u128 {
        self.determiniser().fingerprint(state)
    }

    /// Shows what is left of the terminals of a state; holds the lexer's lock meanwhile.
    pub fn remainders<T>(&self, state: LexerState, read: impl FnOnce(Remainders<'_>) -> T) -> T {
        read(self.determiniser().remainders(state))
    }

    /// Residuals of a state's terminals, by terminal, each with all that decides its lexeme: the
    /// other terminals that could match more of the text, or the same with a higher rank, and what
    /// earlier lexemes ask of the text from here.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn guarded(&self, state: LexerState) -> Result<Vec<(TerminalId, ExprId)>, LexerError> {
        self.step(|determiniser, budget| determiniser.guarded(state, budget))
    }

    /// The bytes that a state tells apart.
    pub fn classes_of(&self, state: LexerState) -> Arc<ByteClasses> {
        Arc::clone(&self.state(state).classes)
    }

    /// The states after each class of bytes that leads on, with a byte of the class.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn steps(&self, state: LexerState) -> Result<Vec<(u8, LexerState)>, LexerError> {
        let bytes = self.state(state).classes.representatives().iter();
        let steps = bytes.map(|&byte| Ok(self.advance(state, byte)?.map(|next| (byte, next))));
        steps.filter_map(Result::transpose).collect()
    }

    /// Takes the terminals out that do not compete.
    pub(crate) fn remove_free(&self, terminals: &mut TerminalSet) {
        self.determiniser().remove_free(terminals);
    }

    /// True when two texts of a terminal in a row are always one of it.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn is_closed(&self, terminal: TerminalId) -> Result<bool, LexerError> {
        self.step(|determiniser, budget| determiniser.is_closed(terminal, budget))
    }

    /// True when some of these terminals lose to others of them where all match the same lexeme.
    pub(crate) fn has_losers(&self, terminals: &TerminalSet) -> bool {
        self.determiniser().has_losers(terminals)
    }

    /// Byte classes: for each byte a number below the count; bytes with the same number lead to the
    /// same state.
    pub fn num_classes(&self, state: LexerState) -> usize {
        self.state(state).row.len()
    }

    /// The number of a byte; see [`num_classes`](Self::num_classes).
    pub fn class(&self, state: LexerState, byte: u8) -> usize {
        self.state(state).classes.class(byte)
    }

    /// Terminals that would lose each of their lexemes to terminals ranked higher, and so are
    /// kept beside these. Empty with [`Lexing::Any`](crate::Lexing::Any).
    pub fn shadowed(&self) -> &TerminalSet {
        &self.shadowed
    }

    /// Terminals whose lexemes depend on the text before them: those with a lookbehind or a word
    /// boundary at their beginning.
    pub fn looking_back(&self) -> &TerminalSet {
        &self.looking_back
    }

    /// True once half of the states that the limits allow are there.
    pub(crate) fn is_half_full(&self) -> bool {
        self.determiniser().is_half_full()
    }

    /// Size of what was built so far.
    pub fn statistics(&self) -> LexerStatistics {
        let determiniser = self.determiniser();
        let known = |entry: &&AtomicU32| entry.load(Ordering::Relaxed) != UNKNOWN;
        let rows = (0..determiniser.num_states()).map(|index| &self.states[index].row);
        LexerStatistics {
            states: determiniser.num_states(),
            transitions: rows.map(|row| row.iter().filter(known).count()).sum(),
            expressions: determiniser.num_expressions(),
            bytes: determiniser.bytes(),
        }
    }

    /// About how much memory it takes by now.
    pub fn bytes(&self) -> usize {
        self.determiniser().bytes()
    }

    fn state(&self, state: LexerState) -> &State {
        &self.states[state.0 as usize]
    }

    fn determiniser(&self) -> std::sync::MutexGuard<'_, Determiniser> {
        // What it holds is consistent after each of its steps, so a panic elsewhere does not spoil
        // it.
        self.determiniser.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Work that was not done before, within its bound.
    fn step<T>(
        &self,
        work: impl FnOnce(&mut Determiniser, &mut Budget<'_>) -> Result<T, LexerError>,
    ) -> Result<T, LexerError> {
        let mut budget = Budget::new(self.max_step_work);
        work(&mut self.determiniser(), &mut budget)
            .map_err(|error| error.or_step(self.max_step_work))
    }

    /// A transition that is not known yet.
    #[cold]
    fn find(&self, state: LexerState, class: usize) -> Result<Option<LexerState>, LexerError> {
        let from = self.state(state);
        let byte = from.classes.representatives()[class];
        let found = self
            .step(|determiniser, budget| determiniser.advance(&self.states, state, byte, budget))?;
        let found = match found {
            Transition::Dead => None,
            Transition::State(to) => Some(to),
        };
        let entry = found.map_or(DEAD, |to| to.0 + FIRST_STATE);
        from.row[class].store(entry, Ordering::Release);
        Ok(found)
    }

    fn found_ends(&self, state: LexerState) -> Result<&Ends, LexerError> {
        let ends = &self.state(state).ends;
        if let Some(known) = ends.get() {
            return Ok(known);
        }
        let found =
            self.step(|determiniser, budget| determiniser.ends(&self.states, state, budget))?;
        Ok(ends.get_or_init(|| found))
    }
}

/// The terminals in rules that can be reached from the start, and the ignored ones; those without
/// text are left out, and where terminals compete, those of which no sentence is made.
fn used_terminals(grammar: &Grammar) -> BTreeSet<TerminalId> {
    let mut used: BTreeSet<_> = grammar.ignored().iter().copied().collect();
    if grammar.lexing().competes() {
        used.extend(crate::rules::used_terminals(grammar).iter());
        used.retain(|id| grammar.terminals()[id.index()].kind.has_text());
        return used;
    }
    let mut rules_of = vec![Vec::new(); grammar.nonterminals().len()];
    for rule in grammar.rules() {
        rules_of[rule.head.index()].push(rule);
    }
    let mut reached = vec![false; grammar.nonterminals().len()];
    let mut to_visit = vec![grammar.start()];
    while let Some(nonterminal) = to_visit.pop() {
        if std::mem::replace(&mut reached[nonterminal.index()], true) {
            continue;
        }
        for symbol in rules_of[nonterminal.index()].iter().flat_map(|rule| &rule.body) {
            match *symbol {
                Symbol::Terminal(terminal) => drop(used.insert(terminal)),
                Symbol::Nonterminal(next) => to_visit.push(next),
            }
        }
    }
    used.retain(|id| grammar.terminals()[id.index()].kind.has_text());
    used
}
