//! Which sequences of terminals each token spells from a position of the lexer.

use std::collections::{BTreeMap, HashMap};

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
        Self { tokens, common }
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
    /// The texts of `tokens`.
    pub vocabulary: &'a Vocabulary,
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
    /// Cost: the nodes of the vocabulary's trie that can be reached, each times the ways to cut its bytes.
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
    /// reached, and each of its branches.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded, and those of `spend`.
    pub(super) fn spell_within<A: LexemeAutomaton, E: From<LexerError>>(
        &self,
        automaton: &A,
        start: A::State,
        mut spend: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<(Spellings, usize), E> {
        let mut walk = Walk { speller: self, automaton, sequences: Sequences::default() };
        let (mut by_sequence, mut num_transitions) = (HashMap::new(), 0);
        // `levels[d]`: where the first `d` bytes of the current token lead.
        let mut levels = vec![vec![Branch { state: start, sequence: ROOT, line: Line::UNKNOWN }]];
        let mut num_levels = 1;
        let mut spelled = Vec::new();
        for (&token, &common) in self.tokens.tokens.iter().zip(&self.tokens.common) {
            num_levels = num_levels.min(common as usize + 1);
            if levels[num_levels - 1].is_empty() {
                // What this token has in common with an earlier one leads nowhere.
                continue;
            }
            let text = self.vocabulary.text(token);
            while num_levels <= text.len() && !levels[num_levels - 1].is_empty() {
                if levels.len() == num_levels {
                    levels.push(Vec::new());
                }
                let (before, after) = levels.split_at_mut(num_levels);
                spend(1 + before[num_levels - 1].len() as u64)?;
                walk.read(&before[num_levels - 1], text[num_levels - 1], &mut after[0])?;
                num_levels += 1;
            }
            if num_levels <= text.len() {
                continue;
            }
            spelled.clear();
            for branch in &levels[num_levels - 1] {
                for terminal in automaton.possible(branch.state).iter() {
                    spelled.push(walk.longer(branch.sequence, Letter::of(terminal)));
                    num_transitions += 1;
                }
            }
            spelled.sort_unstable();
            spelled.dedup();
            for &sequence in &spelled {
                by_sequence.entry(sequence).or_insert_with(Vec::new).push(token);
            }
        }
        let sequences = &walk.sequences;
        let spellings = by_sequence.into_iter().map(|(sequence, mut tokens): (u32, Vec<_>)| {
            tokens.sort_unstable();
            (sequences.letters(sequence), tokens)
        });
        Ok((spellings.collect(), num_transitions))
    }
}

/// One way to cut what was read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Branch<S> {
    state: S,
    /// The lexemes that have ended.
    sequence: u32,
    line: Line,
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
        after.clear();
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
