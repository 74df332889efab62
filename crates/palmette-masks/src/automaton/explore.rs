//! Explorer: tokens walked through lexer and parser over a partial stack, where residuals have no token effect.

use std::ops::Range;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use palmette_core::{TokenId, mask};
use palmette_parser::glr::{PartialStack, Settled, Shift, TopId};
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::{StateId, Tables};
use palmette_parser::recognizer::{ContextualStates, Recognizer, RecognizerError};

use crate::vocabulary::{Visit, VocabularyTrie};
use crate::{Budget, LimitError, TerminalId};

/// Acceptance of a terminal on a stack of which only the top is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// No: the terminal cannot follow, whatever is below.
    No,
    /// Yes: the terminal can follow, whatever is below.
    Yes,
    /// That depends on what is below.
    Deeper,
}

/// Stacks that a shift leads to.
#[derive(Clone, Debug)]
struct Shifted {
    /// Stacks that are known.
    stacks: Box<[TopId]>,
    /// True when there may be others, depending on what is below.
    deeper: bool,
}

/// Limit on the stacks before one terminal.
const MAX_TOPS: usize = 100_000;

/// A stack of which only the top is known, as a walk sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stack {
    /// A stack with this top.
    Known(TopId),
    /// A shift went below what is known.
    Unknown,
}

/// Walks tokens through lexer and parser below the top of a stack; its memory is kept from walk to walk.
#[derive(Debug)]
pub(super) struct Explorer {
    partial: PartialStack,
    /// Memo of shifts by stack and terminal.
    shifted: HashMap<(TopId, TerminalId), Shifted>,
    shifts: Vec<Shift>,
    live: HashMap<(LexerState, Stack), Answer>,
    contextual: ContextualStates,
    /// Lexer states by the state in which a lexeme begins: the one that holds for all contexts.
    unrivalled: HashMap<LexerState, LexerState>,
    /// The branches of all nodes from the root to the current one: a range for each.
    branches: Vec<(LexerState, Stack)>,
}

impl Default for Explorer {
    fn default() -> Self {
        Self {
            partial: PartialStack::with_max_tops(MAX_TOPS),
            shifted: HashMap::new(),
            shifts: Vec::new(),
            live: HashMap::new(),
            contextual: ContextualStates::default(),
            unrivalled: HashMap::new(),
            branches: Vec::new(),
        }
    }
}

