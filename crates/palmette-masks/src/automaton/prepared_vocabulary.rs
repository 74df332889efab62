//! A vocabulary prepared for masks: its trie, slices of tokens made of certain bytes only, and shared residuals.

use std::sync::{Arc, Mutex, OnceLock, RwLock};

use hashbrown::HashMap;
use palmette_core::{TokenId, Vocabulary, mask};
use palmette_parser::glr::{PartialStack, TopId};
use palmette_parser::lexer::{Lexer, LexerState};
use palmette_parser::lr::StateId;
use palmette_parser::recognizer::{Recognizer, RecognizerError};
use palmette_regex::Asking;
use palmette_regex::ByteSet;

use super::super::residuals::Residuals;
use crate::vocabulary::{
    IndexedVocabulary, Numbered, Spellings, VocabularyFingerprint, VocabularyTrie,
};
use crate::{Grammar, TokenPattern};

/// Slices are kept for at most this many sets of bytes; what has more is walked whole.
const MAX_SLICES: usize = 256;

/// Residuals that grammars share take at most this much memory, but for what one more mask adds.
pub(super) const MAX_RESIDUAL_BYTES: usize = 512 << 20;

/// A vocabulary's trie, and its tokens cut by the bytes they are made of.
///
/// Inside a string nearly every byte goes on to the same lexer state, so nearly every token may follow: such tokens are
/// found once for all grammars, and only the others are walked.
#[derive(Debug)]
pub struct PreparedVocabulary {
    indexed: IndexedVocabulary,
    slices: Mutex<HashMap<ByteSet, Arc<Slice>>>,
    residuals: OnceLock<RwLock<Arc<Residuals>>>,
    asking: Asking,
    /// This vocabulary with the numbers of all tokens, for grammars that ask for tokens with text by name or number.
    numbered: OnceLock<Arc<PreparedVocabulary>>,
}

impl From<&Arc<PreparedVocabulary>> for IndexedVocabulary {
    fn from(slices: &Arc<PreparedVocabulary>) -> Self {
        slices.indexed.clone()
    }
}

impl From<Arc<PreparedVocabulary>> for IndexedVocabulary {
    fn from(slices: Arc<PreparedVocabulary>) -> Self {
        slices.indexed.clone()
    }
}

/// The tokens made of certain bytes, and the others.
#[derive(Debug)]
pub(super) struct Slice {
    mask: Vec<u32>,
    rest: VocabularyTrie,
}

impl Slice {
    /// The tokens made of these bytes only.
    pub(super) fn mask(&self) -> &[u32] {
        &self.mask
    }

    /// The others.
    pub(super) fn rest(&self) -> &VocabularyTrie {
        &self.rest
    }
}

