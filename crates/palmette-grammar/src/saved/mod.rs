//! Compiled grammars as files.
//!
//! A file holds the grammar and what its masks took long to compute: the nodes of the
//! [mask automaton](palmette_masks::MaskAutomaton) with their masks, and of the lexer the steps that lead to the states that nodes
//! mention. The parser's tables and the lexer's expressions are made anew when a file is opened, so a file
//! depends on no detail of them but the numbers of the parser's states; these are compared, and where
//! another version of the program makes other tables, the nodes are left out and found again when they are needed.
//!
//! # Format
//! A [file of sections](palmette_storage), little-endian:
//!
//! | section | contents |
//! |---|---|
//! | 0 | u64: the vocabulary's fingerprint (2), its size, a hash of the parser's tables, then how many entries sections 2 to 9 have |
//! | 1 | the grammar |
//! | 2 | lexer states after the first, `[n, 4]` u32: an earlier one, how it is left (0 by a byte, 1 by the end of a lexeme, 2 to the one that stands for it, 3 without other terminals than those of a set), the byte, or the number of the end or the set, a hash of the state |
//! | 3 | lexer states and those that stand for them, `[n, 2]` u32 |
//! | 4 | stacks by their first states, `[n, 5]` u32: 0 and a lexer state or 1 and an earlier node, the parser's state, the mask (2^32 - 1: unread), how many tokens are undecided |
//! | 5 | undecided tokens of all nodes, u32 |
//! | 6 | masks, `[n, words]` u32 |
//! | 7 | nodes of the automaton that reads stacks, `[n, 2]` u32: how many states they skip and read, the mask (2^32 - 1: not known) |
//! | 8 | its edges, `[n, 4]` u32: 0 and a lexer state or 1 and a node, the parser's state, the node there |
//! | 9 | sets of terminals, u32: of each how many there are, then which |
//!
//! Every number is checked when a file is opened. Whoever can write a file decides what its masks allow, as with any program; but
//! no file makes its reader do more than give wrong masks.

mod grammars;
mod lexers;
mod numbers;
mod regexes;

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use palmette_core::{TokenId, Vocabulary, mask};
use palmette_storage::{Array, Check, Format, FormatError, OpenError, SectionsIn, SectionsOut};

use crate::{Budget, Grammar, GrammarConstraint, RecognizerLimits};
use lexers::{LexerSteps, STEP_NUMBERS};
pub(crate) use numbers::Malformed;
use palmette_masks::vocabulary::VocabularyFingerprint;
use palmette_masks::{
    Above, PreparedVocabulary, SavedMemo, SavedNode, SavedStackAutomaton, UNREAD,
};
use palmette_parser::lexer::LexerState;
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{CompileError, Contexts, Recognizer, RecognizerError};

const FORMAT: Format = Format { magic: *b"PALMGRAM", version: 4 };

const HEAD: u32 = 0;
const GRAMMAR: u32 = 1;
const LEXER: u32 = 2;
const REPRESENTATIVE: u32 = 3;
const NODES: u32 = 4;
const UNDECIDED: u32 = 5;
const MASKS: u32 = 6;
const READING: u32 = 7;
const EDGES: u32 = 8;
const SETS: u32 = 9;

const HEAD_NUMBERS: u64 = 12;
const NODE_NUMBERS: usize = 5;
const READING_NUMBERS: usize = 2;
const EDGE_NUMBERS: usize = 4;

/// A file of a compiled grammar, opened and not compiled yet.
#[derive(Clone, Debug)]
pub struct SavedGrammar {
    grammar: Arc<Grammar>,
    vocabulary: VocabularyFingerprint,
    num_tokens: u64,
    tables: u64,
    lexer: Array<u32>,
    restricted: Array<u32>,
    representatives: Array<u32>,
    nodes: Array<u32>,
    undecided: Array<u32>,
    masks: Array<u32>,
    reading: Array<u32>,
    edges: Array<u32>,
}

/// A grammar that was saved, made ready again.
#[derive(Clone, Debug)]
pub struct Reopened {
    /// The grammar over its vocabulary.
    pub constraint: GrammarConstraint,
    /// Number of nodes that the mask automaton has from its file; `None` where they are of another version of the program
    /// and were left out.
    pub nodes: Option<usize>,
}

/// Error of a compiled grammar that is not written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A limit of files is exceeded: expressions nest too deep, or are too many.
    #[error("the grammar cannot be saved: {0}")]
    Limit(String),
    /// A limit of the grammar is exceeded.
    #[error(transparent)]
    Recognizer(#[from] RecognizerError),
}

