//! Rows, built for each position of the lexer when it is first visited.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, RwLock};

use palmette_core::Vocabulary;

use super::{
    rows::Rows,
    spelling::{SortedTokens, Speller, ignored_terminals},
    streamline::{Steps, Streamliner},
};
use crate::lexer::{Lexer, LexerError, LexerState};
use crate::{Grammar, TerminalSet};

/// The rows of every visited position of a lexer. Threads share it: each position's rows are built at most once per thread
/// that meets it first.
#[derive(Debug)]
pub struct MaskStore {
    grammar: Grammar,
    vocabulary: Arc<Vocabulary>,
    tokens: SortedTokens,
    ignored: TerminalSet,
    streamliner: Streamliner,
    max_bytes: usize,
    kept: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    rows: HashMap<LexerState, Arc<Rows>>,
    /// By age.
    order: VecDeque<LexerState>,
    bytes: usize,
}

/// What a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatistics {
    /// Positions of the lexer with rows.
    pub positions: usize,
    /// Rows of all of them.
    pub rows: usize,
    /// Their memory.
    pub bytes: usize,
}

impl MaskStore {
    /// Nothing is built yet. Rows that would make all exceed `max_bytes` push out the oldest, which are built anew when they
    /// are asked for again; one position's rows are served even when they exceed it alone.
    pub fn new(
        grammar: &Grammar,
        vocabulary: Arc<Vocabulary>,
        steps: Steps,
        max_bytes: usize,
    ) -> Self {
        Self {
            tokens: SortedTokens::new(&vocabulary),
            ignored: ignored_terminals(grammar),
            streamliner: Streamliner::new(grammar, steps),
            grammar: grammar.clone(),
            vocabulary,
            max_bytes,
            kept: RwLock::default(),
        }
    }

    /// What is held now.
    pub fn statistics(&self) -> StoreStatistics {
        let kept = self.kept.read().expect("no panic while held");
        StoreStatistics {
            positions: kept.rows.len(),
            rows: kept.rows.values().map(|rows| rows.num_rows()).sum(),
            bytes: kept.bytes,
        }
    }

    /// The rows of a position of `lexer`, which is always the same one.
    pub(crate) fn rows(&self, lexer: &Lexer, state: LexerState) -> Result<Arc<Rows>, LexerError> {
        if let Some(rows) = self.kept.read().expect("no panic while held").rows.get(&state) {
            return Ok(rows.clone());
        }
        let speller = Speller {
            vocabulary: &self.vocabulary,
            tokens: &self.tokens,
            ignored: &self.ignored,
            indentation: self.grammar.indentation(),
        };
        let (spellings, _) = speller.spell(lexer, state)?;
        let spellings = self.streamliner.streamline(spellings);
        let rows = Arc::new(Rows::new(spellings, self.vocabulary.num_tokens()));
        self.keep(state, &rows);
        Ok(rows)
    }

    fn keep(&self, state: LexerState, rows: &Arc<Rows>) {
        let mut kept = self.kept.write().expect("no panic while held");
        if rows.bytes() > self.max_bytes || kept.rows.contains_key(&state) {
            return;
        }
        while kept.bytes + rows.bytes() > self.max_bytes {
            let oldest = kept.order.pop_front().expect("bytes are those of rows");
            let gone = kept.rows.remove(&oldest).expect("it is in the order");
            kept.bytes -= gone.bytes();
        }
        kept.bytes += rows.bytes();
        kept.order.push_back(state);
        kept.rows.insert(state, rows.clone());
    }
}
