//! States of a lexer by the steps that lead to them. Their numbers depend on what was asked before; steps do not.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};
use palmette_masks::{Above, SavedMemo};
use palmette_parser::lexer::{LexemeEnd, Lexer, LexerState};
use palmette_parser::recognizer::{CompileError, Contexts, Recognizer, RecognizerError};

use super::numbers::Malformed;
use crate::saved::ReopenError;
use crate::{TerminalId, TerminalSet};

/// Numbers of a step: the state before it, how it is left, by what, and a hash of the state after it.
pub(super) const STEP_NUMBERS: usize = 4;

const BYTE: u32 = 0;
const END: u32 = 1;
const REPRESENTATIVE: u32 = 2;
const RESTRICTED: u32 = 3;
/// By the number of a context with guards.
const GUARDED: u32 = 4;

/// Steps to some states; number 0 is the start, and step `n` leads to number `n + 1`.
pub(super) struct LexerSteps {
    steps: Vec<u32>,
    restricted: Vec<u32>,
    numbers: HashMap<LexerState, u32>,
}

impl LexerSteps {
    /// Steps to the states that a memo mentions. A state to which no step is known is left out.
    pub(super) fn to_states(
        recognizer: &Recognizer,
        memo: &SavedMemo,
    ) -> Result<Self, RecognizerError> {
        let lexer = recognizer.lexer();
        let representatives: HashMap<LexerState, LexerState> =
            memo.representatives.iter().copied().collect();
        let mut wanted: HashSet<LexerState> = memo
            .representatives
            .iter()
            .flat_map(|&(state, representative)| [state, representative])
            .collect();
        let above = memo.nodes.iter().map(|node| node.above);
        let above = above.chain(memo.stack_automaton.edges.iter().map(|&(from, ..)| from));
        wanted.extend(above.filter_map(|above| match above {
            Above::Lexer(state) => Some(state),
            Above::Node(_) => None,
        }));

        // Nearest first, so that the steps to a state are few.
        let mut before: HashMap<LexerState, Option<(LexerState, u32, u32)>> = HashMap::new();
        before.insert(lexer.start(), None);
        let mut order = vec![lexer.start()];
        let mut open = VecDeque::from([lexer.start()]);
        let mut restricted: Vec<Vec<TerminalId>> = Vec::new();
        while let Some(state) = open.pop_front() {
            let is_whole = lexer.is_fresh(state)
                && !matches!(before[&state], Some((_, RESTRICTED | GUARDED, _)));
            let mut add = |next: LexerState, how: u32, by: u32| {
                before.entry(next).or_insert_with(|| {
                    order.push(next);
                    open.push_back(next);
                    Some((state, how, by))
                });
            };
            lexer.known_steps(state).for_each(|(byte, next)| add(next, BYTE, byte.into()));
            let ends = lexer.known_ends(state);
            for (end, by) in ends.iter().zip(0..).filter(|(end, _)| is_told_apart(end, ends)) {
                add(end.next, END, by);
            }
            if let Some(&stands_for) = representatives.get(&state) {
                add(stands_for, REPRESENTATIVE, 0);
            }
            for (next, terminals) in
                is_whole.then(|| lexer.known_restrictions(state)).into_iter().flatten()
            {
                add(next, RESTRICTED, restricted.len() as u32);
                restricted.push(terminals);
            }
            let contexts = recognizer.contexts().filter(|_| is_whole);
            for (number, terminals, guards) in contexts.into_iter().flat_map(Contexts::guarded) {
                if let Some(next) = lexer.known_guarded(state, terminals, guards) {
                    add(next, GUARDED, number);
                }
            }
        }
        // What is wanted and all that is on the way, in the same order.
        let mut needed: HashSet<LexerState> = HashSet::new();
        needed.insert(lexer.start());
        for state in wanted {
            let mut at = Some(state).filter(|state| before.contains_key(state));
            while let Some(state) = at.filter(|&state| needed.insert(state)) {
                at = before[&state].map(|(state, ..)| state);
            }
        }
        let mut made = Self { steps: Vec::new(), restricted: Vec::new(), numbers: HashMap::new() };
        let mut num_restricted = 0;
        for state in order.into_iter().filter(|state| needed.contains(state)) {
            if let Some((before, how, mut by)) = before[&state] {
                if how == RESTRICTED {
                    let terminals = &restricted[by as usize];
                    by = num_restricted;
                    num_restricted += 1;
                    made.restricted.push(terminals.len() as u32);
                    made.restricted.extend(terminals.iter().map(|terminal| terminal.0));
                }
                made.steps.extend([made.numbers[&before], how, by, hash(lexer, state)]);
            }
            let number = made.numbers.len() as u32;
            made.numbers.insert(state, number);
        }
        Ok(made)
    }