impl PreparedVocabulary {
    /// No slice yet, but the trie.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::of(IndexedVocabulary::new(vocabulary))
    }

    fn of(indexed: IndexedVocabulary) -> Self {
        Self {
            indexed,
            slices: Mutex::default(),
            residuals: OnceLock::new(),
            asking: Asking::default(),
            numbered: OnceLock::new(),
        }
    }

    /// The vocabulary as a grammar needs it: where it asks for tokens with text by name or number, with the numbers of all tokens,
    /// which takes another trie.
    pub fn for_grammar(self: &Arc<Self>, grammar: &Grammar) -> Arc<Self> {
        let has_text = |tokens: &TokenPattern| {
            tokens.contains_any(self.vocabulary().texts().map(|(token, _)| token))
        };
        if !grammar.token_terminals().any(|(_, tokens)| has_text(tokens)) {
            return Arc::clone(self);
        }
        let vocabulary = || Arc::clone(self.vocabulary());
        let make = || IndexedVocabulary::with_numbers(vocabulary(), Numbered::All);
        Arc::clone(self.numbered.get_or_init(|| Arc::new(Self::of(make()))))
    }

    /// The spellings of its tokens.
    pub fn spellings(&self) -> &Spellings {
        self.indexed.spellings()
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.indexed.vocabulary()
    }

    /// All spellings of all tokens.
    #[doc(hidden)]
    pub fn trie(&self) -> &VocabularyTrie {
        self.indexed.trie()
    }

    /// A hash that tells the vocabulary from others; computed once.
    pub fn fingerprint(&self) -> VocabularyFingerprint {
        self.indexed.fingerprint()
    }

    /// Threads that compute something that is asked for now, by any grammar over the vocabulary: they share locks.
    pub fn asking(&self) -> &Asking {
        &self.asking
    }

    /// Residuals that grammars over the vocabulary share. When they take more than their limit, new ones begin.
    pub(super) fn residuals(&self) -> Arc<Residuals> {
        let residuals =
            self.residuals.get_or_init(|| RwLock::new(Arc::new(Residuals::new(self.trie()))));
        let current = residuals.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        if current.memory_bytes() <= MAX_RESIDUAL_BYTES {
            return Arc::clone(&current);
        }
        drop(current);
        let mut current = residuals.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        if current.memory_bytes() > MAX_RESIDUAL_BYTES {
            *current = Arc::new(Residuals::new(self.trie()));
        }
        Arc::clone(&current)
    }

    /// Words of a mask row.
    pub(super) fn num_words(&self) -> usize {
        self.indexed.num_words()
    }

    /// A trie of these tokens.
    pub(super) fn trie_of(&self, tokens: &[TokenId]) -> VocabularyTrie {
        VocabularyTrie::spelled(self.vocabulary(), self.spellings(), tokens.iter().copied())
    }

    /// The tokens that leave `lexer` as it is and may follow on every stack with `state` on top; `None` where there are
    /// few or none.
    pub(super) fn slice_of(
        &self,
        recognizer: &Recognizer,
        lexer: LexerState,
        state: StateId,
    ) -> Result<Option<Arc<Slice>>, RecognizerError> {
        let bytes = bytes_that_stay(recognizer.lexer(), lexer)?;
        if bytes.len() < 64 {
            return Ok(None);
        }
        let (mut stack, mut shifts) = (PartialStack::default(), Vec::new());
        stack.begin(&[state]);
        let tables = recognizer.parser().tables();
        for terminal in recognizer.lexer().viable_terminals(lexer).iter() {
            if recognizer.ignored().contains(terminal) {
                return Ok(self.slice(bytes));
            }
            stack.shifts(tables, &[TopId::WHOLE], Some(terminal), &mut shifts)?;
            if !shifts.is_empty() {
                return Ok(self.slice(bytes));
            }
        }
        Ok(None)
    }

    fn slice(&self, bytes: ByteSet) -> Option<Arc<Slice>> {
        let mut slices = self.slices.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = slices.get(&bytes) {
            return Some(Arc::clone(known));
        }
        if slices.len() >= MAX_SLICES {
            return None;
        }
        let mut mask = vec![0; self.num_words()];
        let mut rest = Vec::new();
        for token in (0..self.vocabulary().num_tokens() as u32).map(TokenId) {
            let text = self.vocabulary().text(token);
            if !text.is_empty() && text.iter().all(|&byte| bytes.contains(byte)) {
                mask::insert(&mut mask, token);
            } else {
                rest.push(token);
            }
        }
        let slice = Arc::new(Slice { mask, rest: self.trie_of(&rest) });
        slices.insert(bytes, Arc::clone(&slice));
        Some(slice)
    }
}

/// The bytes that lead from `state` to itself.
fn bytes_that_stay(lexer: &Lexer, state: LexerState) -> Result<ByteSet, RecognizerError> {
    let mut bytes = ByteSet::default();
    for byte in 0..=u8::MAX {
        if lexer.advance(state, byte)? == Some(state) {
            bytes.insert(byte);
        }
    }
    Ok(bytes)
}
