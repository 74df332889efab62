//! A model of text: weights, tokenizer, end tokens, and the grammars compiled for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use palmette_core::TokenId;
use palmette_grammar::frontends::structural_tag::ToolFormat;
use palmette_grammar::{
    CacheError, CacheLimits, CompiledGrammar, FolderLimits, GrammarFolder, GrammarSource,
    MaskBudget, PreparedVocabulary,
};
use palmette_model::SharedEngine;
use palmette_model_template::{ChatTemplate, TemplateError};
use palmette_vocabulary::{LoadOptions, LoadedVocabulary, TokenizeError, Tokenizer, load_with};

use crate::conversation::{Conversation, ConversationError};
use crate::engine_loader::EngineLoader;
use crate::error::{OpenError, OpenErrorKind};
use crate::grammar_compiler::GrammarCompiler;
use crate::prompt_tokens::{PromptTokens, TokenizerFiles};

/// Choices that a model's folder leaves open.
#[derive(Clone, Debug)]
pub struct TextModelOptions {
    /// Place and form of the weights.
    pub engine: EngineLoader,
    /// Statements about special and end tokens beside those of the files.
    pub vocabulary: LoadOptions,
    /// Limits of grammars.
    pub grammars: CacheLimits,
    /// Folder through which processes share masks of grammars.
    pub grammar_folder: Option<PathBuf>,
    /// The work that one mask of a grammar may take, in steps of some hundreds of nanoseconds; a
    /// text with a mask that takes more breaks off.
    pub mask_steps: u64,
    /// Largest number of threads of a pass, 0 as 1. Texts do not depend on it.
    pub threads: usize,
}

impl Default for TextModelOptions {
    fn default() -> Self {
        let (engine, vocabulary, grammars, grammar_folder) = Default::default();
        Self {
            engine,
            vocabulary,
            grammars,
            grammar_folder,
            mask_steps: MaskBudget::DEFAULT_STEPS,
            threads: 1,
        }
    }
}

/// A language model with all that text needs, read from a folder as Hugging Face has it.
///
/// Frozen and cheap to clone; threads share it.
#[derive(Clone)]
pub struct TextModel {
    shared: Arc<Shared>,
    chat: Arc<ChatOf>,
}

/// The chat template, or the reason why there is none; and the format of calls that it shows.
struct ChatOf {
    template: Result<ChatTemplate, TemplateError>,
    tool_format: Option<&'static ToolFormat>,
}

struct Shared {
    name: String,
    engine: SharedEngine,
    tokenizer: Tokenizer,
    prompt_tokens: PromptTokens,
    special_names: BTreeMap<TokenId, String>,
    grammars: GrammarCompiler,
    mask_steps: u64,
    threads: usize,
}

impl TextModel {
    /// Reads `config.json`, the weights, and the tokenizer (`tokenizer.json`, `tekken.json` or
    /// `tokenizer.model`) of a folder, with `tokenizer_config.json` and `generation_config.json`
    /// where they are there.
    ///
    /// # Errors
    /// When a file is missing, damaged, or asks for something that is not computed; when the
    /// tokenizer's file does not say how text is cut.
    pub fn open(dir: &Path, options: &TextModelOptions) -> Result<Self, OpenError> {
        if !dir.is_dir() {
            return Err(OpenErrorKind::NoFolder(dir.to_owned()).into());
        }
        // A path never means an encoding, even where a folder has its name.
        let path: PathBuf = if dir.is_absolute() { dir.into() } else { Path::new(".").join(dir) };
        // What is read fast goes first, so that its errors come at once.
        let files = TokenizerFiles::read(&path)?;
        let loaded = load_with(&path.to_string_lossy(), &options.vocabulary);
        let loaded = loaded.map_err(|error| match error.is_of_bare_folder() {
            true => OpenErrorKind::BareFolder(dir.to_owned()),
            false => error.into(),
        })?;
        // A build that cuts no text says so before it reads weights.
        if let Some(Err(error @ TokenizeError::LeftOut { .. })) =
            loaded.tokenizer.as_ref().map(|tokenizer| tokenizer.encode("a"))
        {
            return Err(OpenErrorKind::Tokenize(error).into());
        }
        let template = ChatTemplate::from_directory(dir);
        let source = template.as_ref().ok().map(ChatTemplate::source);
        let tool_format = source.as_deref().and_then(ToolFormat::of_template);
        let chat = ChatOf { template, tool_format };
        let engine = options.engine.load(dir)?;
        let name = dir.display().to_string();
        Self::of_parts(&name, engine, loaded, &files, chat, options)
    }

    /// A model from its parts, for programs that have them: no settings of a tokenizer beside the
    /// vocabulary, and no chat template.
    ///
    /// # Errors
    /// When the vocabulary does not say how text is cut.
    pub fn from_parts(
        name: &str,
        model: impl Into<SharedEngine>,
        vocabulary: LoadedVocabulary,
        options: &TextModelOptions,
    ) -> Result<Self, OpenError> {
        let template = ChatTemplate::from_directory(Path::new(name));
        let chat = ChatOf { template, tool_format: None };
        Self::of_parts(name, model.into(), vocabulary, &TokenizerFiles::default(), chat, options)
    }

