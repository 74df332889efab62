//! Which sequences of terminals each token spells from a position of the lexer.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::rc::Rc;

use palmette_core::{TokenId, Vocabulary};

use super::{
    automaton::LexemeAutomaton,
    letter::{Letter, Line},
};
use crate::{Grammar, Indentation, TerminalId, TerminalSet, lexer::LexerError};

/// The tokens with text in the order of their bytes, so that what tokens begin with is read once.
#[derive(Clone, Debug)]
pub struct SortedTokens {
    tokens: Vec<TokenId>,
    /// How many bytes each has in common with the one before.
    common: Vec<u32>,
    /// The bytes of each after those, one after another, so that a walk reads memory in order.
    tails: Vec<u8>,
    /// Where each one's end in `tails`.
    tail_ends: Vec<u32>,
}

impl SortedTokens {
    /// Sorts the tokens of `vocabulary`.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        Self::only(vocabulary, |_| true)
    }

    /// Those tokens whose text is as asked.
    pub fn only(vocabulary: &Vocabulary, keep: impl Fn(&[u8]) -> bool) -> Self {
        let texts = vocabulary.texts().filter(|(_, text)| keep(text));
        let mut tokens: Vec<_> = texts.map(|(token, _)| token).collect();
        tokens.sort_unstable_by_key(|&token| (vocabulary.text(token), token));
        let mut common = vec![0; tokens.len()];
        for at in 1..tokens.len() {
            let (before, text) = (vocabulary.text(tokens[at - 1]), vocabulary.text(tokens[at]));
            common[at] = before.iter().zip(text).take_while(|(a, b)| a == b).count() as u32;
        }
        let (mut tails, mut tail_ends) = (Vec::new(), Vec::with_capacity(tokens.len()));
        for (&token, &common) in tokens.iter().zip(&common) {
            tails.extend_from_slice(&vocabulary.text(token)[common as usize..]);
            tail_ends
                .push(u32::try_from(tails.len()).expect("a vocabulary has fewer than 2^32 bytes"));
        }
        Self { tokens, common, tails, tail_ends }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// What is the same for every position: the tokens and what the grammar says of terminals.
#[derive(Clone, Copy, Debug)]
pub struct Speller<'a> {
    /// The tokens in question.
    pub tokens: &'a SortedTokens,
    /// Terminals that are left out of sequences.
    pub ignored: &'a TerminalSet,
    /// Whose line's ends are told apart by the depth that they lead to.
    pub indentation: Option<&'a Indentation>,
}

/// The tokens by the sequence of terminals that they spell; a token may be in several sets.
///
/// A sequence ends with the lexeme in progress at the token's end, as something that it can become; those before it ended
/// inside the token. The first began before the token where a lexeme was in progress. Sets are in ascending order.
pub type Spellings = BTreeMap<Vec<Letter>, Vec<TokenId>>;

/// The set of a grammar's ignored terminals.
pub fn ignored_terminals(grammar: &Grammar) -> TerminalSet {
    let mut ignored = TerminalSet::new(grammar.terminals().len());
    for &terminal in grammar.ignored() {
        ignored.insert(terminal);
    }
    ignored
}

