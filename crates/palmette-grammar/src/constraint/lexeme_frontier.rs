//! Worklist of lexemes in progress, when masks are computed ahead of time and lexemes do not depend on each other.
//!
//! A mask then depends on the lexeme in progress and on states of the stack from its top, whatever the text was. So lexemes are followed
//! byte by byte once for each topmost state, and stacks terminal by terminal: where a lexeme may end on a state, so may
//! it on all stacks with that state on top. What more of the stack says is [another matter](palmette_masks::StackWorklist).

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use palmette_masks::vocabulary::VocabularyTrie;
use palmette_parser::glr::Stacks;
use palmette_parser::lexer::{Lexer, LexerState};
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{Recognizer, RecognizerError, RecognizerScratch};
use palmette_regex::ByteSet;

use super::likely::{self, Cost, Token};
use crate::{Budget, TerminalId};

/// Lexemes in progress to be visited, the likeliest first.
pub(super) struct LexemeFrontier {
    stack_depth: usize,
    /// The length of the longest token.
    longest: u32,
    /// By what their bytes cost, and when they were found.
    open: BTreeMap<(Cost, usize), Open>,
    num_added: usize,
    /// Lexemes in progress, as they go on for the longest token, with topmost states.
    seen: HashSet<LexemeOnTop>,
    /// Stacks before lexemes, by [fingerprints](likely::fingerprint).
    seen_stacks: HashSet<u128>,
    on_top: HashMap<StateId, OnTop>,
    steps: HashMap<LexerState, Arc<Steps>>,
    /// True when a text was met that can be read in several ways.
    is_ambiguous: bool,
}

/// Lexemes met with a state on top.
#[derive(Default)]
struct OnTop {
    stacks: Vec<Stacks>,
    ended: Vec<Ended>,
}

/// A terminal whose lexemes may end.
#[derive(Clone, Copy)]
struct Ended {
    terminal: TerminalId,
    /// Likelihood, and the place in a token.
    cost: Cost,
    token: Token,
    /// The bytes that a lexeme may go on with instead.
    goes_on: ByteSet,
}

/// To be visited.
struct Open {
    token: Token,
    what: What,
}

enum What {
    /// Any lexeme may begin after these stacks, in a state of the lexer.
    Begins(LexerState, Stacks),
    /// A lexeme is in progress.
    InProgress(LexemeOnTop),
    /// Target, once it was followed.
    Followed(LexemeOnTop),
}

/// A lexeme in progress, and the state on top of the stack.
pub(super) type LexemeOnTop = (LexerState, StateId);

/// Transitions within a lexeme.
#[derive(Debug)]
struct Steps {
    /// Each to another state.
    steps: Box<[Step]>,
    /// All bytes that lead anywhere.
    bytes: ByteSet,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    to: LexerState,
    /// The one that stands for all that go on as it does for the longest token.
    alike: LexerState,
    /// One of them.
    byte: u8,
    cost: Cost,
}

/// About what the stacks before a lexeme take: the entry that no others have.
const STACKS_BYTES: usize = 160;

impl LexemeFrontier {
    /// The lexemes with which texts begin.
    pub(super) fn new(recognizer: &Recognizer, longest: u32, stack_depth: usize) -> Self {
        let mut made = Self {
            stack_depth,
            longest,
            open: BTreeMap::new(),
            num_added: 0,
            seen: HashSet::new(),
            seen_stacks: HashSet::new(),
            on_top: HashMap::new(),
            steps: HashMap::new(),
            is_ambiguous: false,
        };
        for branch in recognizer.start().into_iter().flat_map(|start| start.branches()) {
            made.add_stacks(branch.lexer, branch.stacks.clone(), 0, Token::NONE);
        }
        made
    }