    fn of_parts(
        name: &str,
        engine: SharedEngine,
        loaded: LoadedVocabulary,
        files: &TokenizerFiles,
        chat: ChatOf,
        options: &TextModelOptions,
    ) -> Result<Self, OpenError> {
        let named = || OpenErrorKind::NoTokenizer { name: loaded.name.clone() };
        let tokenizer = loaded.tokenizer.ok_or_else(named)?;
        let prompt_tokens = PromptTokens::new(&loaded.vocabulary, files);
        let special_names = loaded.specials.into_iter().collect();
        let vocabulary = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
        let mut grammars = GrammarCompiler::new(vocabulary, options.grammars.clone());
        if let Some(path) = &options.grammar_folder {
            let opened = GrammarFolder::open(path, FolderLimits::default());
            let folder = opened.map_err(|error| OpenErrorKind::File {
                path: path.clone(),
                reason: format!("masks cannot be shared through this folder: {error}"),
            })?;
            grammars = grammars.with_folder(folder);
        }
        Ok(Self {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                engine,
                tokenizer,
                prompt_tokens,
                special_names,
                grammars,
                mask_steps: options.mask_steps,
                threads: options.threads.max(1),
            }),
            chat: Arc::new(chat),
        })
    }

    /// Replaces the chat template, and with it the special tokens.
    ///
    /// # Errors
    /// When it is no template.
    pub fn with_chat_template(&self, source: &str) -> Result<Self, TemplateError> {
        let own = self.chat.template.as_ref().map(ChatTemplate::special_tokens);
        let tokens = own.cloned().unwrap_or_default();
        let template = ChatTemplate::from_source(source)?.with_special_tokens(tokens);
        let chat = ChatOf { template: Ok(template), tool_format: ToolFormat::of_template(source) };
        Ok(Self { shared: Arc::clone(&self.shared), chat: Arc::new(chat) })
    }

    /// The model's chat template.
    ///
    /// # Errors
    /// When the folder has none, or it is no template.
    pub fn chat_template(&self) -> Result<&ChatTemplate, &TemplateError> {
        self.chat.template.as_ref()
    }

    /// The format in which the model writes calls, as far as its chat template shows one that is
    /// known.
    pub fn tool_format(&self) -> Option<&'static ToolFormat> {
        self.chat.tool_format
    }

    /// A format of calls as this model writes it: without reasoning, where neither its chat
    /// template nor its vocabulary knows the marks of that. A model that never learned them would
    /// think its tokens away in a thought that it does not end.
    pub fn spoken(&self, format: &ToolFormat) -> ToolFormat {
        let template = self.chat.template.as_ref().ok().map(ChatTemplate::source);
        let knows = |mark: &str| {
            template.as_ref().is_some_and(|source| source.contains(mark.trim()))
                || self
                    .special_names()
                    .values()
                    .any(|name| !name.is_empty() && mark.contains(name.as_str()))
        };
        ToolFormat { reasoning: format.reasoning.filter(|(begin, _)| knows(begin)), ..*format }
    }

    /// The prompt of a conversation, as text, for [`encode_prompt`](Self::encode_prompt). `now` is
    /// the time in seconds since 1970, for templates that print the date.
    ///
    /// # Errors
    /// When the model has no chat template, the template refuses the conversation, or it is none.
    pub fn chat_prompt(
        &self,
        conversation: &Conversation,
        now: Option<i64>,
    ) -> Result<String, ConversationError> {
        match &self.chat.template {
            Ok(template) => conversation.prompt(template, now),
            Err(error) => Err(ConversationError::no_template(error)),
        }
    }

    /// The folder it was read from, or the name it was given.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The decoder, where it is computed.
    pub fn engine(&self) -> &SharedEngine {
        &self.shared.engine
    }

    /// The vocabulary, with what grammars over it share.
    pub fn vocabulary(&self) -> &Arc<PreparedVocabulary> {
        self.shared.grammars.vocabulary()
    }

    /// Cuts text into tokens, none of them special.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.shared.tokenizer
    }

    /// The tokens by which the model ends a text, ascending: of `generation_config.json`,
    /// `tokenizer_config.json` or `config.json`, else those known by name.
    pub fn end_tokens(&self) -> &[TokenId] {
        self.vocabulary().vocabulary().ends()
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
        self.shared.engine.config().max_position_embeddings
    }

    /// The work that one mask of a grammar may take.
    pub fn mask_steps(&self) -> u64 {
        self.shared.mask_steps
    }

    /// About the memory that the compiled grammars take.
    pub fn grammar_bytes(&self) -> usize {
        self.shared.grammars.bytes()
    }

    /// Largest number of threads of a pass.
    pub fn threads(&self) -> usize {
        self.shared.threads
    }

    /// The tokens of a prompt in which special tokens are written by name, as a chat template
    /// writes them.
    ///
    /// A user's text in it that spells such a name is that token, as with the tokenizers of Hugging
    /// Face.
    ///
    /// # Errors
    /// When the tokenizer cannot cut the text.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
        self.shared.prompt_tokens.encode(text, &self.shared.tokenizer)
    }

    /// The tokens of a text that the model is to go on with: as
    /// [`encode_prompt`](Self::encode_prompt), after the beginning token that the tokenizer's files
    /// ask for, unless the text begins with it.
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

    /// A grammar over the model's vocabulary. Equal sources are compiled once; threads that ask for
    /// one that is being compiled wait for it.
    ///
    /// # Errors
    /// When the grammar cannot be read, exceeds a limit, or is one that no text fits.
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
        self.shared.grammars.compile_unless(source, cancelled)
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
        self.shared.grammars.compile_open(source, cancelled)
    }

    /// The compiler of grammars over the model's vocabulary.
    pub fn grammars(&self) -> &GrammarCompiler {
        &self.shared.grammars
    }
}

impl fmt::Debug for TextModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextModel")
            .field("name", &self.shared.name)
            .field("config", self.shared.engine.config())
            .finish_non_exhaustive()
    }
}
