//! Compiled grammars as files.
//!
//! A file holds the grammar's [source](GrammarSource) and what its masks took long to compute: the
//! nodes of the [stack automaton](palmette_grammar_masks::MaskAutomaton) with their masks. The
//! grammar is compiled again from its source when a file is opened, in milliseconds, so a file
//! depends on no detail of the program but the numbers of the parser's states; these are compared,
//! and where another version of the program makes other tables, the nodes are left out and found
//! again when they are needed.
//!
//! # Format
//! A [file of sections](palmette_mapped), little-endian:
//!
//! | section | contents |
//! |---|---|
//! | 0 | nodes of the stack automaton, `[n, 2]` u32: how many states they skip and read, the mask (2^32 - 1: not known) |
//! | 1 | first nodes, `[n, 6]` u32: a fingerprint of the lexeme in progress (4), the topmost state of the parser, the node |
//! | 2 | edges, `[n, 3]` u32: a node, the parser's state, the node there |
//! | 3 | masks, `[n, 2]` u32: the earlier mask that it is but for its patches (2^32 - 1: no tokens), the number of its patches |
//! | 4 | patches of all masks, `[n, 2]` u32: a place, the word there |
//! | 5 | a JSON document: the vocabulary's fingerprint and size, a hash of the parser's tables, the number of entries of each section, the source with its options |
//!
//! Limits of front ends are not in it: a source is read within the default ones.
//!
//! Every number is checked when a file is opened. Whoever can write a file decides what its masks
//! allow, as with any program; but no file makes its reader do more than give wrong masks.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use palmette_core::{TokenId, Vocabulary, mask};
use palmette_grammar_masks::vocabulary::VocabularyFingerprint;
use palmette_grammar_masks::{
    MaskAutomaton, PreparedVocabulary, SavedAutomaton, SavedMask, UNREAD,
};
use palmette_grammar_parser::lr::StateId;
use palmette_grammar_parser::recognizer::{CompileError, Contexts, Recognizer};
use palmette_grammar_syntax::json_schema::Warning;
use palmette_mapped::{Array, Check, Format, FormatError, OpenError, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use crate::{
    Budget, Grammar, GrammarConstraint, GrammarSource, RecognizerLimits, SourceError, TokenError,
};

pub(crate) const FORMAT: Format = Format { magic: *b"PALMGRAM", version: 5 };

const NODES: u32 = 0;
const FIRSTS: u32 = 1;
const EDGES: u32 = 2;
const MASKS: u32 = 3;
const PATCHES: u32 = 4;
const DESCRIPTION: u32 = 5;

const NODE_NUMBERS: usize = 2;
const FIRST_NUMBERS: usize = 6;
const EDGE_NUMBERS: usize = 3;
const MASK_NUMBERS: usize = 2;
const PATCH_NUMBERS: usize = 2;

/// The last section.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    vocabulary: String,
    num_tokens: u64,
    tables: u64,
    nodes: u64,
    firsts: u64,
    edges: u64,
    masks: u64,
    patches: u64,
    source: GrammarSource,
}

/// A file of a compiled grammar, opened and not compiled yet.
#[derive(Clone, Debug)]
pub struct SavedGrammar {
    description: Description,
    vocabulary: VocabularyFingerprint,
    nodes: Array<u32>,
    firsts: Array<u32>,
    edges: Array<u32>,
    masks: Array<u32>,
    patches: Array<u32>,
}

/// A grammar that was saved, made ready again.
#[derive(Clone, Debug)]
pub struct Reopened {
    /// The grammar over its vocabulary.
    pub constraint: GrammarConstraint,
    /// Parts of the source without effect.
    pub warnings: Vec<Warning>,
    /// Number of nodes that the stack automaton has from its file; `None` where they are of another
    /// version of the program and were left out.
    pub nodes: Option<usize>,
}

/// Error of a compiled grammar that is not written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The source, read as a file's is, gives another grammar or none.
    #[error(
        "the grammar cannot be saved: its source, read within the default limits of its front end, does not give this grammar; keep the \
         source and compile it anew"
    )]
    Source,
}

