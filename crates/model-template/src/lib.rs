//! Jinja templates of prompts and chats, rendered as transformers renders them.
//!
//! A [`ChatTemplate`] is the one that a model's directory carries for conversations
//! (`chat_template.jinja`, or `chat_template` of `tokenizer_config.json`), and makes one text of a
//! list of messages. A [`TextTemplate`] is a text with placeholders that says which
//! [variables](TextTemplate::variables) it reads.
//!
//! Both are run by `minijinja` with what transformers adds to Jinja: `raise_exception`,
//! `strftime_now`, `tojson` with Python's blanks, loop controls, and the methods of Python's
//! strings, lists and dictionaries. A template comes with a model and is not trusted: it reaches
//! neither files nor the clock (the caller gives [the time](Chat::now)), and its steps are counted,
//! so that none runs for ever.
//!
//! ```
//! use palmette_model_template::{Chat, ChatTemplate};
//! use serde_json::json;
//!
//! let template = ChatTemplate::from_source(
//!     "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
//! )?;
//! let messages = json!([{"role": "user", "content": " a palm leaf "}]);
//! let text = template.render(&Chat { add_generation_prompt: true, ..Chat::new(&messages) })?;
//! assert_eq!(text, "<|user|>a palm leaf<|assistant|>");
//! # Ok::<(), palmette_model_template::TemplateError>(())
//! ```
#![forbid(unsafe_code)]

mod chat;
mod environment;
mod error;
mod generation_tags;
mod python_json;
mod text;

pub use chat::{Chat, ChatTemplate, special_tokens};
pub use error::TemplateError;
pub use text::{Printed, TextTemplate, Variables};
