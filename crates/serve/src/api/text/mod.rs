//! Texts as OpenAI's clients ask for them, `POST /v1/chat/completions`, `POST /v1/completions` and
//! `POST /v1/responses`, and as Anthropic's do, `POST /v1/messages`.
//!
//! A body is a question in its envelope, which `palmette-text` checks on a thread where nobody
//! waits ([`request`]); the model's engine writes the texts, one for each answer wanted; what comes
//! of them is put together, or sent in parts ([`answer`]).

mod answer;
mod blocks;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod errors;
pub(crate) mod masks;
pub(crate) mod messages;
pub(crate) mod models;
pub(crate) mod places;
mod request;
pub(crate) mod responses;
mod stream;
pub(crate) mod tokens;