/// Error of a file that gives no compiled grammar.
#[derive(Debug, thiserror::Error)]
pub enum ReopenError {
    /// A file that cannot be opened, is no such file, or is damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The checksums are right, but not the contents.
    #[error("is no sound compiled grammar: {0}")]
    Malformed(String),
    /// A grammar compiled for another vocabulary.
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
    /// The front end refuses its source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The source asks for a token that the vocabulary does not have.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// A grammar that cannot be made ready.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl From<FormatError> for ReopenError {
    fn from(error: FormatError) -> Self {
        Self::Open(error.into())
    }
}

impl GrammarConstraint {
    /// Writes the grammar with what is known of its masks, replacing the file whole or not at all.
    /// `source` is what it was made of.
    ///
    /// # Errors
    /// When the folder cannot be written to, or the source does not give this grammar.
    pub fn save(&self, source: &GrammarSource, path: &Path) -> Result<(), SaveError> {
        Ok(self.sections(source)?.write(path, FORMAT)?)
    }

    /// The bytes of the file that [`save`](Self::save) writes.
    ///
    /// # Errors
    /// When the source does not give this grammar.
    pub fn to_bytes(&self, source: &GrammarSource) -> Result<Vec<u8>, SaveError> {
        Ok(self.sections(source)?.to_bytes(FORMAT))
    }

    fn sections(&self, source: &GrammarSource) -> Result<SectionsOut, SaveError> {
        let recognizer = self.recognizer();
        // What a file knows of a node is its mask, and where members may begin that is not all.
        let automaton = self.mask_automaton().filter(|_| recognizer.source().slots().is_empty());
        let SavedAutomaton { nodes, firsts, edges, masks } =
            automaton.map(|automaton| automaton.save(recognizer)).unwrap_or_default();
        let masks = masks.into_iter().map(|mask| (mask.base, mask.patches));
        let (bases, patches): (Vec<u32>, Vec<Vec<u32>>) = masks.unzip();
        let num_patches = patches.iter().map(|patches| patches.len() / PATCH_NUMBERS);
        let masks: Vec<u32> =
            bases.into_iter().zip(num_patches).flat_map(|(base, num)| [base, num as u32]).collect();
        let patches = patches.concat();
        let description = Description {
            vocabulary: self.prepared_vocabulary().fingerprint().to_string(),
            num_tokens: self.vocabulary().num_tokens() as u64,
            tables: tables_hash(recognizer),
            nodes: nodes.len() as u64,
            firsts: firsts.len() as u64,
            edges: edges.len() as u64,
            masks: (masks.len() / MASK_NUMBERS) as u64,
            patches: (patches.len() / PATCH_NUMBERS) as u64,
            source: source.clone(),
        };
        let document = serde_json::to_vec(&description).expect("strings and numbers");
        let read: Description = serde_json::from_slice(&document).expect("it was written just now");
        let grammar = read.source.parse().ok().map(|(grammar, _)| grammar);
        let grammar = grammar.and_then(|grammar| grammar.with_tokens_of(self.vocabulary()).ok());
        if grammar.as_ref() != Some(&**recognizer.source()) {
            return Err(SaveError::Source);
        }
        let first = |(of, state, node): (u128, StateId, u32)| {
            let words = [96, 64, 32, 0].map(|shift| (of >> shift) as u32);
            words.into_iter().chain([state.0, node])
        };
        let numbers: [Vec<u32>; 5] = [
            nodes.into_iter().flat_map(|(missing, mask)| [missing, mask]).collect(),
            firsts.into_iter().flat_map(first).collect(),
            edges.into_iter().flat_map(|(from, state, to)| [from, state.0, to]).collect(),
            masks,
            patches,
        ];
        let mut out = SectionsOut::default();
        for numbers in numbers {
            out.add_array(&Array::from(numbers));
        }
        out.add(document.into());
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
        let document = file.section(DESCRIPTION).map_err(ReopenError::Malformed)?;
        let description: Description = serde_json::from_slice(&document)
            .map_err(|error| ReopenError::Malformed(format!("its description: {error}")))?;
        let vocabulary = u128::from_str_radix(&description.vocabulary, 16).map_err(|error| {
            ReopenError::Malformed(format!("the fingerprint of its vocabulary: {error}"))
        })?;
        let array = |section, entries: u64, numbers: u64| {
            let len = entries.saturating_mul(numbers);
            file.array::<u32>(section, len).map_err(ReopenError::Malformed)
        };
        Ok(Self {
            vocabulary: VocabularyFingerprint(vocabulary),
            nodes: array(NODES, description.nodes, NODE_NUMBERS as u64)?,
            firsts: array(FIRSTS, description.firsts, FIRST_NUMBERS as u64)?,
            edges: array(EDGES, description.edges, EDGE_NUMBERS as u64)?,
            masks: array(MASKS, description.masks, MASK_NUMBERS as u64)?,
            patches: array(PATCHES, description.patches, PATCH_NUMBERS as u64)?,
            description,
        })
    }

