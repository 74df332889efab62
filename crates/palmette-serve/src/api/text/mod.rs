//! Texts as OpenAI's clients ask for them: `POST /v1/chat/completions`, `POST /v1/completions` and `POST /v1/responses`.
//!
//! A body becomes a prompt, a grammar and the options of a sampler ([`request`]); the model's engine writes the texts, one for
//! each answer wanted; what comes of them is put together, or sent in parts ([`answer`]).

mod answer;
mod body;
pub(crate) mod chat;
pub(crate) mod completions;
mod constraint;
pub(crate) mod errors;
pub(crate) mod masks;
pub(crate) mod models;
mod request;
pub(crate) mod responses;
mod stream;
pub(crate) mod tokens;
