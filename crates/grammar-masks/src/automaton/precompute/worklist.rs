//! Worklist of lexemes in progress, with the states that may be on top of the stack.
//!
//! Lexemes are followed byte by byte once for each topmost state, and stacks terminal by terminal:
//! where a lexeme may end on a state, so may it on all stacks with that state on top. What more of
//! the stack says is [another matter](crate::residuals::StackWorklist).

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use palmette_core::VocabularyTrie;
use palmette_grammar_parser::glr::Stacks;
use palmette_grammar_parser::lexer::{Lexer, LexerState};
use palmette_grammar_parser::lr::StateId;
use palmette_grammar_parser::recognizer::{
    Position, Recognizer, RecognizerError, RecognizerScratch,
};
use palmette_grammar_regex::expressions::Horizon;
use palmette_grammar_regex::{ByteSet, fingerprint};

use super::likely::{self, Cost, Kind, Token};
use super::tops::SuccessorTops;
use crate::{Budget, TerminalId};

/// Entries to be visited, the likeliest first; none is left out.
#[derive(Debug)]
pub(super) struct Worklist {
    stack_depth: usize,
    /// The horizon of tokens.
    horizon: Horizon,
    /// Entries by what their bytes cost, and when they were found.
    open: BTreeMap<(Cost, usize), OpenVisit>,
    num_added: usize,
    /// Lexemes in progress, as they go on for tokens, with topmost states.
    seen: HashSet<LexemeOnTop>,
    /// Stacks before lexemes, and positions, by fingerprints. Where two agreed, one would be left
    /// to be computed when it is asked for.
    ///
    /// PERF: there are hundreds of thousands, and keys are several lists each; to drop so many
    /// keeps the allocator busy, for which other threads seemed to wait for tens of milliseconds.
    seen_stacks: HashSet<u128>,
    on_top: HashMap<StateId, LexemeOnState>,
    /// Topmost states after terminals, where lexemes begin by these alone.
    tops: Option<SuccessorTops>,
    /// Terminals that ended on a state, with what the next lexeme begins in.
    ended_on: HashSet<(StateId, TerminalId, LexerState)>,
    steps: HashMap<LexerState, Arc<[Step]>>,
    positions: Positions,
}

/// Need to visit positions too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Positions {
    /// None: no text was met that can be read in several ways. Of such a text stacks may part, and
    /// what begins after several stacks at once is not followed.
    Needless,
    Needed,
    Begun,
}

/// Lexemes met with a state on top.
#[derive(Debug, Default)]
struct LexemeOnState {
    stacks: Vec<Stacks>,
    ended: Vec<EndedTerminal>,
}

/// A terminal whose lexemes may end.
#[derive(Clone, Copy, Debug)]
struct EndedTerminal {
    terminal: TerminalId,
    /// State in which the next lexeme begins, whatever the parser takes there.
    next: LexerState,
    /// Likelihood, and the place in a token.
    cost: Cost,
    token: Token,
    /// The bytes that a lexeme may go on with instead.
    goes_on: ByteSet,
}

/// To be visited.
#[derive(Debug)]
struct OpenVisit {
    token: Token,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Any lexeme may begin after these stacks, in a state of the lexer.
    Begins(LexerState, Stacks),
    /// A lexeme is in progress.
    InProgress(LexemeOnTop),
    /// Target, once it was followed.
    Followed(LexemeOnTop),
    Position(Position),
}

/// A lexeme in progress, and the state on top of the stack.
pub(super) type LexemeOnTop = (LexerState, StateId);

/// Entry of which the mask is to be computed.
pub(super) enum Visit {
    /// None: it was only followed.
    Nothing,
    Lexeme(LexemeOnTop),
    Position(Position),
}

/// A transition within a lexeme, to another state.
#[derive(Clone, Copy, Debug)]
struct Step {
    to: LexerState,
    /// The one that stands for all that go on as it does for tokens.
    alike: LexerState,
    /// The bytes that lead there, by the likeliest.
    kind: Kind,
    cost: Cost,
}