/// Error of a file that gives no compiled grammar.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// It cannot be opened, is no such file, or is damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The checksums are right, but not the contents.
    #[error("is no sound compiled grammar: {0}")]
    Malformed(String),
    /// It was compiled for another vocabulary.
    #[error(
        "was compiled for another vocabulary: that of {num_tokens} tokens with fingerprint {said}, not {found}; compile it anew"
    )]
    Vocabulary {
        /// The vocabulary of the file.
        said: VocabularyFingerprint,
        /// Number of tokens of that.
        num_tokens: u64,
        /// The vocabulary given.
        found: VocabularyFingerprint,
    },
    /// It cannot be made ready.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl From<FormatError> for ReopenError {
    fn from(error: FormatError) -> Self {
        Self::Open(error.into())
    }
}

impl From<Malformed> for ReopenError {
    fn from(error: Malformed) -> Self {
        Self::Malformed(error.0)
    }
}

impl GrammarConstraint {
    /// Writes the grammar with what is known of its masks, replacing the file whole or not at all.
    ///
    /// # Errors
    /// When the folder cannot be written to, or the grammar is larger than files may hold.
    pub fn save(&self, path: &Path) -> Result<(), SaveError> {
        Ok(self.sections()?.write(path, FORMAT)?)
    }

    /// The bytes of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// When the grammar is larger than files may hold.
    pub fn to_bytes(&self) -> Result<Vec<u8>, SaveError> {
        Ok(self.sections()?.to_bytes(FORMAT))
    }

    fn sections(&self) -> Result<SectionsOut, SaveError> {
        let recognizer = self.recognizer();
        let grammar =
            grammars::write(recognizer.source()).map_err(|error| SaveError::Limit(error.0))?;
        let memo = self.mask_automaton().map(|automaton| automaton.save()).unwrap_or_default();
        let lexer = LexerSteps::to_states(recognizer, &memo)?;

        let mut representatives = Vec::new();
        for (state, stands_for) in &memo.representatives {
            if let (Some(state), Some(stands_for)) =
                (lexer.number(*state), lexer.number(*stands_for))
            {
                representatives.extend([state, stands_for]);
            }
        }
        let (mut nodes, mut undecided) = (Vec::new(), Vec::new());
        // Nodes whose lexer state cannot be told are left out, and those below them.
        let mut numbers: Vec<Option<u32>> = Vec::with_capacity(memo.nodes.len());
        for node in &memo.nodes {
            let above = match node.above {
                Above::Lexer(state) => lexer.number(state).map(|state| [0, state]),
                Above::Node(parent) => numbers[parent as usize].map(|parent| [1, parent]),
            };
            numbers.push(above.map(|_| (nodes.len() / NODE_NUMBERS) as u32));
            let Some([kind, above]) = above else { continue };
            nodes.extend([kind, above, node.state.0, node.mask, node.undecided.len() as u32]);
            undecided.extend(node.undecided.iter().map(|token| token.0));
        }

        let reading: Vec<u32> = memo
            .stack_automaton
            .nodes
            .iter()
            .flat_map(|&(missing, mask)| [missing, mask])
            .collect();
        let mut edges = Vec::new();
        for &(from, state, to) in &memo.stack_automaton.edges {
            let from = match from {
                Above::Lexer(state) => lexer.number(state).map(|state| [0, state]),
                Above::Node(node) => Some([1, node]),
            };
            let Some([kind, from]) = from else { continue };
            edges.extend([kind, from, state.0, to]);
        }

        let fingerprint = self.prepared_vocabulary().fingerprint().0;
        let words = mask::num_words(self.vocabulary().num_tokens()).max(1);
        let [steps, restricted] = lexer.into_numbers();
        let head = vec![
            fingerprint as u64,
            (fingerprint >> 64) as u64,
            self.vocabulary().num_tokens() as u64,
            tables_hash(recognizer),
            (steps.len() / STEP_NUMBERS) as u64,
            (representatives.len() / 2) as u64,
            (nodes.len() / NODE_NUMBERS) as u64,
            undecided.len() as u64,
            (memo.masks.len() / words) as u64,
            (reading.len() / READING_NUMBERS) as u64,
            (edges.len() / EDGE_NUMBERS) as u64,
            restricted.len() as u64,
        ];
        let mut out = SectionsOut::default();
        out.add_array(&Array::from(head));
        out.add(grammar.into());
        for numbers in
            [steps, representatives, nodes, undecided, memo.masks, reading, edges, restricted]
        {
            out.add_array(&Array::from(numbers));
        }
        Ok(out)
    }
}

impl SavedGrammar {
    /// Maps a file into memory and checks it.
    ///
    /// # Errors
    /// When it cannot be read, is of another kind or version, or is damaged.
    pub fn open(path: &Path) -> Result<Self, ReopenError> {
        Self::of(&SectionsIn::open(path, FORMAT, Check::Whole)?)
    }