    /// The number of a state; `None` where no steps are known to it.
    pub(super) fn number(&self, state: LexerState) -> Option<u32> {
        self.numbers.get(&state).copied()
    }

    /// The numbers of the steps, and the sets of terminals that are mentioned.
    pub(super) fn into_numbers(self) -> [Vec<u32>; 2] {
        [self.steps, self.restricted]
    }
}

/// The sets of terminals that steps mention.
fn sets(mut numbers: &[u32]) -> Result<Vec<&[u32]>, Malformed> {
    let mut sets = Vec::new();
    while let Some((&len, rest)) = numbers.split_first() {
        let Some((set, rest)) = rest.split_at_checked(len as usize) else {
            return Malformed::because("a set of its lexer lacks terminals");
        };
        sets.push(set);
        numbers = rest;
    }
    Ok(sets)
}

/// A set of terminals of so many in all.
fn terminals(numbers: &[u32], num_terminals: usize) -> Result<TerminalSet, Malformed> {
    let mut set = TerminalSet::new(num_terminals);
    for &terminal in numbers {
        if terminal as usize >= num_terminals {
            let error = format!("its lexer mentions terminal {terminal} of {num_terminals}");
            return Malformed::because(error);
        }
        set.insert(TerminalId(terminal));
    }
    Ok(set)
}

/// The states that steps lead to, `longest` being the bytes of the longest token; `None` where one is not like it was.
pub(super) fn states(
    [steps, restricted]: [&[u32]; 2],
    recognizer: &Recognizer,
    longest: u32,
) -> Result<Option<Vec<LexerState>>, ReopenError> {
    let lexer = recognizer.lexer();
    let sets = sets(restricted)?;
    let num_terminals = recognizer.grammar().terminals().len();
    let limit = |error| CompileError::Lexer(error);
    let mut states = vec![lexer.start()];
    for &[before, how, by, expected] in steps.as_chunks::<STEP_NUMBERS>().0 {
        let Some(&before) = states.get(before as usize) else {
            return Err(Malformed(format!("it goes on from lexer state {before}")).into());
        };
        let after = match (how, u8::try_from(by)) {
            (BYTE, Ok(byte)) => lexer.advance(before, byte).map_err(limit)?,
            (END, _) => {
                let ends = lexer.ends(before).map_err(limit)?;
                let end = ends.get(by as usize).filter(|end| is_told_apart(end, ends));
                end.map(|end| end.next)
            }
            (REPRESENTATIVE, Ok(0)) => {
                Some(lexer.bounded_equivalent(before, longest).map_err(limit)?)
            }
            (RESTRICTED, _) if lexer.is_fresh(before) => {
                let Some(set) = sets.get(by as usize) else {
                    let error = format!("its lexer mentions set {by} of {}", sets.len());
                    return Err(Malformed(error).into());
                };
                Some(lexer.restricted_to(before, &terminals(set, num_terminals)?).map_err(limit)?)
            }
            (GUARDED, _) if lexer.is_fresh(before) => {
                let contexts = recognizer.contexts();
                let after = contexts.and_then(|all| all.guarded_begin(lexer, before, by));
                after.transpose().map_err(limit)?
            }
            _ => {
                return Err(Malformed(format!("it leaves a lexer state by {how}, {by}")).into());
            }
        };
        match after.filter(|&after| hash(lexer, after) == expected) {
            Some(after) => states.push(after),
            None => return Ok(None),
        }
    }
    Ok(Some(states))
}

/// True when the place of an end among others is the same in every lexer of a grammar: ends are in the order of their least terminals.
fn is_told_apart(end: &LexemeEnd, ends: &[LexemeEnd]) -> bool {
    let least = |end: &LexemeEnd| end.terminals.iter().next();
    ends.iter().filter(|other| least(other) == least(end)).count() == 1
}

/// Something of what a state means, the same on every machine.
fn hash(lexer: &Lexer, state: LexerState) -> u32 {
    let possible = lexer.viable_terminals(state).iter().map(|terminal| u64::from(terminal.0));
    let all = possible.chain([u64::MAX, lexer.may_end(state).into()]);
    let mixed = all.fold(0xCBF2_9CE4_8422_2325, |hash: u64, number| {
        (hash ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    });
    (mixed >> 32) as u32
}
