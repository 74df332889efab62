//! Spellings: the sequences of terminals that each token spells from a position of the lexer.

use std::collections::BTreeMap;
use std::hash::Hash;
use std::rc::Rc;

use hashbrown::HashMap;
use palmette_core::TokenId;
use palmette_core::vocabulary_trie::{Visit, VocabularyTrie};
use palmette_grammar_parser::blocks::{Letter, Line};
use palmette_grammar_parser::{Indentation, LexerError, TerminalId, TerminalSet};

use super::automaton::LexemeAutomaton;

/// Context of all positions: the tokens and what the grammar says of terminals.
#[derive(Clone, Copy, Debug)]
pub struct Speller<'a> {
    /// The tokens in question.
    pub tokens: &'a VocabularyTrie,
    /// Terminals that are left out of sequences.
    pub ignored: &'a TerminalSet,
    /// Whose line's ends are told apart by the depth that they lead to.
    pub indentation: Option<&'a Indentation>,
}

/// The tokens by the sequence of terminals that they spell; a token may be in several sets.
///
/// A sequence ends with the lexeme in progress at the token's end, as something that it can become;
/// those before it ended inside the token. The first began before the token where a lexeme was in
/// progress. Sets are in ascending order.
pub type Spellings = BTreeMap<Vec<Letter>, Vec<TokenId>>;

impl Speller<'_> {
    /// Spellings of the tokens from `start`, and the number of token transitions: triples of a
    /// token, a position after it, and the terminals whose lexemes began in it.
    ///
    /// Tokens that lead to the same ways of cutting what was read go on alike, so these *cuts* are
    /// found once and numbered, and a byte leads from number to number.
    ///
    /// Cost: a look-up for each node of the vocabulary's trie that can be reached, and what the
    /// different cuts cost.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded.
    pub fn spell<A: LexemeAutomaton>(
        &self,
        automaton: &A,
        start: A::State,
    ) -> Result<(Spellings, usize), LexerError> {
        let mut cuts = Cuts::new(Branch { state: start, sequence: ROOT, line: Line::UNKNOWN });
        let mut walk = Walk { speller: self, automaton, sequences: Sequences::default() };
        let led = walk.lead(&mut cuts)?;
        Ok(walk.spellings(&cuts, &led))
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

/// Cuts of what was read into lexemes, each set of them known by a number.
struct Cuts<S> {
    branches: Vec<Rc<[Branch<S>]>>,
    numbers: HashMap<Rc<[Branch<S>]>, u32>,
    /// The number after a byte, by number and byte, or [`Self::UNKNOWN`].
    next: Vec<[u32; 256]>,
}

impl<S: Copy + Eq + Hash> Cuts<S> {
    /// No way.
    const DEAD: u32 = 0;
    /// Before the first byte.
    const BEGIN: u32 = 1;
    const UNKNOWN: u32 = u32::MAX;

    /// [`Self::DEAD`] and [`Self::BEGIN`].
    fn new(begin: Branch<S>) -> Self {
        let (branches, numbers, next) = Default::default();
        let mut cuts = Self { branches, numbers, next };
        assert_eq!(cuts.number(&[]), Self::DEAD, "it is the first");
        assert_eq!(cuts.number(&[begin]), Self::BEGIN, "it is the second");
        cuts
    }

    fn number(&mut self, branches: &[Branch<S>]) -> u32 {
        if let Some(&known) = self.numbers.get(branches) {
            return known;
        }
        let branches: Rc<[_]> = branches.into();
        let number = self.branches.len() as u32;
        self.branches.push(Rc::clone(&branches));
        self.next.push([Self::UNKNOWN; 256]);
        self.numbers.insert(branches, number);
        number
    }
}

struct Walk<'a, A> {
    speller: &'a Speller<'a>,
    automaton: &'a A,
    sequences: Sequences,
}