    /// The grammar as its author wrote it.
    pub fn source(&self) -> &GrammarSource {
        &self.description.source
    }

    /// The vocabulary that it was compiled for.
    pub fn vocabulary(&self) -> VocabularyFingerprint {
        self.vocabulary
    }

    /// Makes the grammar ready. Its masks are those of the grammar compiled anew, and it goes on
    /// finding out others.
    ///
    /// # Errors
    /// When the vocabulary is another one, the contents are not sound, a limit is exceeded, the
    /// budget is used up or the compilation is cancelled.
    pub fn compile(
        &self,
        vocabulary: &Arc<PreparedVocabulary>,
        limits: &RecognizerLimits,
        budget: &mut Budget<'_>,
    ) -> Result<Reopened, ReopenError> {
        self.check_vocabulary(vocabulary.fingerprint())?;
        let (grammar, warnings) = self.source().parse_with_budget(budget)?;
        let grammar = grammar.with_tokens_of(vocabulary.vocabulary())?;
        let automaton = self.automaton(&grammar, vocabulary.vocabulary())?;
        let recognizer = Recognizer::new(Arc::new(grammar), limits, budget)?;
        let constraint = GrammarConstraint::new(Arc::new(recognizer), Arc::clone(vocabulary));
        constraint.check_token_limits()?;
        let nodes = self.restore_automaton(&automaton, &constraint)?;
        Ok(Reopened { constraint, warnings, nodes })
    }

    /// Has a grammar that was compiled from the source of this file know its masks, unless it knows
    /// more by now. Gives the number of nodes of the file, as [`Reopened::nodes`] does.
    ///
    /// # Errors
    /// When the vocabulary is another one, or the contents are not sound; the grammar is then as it
    /// was.
    pub(crate) fn restore_into(
        &self,
        constraint: &GrammarConstraint,
    ) -> Result<Option<usize>, ReopenError> {
        self.check_vocabulary(constraint.prepared_vocabulary().fingerprint())?;
        let grammar = constraint.recognizer().source();
        let automaton = self.automaton(grammar, constraint.vocabulary())?;
        self.restore_automaton(&automaton, constraint)
    }

    fn check_vocabulary(&self, found: VocabularyFingerprint) -> Result<(), ReopenError> {
        let (said, num_tokens) = (self.vocabulary, self.description.num_tokens);
        match found == said {
            true => Ok(()),
            false => Err(ReopenError::Vocabulary { said, num_tokens, found }),
        }
    }

    /// The last of the checks, of the parser's states; then the nodes are the grammar's.
    fn restore_automaton(
        &self,
        automaton: &SavedAutomaton,
        constraint: &GrammarConstraint,
    ) -> Result<Option<usize>, ReopenError> {
        let recognizer = constraint.recognizer();
        if tables_hash(recognizer) != self.description.tables {
            return Ok(None);
        }
        let num_states = recognizer.parser().tables().num_states();
        let states = automaton.firsts.iter().map(|&(_, state, _)| state);
        let mut states = states.chain(automaton.edges.iter().map(|&(_, state, _)| state));
        if !states.all(|state| state.index() < num_states) {
            return malformed("it mentions states that the parser does not have");
        }
        let own = constraint.mask_automaton().filter(|_| recognizer.source().slots().is_empty());
        let knows_less = |own: &&MaskAutomaton| own.statistics().nodes <= automaton.nodes.len();
        if let Some(own) = own.filter(knows_less) {
            own.restore(automaton);
        }
        Ok(Some(automaton.nodes.len()))
    }