    /// Checks the bytes of a file.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: Bytes) -> Result<Self, ReopenError> {
        Self::of(&SectionsIn::from_bytes(bytes, FORMAT, Check::Whole)?)
    }

    fn of(file: &SectionsIn) -> Result<Self, ReopenError> {
        let head = file.array::<u64>(HEAD, HEAD_NUMBERS).map_err(Malformed)?;
        let &[low, high, num_tokens, tables, ref lens @ ..] = &*head else {
            return Err(Malformed("its head is short".to_owned()).into());
        };
        let &[steps, representatives, nodes, undecided, masks, reading, edges, restricted] = lens
        else {
            return Err(Malformed("its head is short".to_owned()).into());
        };
        let words = num_tokens.div_ceil(u64::from(u32::BITS));
        let array = |section, entries: u64, numbers: u64| {
            let len = entries.saturating_mul(numbers);
            file.array::<u32>(section, len).map_err(Malformed)
        };
        Ok(Self {
            grammar: Arc::new(grammars::read(&file.section(GRAMMAR).map_err(Malformed)?)?),
            vocabulary: VocabularyFingerprint(u128::from(high) << 64 | u128::from(low)),
            num_tokens,
            tables,
            lexer: array(LEXER, steps, STEP_NUMBERS as u64)?,
            restricted: array(SETS, restricted, 1)?,
            representatives: array(REPRESENTATIVE, representatives, 2)?,
            nodes: array(NODES, nodes, NODE_NUMBERS as u64)?,
            undecided: array(UNDECIDED, undecided, 1)?,
            masks: array(MASKS, masks, words)?,
            reading: array(READING, reading, READING_NUMBERS as u64)?,
            edges: array(EDGES, edges, EDGE_NUMBERS as u64)?,
        })
    }

    /// The grammar.
    pub fn grammar(&self) -> &Arc<Grammar> {
        &self.grammar
    }

    /// The vocabulary that it was compiled for.
    pub fn vocabulary(&self) -> VocabularyFingerprint {
        self.vocabulary
    }

    /// Makes the grammar ready. Its masks are those of the grammar compiled anew, and it goes on finding out others.
    ///
    /// # Errors
    /// When the vocabulary is another one, the contents are not sound, a limit is exceeded, the budget is used up or
    /// the compilation is cancelled.
    pub fn compile(
        &self,
        vocabulary: &Arc<PreparedVocabulary>,
        limits: &RecognizerLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Reopened, ReopenError> {
        let found = vocabulary.fingerprint();
        if found != self.vocabulary {
            let (said, num_tokens) = (self.vocabulary, self.num_tokens);
            return Err(ReopenError::Vocabulary { said, num_tokens, found });
        }
        let recognizer = Recognizer::new(Arc::clone(&self.grammar), limits, budget)?;
        let memo = self.memo(&recognizer, vocabulary)?;
        let constraint = GrammarConstraint::new(Arc::new(recognizer), Arc::clone(vocabulary));
        let nodes = memo.as_ref().map(|memo| memo.nodes.len());
        if let (Some(memo), Some(automaton)) = (&memo, constraint.mask_automaton()) {
            automaton.restore(memo);
        }
        Ok(Reopened { constraint, nodes })
    }

    /// Nodes and masks of the file; `None` where they are of another version of the program.
    fn memo(
        &self,
        recognizer: &Recognizer,
        vocabulary: &PreparedVocabulary,
    ) -> Result<Option<SavedMemo>, ReopenError> {
        let tables = recognizer.parser().tables();
        let longest = vocabulary.trie().max_depth() as u32;
        if tables_hash(recognizer) != self.tables {
            return Ok(None);
        }
        let states = lexers::states([&self.lexer, &self.restricted], recognizer, longest)?;
        let Some(states) = states else { return Ok(None) };
        let state = |number: u32| match states.get(number as usize) {
            Some(&state) => Ok(state),
            None => {
                Malformed::because(format!("it mentions lexer state {number} of {}", states.len()))
            }
        };
        let mut memo = SavedMemo { masks: self.masks.to_vec(), ..SavedMemo::default() };
        for pair in self.representatives.as_chunks::<2>().0 {
            memo.representatives.push((state(pair[0])?, state(pair[1])?));
        }
        let num_masks =
            self.masks.len() / mask::num_words(vocabulary.vocabulary().num_tokens()).max(1);
        let mut undecided = self.undecided.iter();
        for (number, &[kind, above, top, mask, open]) in
            (0..).zip(self.nodes.as_chunks::<NODE_NUMBERS>().0)
        {
            let above = match kind {
                0 => Above::Lexer(state(above)?),
                1 if above < number => Above::Node(above),
                _ => return Err(Malformed(format!("its node {number} is below nothing")).into()),
            };
            let no_mask = mask as usize >= num_masks && (mask != UNREAD || open > 0);
            if top as usize >= tables.num_states() || no_mask {
                return Err(
                    Malformed(format!("its node {number} mentions what is not there")).into()
                );
            }
            let tokens: Vec<_> = undecided.by_ref().take(open as usize).collect();
            if tokens.len() < open as usize {
                return Err(Malformed(format!("its node {number} lacks tokens")).into());
            }
            let undecided = tokens.into_iter().map(|&token| TokenId(token)).collect();
            memo.nodes.push(SavedNode { above, state: StateId(top), mask, undecided });
        }
        if undecided.next().is_some() {
            return Err(Malformed("it has tokens of no node".to_owned()).into());
        }
        memo.stack_automaton = self.reading(state, tables.num_states(), num_masks)?;
        let asks_for_tokens = self.grammar.token_terminals().next().is_some();
        check_tokens(&memo, vocabulary.vocabulary(), asks_for_tokens)?;
        Ok(Some(memo))
    }

    /// Stack automaton of masks; `state` gives the lexer's states by their numbers in the file.
    fn reading(
        &self,
        state: impl Fn(u32) -> Result<LexerState, Malformed>,
        num_states: usize,
        num_masks: usize,
    ) -> Result<SavedStackAutomaton, Malformed> {
        let mut reading = SavedStackAutomaton::default();
        for &[missing, mask] in self.reading.as_chunks::<READING_NUMBERS>().0 {
            if mask as usize >= num_masks && mask != UNREAD {
                return Malformed::because(format!("it mentions mask {mask} of {num_masks}"));
            }
            reading.nodes.push((missing, mask));
        }
        let num_nodes = reading.nodes.len();
        for &[kind, from, top, to] in self.edges.as_chunks::<EDGE_NUMBERS>().0 {
            let from = match kind {
                0 => Above::Lexer(state(from)?),
                1 if (from as usize) < num_nodes => Above::Node(from),
                _ => return Malformed::because("an edge comes from nothing"),
            };
            if top as usize >= num_states || to as usize >= num_nodes {
                return Malformed::because("an edge mentions what is not there");
            }
            reading.edges.push((from, StateId(top), to));
        }
        Ok(reading)
    }
}