/// About what the stacks before a lexeme take: the entry that no others have.
const STACKS_BYTES: usize = 160;

impl Worklist {
    /// The lexemes with which texts begin.
    pub(super) fn new(recognizer: &Recognizer, horizon: Horizon, stack_depth: usize) -> Self {
        let by_tops = recognizer.contexts().is_some() || recognizer.layer().indentation.is_some();
        let mut made = Self {
            stack_depth,
            horizon,
            open: BTreeMap::new(),
            num_added: 0,
            seen: HashSet::new(),
            seen_stacks: HashSet::new(),
            on_top: HashMap::new(),
            tops: by_tops.then(|| SuccessorTops::new(recognizer)),
            ended_on: HashSet::new(),
            steps: HashMap::new(),
            positions: Positions::Needless,
        };
        if recognizer.layer().indentation.is_some() {
            made.visit_positions();
        }
        for branch in recognizer.start().into_iter().flat_map(|start| start.branches()) {
            match by_tops {
                true => {
                    for top in branch.stacks.states() {
                        made.add_lexeme((branch.lexer, top), branch.lexer, 0, Token::NONE);
                    }
                }
                false => made.add_stacks(branch.lexer, branch.stacks.clone(), 0, Token::NONE),
            }
        }
        made
    }

    /// True when lexemes begin by the topmost states, which are bounded without texts.
    pub(super) fn is_by_tops(&self) -> bool {
        self.tops.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.open.len() * size_of::<((Cost, usize), OpenVisit)>()
            + self.seen.len() * 2 * size_of::<LexemeOnTop>()
            + self.ended_on.len() * 2 * size_of::<(StateId, TerminalId, LexerState)>()
            + self.tops.as_ref().map_or(0, SuccessorTops::bytes)
            + self.seen_stacks.len() * (2 * size_of::<u128>() + STACKS_BYTES)
    }

    /// Remembers that positions are to be visited, once nothing else is left.
    pub(super) fn visit_positions(&mut self) {
        if self.positions == Positions::Needless {
            self.positions = Positions::Needed;
        }
    }

    /// Adds the position before a text where positions are to be visited and were not begun; tells
    /// whether that is so.
    pub(super) fn begin_positions(
        &mut self,
        recognizer: &Recognizer,
    ) -> Result<bool, RecognizerError> {
        if self.positions != Positions::Needed {
            return Ok(false);
        }
        self.positions = Positions::Begun;
        if let Some(start) = recognizer.start() {
            self.add_position(recognizer.lexer(), start.clone(), 0, Token::NONE)?;
        }
        Ok(true)
    }

