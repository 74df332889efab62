//! One walk over the vocabulary for each piece.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use palmette_core::{TokenId, mask};

use super::suffixes::SuffixId;
use super::{PieceId, Pieces};
use crate::regex::expressions::Exceeded;
use crate::vocabulary::VocabularyTrie;

/// What tokens do to a lexeme in progress.
#[derive(Debug)]
pub(super) struct Analysis {
    /// The tokens after which the lexeme goes on, or has just ended.
    pub(super) stay: TokenSet,
    /// What may be left of a token when the lexeme has ended within it, not at its front.
    pub(super) suffixes: Option<SuffixId>,
}

/// A set of tokens.
#[derive(Debug)]
pub(super) enum TokenSet {
    /// A mask row.
    Mask(Box<[u32]>),
    /// Few tokens.
    List(Box<[TokenId]>),
}

impl TokenSet {
    /// The set of these tokens, for a mask row of so many words.
    pub(super) fn new(tokens: Vec<TokenId>, num_words: usize) -> Self {
        if tokens.len() < num_words {
            return Self::List(tokens.into());
        }
        let mut words = vec![0; num_words];
        tokens.iter().for_each(|&token| mask::insert(&mut words, token));
        Self::Mask(words.into())
    }

    /// Adds the tokens to a mask row.
    pub(super) fn insert_into(&self, words: &mut [u32]) {
        match self {
            Self::Mask(own) => words.iter_mut().zip(own).for_each(|(word, own)| *word |= own),
            Self::List(tokens) => tokens.iter().for_each(|&token| mask::insert(words, token)),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Mask(words) => size_of_val(&**words),
            Self::List(tokens) => size_of_val(&**tokens),
        }
    }
}

impl Pieces {
    /// What tokens do to a piece, where `num_words` are those of a mask row.
    pub(super) fn analysis(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        piece: PieceId,
    ) -> Result<Arc<Analysis>, Exceeded> {
        let memo = &self.piece(piece).analysis;
        if let Some(known) = memo.get() {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(self.analyse(trie, num_words, piece)?);
        self.bytes.fetch_add(found.stay.memory_bytes(), Ordering::Relaxed);
        Ok(Arc::clone(memo.get_or_init(|| found)))
    }

    #[cold]
    fn analyse(
        &self,
        trie: &VocabularyTrie,
        num_words: usize,
        piece: PieceId,
    ) -> Result<Analysis, Exceeded> {
        let (mut stay, mut ends) = (Vec::new(), Vec::new());
        let step = |&piece: &PieceId, byte| self.advance(piece, byte);
        trie.run(piece, step, |node, &piece| {
            stay.extend_from_slice(trie.tokens_in(trie.own_ranks(node.index)));
            if self.ends(piece) && trie.end(node.index) > node.index + 1 {
                ends.push(node.index as u32);
            }
        })?;
        let suffixes = (!ends.is_empty()).then(|| self.suffixes.of(trie, &ends));
        Ok(Analysis { stay: TokenSet::new(stay, num_words), suffixes })
    }
}