impl<A: LexemeAutomaton> Walk<'_, A> {
    /// Cuts that the whole token leads to, by rank.
    fn lead(&mut self, cuts: &mut Cuts<A::State>) -> Result<Vec<u32>, LexerError> {
        let tokens = self.speller.tokens;
        let mut led = vec![Cuts::<A::State>::DEAD; tokens.num_ranks()];
        let nodes = 1..tokens.num_nodes();
        tokens.walk(nodes, Cuts::<A::State>::BEGIN, &mut Vec::new(), |node, &before| {
            let at = self.after(cuts, before, node.byte)?;
            if at == Cuts::<A::State>::DEAD {
                return Ok(Visit::Past);
            }
            let ranks = tokens.own_ranks(node.index);
            led[ranks.start as usize..ranks.end as usize].fill(at);
            Ok::<_, LexerError>(Visit::Below(at))
        })?;
        Ok(led)
    }

    /// The cuts after `byte`.
    fn after(
        &mut self,
        cuts: &mut Cuts<A::State>,
        number: u32,
        byte: u8,
    ) -> Result<u32, LexerError> {
        let known = cuts.next[number as usize][usize::from(byte)];
        if known != Cuts::<A::State>::UNKNOWN {
            return Ok(known);
        }
        let mut after = Vec::new();
        self.read(&cuts.branches[number as usize], byte, &mut after)?;
        let next = cuts.number(&after);
        cuts.next[number as usize][usize::from(byte)] = next;
        Ok(next)
    }

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
        after.iter_mut().for_each(|branch| self.forget_line(branch));
        if after.len() > 1 {
            after.sort_unstable();
            after.dedup();
        }
        Ok(())
    }

    /// Lines matter to line's ends only.
    fn forget_line(&self, branch: &mut Branch<A::State>) {
        let newline = self.speller.indentation.map(|blocks| blocks.newline);
        let possible = self.automaton.viable_terminals(branch.state);
        if !newline.is_some_and(|newline| possible.contains(newline)) {
            branch.line = Line::OTHER;
        }
    }

    /// Spellings of all tokens that lead to these cuts, each once.
    fn spelled(&mut self, branches: &[Branch<A::State>]) -> Vec<u32> {
        let mut spelled = Vec::new();
        for branch in branches {
            for terminal in self.automaton.viable_terminals(branch.state).iter() {
                spelled.push(self.longer(branch.sequence, Letter::of(terminal)));
            }
        }
        spelled.sort_unstable();
        spelled.dedup();
        spelled
    }

    /// The tokens by what they spell, and the number of token transitions. `led`: by rank, where
    /// the token leads.
    fn spellings(mut self, cuts: &Cuts<A::State>, led: &[u32]) -> (Spellings, usize) {
        let tokens = self.speller.tokens.tokens();
        // Tokens by where they lead, in ascending order: `sorted[begins[number]..begins[number +
        // 1]]`. A token that has a text and a number may lead to two places.
        let leads = tokens.iter().zip(led).filter(|(_, number)| **number != Cuts::<A::State>::DEAD);
        let mut leads: Vec<(u32, TokenId)> =
            leads.map(|(&token, &number)| (number, token)).collect();
        leads.sort_unstable();
        let mut begins = vec![0; cuts.branches.len() + 1];
        leads.iter().for_each(|&(number, _)| begins[number as usize + 1] += 1);
        for number in 1..begins.len() {
            begins[number] += begins[number - 1];
        }
        let sorted: Vec<TokenId> = leads.into_iter().map(|(_, token)| token).collect();
        let mut by_sequence: HashMap<u32, Vec<TokenId>> = HashMap::new();
        let mut num_transitions = 0;
        for (branches, ends) in cuts.branches.iter().zip(begins.windows(2)) {
            let tokens = &sorted[ends[0]..ends[1]];
            if tokens.is_empty() {
                continue;
            }
            let possible = branches.iter().map(|one| self.automaton.viable_terminals(one.state));
            num_transitions +=
                possible.map(|possible| possible.iter().count() * tokens.len()).sum::<usize>();
            for sequence in self.spelled(branches) {
                by_sequence.entry(sequence).or_default().extend_from_slice(tokens);
            }
        }
        let sequences = &self.sequences;
        let spellings = by_sequence.into_iter().map(|(sequence, mut tokens)| {
            // A few runs in ascending order, one for each way to get there.
            tokens.sort();
            tokens.dedup();
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