    /// Takes one entry off the list; `None` where nothing is left. Takes a unit from the budget,
    /// and one for each entry added.
    ///
    /// Invariant: each call takes one entry, so that the caller can look at the memory between any
    /// two.
    pub(super) fn next(
        &mut self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        scratch: &mut RecognizerScratch,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Visit>, RecognizerError> {
        let Some(((cost, _), OpenVisit { token, what })) = self.open.pop_first() else {
            return Ok(None);
        };
        let before = self.num_added;
        let visit = match what {
            What::Begins(lexer, stacks) => {
                self.begin(recognizer, lexer, &stacks, cost, token, scratch)?;
                Visit::Nothing
            }
            What::InProgress(lexeme) => {
                if self.follow(recognizer, trie, lexeme, cost, token, scratch)? {
                    Visit::Lexeme(lexeme)
                } else {
                    let later = cost.saturating_add(likely::LATER);
                    self.push(later, token, What::Followed(lexeme));
                    Visit::Nothing
                }
            }
            What::Followed(lexeme) => Visit::Lexeme(lexeme),
            What::Position(position) => {
                self.follow_position(recognizer, trie, &position, cost, token, scratch)?;
                Visit::Position(position)
            }
        };
        budget.spend_holding_nothing(1 + (self.num_added - before) as u64)?;
        Ok(Some(visit))
    }

    /// Begins lexemes after some stacks.
    fn begin(
        &mut self,
        recognizer: &Recognizer,
        lexer: LexerState,
        stacks: &Stacks,
        cost: Cost,
        token: Token,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        for top in stacks.states() {
            if self.seen.insert((lexer, top)) {
                self.push(cost, token, What::InProgress((lexer, top)));
            }
            let on_top = self.on_top.entry(top).or_default();
            on_top.stacks.push(stacks.clone());
            for ended in on_top.ended.clone() {
                self.shift(recognizer, stacks, &ended, scratch)?;
            }
        }
        Ok(())
    }

    /// Follows a lexeme by a byte; tells whether tokens are likely to be cut there.
    fn follow(
        &mut self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        (state, top): LexemeOnTop,
        cost: Cost,
        token: Token,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        let lexer = recognizer.lexer();
        let steps = self.steps(lexer, state)?;
        let mut bytes = ByteSet::default();
        for step in &*steps {
            bytes.unite(&step.kind.bytes);
        }
        let ends = lexer.ends(state)?;
        if self.is_by_tops() {
            for end in ends {
                for terminal in end.terminals.iter() {
                    self.end(recognizer, (top, terminal, end.next), cost, token)?;
                }
            }
            self.go_on(recognizer, trie, &steps, top, cost, token);
            return Ok(token.is_cut(trie, steps.iter().map(|step| (step.kind.byte, step.cost))));
        }
        let all = ends.iter().flat_map(|end| end.terminals.iter().map(|one| (one, end.next)));
        for (number, (terminal, next)) in all.enumerate() {
            if number > 0 {
                self.visit_positions();
            }
            let LexemeOnState { stacks, ended } = self.on_top.entry(top).or_default();
            let known = ended.iter().position(|one| (one.terminal, one.next) == (terminal, next));
            let at = known.unwrap_or_else(|| {
                ended.push(EndedTerminal {
                    terminal,
                    next,
                    cost,
                    token,
                    goes_on: ByteSet::default(),
                });
                ended.len() - 1
            });
            let goes_on = ended[at].goes_on.unite(&bytes);
            if known.is_none() || goes_on && self.positions == Positions::Needless {
                let (stacks, ended) = (stacks.clone(), ended[at]);
                for stacks in &stacks {
                    self.shift(recognizer, stacks, &ended, scratch)?;
                }
            }
        }
        self.go_on(recognizer, trie, &steps, top, cost, token);
        Ok(token.is_cut(trie, steps.iter().map(|step| (step.kind.byte, step.cost))))
    }

    /// Goes on with a lexeme.
    fn go_on(
        &mut self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        steps: &[Step],
        top: StateId,
        cost: Cost,
        token: Token,
    ) {
        for &Step { to, alike, kind, cost: of_step } in steps {
            let token = token.after(trie, kind.byte);
            if self.tops.as_ref().is_none_or(|tops| tops.is_live(recognizer, to, top)) {
                self.add_lexeme((to, top), alike, cost.saturating_add(of_step), token);
            }
        }
    }

    /// Adds a lexeme in progress, unless one alike was added.
    fn add_lexeme(&mut self, lexeme: LexemeOnTop, alike: LexerState, cost: Cost, token: Token) {
        if self.seen.insert((alike, lexeme.1)) {
            self.push(cost, token, What::InProgress(lexeme));
        }
    }

    /// Begins lexemes after one that ended on a state, in the contexts of all states that may be on
    /// top then.
    fn end(
        &mut self,
        recognizer: &Recognizer,
        ended: (StateId, TerminalId, LexerState),
        cost: Cost,
        token: Token,
    ) -> Result<(), RecognizerError> {
        if !self.ended_on.insert(ended) {
            return Ok(());
        }
        let Some(tops) = &mut self.tops else { return Ok(()) };
        let (top, terminal, next) = ended;
        for &top in &*tops.after(recognizer, top, terminal) {
            let lexer = recognizer.lexer();
            let begun = match recognizer.contexts() {
                Some(contexts) => contexts.begin(lexer, next, contexts.of(top), |_| {})?,
                None => next,
            };
            let alike = lexer.bounded_equivalent(begun, self.horizon)?;
            self.add_lexeme((begun, top), alike, cost, token);
        }
        Ok(())
    }

    /// Goes on after a terminal.
    fn shift(
        &mut self,
        recognizer: &Recognizer,
        stacks: &Stacks,
        ended: &EndedTerminal,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let &EndedTerminal { terminal, next, cost, token, goes_on } = ended;
        let after = recognizer.after(stacks, terminal, next, scratch)?;
        for (number, (lexer, stacks)) in after.enumerate() {
            let mut several = number > 0 || stacks.states().nth(1).is_some();
            for byte in goes_on.iter().filter(|_| self.positions == Positions::Needless) {
                several |= recognizer.lexer().advance(lexer, byte)?.is_some();
            }
            if several {
                self.visit_positions();
            }
            self.add_stacks(lexer, stacks, cost, token);
        }
        Ok(())
    }

    fn add_stacks(&mut self, lexer: LexerState, stacks: Stacks, cost: Cost, token: Token) {
        let key = (lexer, likely::tops(&stacks, self.stack_depth));
        if self.seen_stacks.insert(fingerprint(&key)) {
            self.push(cost, token, What::Begins(lexer, stacks));
        }
    }

    /// Follows a position by one byte of each kind that its lexemes tell apart.
    fn follow_position(
        &mut self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        position: &Position,
        cost: Cost,
        token: Token,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let lexer = recognizer.lexer();
        let lexemes = recognizer.lexemes(position, scratch)?;
        let classes = lexemes.iter().map(|lexeme| lexer.classes_of(lexeme.lexer));
        for kind in likely::kinds(classes) {
            if let Some(next) = recognizer.advance(position, kind.byte, scratch)? {
                let cost = cost.saturating_add(kind.cost());
                self.add_position(lexer, next, cost, token.after(trie, kind.byte))?;
            }
        }
        Ok(())
    }

    fn add_position(
        &mut self,
        lexer: &Lexer,
        position: Position,
        cost: Cost,
        token: Token,
    ) -> Result<(), RecognizerError> {
        let mut key = Vec::new();
        for branch in position.branches() {
            let state = lexer.bounded_equivalent(branch.lexer, self.horizon)?;
            key.push((state, likely::tops(&branch.stacks, self.stack_depth)));
        }
        if self.seen_stacks.insert(fingerprint(&key)) {
            self.push(cost, token, What::Position(position));
        }
        Ok(())
    }

    fn push(&mut self, cost: Cost, token: Token, what: What) {
        self.open.insert((cost, self.num_added), OpenVisit { token, what });
        self.num_added += 1;
    }

    /// Transitions from a state.
    fn steps(&mut self, lexer: &Lexer, state: LexerState) -> Result<Arc<[Step]>, RecognizerError> {
        if let Some(known) = self.steps.get(&state) {
            return Ok(Arc::clone(known));
        }
        let mut found = Vec::<Step>::new();
        for kind in likely::kinds([lexer.classes_of(state)]) {
            let Some(to) = lexer.advance(state, kind.byte)? else { continue };
            match found.iter_mut().find(|step| step.to == to) {
                Some(step) => step.kind.unite(kind),
                None => {
                    let alike = lexer.bounded_equivalent(to, self.horizon)?;
                    found.push(Step { to, alike, kind, cost: 0 });
                }
            }
        }
        for step in &mut found {
            step.cost = step.kind.cost();
            // In a programming language every line ends.
            if self.is_by_tops() && step.kind.bytes.contains(b'\n') {
                step.cost = step.cost.min(likely::COMMON);
            }
        }
        let found: Arc<[Step]> = found.into();
        self.steps.insert(state, Arc::clone(&found));
        Ok(found)
    }
}
