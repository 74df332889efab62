//! The vocabulary of a model, prepared for grammars.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::TokenId;
use palmette_grammar::frontends::json_schema::JsonSchemaOptions;
use palmette_grammar::frontends::structural_tag::{
    StructuralTagError, StructuralTagOptions, ToolFormat, UnknownToolFormat,
};
use palmette_grammar::frontends::{gbnf::GbnfOptions, lark::LarkOptions, regex::RegexOptions};
use palmette_grammar::{CacheError, CacheLimits, GrammarCache, GrammarSource, PreparedVocabulary};
use palmette_vocabulary::{
    Assumption, EndsFound, LoadOptions, LoadedVocabulary, TokenizeError, Tokenizer,
    VocabularyLoadError,
};

use crate::grammar::CompiledGrammar;

/// The tokens of a model, and the grammars that were compiled over them. Cheap to clone; threads
/// share it.
///
/// Loaded once a model. Grammars over one vocabulary share what their masks have in common, so that
/// the second schema with a string in it knows strings already.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    slices: Arc<PreparedVocabulary>,
    tokenizer: Option<Arc<Tokenizer>>,
    origin: Option<Arc<Origin>>,
    cache: GrammarCache,
}

/// The part of a source's report that is not its tokens.
#[derive(Debug)]
struct Origin {
    ends: EndsFound,
    assumptions: Vec<Assumption>,
}

/// A vocabulary that cannot be loaded or used.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct VocabularyError(Kind);

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error(transparent)]
    Load(#[from] VocabularyLoadError),
    #[error(transparent)]
    Tokens(#[from] palmette_core::VocabularyError),
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
    #[error(
        "this vocabulary says what tokens spell, not how text is cut into them: load a tokenizer.json or an encoding"
    )]
    NoTokenizer,
}

impl VocabularyError {
    /// True where text cannot be cut because this build is without the code for it, not because of
    /// the text.
    pub fn is_left_out(&self) -> bool {
        matches!(self.0, Kind::Tokenize(TokenizeError::LeftOut { .. }))
    }
}

impl Vocabulary {
    /// A tiktoken encoding by name, such as `o200k_base`.
    ///
    /// # Errors
    /// When there is none of this name; the message lists them.
    pub fn encoding(name: &str) -> Result<Self, VocabularyError> {
        Self::load(name, &LoadOptions::default())
    }

