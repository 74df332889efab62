//! Text from a language model under a grammar: prompts, sampling, streaming, stop strings, tool
//! calls.
//!
//! A [`TextModel`] is a folder as Hugging Face has it: weights, tokenizer, chat template, end
//! tokens. A [`TextRequest`] is a prompt in tokens, what the text must fit, and how tokens are
//! drawn. [`generate`] writes one text and tells its pieces as they come:
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use std::path::Path;
//!
//! use palmette_text::{Constrained, TextEvent, TextModel, TextModelOptions, TextRequest, generate};
//! use palmette_grammar::GrammarSource;
//!
//! let model = TextModel::open(Path::new("model/"), &TextModelOptions::default())?;
//! let schema = GrammarSource::JsonSchema { text: r#"{"enum": ["red", "green"]}"#.to_owned(), options: Default::default() };
//! let mut request = TextRequest::new(model.encode_prompt("A colour, as JSON: ")?, 100);
//! let grammar = model.compile(&schema)?; // once a schema; it is kept
//! request.constraint = Constrained::by(&grammar);
//! let ended = generate(&model, &request, &mut |event| {
//!     if let TextEvent::Text(piece) = event {
//!         eprint!("{}", piece.text);
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! eprintln!("\n{} tokens, {} of them forced", ended.usage.completion_tokens, ended.usage.forced_tokens);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Questions
//! Servers, the command and programs ask by documents in the words of OpenAI and vLLM: a
//! [`ChatQuestion`](question::ChatQuestion) or a
//! [`CompletionQuestion`](question::CompletionQuestion) is checked against a model, and becomes the
//! requests to an engine.
//!
//! # Conversations
//! A [`Conversation`] is messages and tools as requests have them; [`TextModel::chat_prompt`] makes
//! a prompt of it by the model's own chat template.
//!
//! # One text, step by step
//! [`TextSequence`] is a text being written, without the model: [`settle`](TextSequence::settle)
//! moves over forced tokens, [`take_unread`](TextSequence::take_unread) gives what the model has to
//! read, [`choose`](TextSequence::choose) draws from logits. `generate` drives one with a session
//! of the model; an [`Engine`](engine::Engine) drives many, in passes that all of them share.
//!
//! # Best texts
//! [`TextBeams`] finds the best texts after a prompt by a beam search instead of drawing one; in an
//! engine ([`search_to`](engine::Engine::search_to)) its rows stand in the passes of all texts.
//!
//! # Text and tokens
//! [`Detokenizer`] gives whole characters, and holds back what may become a [stop
//! string](StopStrings). A prompt's special tokens are read by name ([`TextModel::encode_prompt`]),
//! as chat templates write them.
//!
//! # Tool calls
//! Grammars for tools come from [`sources`]; [`ToolCallReader`] finds calls in the text, by the
//! same [`ToolFormat`]s.
//!
//! Nothing here but the engine reads a clock: [`TextEvent::Stage`] tells when a stage ends, and the
//! caller may time it.
//!
//! # Life of a request
//! `POST /v1/chat/completions`; files are within `serve/src/api/text` and `text/src/engine`.
//!
//! 1. The body's members are told apart by name (`text/src/question/envelope.rs`): the question's
//!    own, those that all texts have, the envelope's, those without a meaning; others are refused.
//!    `palmette generate --chat` reads the same document.
//! 2. On a thread of its own the question is checked (`question/check.rs`): the chat template makes
//!    the prompt (`text/src/conversation` refuses what it would pass over), the tokenizer its
//!    tokens; `grammar.rs` finds the member that asks for a form and makes a grammar's source of
//!    it, which the model's cache compiles once; where the grammar names catalogs, `binding.rs`
//!    gives it their sets, pinned as they are at that moment. What comes out is the requests to the
//!    engine, or all faults.
//! 3. The engine's desk takes a `TextSequence` for each answer, or refuses it. From then on it is
//!    with one of two: a thread that makes masks (`settle`: mask, forced tokens, end), or the
//!    runner, which has it once its mask is there. A grammar's mask has a budget of steps there
//!    (`text/src/bounded.rs`), and is called off with its text.
//! 4. The runner's loop: take what came, admit, plan a pass, run it, draw. A plan has all unread
//!    tokens of texts and a share of the prompts (`shares.rs`); one pass of a `SequenceStore`
//!    computes them. Where logits and mask are both there a token is drawn, and the text goes to be
//!    settled while the next pass reads that token.
//! 5. Pieces go from the threads that made them to the connection's task, which puts them together
//!    (`answer.rs`) or sends them on (`stream.rs`); `ToolCallReader` tells words from calls.
//!    Dropping the response drops the tickets, and the runner lets go of the texts.
//!
//! # Invariants
//! - A text is the same to the token alone and beside others: its logits have the same bits in any
//!   batch (`model/src/sequence_store.rs`), however its tokens are divided among passes,
//!   and its random numbers are its own.
#![forbid(unsafe_code)]

mod beam_reader;
mod bounded_grammar;
mod conversation;
mod detokenize;
pub mod engine;
mod engine_loader;
mod error;
mod generate;
mod grammar_compiler;
mod item_beams;
mod item_search;
mod model;
mod prompt_tokens;
pub mod question;
mod request;
mod sequence;
pub mod sources;
mod stops;
mod text_beams;
mod text_search;
mod tool_calls;

pub use conversation::{Conversation, ConversationError, PromptEnd};
pub use detokenize::{Detokenizer, ReleasedText};
pub use engine_loader::EngineLoader;
pub use error::{OpenError, RequestError, RequestMember, TextCause, TextError, TokenList};
pub use generate::{TextSession, generate};
pub use grammar_compiler::GrammarCompiler;
pub use item_search::{ItemSearch, ItemSearchError, ScoredTokens, SearchedItem};
pub use model::{TextModel, TextModelOptions};
pub use palmette_bindings::Member;
pub use palmette_decode::{LengthReport, LengthRule, LogProbabilities, SamplerOptions, Stage};
pub use palmette_grammar::frontends::json_schema::Whitespace;
pub use palmette_grammar::frontends::structural_tag::ToolFormat;
pub use palmette_model_template::{ChatTemplate, TemplateError};
pub use request::{Constrained, SpecialText, TextRequest};
pub use sequence::{FinishReason, TextEnd, TextEvent, TextPiece, TextSequence, TextToken, Usage};
pub use stops::{Released, StopStrings};
pub use text_beams::{TextBeams, TextBeamsError};
pub use tool_calls::{ArgumentKinds, Piece, ToolCallReader, written_calls};