    /// Nodes and masks of the file, but for the parser's states all checked.
    fn automaton(
        &self,
        grammar: &Grammar,
        vocabulary: &Vocabulary,
    ) -> Result<SavedAutomaton, ReopenError> {
        let nodes: Vec<(u32, u32)> = self
            .nodes
            .as_chunks::<NODE_NUMBERS>()
            .0
            .iter()
            .map(|&[missing, mask]| (missing, mask))
            .collect();
        let firsts =
            self.firsts.as_chunks::<FIRST_NUMBERS>().0.iter().map(|&[a, b, c, d, state, node]| {
                let of = [a, b, c, d].into_iter().fold(0, |of, word| of << 32 | u128::from(word));
                (of, StateId(state), node)
            });
        let firsts: Vec<_> = firsts.collect();
        let edges = self.edges.as_chunks::<EDGE_NUMBERS>().0.iter();
        let edges: Vec<_> = edges.map(|&[from, state, to]| (from, StateId(state), to)).collect();
        let num_masks = self.description.masks;
        let no_mask = |&&(_, mask): &&(u32, u32)| mask != UNREAD && u64::from(mask) >= num_masks;
        if let Some((_, mask)) = nodes.iter().find(no_mask) {
            return malformed(format!("it mentions mask {mask} of {num_masks}"));
        }
        let ends = edges.iter().flat_map(|&(from, _, to)| [from, to]);
        let mut ends = ends.chain(firsts.iter().map(|&(.., node)| node));
        if let Some(node) = ends.find(|&node| node as usize >= nodes.len()) {
            return malformed(format!("it mentions node {node} of {}", nodes.len()));
        }
        let asks_for_tokens = grammar.asks_for_tokens();
        let masks = self.masks(vocabulary, asks_for_tokens)?;
        Ok(SavedAutomaton { nodes, firsts, edges, masks })
    }

    /// Masks of the file: tokens have text, or the grammar asks for tokens in other ways.
    fn masks(
        &self,
        vocabulary: &Vocabulary,
        asks_for_tokens: bool,
    ) -> Result<Vec<SavedMask>, ReopenError> {
        let mut may_come = vec![0; mask::num_words(vocabulary.num_tokens())];
        let tokens = (0..vocabulary.num_tokens() as u32).map(TokenId);
        tokens
            .filter(|&token| asks_for_tokens || !vocabulary.text(token).is_empty())
            .for_each(|token| mask::insert(&mut may_come, token));
        let mut masks: Vec<SavedMask> = Vec::new();
        let mut rest = self.patches.as_chunks::<PATCH_NUMBERS>().0;
        for &[base, num_patches] in self.masks.as_chunks::<MASK_NUMBERS>().0 {
            let is_base = |base: &SavedMask| base.base == UNREAD;
            if base != UNREAD && !masks.get(base as usize).is_some_and(is_base) {
                return malformed(format!("its mask {} has no base {base}", masks.len()));
            }
            let Some((patches, others)) = rest.split_at_checked(num_patches as usize) else {
                return malformed(format!("its mask {} lacks patches", masks.len()));
            };
            let is_sound = |&[at, word]: &[u32; 2]| {
                may_come.get(at as usize).is_some_and(|may_come| word & !may_come == 0)
            };
            if !patches.iter().all(is_sound) {
                return malformed("it mentions tokens without text");
            }
            if !patches.is_sorted_by(|a, b| a[0] < b[0]) {
                return malformed(format!(
                    "the patches of its mask {} are in no order",
                    masks.len()
                ));
            }
            masks.push(SavedMask { base, patches: patches.as_flattened().to_vec() });
            rest = others;
        }
        Ok(masks)
    }
}

fn malformed<T>(message: impl Into<String>) -> Result<T, ReopenError> {
    Err(ReopenError::Malformed(message.into()))
}

/// Meaning of the numbers of the parser's states and contexts, as a hash that is the same on every
/// machine.
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
