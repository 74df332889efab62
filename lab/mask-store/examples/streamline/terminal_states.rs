//! The automaton of Tran-Thien's figure 1: each terminal's own, side by side.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::Result;
use palmette_grammar::{
    Grammar, GrammarBuilder, LexerError, LexerLimits, Lexing, Regex, Symbol, Terminal, TerminalId,
    TerminalKind, TerminalSet, engine::lexer::Lexer,
};
use palmette_mask_store::LexemeAutomaton;

/// Every terminal's least automaton over an alphabet; each may be entered where another's lexeme
/// ends. A lexeme does not end before a byte with which its own or another terminal's would go on,
/// if that is so for every text of the state.
#[derive(Debug)]
pub(crate) struct TerminalStates {
    states: Vec<State>,
    /// Where each byte leads from the beginning.
    first: BTreeMap<u8, Vec<u32>>,
    nothing: TerminalSet,
}

#[derive(Debug)]
struct State {
    terminal: TerminalId,
    possible: TerminalSet,
    ends: bool,
    next: BTreeMap<u8, u32>,
    /// Bytes before which the lexeme does not end.
    longer: BTreeSet<u8>,
}

/// A state of [`TerminalStates`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum TerminalState {
    /// Of a terminal.
    In(u32),
    /// At the beginning of a lexeme, where the one before ended in this state.
    After(u32),
}

impl TerminalStates {
    pub(crate) fn new(grammar: &Grammar, alphabet: &[u8]) -> Result<Self> {
        let num_terminals = grammar.terminals().len();
        let mut all = Self {
            states: Vec::new(),
            first: BTreeMap::new(),
            nothing: TerminalSet::new(num_terminals),
        };
        let mut starts = Vec::new();
        for (number, terminal) in grammar.terminals().iter().enumerate() {
            if terminal.kind != TerminalKind::Declared {
                starts.push(all.states.len() as u32);
            }
            if terminal.kind != TerminalKind::Declared {
                all.add(TerminalId(number as u32), terminal, alphabet, num_terminals)?;
            }
        }
        all.find_longer(&starts);
        Ok(all)
    }

    /// Every terminal's states, its start included.
    pub(crate) fn all(&self) -> impl Iterator<Item = TerminalState> {
        (0..self.states.len() as u32).map(TerminalState::In)
    }

    fn add(
        &mut self,
        id: TerminalId,
        terminal: &Terminal,
        alphabet: &[u8],
        num_terminals: usize,
    ) -> Result<()> {
        let automaton = Automaton::of(&terminal.regex, alphabet)?.minimised();
        let base = self.states.len() as u32;
        let number = |state: usize| base + state as u32;
        for (&byte, &next) in &automaton.next[0] {
            self.first.entry(byte).or_default().push(number(next));
        }
        for state in 0..automaton.next.len() {
            let next = automaton.next[state].iter();
            let mut possible = TerminalSet::new(num_terminals);
            possible.insert(id);
            self.states.push(State {
                terminal: id,
                possible,
                ends: automaton.ends[state],
                next: next.map(|(&byte, &next)| (byte, number(next))).collect(),
                longer: BTreeSet::new(),
            });
        }
        Ok(())
    }
}

impl TerminalStates {
    fn goes_on(&self, state: u32, byte: u8) -> bool {
        self.states[state as usize].longer.contains(&byte)
    }

    /// For each state the bytes with which a lexeme of some one terminal goes on, whatever led to
    /// the state: all pairs of states that one text leads to.
    fn find_longer(&mut self, starts: &[u32]) {
        for &start in starts {
            for &other in starts {
                let mut longer: BTreeMap<u32, BTreeSet<u8>> = BTreeMap::new();
                let mut seen = BTreeSet::from([(start, Some(other))]);
                let mut stack = vec![(start, Some(other))];
                while let Some((state, beside)) = stack.pop() {
                    let goes_on: BTreeSet<u8> = beside.map_or_else(BTreeSet::new, |beside: u32| {
                        self.states[beside as usize].next.keys().copied().collect()
                    });
                    let known = longer.entry(state).or_insert_with(|| goes_on.clone());
                    known.retain(|byte| goes_on.contains(byte));
                    for (byte, &next) in &self.states[state as usize].next {
                        let beside = beside.and_then(|beside| {
                            self.states[beside as usize].next.get(byte).copied()
                        });
                        if seen.insert((next, beside)) {
                            stack.push((next, beside));
                        }
                    }
                }
                for (state, longer) in longer {
                    self.states[state as usize].longer.extend(longer);
                }
            }
        }
    }
}

impl LexemeAutomaton for TerminalStates {
    type State = TerminalState;