impl Speller<'_> {
    /// What the tokens spell from `start`, and the number of token transitions: triples of a token, a position after it,
    /// and the terminals whose lexemes began in it.
    ///
    /// Tokens that lead to the same ways of cutting what was read go on alike, so these *cuts* are found once and numbered,
    /// and a byte leads from number to number.
    ///
    /// Cost: a look-up for each node of the vocabulary's trie that can be reached; and what the different cuts cost.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded.
    pub fn spell<A: LexemeAutomaton>(
        &self,
        automaton: &A,
        start: A::State,
    ) -> Result<(Spellings, usize), LexerError> {
        self.spell_within(automaton, start, |_| Ok(()))
    }

    /// [`spell`](Self::spell) that reports its steps to `spend`: a unit for each node of the vocabulary's trie that is
    /// reached, and for each way to cut what was read when the cuts after a byte are first asked for.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded, and those of `spend`.
    pub(super) fn spell_within<A: LexemeAutomaton, E: From<LexerError>>(
        &self,
        automaton: &A,
        start: A::State,
        mut spend: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(Spellings, usize), E> {
        let begin = vec![Branch { state: start, sequence: ROOT, line: Line::UNKNOWN }];
        let mut cuts = Cuts::new(begin);
        let mut walk = Walk { speller: self, automaton, sequences: Sequences::default() };
        // `path[d]`: where the first `d` bytes of the current token lead.
        let mut path = vec![Cuts::<A::State>::BEGIN];
        let SortedTokens { tokens, common, tails, tail_ends } = self.tokens;
        let mut tail_begin = 0;
        for ((&token, &common), &tail_end) in tokens.iter().zip(common).zip(tail_ends) {
            let tail = &tails[tail_begin..tail_end as usize];
            tail_begin = tail_end as usize;
            path.truncate(common as usize + 1);
            if path[path.len() - 1] == Cuts::<A::State>::DEAD {
                // What this token has in common with an earlier one leads nowhere.
                continue;
            }
            let mut at = path[path.len() - 1];
            for &byte in tail {
                spend(1)?;
                at = match cuts.known(at, byte) {
                    Some(known) => known,
                    None => {
                        spend(cuts.branches[at as usize].len() as u64)?;
                        cuts.find(at, byte, &mut walk)?
                    }
                };
                path.push(at);
                if at == Cuts::<A::State>::DEAD {
                    break;
                }
            }
            if at != Cuts::<A::State>::DEAD {
                cuts.tokens[at as usize].push(token);
            }
        }
        Ok(walk.spellings(cuts))
    }
}

/// One way to cut what was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Branch<S> {
    state: S,
    /// The lexemes that have ended.
    sequence: u32,
    line: Line,
}

/// All ways to cut what was read, each set of them known by a number.
struct Cuts<S> {
    branches: Vec<Rc<[Branch<S>]>>,
    numbers: HashMap<Rc<[Branch<S>]>, u32>,
    /// By number and byte: the number after it, or [`Self::UNKNOWN`].
    next: Vec<[u32; 256]>,
    /// By number: the tokens that lead there.
    tokens: Vec<Vec<TokenId>>,
}

impl<S: Copy + Eq + Hash> Cuts<S> {
    /// No way.
    const DEAD: u32 = 0;
    /// Before the first byte.
    const BEGIN: u32 = 1;
    const UNKNOWN: u32 = u32::MAX;

    fn new(begin: Vec<Branch<S>>) -> Self {
        let mut cuts = Self {
            branches: Vec::new(),
            numbers: HashMap::new(),
            next: Vec::new(),
            tokens: Vec::new(),
        };
        cuts.number(&[]);
        cuts.number(&begin);
        cuts
    }

    fn number(&mut self, branches: &[Branch<S>]) -> u32 {
        if let Some(&known) = self.numbers.get(branches) {
            return known;
        }
        let number = self.branches.len() as u32;
        let branches: Rc<[_]> = branches.into();
        self.branches.push(Rc::clone(&branches));
        self.numbers.insert(branches, number);
        self.next.push([Self::UNKNOWN; 256]);
        self.tokens.push(Vec::new());
        number
    }

    /// The cuts after `byte`, if they were asked for before.
    fn known(&self, number: u32, byte: u8) -> Option<u32> {
        let known = self.next[number as usize][usize::from(byte)];
        (known != Self::UNKNOWN).then_some(known)
    }

    /// The cuts after `byte`.
    fn find<A: LexemeAutomaton<State = S>>(
        &mut self,
        number: u32,
        byte: u8,
        walk: &mut Walk<'_, A>,
    ) -> Result<u32, LexerError>
    where
        S: Ord,
    {
        let mut after = Vec::new();
        walk.read(&self.branches[number as usize], byte, &mut after)?;
        let next = self.number(&after);
        self.next[number as usize][usize::from(byte)] = next;
        Ok(next)
    }
}

struct Walk<'a, A> {
    speller: &'a Speller<'a>,
    automaton: &'a A,
    sequences: Sequences,
}

