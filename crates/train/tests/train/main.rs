//! Training as a user runs it, and its steps.

mod command;
mod draft;
mod embeddings;
#[cfg(feature = "hf-tokenizers")]
mod from_checkpoint;
#[cfg(feature = "hf-tokenizers")]
mod text_drafts;
mod tokenize;