    fn advance(
        &self,
        state: TerminalState,
        byte: u8,
        visit: impl FnMut(TerminalState),
    ) -> Result<(), LexerError> {
        match state {
            TerminalState::In(state) => {
                let next = self.states[state as usize].next.get(&byte).copied();
                next.into_iter().map(TerminalState::In).for_each(visit);
            }
            TerminalState::After(ended) if self.goes_on(ended, byte) => {}
            TerminalState::After(_) => {
                let next = self.first.get(&byte).into_iter().flatten().copied();
                next.map(TerminalState::In).for_each(visit);
            }
        }
        Ok(())
    }

    fn ends(
        &self,
        state: TerminalState,
        mut visit: impl FnMut(TerminalId, TerminalState),
    ) -> Result<(), LexerError> {
        if let TerminalState::In(number) = state
            && self.states[number as usize].ends
        {
            visit(self.states[number as usize].terminal, TerminalState::After(number));
        }
        Ok(())
    }

    fn viable_terminals(&self, state: TerminalState) -> &TerminalSet {
        match state {
            TerminalState::In(state) => &self.states[state as usize].possible,
            TerminalState::After(_) => &self.nothing,
        }
    }
}

/// One terminal's automaton, deterministic; state 0 is the start.
struct Automaton {
    next: Vec<BTreeMap<u8, usize>>,
    ends: Vec<bool>,
}

impl Automaton {
    fn of(regex: &Regex, alphabet: &[u8]) -> Result<Self> {
        let mut builder = GrammarBuilder::new();
        let (name, kind, regex) = ("it".into(), TerminalKind::Pattern, plain(regex));
        let id = builder.terminal(Terminal { name, regex, priority: 0, kind, span: None });
        let start = builder.nonterminal("start", None);
        builder.rule(start, [Symbol::Terminal(id)]);
        let grammar = builder.build(start, Lexing::Any);
        let lexer = Lexer::new(&grammar, &LexerLimits::default())?;
        let mut states = vec![lexer.start()];
        let mut numbers = HashMap::from([(lexer.start(), 0)]);
        let mut automaton = Self { next: Vec::new(), ends: Vec::new() };
        let mut at = 0;
        while at < states.len() {
            let mut next = BTreeMap::new();
            for &byte in alphabet {
                if let Some(state) = lexer.advance(states[at], byte)? {
                    let number = *numbers.entry(state).or_insert_with(|| {
                        states.push(state);
                        states.len() - 1
                    });
                    next.insert(byte, number);
                }
            }
            automaton.next.push(next);
            automaton.ends.push(at > 0 && !lexer.ends(states[at])?.is_empty());
            at += 1;
        }
        Ok(automaton)
    }

    /// Moore's algorithm, with the states that lead to no end left out.
    fn minimised(&self) -> Self {
        let mut live = self.ends.clone();
        loop {
            let before = live.clone();
            for (state, next) in self.next.iter().enumerate() {
                live[state] |= next.values().any(|&next| live[next]);
            }
            if live == before {
                break;
            }
        }
        let mut class: Vec<usize> = self.ends.iter().map(|&ends| usize::from(ends)).collect();
        let mut num_classes = 0;
        loop {
            let mut numbers = HashMap::new();
            let refined: Vec<usize> = (0..class.len())
                .map(|state| {
                    let next = self.next[state].iter().filter(|&(_, &next)| live[next]);
                    let key: (usize, Vec<(u8, usize)>) =
                        (class[state], next.map(|(&byte, &next)| (byte, class[next])).collect());
                    let number = numbers.len();
                    *numbers.entry(key).or_insert(number)
                })
                .collect();
            class = refined;
            if numbers.len() == num_classes {
                break;
            }
            num_classes = numbers.len();
        }
        // Classes are numbered as their first states are, so the start keeps number 0; dead ones
        // go.
        let mut kept = Vec::new();
        let mut number = HashMap::new();
        for state in (0..class.len()).filter(|&state| live[state] || state == 0) {
            number.entry(class[state]).or_insert_with(|| {
                kept.push(state);
                kept.len() - 1
            });
        }
        let next = |&state: &usize| {
            let next = self.next[state].iter().filter(|&(_, &next)| live[next]);
            next.map(|(&byte, &next)| (byte, number[&class[next]])).collect()
        };
        Self {
            next: kept.iter().map(next).collect(),
            ends: kept.iter().map(|&state| self.ends[state]).collect(),
        }
    }
}

/// As `interegular` reads it, which the published counts are of: quantifiers are never reluctant,
/// and a lookahead at the end sees nothing.
fn plain(regex: &Regex) -> Regex {
    match regex {
        Regex::Concat(parts) => {
            let mut parts: Vec<_> = parts.iter().map(plain).collect();
            while parts.last().is_some_and(|last| matches!(last, Regex::Look { behind: false, .. }))
            {
                parts.pop();
            }
            Regex::concat(parts)
        }
        Regex::Alternate(options) => Regex::alternate(options.iter().map(plain)),
        Regex::Repeat { inner, min, max, .. } => plain(inner).repeat(*min, *max),
        other => other.clone(),
    }
}