impl Explorer {
    /// Sets the bits of those tokens of `trie` that may follow a lexeme in progress on every stack whose states, from the top,
    /// begin with `top`; gives those of which that depends on what is below.
    ///
    /// # Errors
    /// When a limit is exceeded, or the budget is used up: a unit for each node of the trie and each of its branches.
    pub(super) fn explore(
        &mut self,
        recognizer: &Recognizer,
        trie: &VocabularyTrie,
        lexer: LexerState,
        top: &[StateId],
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<Vec<TokenId>, RecognizerError> {
        self.partial.begin(top);
        self.shifted.clear();
        self.live.clear();
        self.branches.clear();
        self.branches.push((lexer, Stack::Known(TopId::WHOLE)));
        let mut undecided = Vec::new();
        trie.walk(1..trie.num_nodes(), 0..1, &mut Vec::new(), |node, above| {
            budget.spend(1 + above.len() as u64)?;
            let answer = self.step(recognizer, above.clone(), node.byte)?;
            let tokens = trie.tokens_in(trie.own_ranks(node.index));
            match answer {
                Answer::No => return Ok(Visit::Past),
                Answer::Yes => tokens.iter().for_each(|&token| mask::insert(mask, token)),
                Answer::Deeper => undecided.extend_from_slice(tokens),
            }
            Ok::<_, RecognizerError>(Visit::Below(above.end..self.branches.len()))
        })?;
        Ok(undecided)
    }

    /// Adds the branches after `byte` of those at the node above, in place of those of other nodes below that; tells whether one of
    /// them is live.
    fn step(
        &mut self,
        recognizer: &Recognizer,
        above: Range<usize>,
        byte: u8,
    ) -> Result<Answer, RecognizerError> {
        let lexer = recognizer.lexer();
        let (mut answer, first) = (Answer::No, above.end);
        self.branches.truncate(first);
        for at in above {
            let (state, stack) = self.branches[at];
            if let Some(next) = lexer.advance(state, byte)? {
                self.add(recognizer, first, next, stack, &mut answer)?;
            }
            for end in lexer.ends(state)? {
                for terminal in end.terminals.iter() {
                    let mut add = |explorer: &mut Self, stack| {
                        let (begin, stack) = explorer.begin(recognizer, end.next, stack)?;
                        match lexer.advance(begin, byte)? {
                            Some(next) => explorer.add(recognizer, first, next, stack, &mut answer),
                            None => Ok(()),
                        }
                    };
                    let top = match stack {
                        Stack::Known(top) if !recognizer.ignored().contains(terminal) => top,
                        _ => {
                            add(self, stack)?;
                            continue;
                        }
                    };
                    let tables = recognizer.parser().tables();
                    let shifted = self.shift(tables, top, terminal)?.clone();
                    for &top in &shifted.stacks {
                        add(self, Stack::Known(top))?;
                    }
                    if shifted.deeper {
                        add(self, Stack::Unknown)?;
                    }
                }
            }
        }
        Ok(answer)
    }

    /// The state `next`, in which no byte of a lexeme was read, for lexemes that begin after a stack.
    fn begin(
        &mut self,
        recognizer: &Recognizer,
        next: LexerState,
        stack: Stack,
    ) -> Result<(LexerState, Stack), RecognizerError> {
        let Some(contexts) = recognizer.contexts() else { return Ok((next, stack)) };
        let lexer = recognizer.lexer();
        if let Stack::Known(top) = stack
            && let Settled::On(settled) = self.partial.settled(recognizer.parser().tables(), top)?
        {
            let context = contexts.of(self.partial.state(settled));
            let begin = self.contextual.begin(lexer, contexts, next, context)?;
            return Ok((begin, Stack::Known(settled)));
        }
        let begin = match self.unrivalled.get(&next) {
            Some(&known) => known,
            None => *self.unrivalled.entry(next).or_insert(lexer.unrivalled(next)?),
        };
        Ok((begin, Stack::Unknown))
    }

    /// Adds a branch unless nothing can complete it or it is there already, from `first` on.
    fn add(
        &mut self,
        recognizer: &Recognizer,
        first: usize,
        lexer: LexerState,
        stack: Stack,
        answer: &mut Answer,
    ) -> Result<(), RecognizerError> {
        let live = self.live(recognizer, lexer, stack)?;
        if live == Answer::No || self.branches[first..].contains(&(lexer, stack)) {
            return Ok(());
        }
        self.branches.push((lexer, stack));
        if *answer != Answer::Yes {
            *answer = live;
        }
        Ok(())
    }

    /// The stacks after a terminal.
    fn shift(
        &mut self,
        tables: &Tables,
        stack: TopId,
        terminal: TerminalId,
    ) -> Result<&Shifted, LimitError> {
        let Self { partial, shifted, shifts, .. } = self;
        Ok(match shifted.entry((stack, terminal)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                shifts.clear();
                partial.shifts(tables, &[stack], Some(terminal), shifts)?;
                let mut stacks: Vec<_> =
                    shifts.iter().map(|&(_, base, target)| partial.push(target, base)).collect();
                stacks.sort_unstable();
                stacks.dedup();
                let deeper = !partial.open_reductions().is_empty();
                unknown.insert(Shifted { stacks: stacks.into(), deeper })
            }
        })
    }

    /// True when the lexeme in progress can become something that the parser takes.
    fn live(
        &mut self,
        recognizer: &Recognizer,
        lexer: LexerState,
        stack: Stack,
    ) -> Result<Answer, RecognizerError> {
        if let Some(&known) = self.live.get(&(lexer, stack)) {
            return Ok(known);
        }
        let possible = recognizer.lexer().viable_terminals(lexer);
        let mut live = Answer::No;
        for terminal in possible.iter() {
            let answer = match stack {
                // What is ignored may stand anywhere, if the stack is one at all.
                Stack::Known(_) if recognizer.ignored().contains(terminal) => Answer::Yes,
                Stack::Known(top) => {
                    let shifted = self.shift(recognizer.parser().tables(), top, terminal)?;
                    match (shifted.stacks.is_empty(), shifted.deeper) {
                        (false, _) => Answer::Yes,
                        (true, true) => Answer::Deeper,
                        (true, false) => Answer::No,
                    }
                }
                Stack::Unknown => Answer::Deeper,
            };
            if answer != Answer::No {
                live = answer;
            }
            if live == Answer::Yes {
                break;
            }
        }
        self.live.insert((lexer, stack), live);
        Ok(live)
    }
}
