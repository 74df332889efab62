//! A model of text: weights, tokenizer, end tokens, and the grammars compiled for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::TokenId;
use palmette_grammar::{
    CacheError, CacheLimits, CompiledGrammar, GrammarCache, GrammarSource, VocabularySlices,
};
use palmette_model::{Model, WeightFormat};
use palmette_vocabulary::{LoadOptions, LoadedVocabulary, TokenizeError, Tokenizer, load_with};

use crate::error::{OpenError, OpenErrorKind};
use crate::prompt_tokens::{PromptTokens, TokenizerFiles};

/// Choices that a model's folder leaves open.
#[derive(Clone, Debug, Default)]
pub struct TextModelOptions {
    /// How weights are kept.
    pub weights: WeightFormat,
    /// Statements about special and end tokens beside those of the files.
    pub vocabulary: LoadOptions,
    /// Limits of grammars.
    pub grammars: CacheLimits,
    /// Most threads of a pass, 0 as 1; texts do not depend on it.
    pub threads: usize,
}

/// A language model with all that text needs, read from a folder as Hugging Face has it.
///
/// Frozen and cheap to clone; threads share it.
#[derive(Clone)]
pub struct TextModel {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    model: Arc<Model>,
    slices: Arc<VocabularySlices>,
    tokenizer: Tokenizer,
    prompt_tokens: PromptTokens,
    special_names: BTreeMap<TokenId, String>,
    grammars: GrammarCache,
    threads: usize,
}

impl TextModel {
    /// Reads `config.json`, the weights, and the tokenizer (`tokenizer.json`, `tekken.json` or `tokenizer.model`) of a folder, with
    /// `tokenizer_config.json` and `generation_config.json` where they are there.
    ///
    /// # Errors
    /// When a file is missing, damaged, or asks for something that is not computed; when the tokenizer's file does not say how
    /// text is cut.
    pub fn open(dir: &Path, options: &TextModelOptions) -> Result<Self, OpenError> {
        if !dir.is_dir() {
            return Err(OpenErrorKind::NoFolder(dir.to_owned()).into());
        }
        // A path never means an encoding, even where a folder has its name.
        let path: PathBuf = if dir.is_absolute() { dir.into() } else { Path::new(".").join(dir) };
        // What is read fast goes first, so that its errors come at once.
        let files = TokenizerFiles::read(&path)?;
        let loaded = load_with(&path.to_string_lossy(), &options.vocabulary)?;
        let model = Model::load(dir)?.with_weights(options.weights);
        Self::of_parts(&dir.display().to_string(), Arc::new(model), loaded, &files, options)
    }

    /// A model from its parts, for programs that have them: no settings of a tokenizer beside the vocabulary.
    ///
    /// # Errors
    /// When the vocabulary does not say how text is cut.
    pub fn from_parts(
        name: &str,
        model: Arc<Model>,
        vocabulary: LoadedVocabulary,
        options: &TextModelOptions,
    ) -> Result<Self, OpenError> {
        Self::of_parts(name, model, vocabulary, &TokenizerFiles::default(), options)
    }

    fn of_parts(
        name: &str,
        model: Arc<Model>,
        loaded: LoadedVocabulary,
        files: &TokenizerFiles,
        options: &TextModelOptions,
    ) -> Result<Self, OpenError> {
        let named = || OpenErrorKind::NoTokenizer { name: loaded.name.clone() };
        let tokenizer = loaded.tokenizer.ok_or_else(named)?;
        let prompt_tokens = PromptTokens::new(&loaded.vocabulary, files);
        let special_names = loaded.specials.into_iter().collect();
        let slices = Arc::new(VocabularySlices::new(loaded.vocabulary));
        Ok(Self {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                model,
                slices,
                tokenizer,
                prompt_tokens,
                special_names,
                grammars: GrammarCache::new(options.grammars.clone()),
                threads: options.threads.max(1),
            }),
        })
    }

    /// The folder it was read from, or the name it was given.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The decoder.
    pub fn model(&self) -> &Arc<Model> {
        &self.shared.model
    }

    /// The vocabulary, with what grammars over it share.
    pub fn vocabulary(&self) -> &Arc<VocabularySlices> {
        &self.shared.slices
    }

    /// Cuts text into tokens, none of them special.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.shared.tokenizer
    }

    /// The tokens by which the model ends a text, ascending: of `generation_config.json`, `tokenizer_config.json` or
    /// `config.json`, else those known by name.
    pub fn end_tokens(&self) -> &[TokenId] {
        self.shared.slices.vocabulary().ends()
    }

    /// The name of a special token, such as `<|im_end|>`.
    pub fn special_name(&self, token: TokenId) -> Option<&str> {
        self.shared.special_names.get(&token).map(String::as_str)
    }

    /// The special tokens that have names.
    pub fn special_names(&self) -> &BTreeMap<TokenId, String> {
        &self.shared.special_names
    }

    /// Tokens that the model reads at most, prompt and text together.
    pub fn context_length(&self) -> usize {
        self.shared.model.config().max_position_embeddings
    }

    /// Most threads of a pass.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// The tokens of a prompt in which special tokens are written by name, as a chat template writes them.
    ///
    /// A user's text in it that spells such a name is that token, as with the tokenizers of Hugging Face.
    ///
    /// # Errors
    /// When the tokenizer cannot cut the text.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
        self.shared.prompt_tokens.encode(text, &self.shared.tokenizer)
    }

    /// The tokens of a text that the model is to go on with: as [`encode_prompt`](Self::encode_prompt), after the beginning token that
    /// the tokenizer's files ask for, unless the text begins with it.
    ///
    /// # Errors
    /// When the tokenizer cannot cut the text.
    pub fn encode_text(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
        let mut tokens = self.encode_prompt(text)?;
        if let Some(begin) = self.shared.prompt_tokens.begin()
            && tokens.first() != Some(&begin)
        {
            tokens.insert(0, begin);
        }
        Ok(tokens)
    }

    /// A grammar over the model's vocabulary. Equal sources are compiled once; threads that ask for one that is being compiled
    /// wait for it.
    ///
    /// # Errors
    /// When the grammar cannot be read, or exceeds a limit.
    pub fn compile(&self, source: &GrammarSource) -> Result<Arc<CompiledGrammar>, CacheError> {
        self.compile_unless(source, &AtomicBool::new(false))
    }

    /// [`compile`](Self::compile) that another thread can call off by setting the flag.
    ///
    /// # Errors
    /// As [`compile`](Self::compile), and when it was called off.
    pub fn compile_unless(
        &self,
        source: &GrammarSource,
        cancelled: &AtomicBool,
    ) -> Result<Arc<CompiledGrammar>, CacheError> {
        Ok(self.shared.grammars.get(source, &self.shared.slices, cancelled)?.grammar)
    }
}

impl fmt::Debug for TextModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextModel")
            .field("name", &self.shared.name)
            .field("config", self.shared.model.config())
            .finish_non_exhaustive()
    }
}
