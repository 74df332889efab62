//! Compiler of grammars over one vocabulary, with those that it has compiled.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::Vocabulary;
use palmette_grammar::{
    CacheError, CacheLimits, CompiledGrammar, GrammarCache, GrammarFolder, GrammarSource,
    PreparedVocabulary,
};

/// Compiler of grammars over one vocabulary. Equal sources are compiled once; threads that ask for
/// one that is being compiled wait for it.
#[derive(Debug)]
pub struct GrammarCompiler {
    vocabulary: Arc<PreparedVocabulary>,
    cache: GrammarCache,
}

impl GrammarCompiler {
    /// A compiler over a vocabulary, which knows no grammar yet.
    pub fn new(vocabulary: Arc<PreparedVocabulary>, limits: CacheLimits) -> Self {
        Self { vocabulary, cache: GrammarCache::new(limits) }
    }

    /// The compiler with a folder through which it shares masks with other processes.
    #[must_use]
    pub fn with_folder(self, folder: GrammarFolder) -> Self {
        Self { cache: self.cache.with_folder(folder), ..self }
    }

    /// The folder, where it has one.
    pub fn folder(&self) -> Option<&GrammarFolder> {
        self.cache.folder()
    }

    /// A compiler over a vocabulary of single bytes: for texts that people write, and no model.
    pub fn of_bytes(limits: CacheLimits) -> Self {
        let bytes = (0..=u8::MAX).map(|byte| Some([byte]));
        let vocabulary = Vocabulary::new(bytes, []).expect("256 short texts");
        Self::new(Arc::new(PreparedVocabulary::new(Arc::new(vocabulary))), limits)
    }

    /// The vocabulary, with what grammars over it share.
    pub fn vocabulary(&self) -> &Arc<PreparedVocabulary> {
        &self.vocabulary
    }

    /// About the memory that the compiled grammars take.
    pub fn bytes(&self) -> usize {
        self.cache.statistics().bytes
    }

    /// A grammar, which another thread can call off by setting the flag.
    ///
    /// # Errors
    /// When the grammar cannot be read, exceeds a limit, leaves sets open, or is one that no text
    /// fits; and when it was called off.
    pub fn compile_unless(
        &self,
        source: &GrammarSource,
        cancelled: &AtomicBool,
    ) -> Result<Arc<CompiledGrammar>, CacheError> {
        let grammar = self.compile_open(source, cancelled)?;
        match grammar.constraint.slots().first() {
            Some(slot) => Err(CacheError::Unbound { slot: slot.label() }),
            None => Ok(grammar),
        }
    }

    /// [`compile_unless`](Self::compile_unless) of a grammar that may leave sets open, which are to
    /// be [bound](palmette_grammar::GrammarConstraint::bind) before a text is written.
    ///
    /// # Errors
    /// As [`compile_unless`](Self::compile_unless).
    pub fn compile_open(
        &self,
        source: &GrammarSource,
        cancelled: &AtomicBool,
    ) -> Result<Arc<CompiledGrammar>, CacheError> {
        let grammar = self.cache.get(source, &self.vocabulary, cancelled)?.grammar;
        // A text of it would end before its first token, as if it were there.
        match grammar.constraint.recognizer().start() {
            Some(_) => Ok(grammar),
            None => Err(CacheError::NoText),
        }
    }
}