/// Checks that all tokens that are mentioned have text, or that the grammar asks for tokens in other ways.
fn check_tokens(
    memo: &SavedMemo,
    vocabulary: &Vocabulary,
    asks_for_tokens: bool,
) -> Result<(), Malformed> {
    let words = mask::num_words(vocabulary.num_tokens()).max(1);
    let mut with_text = vec![0; words];
    let tokens = (0..vocabulary.num_tokens() as u32).map(TokenId);
    let mut may_come =
        tokens.filter(|&token| asks_for_tokens || !vocabulary.text(token).is_empty());
    may_come.by_ref().for_each(|token| mask::insert(&mut with_text, token));
    let rows_sound = memo.masks.chunks_exact(words).all(|row| {
        row.iter().zip(&with_text).all(|(&allowed, &with_text)| allowed & !with_text == 0)
    });
    let mut undecided = memo.nodes.iter().flat_map(|node| &node.undecided);
    if !rows_sound || !undecided.all(|&token| mask::contains(&with_text, token)) {
        return Malformed::because("it mentions tokens without text");
    }
    Ok(())
}

/// Meaning of the numbers of the parser's states and contexts, as a hash that is the same on every machine.
fn tables_hash(recognizer: &Recognizer) -> u64 {
    let tables = recognizer.parser().tables();
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut add = |number: usize| hasher.update(&(number as u64).to_le_bytes());
    add(tables.num_states());
    add(tables.num_terminals());
    for state in tables.states() {
        let shifts = tables.shifts(state);
        add(shifts.len());
        for &(terminal, target) in shifts {
            add(terminal.index());
            add(target.0 as usize);
        }
        for (rule, lookahead) in tables.reductions(state) {
            add(tables.rules().length(rule));
            add(tables.rules().head(rule).index());
            lookahead
                .into_iter()
                .flat_map(|set| set.iter())
                .for_each(|terminal| add(terminal.index()));
            add(usize::MAX);
        }
        let gotos = tables.gotos(state);
        add(gotos.len());
        for &(head, target) in gotos {
            add(head.index());
            add(target.0 as usize);
        }
    }
    for (number, _, guards) in recognizer.contexts().into_iter().flat_map(Contexts::guarded) {
        add(number as usize);
        guards.terminals().for_each(|terminal| add(terminal.index()));
        add(usize::MAX);
    }
    hasher.digest()
}
