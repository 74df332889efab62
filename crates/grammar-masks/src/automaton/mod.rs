//! Mask automaton: the engine that reads stacks from the top down and memoises what it read.
//!
//! Which tokens may follow depends on the lexeme in progress and on the parser's stack, and of the
//! stack mostly on its first few states. So there is an automaton that reads states from the top
//! down, one for each lexer state: a node knows which tokens may follow on every stack that begins
//! so, and which depend on what is below; reading stops where none does. ("Precomputing grammar
//! masks" calls it the parser automaton.)
//!
//! The automaton is deterministic and built as it is read: a node that was visited before costs a
//! look-up, a new one is put together from residuals that grammars share
//! ([`residuals`](super::residuals)). What it says is what the definition says; nothing is
//! approximated. Lexer states that go on alike for all tokens share their nodes
//! ([`bounded_equivalent`](palmette_grammar_parser::lexer::Lexer::bounded_equivalent)).

mod composed;
mod graph;
mod lexeme_ends;
mod member_entry;
mod member_masks;
mod member_rows;
mod memo;
mod precompute;
mod prepare;
mod prepared_vocabulary;
mod saved;

use std::sync::{Arc, PoisonError, RwLock};

use palmette_grammar_parser::recognizer::{Position, Recognizer, RecognizerError};
use smallvec::SmallVec;

use super::mask_pool::PoolId;
use crate::{Budget, Interrupted};
pub use graph::{AutomatonGraph, GraphFirst, GraphNode};
use lexeme_ends::LexemeEnds;
use member_entry::MemberEntry;
pub use member_masks::{MemberMasks, MemberScratch};
pub use member_rows::MemberRows;
use memo::{Memo, MissingPart};
pub use precompute::Precompute;
pub use prepared_vocabulary::PreparedVocabulary;
pub use saved::{SavedAutomaton, SavedMask, UNREAD};

/// Nodes and masks take at most this much memory unless told otherwise.
const DEFAULT_MAX_BYTES: usize = 256 << 20;

/// Masks by reading the stack from the top, as deep as the answer needs. Nodes are memoised, and a
/// step that meets only known ones costs some look-ups.
///
/// Shared by threads: reading takes a shared lock, a new node an exclusive one. When nodes and
/// masks take more than their limit, all are dropped and built again as they are visited. A
/// question drops them once; what needs more than the limit by itself is refused.
#[derive(Debug)]
pub struct MaskAutomaton {
    vocabulary: Arc<PreparedVocabulary>,
    max_bytes: usize,
    memo: RwLock<Memo>,
    ends: LexemeEnds,
}

/// Size of an automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutomatonStatistics {
    /// Nodes that were read, each for all first states of stacks that say the same.
    pub nodes: usize,
    /// Masks, of which some may be equal.
    pub masks: usize,
    /// Memory of nodes and masks.
    pub bytes: usize,
}

impl MaskAutomaton {
    /// An automaton without nodes. `vocabulary` may be shared with other grammars.
    pub fn new(vocabulary: Arc<PreparedVocabulary>) -> Self {
        Self::with_max_bytes(vocabulary, DEFAULT_MAX_BYTES)
    }

    /// [`new`](Self::new) with another limit on the memory of nodes and masks.
    pub fn with_max_bytes(vocabulary: Arc<PreparedVocabulary>, max_bytes: usize) -> Self {
        let (memo, ends) = Default::default();
        Self { vocabulary, max_bytes, memo, ends }
    }

    /// An automaton without nodes over the same vocabulary, within the same memory: for another
    /// grammar.
    #[must_use]
    pub fn without_nodes(&self) -> Self {
        Self::with_max_bytes(Arc::clone(&self.vocabulary), self.max_bytes)
    }

    /// Size of it.
    pub fn statistics(&self) -> AutomatonStatistics {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        let (nodes, masks) = (memo.suffix_sets.of_masks().len(), memo.masks.len());
        AutomatonStatistics { nodes, masks, bytes: memo.bytes() }
    }

    /// About how much memory it takes, without what grammars over the vocabulary share.
    pub fn bytes(&self) -> usize {
        let memo = self.memo.read().unwrap_or_else(PoisonError::into_inner);
        memo.all_bytes() + memo.scratch_bytes()
    }

