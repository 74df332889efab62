//! A vocabulary prepared for masks: its trie, and the residuals that grammars over it share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use palmette_core::{TokenId, Vocabulary, VocabularyTrie, mask};
use palmette_grammar_parser::SlotKind;
use palmette_grammar_regex::Askers;
use palmette_grammar_regex::expressions::Horizon;

use crate::residuals::Residuals;
use crate::vocabulary::{
    LineBlanks, LineEndTail, NameTokens, NumberedTokens, Spellings, VocabularyFingerprint,
};
use crate::{Grammar, TokenPattern};

/// Residuals that grammars share take at most this much memory, but for what one more mask adds.
pub(super) const MAX_RESIDUAL_BYTES: usize = 512 << 20;

/// A vocabulary with its trie, and the residuals that grammars over it share.
#[derive(Debug)]
pub struct PreparedVocabulary {
    vocabulary: Arc<Vocabulary>,
    spellings: Spellings,
    trie: VocabularyTrie,
    horizon: Horizon,
    names: OnceLock<NameTokens>,
    line_blanks: OnceLock<[LineBlanks; 3]>,
    fingerprint: OnceLock<VocabularyFingerprint>,
    residuals: OnceLock<RwLock<Arc<Residuals>>>,
    asking: Askers,
    /// This vocabulary with the numbers of all tokens, for grammars that ask for tokens with text
    /// by name or number.
    numbered: OnceLock<Arc<PreparedVocabulary>>,
    /// Masks of all grammars that were found by walking the trie.
    walks: AtomicU64,
}

impl PreparedVocabulary {
    /// The trie, and no residual yet.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::with_numbers(vocabulary, NumberedTokens::Special)
    }

    /// With the numbers of some tokens.
    fn with_numbers(vocabulary: Arc<Vocabulary>, numbered: NumberedTokens) -> Self {
        let spellings = Spellings::new(&vocabulary, numbered);
        let tokens = (0..vocabulary.num_tokens() as u32).map(TokenId);
        let trie = spellings.to_trie(&vocabulary, tokens);
        let texts = vocabulary.texts().map(|(_, text)| text);
        Self {
            horizon: Horizon::of_texts(trie.max_depth() as u32, texts),
            trie,
            vocabulary,
            spellings,
            names: OnceLock::new(),
            line_blanks: OnceLock::new(),
            fingerprint: OnceLock::new(),
            residuals: OnceLock::new(),
            asking: Askers::default(),
            numbered: OnceLock::new(),
            walks: AtomicU64::new(0),
        }
    }

    /// The vocabulary as a grammar needs it: where it asks for tokens with text by name or number,
    /// with the numbers of all tokens, which takes another trie.
    pub fn for_grammar(self: &Arc<Self>, grammar: &Grammar) -> Arc<Self> {
        let has_text = |tokens: &TokenPattern| {
            tokens.contains_any(self.vocabulary().texts().map(|(token, _)| token))
        };
        // Tokens that spell codes may have text: only a binding knows them.
        let may_ask = grammar.slots().iter().any(|slot| slot.kind == SlotKind::Codes)
            || grammar.token_terminals().any(|(_, tokens)| has_text(tokens));
        if !may_ask {
            return Arc::clone(self);
        }
        let vocabulary = || Arc::clone(self.vocabulary());
        let make = || Arc::new(Self::with_numbers(vocabulary(), NumberedTokens::All));
        Arc::clone(self.numbered.get_or_init(make))
    }

    /// Horizon of the tokens.
    pub(crate) fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// The tokens that begin names, found when they are first asked for.
    pub fn name_tokens(&self) -> &NameTokens {
        self.names.get_or_init(|| NameTokens::new(&self.vocabulary, &self.trie))
    }

    /// Runs of blanks that tell how deep lines are, by what lines' ends go on with; found when they
    /// are first asked for.
    pub(crate) fn line_blanks(&self) -> &[LineBlanks; 3] {
        let make = |taken| LineBlanks::new(&self.vocabulary, taken);
        self.line_blanks.get_or_init(|| LineEndTail::ALL.map(make))
    }

    /// Counts a mask that was found by walking the trie.
    pub fn count_walk(&self) {
        self.walks.fetch_add(1, Ordering::Relaxed);
    }

    /// Masks of grammars over it that were found by walking its trie, where the automaton took more
    /// work or memory than it may.
    pub fn walks(&self) -> u64 {
        let numbered = self.numbered.get().map_or(0, |numbered| numbered.walks());
        self.walks.load(Ordering::Relaxed) + numbered
    }

    /// The spellings of its tokens.
    pub fn spellings(&self) -> &Spellings {
        &self.spellings
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// All spellings of all tokens.
    #[doc(hidden)]
    pub fn trie(&self) -> &VocabularyTrie {
        &self.trie
    }

    /// A hash that tells the vocabulary from others; computed once.
    pub fn fingerprint(&self) -> VocabularyFingerprint {
        *self.fingerprint.get_or_init(|| VocabularyFingerprint::of(&self.vocabulary))
    }

    /// Threads that compute something that is asked for now, by any grammar over the vocabulary:
    /// they share locks.
    pub fn asking(&self) -> &Askers {
        &self.asking
    }

    /// Residuals that grammars over the vocabulary share. When they take more than their limit, new
    /// ones begin.
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
        mask::num_words(self.vocabulary.num_tokens())
    }
}