impl<A: LexemeAutomaton> Walk<'_, A> {
    fn read(
        &mut self,
        before: &[Branch<A::State>],
        byte: u8,
        after: &mut Vec<Branch<A::State>>,
    ) -> Result<(), LexerError> {
        let automaton = self.automaton;
        let mut ended = Vec::new();
        for &Branch { state, sequence, line } in before {
            let going_on = self.line_after(line, byte);
            automaton.advance(state, byte, |state| {
                after.push(Branch { state, sequence, line: going_on });
            })?;
            ended.clear();
            automaton.ends(state, |terminal, next| ended.push((terminal, next)))?;
            let fresh = self.line_after(Line::OTHER, byte);
            for &(terminal, next) in &ended {
                let line = if self.is_newline(terminal) { line.ended() } else { Line::OTHER };
                // Most lexemes cannot end here: a sequence is interned only for those that do.
                let mut longer = None;
                automaton.advance(next, byte, |state| {
                    let sequence = *longer.get_or_insert_with(|| {
                        if self.speller.ignored.contains(terminal) {
                            sequence
                        } else {
                            self.sequences.longer(sequence, Letter { terminal, line })
                        }
                    });
                    after.push(Branch { state, sequence, line: fresh });
                })?;
            }
        }
        for branch in after.iter_mut() {
            // Lines matter to line's ends only.
            let newline = self.speller.indentation.map(|blocks| blocks.newline);
            if !newline.is_some_and(|newline| automaton.possible(branch.state).contains(newline)) {
                branch.line = Line::OTHER;
            }
        }
        if after.len() > 1 {
            after.sort_unstable();
            after.dedup();
        }
        Ok(())
    }

    /// The tokens by what they spell, and the number of token transitions.
    fn spellings(mut self, cuts: Cuts<A::State>) -> (Spellings, usize) {
        let mut by_sequence: HashMap<u32, Vec<TokenId>> = HashMap::new();
        let mut num_transitions = 0;
        let mut spelled = Vec::new();
        for (branches, tokens) in cuts.branches.iter().zip(cuts.tokens) {
            if tokens.is_empty() {
                continue;
            }
            spelled.clear();
            for branch in &**branches {
                for terminal in self.automaton.possible(branch.state).iter() {
                    spelled.push(self.longer(branch.sequence, Letter::of(terminal)));
                    num_transitions += tokens.len();
                }
            }
            spelled.sort_unstable();
            spelled.dedup();
            for &sequence in &spelled {
                by_sequence.entry(sequence).or_default().extend_from_slice(&tokens);
            }
        }
        let sequences = &self.sequences;
        let spellings = by_sequence.into_iter().map(|(sequence, mut tokens)| {
            tokens.sort_unstable();
            (sequences.letters(sequence), tokens)
        });
        (spellings.collect(), num_transitions)
    }

    fn longer(&mut self, sequence: u32, letter: Letter) -> u32 {
        if self.speller.ignored.contains(letter.terminal) {
            return sequence;
        }
        self.sequences.longer(sequence, letter)
    }

    fn line_after(&self, line: Line, byte: u8) -> Line {
        self.speller.indentation.map_or(Line::OTHER, |blocks| line.after(byte, blocks))
    }

    fn is_newline(&self, terminal: TerminalId) -> bool {
        self.speller.indentation.is_some_and(|blocks| blocks.newline == terminal)
    }
}

/// The empty sequence.
const ROOT: u32 = 0;

/// Sequences as a tree, each known by a number: 0 is the empty one.
#[derive(Default)]
struct Sequences {
    /// Sequence `i + 1`: all but the last letter, the last letter.
    nodes: Vec<(u32, Letter)>,
    children: HashMap<(u32, Letter), u32>,
}

impl Sequences {
    fn longer(&mut self, sequence: u32, letter: Letter) -> u32 {
        *self.children.entry((sequence, letter)).or_insert_with(|| {
            self.nodes.push((sequence, letter));
            self.nodes.len() as u32
        })
    }

    fn letters(&self, mut sequence: u32) -> Vec<Letter> {
        let mut letters = Vec::new();
        while sequence != ROOT {
            let (before, letter) = self.nodes[sequence as usize - 1];
            letters.push(letter);
            sequence = before;
        }
        letters.reverse();
        letters
    }
}
