//! Memory of the tokens that would repeat a name which was seen.

use std::sync::Arc;

use hashbrown::HashMap;
use palmette_core::TokenId;
use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_parser::recognizer::{Position, Recognizer};

/// At most so many positions are remembered; then the memory begins anew.
const MAX_KNOWN: usize = 1 << 12;

/// About what an entry of the memory takes, with the position that it keeps alive.
const KNOWN_BYTES: usize = 256;

/// A thread's memory of the tokens that spell a name which was seen, by position.
#[derive(Debug, Default)]
pub(super) struct DeniedNames {
    /// The grammar of the positions, and the tokens' vocabulary.
    of: Option<(Arc<Recognizer>, Arc<PreparedVocabulary>)>,
    known: HashMap<Position, Arc<[TokenId]>>,
}

impl DeniedNames {
    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.known.len() * KNOWN_BYTES
    }

    /// Forgets all that is of another grammar or vocabulary, or too much.
    pub(super) fn turn_to(
        &mut self,
        recognizer: &Arc<Recognizer>,
        vocabulary: &Arc<PreparedVocabulary>,
    ) {
        let is_same = self.of.as_ref().is_some_and(|(known, of)| {
            Arc::ptr_eq(known, recognizer) && Arc::ptr_eq(of, vocabulary)
        });
        if !is_same || self.known.len() >= MAX_KNOWN {
            let of = Some((Arc::clone(recognizer), Arc::clone(vocabulary)));
            *self = Self { of, known: HashMap::new() };
        }
    }

    pub(super) fn get(&self, position: &Position) -> Option<&Arc<[TokenId]>> {
        self.known.get(position)
    }

    pub(super) fn insert(&mut self, position: Position, tokens: Arc<[TokenId]>) {
        self.known.insert(position, tokens);
    }
}