    /// Sets the bits of the tokens with text that may follow; clears all others.
    ///
    /// # Errors
    /// When a limit is exceeded, that on the memory included; the mask then denies all.
    ///
    /// # Panics
    /// When `mask` is not a row of the vocabulary.
    pub fn fill_mask(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        self.fill_mask_within(recognizer, position, mask, &mut Budget::unlimited())
    }

    /// [`fill_mask`](Self::fill_mask) that takes what new nodes cost from `budget`: a unit for each
    /// node of the vocabulary's trie that is walked, and each of its branches. Nodes that were made
    /// before the budget was used up are kept.
    ///
    /// # Errors
    /// As [`fill_mask`](Self::fill_mask), and when the budget is used up.
    ///
    /// # Panics
    /// As [`fill_mask`](Self::fill_mask).
    pub fn fill_mask_within(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        mask: &mut [u32],
        budget: &mut Budget<'_>,
    ) -> Result<(), RecognizerError> {
        let fill = |memo: &Memo| memo.fill(recognizer, position, mask);
        let filled = self.read(recognizer, budget, WhenFull::Drop, fill);
        if filled.is_err() {
            mask.fill(0);
        }
        filled
    }

    /// Finds the masks whose union is that of a position, in ascending order, each once; gives the
    /// generation in which these ids mean something.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within).
    pub fn parts(
        &self,
        recognizer: &Recognizer,
        position: &Position,
        parts: &mut Vec<PoolId>,
        budget: &mut Budget<'_>,
    ) -> Result<u32, RecognizerError> {
        self.read(recognizer, budget, WhenFull::Drop, |memo| {
            parts.clear();
            let mut found = FoundMasks::default();
            memo.find(recognizer, position, &mut found)?;
            found.masks.sort_unstable();
            parts.extend_from_slice(&found.masks);
            Ok(memo.generation)
        })
    }

    /// Asks until nothing is missing.
    fn read<'s, T>(
        &self,
        recognizer: &Recognizer,
        budget: &mut Budget<'_>,
        mut when_full: WhenFull,
        mut ask: impl FnMut(&Memo) -> Result<T, MissingPart<'s>>,
    ) -> Result<T, RecognizerError> {
        // Work ahead of time gives way to what is asked for now, from when that has to wait, or to
        // find something out.
        let asking = self.vocabulary.asking();
        let gives_way = budget.gives_way();
        let mut asked = None;
        loop {
            let memo = match self.memo.try_read() {
                Ok(memo) => memo,
                Err(_) => {
                    if !gives_way {
                        asked.get_or_insert_with(|| asking.begin());
                    }
                    self.memo.read().unwrap_or_else(PoisonError::into_inner)
                }
            };
            let (answer, generation) = (ask(&memo), memo.generation);
            drop(memo);
            let missing = match answer {
                Ok(answer) => return Ok(answer),
                Err(missing) => missing,
            };
            if gives_way {
                budget.let_others_pass();
            } else {
                asked.get_or_insert_with(|| asking.begin());
            }
            let mut memo = self.memo.write().unwrap_or_else(PoisonError::into_inner);
            if memo.generation != generation {
                // Another question dropped the nodes that this one is about.
                continue;
            }
            let limit = when_full.limit(self.max_bytes);
            if memo.all_bytes() <= limit {
                memo.build(recognizer, &self.vocabulary, missing, budget)?;
                continue;
            }
            match when_full {
                WhenFull::Drop => (*memo, when_full) = (Memo::after(&memo), WhenFull::Stop),
                WhenFull::Stop | WhenFull::LeaveRoom => {
                    return Err(Interrupted::OutOfBytes { limit }.into());
                }
            }
        }
    }
}

/// The masks whose union is asked for, and the entries of members in them, each once.
#[derive(Debug, Default)]
struct FoundMasks {
    masks: SmallVec<[PoolId; 16]>,
    entries: Vec<Arc<MemberEntry>>,
}

/// Policy of a question that finds no room for what it needs.
#[derive(Clone, Copy)]
enum WhenFull {
    /// Drops the memo, once.
    Drop,
    /// Ends the question.
    Stop,
    /// Ends the question while there is room for others: what they find would drop all.
    LeaveRoom,
}

impl WhenFull {
    /// Bytes of nodes and masks beyond which there is no room.
    fn limit(self, max_bytes: usize) -> usize {
        match self {
            Self::Drop | Self::Stop => max_bytes,
            Self::LeaveRoom => max_bytes - max_bytes / 8,
        }
    }
}