    /// A file or folder: a Hugging Face `tokenizer.json`, Mistral's `tekken.json`, a SentencePiece
    /// model, a tiktoken file, or a list of pieces.
    ///
    /// # Errors
    /// When it cannot be read, or spells tokens in a way that does not give them bytes of their
    /// own.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, VocabularyError> {
        Self::open_with(path, &LoadOptions::default())
    }

    /// [`open`](Self::open) with special and end tokens that the file does not state.
    ///
    /// # Errors
    /// When [`open`](Self::open) fails, or the options name a token that is none.
    pub fn open_with(
        path: impl AsRef<Path>,
        options: &LoadOptions,
    ) -> Result<Self, VocabularyError> {
        let path = path.as_ref();
        // A path never means an encoding, even where a file has its name.
        let inside = Path::new(".").join(path);
        let path = if path.is_absolute() { path } else { &inside };
        Self::load(&path.to_string_lossy(), options)
    }

    /// Tokens given one by one: `tokens[t]` are the bytes of token `t`, `None` for a special token;
    /// `ends` are the tokens by which the model stops.
    ///
    /// # Errors
    /// When an end token is not in the vocabulary or has text.
    pub fn from_tokens<B: AsRef<[u8]>>(
        tokens: impl IntoIterator<Item = Option<B>>,
        ends: impl IntoIterator<Item = TokenId>,
    ) -> Result<Self, VocabularyError> {
        let vocabulary = palmette_core::Vocabulary::new(tokens, ends);
        let vocabulary = vocabulary.map_err(|error| VocabularyError(error.into()))?;
        Ok(Self::of(Arc::new(vocabulary), None, None))
    }

    /// A vocabulary of the same tokens whose grammars are compiled and kept within these limits; it
    /// begins with none.
    #[must_use]
    pub fn with_limits(&self, limits: CacheLimits) -> Self {
        let (slices, tokenizer) = (Arc::clone(&self.shared.slices), self.shared.tokenizer.clone());
        let (origin, cache) = (self.shared.origin.clone(), GrammarCache::new(limits));
        Self { shared: Arc::new(Shared { slices, tokenizer, origin, cache }) }
    }

    /// The grammars that were compiled over it, as long as they are kept.
    pub fn cache(&self) -> &GrammarCache {
        &self.shared.cache
    }

    fn load(name: &str, options: &LoadOptions) -> Result<Self, VocabularyError> {
        let loaded = palmette_vocabulary::load_with(name, options);
        Ok(loaded.map_err(|error| VocabularyError(error.into()))?.into())
    }

    fn of(
        vocabulary: Arc<palmette_core::Vocabulary>,
        tokenizer: Option<Arc<Tokenizer>>,
        origin: Option<Arc<Origin>>,
    ) -> Self {
        let slices = Arc::new(PreparedVocabulary::new(vocabulary));
        let cache = GrammarCache::new(CacheLimits::default());
        Self { shared: Arc::new(Shared { slices, tokenizer, origin, cache }) }
    }

    /// Size of the vocabulary: logits rows and masks have as many places.
    pub fn num_tokens(&self) -> usize {
        self.tokens().num_tokens()
    }

    /// The bytes of a token; empty for special ones, and for ids that no token has.
    pub fn text(&self, token: TokenId) -> &[u8] {
        match token.index() < self.num_tokens() {
            true => self.tokens().text(token),
            false => &[],
        }
    }

    /// The bytes of several tokens, one after another.
    pub fn decode(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| self.text(token)).copied().collect()
    }

    /// The tokens of a text, as the vocabulary's own tokenizer cuts it.
    ///
    /// # Errors
    /// When the source of the vocabulary has no tokenizer, or it cannot give this text back.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, VocabularyError> {
        let tokenizer = self.shared.tokenizer.as_ref();
        let tokens = tokenizer.ok_or(VocabularyError(Kind::NoTokenizer))?.encode(text);
        tokens.map_err(|error| VocabularyError(error.into()))
    }

    /// The tokens by which the model stops, ascending.
    pub fn ends(&self) -> &[TokenId] {
        self.tokens().ends()
    }

    /// The way the end tokens were found; `None` where the tokens were given one by one.
    pub fn ends_found(&self) -> Option<&EndsFound> {
        self.shared.origin.as_ref().map(|origin| &origin.ends)
    }

    /// Statements about special tokens that the vocabulary's source does not make, and that were
    /// taken to hold.
    pub fn assumptions(&self) -> &[Assumption] {
        self.shared.origin.as_ref().map_or(&[], |origin| &origin.assumptions)
    }

    /// Texts that a JSON Schema validates, with the default options: members in any order,
    /// whitespace free.
    ///
    /// # Errors
    /// When the schema is none, asks for what no grammar can express, or exceeds a limit.
    pub fn json_schema(&self, schema: &str) -> Result<CompiledGrammar, CacheError> {
        let (text, options) = (schema.to_owned(), JsonSchemaOptions::default());
        self.compile(&GrammarSource::JsonSchema { text, options })
    }

    /// Texts of a Lark grammar, from its rule `start`.
    ///
    /// # Errors
    /// When the grammar cannot be read, or exceeds a limit.
    pub fn lark(&self, grammar: &str) -> Result<CompiledGrammar, CacheError> {
        let (text, options) = (grammar.to_owned(), LarkOptions::default());
        self.compile(&GrammarSource::Lark { text, options })
    }

    /// Texts of a GBNF grammar (llama.cpp, XGrammar), from its rule `root`.
    ///
    /// # Errors
    /// As [`lark`](Self::lark).
    pub fn gbnf(&self, grammar: &str) -> Result<CompiledGrammar, CacheError> {
        let (text, options) = (grammar.to_owned(), GbnfOptions::default());
        self.compile(&GrammarSource::Gbnf { text, options })
    }

    /// Texts of a structural tag (XGrammar, vLLM): free text in which triggers begin regions that
    /// schemas or grammars hold.
    ///
    /// # Errors
    /// When the document is none, a schema or grammar in it is refused, or a limit is exceeded.
    pub fn structural_tag(&self, document: &str) -> Result<CompiledGrammar, CacheError> {
        let (text, options) = (document.to_owned(), StructuralTagOptions::default());
        self.compile(&GrammarSource::StructuralTag { text, options })
    }

    /// Answers to a request with tools, as OpenAI's and Anthropic's interfaces define them
    /// (`tools`, `tool_choice`, `parallel_tool_calls`, `response_format`), in the text format of a
    /// family of models, such as `hermes` (Qwen3), `qwen_xml` (Qwen3-Coder), `kimi_k2` or `harmony`
    /// (gpt-oss).
    ///
    /// ```
    /// # #[cfg(feature = "encodings")] {
    /// let tokens = palmette::Vocabulary::encoding("o200k_base")?;
    /// let tools = r#"[{"name": "now", "input_schema": {"enum": [{}]}}]"#;
    /// let mut matcher = tokens.tools(tools, "hermes")?.matcher();
    /// matcher.commit_bytes(b"One moment. <tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>")?;
    /// assert!(matcher.is_accepting()?);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the format is not known, the request is none, or its schemas are refused.
    pub fn tools(&self, request: &str, format: &str) -> Result<CompiledGrammar, CacheError> {
        let unknown = |error: UnknownToolFormat| StructuralTagError {
            span: None,
            pointer: String::new(),
            message: error.to_string(),
            interrupted: None,
        };
        let format = *ToolFormat::of_name(format)
            .map_err(|error| CacheError::Source(Arc::new(unknown(error).into())))?;
        let (text, options) = (request.to_owned(), StructuralTagOptions::default());
        self.compile(&GrammarSource::Tools { text, format, options })
    }

    /// Texts that a regular expression matches from beginning to end.
    ///
    /// # Errors
    /// As [`lark`](Self::lark).
    pub fn regex(&self, pattern: &str) -> Result<CompiledGrammar, CacheError> {
        let (text, options) = (pattern.to_owned(), RegexOptions::default());
        self.compile(&GrammarSource::Regex { text, options })
    }

    /// A grammar in any language and with any options. Equal sources are compiled once; threads
    /// that ask for one that is being compiled wait for it.
    ///
    /// # Errors
    /// As [`lark`](Self::lark).
    pub fn compile(&self, source: &GrammarSource) -> Result<CompiledGrammar, CacheError> {
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
    ) -> Result<CompiledGrammar, CacheError> {
        let found = self.shared.cache.get(source, &self.shared.slices, cancelled)?;
        Ok(CompiledGrammar::new(found.grammar, self.clone()))
    }

    /// The vocabulary with what grammars over it share, for the engine crates.
    pub fn slices(&self) -> &Arc<PreparedVocabulary> {
        &self.shared.slices
    }

    fn tokens(&self) -> &palmette_core::Vocabulary {
        self.shared.slices.vocabulary()
    }
}

/// A vocabulary that was loaded, and perhaps altered, by the crate below.
impl From<LoadedVocabulary> for Vocabulary {
    fn from(loaded: LoadedVocabulary) -> Self {
        let origin = Origin { ends: loaded.ends, assumptions: loaded.assumptions };
        Self::of(loaded.vocabulary, loaded.tokenizer.map(Arc::new), Some(Arc::new(origin)))
    }
}