    /// True when a text was met that can be read in several ways: then stacks may part, and what begins after several stacks at once was not
    /// followed.
    pub(super) fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.open.len() * size_of::<((Cost, usize), Open)>()
            + self.seen.len() * 2 * size_of::<LexemeOnTop>()
            + self.seen_stacks.len() * (2 * size_of::<u128>() + STACKS_BYTES)
    }

    /// Takes one entry off the list, and gives the lexeme in progress whose mask is to be computed with it; `None` where nothing is left.
    /// Takes a unit from the budget, and one for each entry added.
    ///
    /// Invariant: each call takes one entry, so that the caller can look at the memory between any two.
    pub(super) fn next(
        &mut self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        scratch: &mut RecognizerScratch,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Option<LexemeOnTop>>, RecognizerError> {
        let Some(((cost, _), Open { token, what })) = self.open.pop_first() else {
            return Ok(None);
        };
        let before = self.num_added;
        let found = match what {
            What::Begins(lexer, stacks) => {
                self.begin(recognizer, lexer, &stacks, cost, token, scratch)?;
                None
            }
            What::InProgress(lexeme) => {
                let is_cut = self.follow(recognizer, trie, lexeme, cost, token, scratch)?;
                if !is_cut {
                    let later = cost.saturating_add(likely::LATER);
                    self.push(later, token, What::Followed(lexeme));
                }
                is_cut.then_some(lexeme)
            }
            What::Followed(lexeme) => Some(lexeme),
        };
        budget.spend_holding_nothing(1 + (self.num_added - before) as u64)?;
        Ok(Some(found))
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
        lexeme: LexemeOnTop,
        cost: Cost,
        token: Token,
        scratch: &mut RecognizerScratch,
    ) -> Result<bool, RecognizerError> {
        let (lexer, (state, top)) = (recognizer.lexer(), lexeme);
        let follow = self.steps(lexer, state)?;
        let Steps { steps, bytes } = &*follow;
        let matched = lexer.matched(state)?;
        self.is_ambiguous |= matched.iter().nth(1).is_some();
        for terminal in matched.iter() {
            let OnTop { stacks, ended } = self.on_top.entry(top).or_default();
            let known = ended.iter().position(|ended| ended.terminal == terminal);
            let at = known.unwrap_or_else(|| {
                ended.push(Ended { terminal, cost, token, goes_on: ByteSet::default() });
                ended.len() - 1
            });
            if ended[at].goes_on.unite(bytes) && !self.is_ambiguous || known.is_none() {
                let (stacks, ended) = (stacks.clone(), ended[at]);
                for stacks in &stacks {
                    self.shift(recognizer, stacks, &ended, scratch)?;
                }
            }
        }
        for &Step { to, alike, byte, cost: of_step } in steps {
            if self.seen.insert((alike, top)) {
                let token = token.after(trie, byte);
                let cost = cost.saturating_add(of_step);
                self.push(cost, token, What::InProgress((to, top)));
            }
        }
        Ok(token.is_cut(trie, steps.iter().map(|step| (step.byte, step.cost))))
    }

    /// Goes on after a terminal.
    fn shift(
        &mut self,
        recognizer: &Recognizer,
        stacks: &Stacks,
        ended: &Ended,
        scratch: &mut RecognizerScratch,
    ) -> Result<(), RecognizerError> {
        let &Ended { terminal, cost, token, goes_on } = ended;
        let Some((lexer, stacks)) = recognizer.after(stacks, terminal, scratch)? else {
            return Ok(());
        };
        self.is_ambiguous |= stacks.states().nth(1).is_some();
        if !self.is_ambiguous {
            for byte in goes_on.iter() {
                self.is_ambiguous |= recognizer.lexer().advance(lexer, byte)?.is_some();
            }
        }
        self.add_stacks(lexer, stacks, cost, token);
        Ok(())
    }

    fn add_stacks(&mut self, lexer: LexerState, stacks: Stacks, cost: Cost, token: Token) {
        let key = (lexer, likely::tops(&stacks, self.stack_depth));
        if self.seen_stacks.insert(likely::fingerprint(&key)) {
            self.push(cost, token, What::Begins(lexer, stacks));
        }
    }

    fn push(&mut self, cost: Cost, token: Token, what: What) {
        self.open.insert((cost, self.num_added), Open { token, what });
        self.num_added += 1;
    }

    /// Transitions from a state.
    fn steps(&mut self, lexer: &Lexer, state: LexerState) -> Result<Arc<Steps>, RecognizerError> {
        if let Some(known) = self.steps.get(&state) {
            return Ok(Arc::clone(known));
        }
        let classes = lexer.classes_of(state, None);
        let (mut found, mut bytes) = (Vec::<(Step, usize)>::new(), ByteSet::default());
        for (class, kind) in likely::kinds_of(&classes).into_iter().enumerate() {
            let Some(to) = lexer.advance(state, kind.byte)? else { continue };
            bytes.insert_all((0..=u8::MAX).filter(|&byte| classes.class(byte) == class));
            let cost = likely::cost_of_many(kind.byte);
            match found.iter_mut().find(|(step, _)| step.to == to) {
                Some((step, num_bytes)) => {
                    *num_bytes += kind.num_bytes;
                    step.cost = step.cost.min(cost);
                }
                None => {
                    let alike = lexer.bounded_equivalent(to, self.longest)?;
                    found.push((Step { to, alike, byte: kind.byte, cost }, kind.num_bytes));
                }
            }
        }
        let cost = |step: Step, num_bytes| likely::cost(step.byte, step.cost, num_bytes);
        let steps = found.into_iter().map(|(step, num)| Step { cost: cost(step, num), ..step });
        let found = Arc::new(Steps { steps: steps.collect(), bytes });
        self.steps.insert(state, Arc::clone(&found));
        Ok(found)
    }
}
