//! Training as a user runs it, and its steps.

mod command;
mod draft;
mod embeddings;
mod tokenize;
