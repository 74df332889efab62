//! Error of a structural tag: place, rule, interruption.

use crate::{Interrupted, Span};

/// A structural tag that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{message}", place(*.span), at(.pointer))]
pub struct StructuralTagError {
    /// The place in the source text; `None` for the whole.
    pub span: Option<Span>,
    /// The part that it is about, as a JSON pointer.
    pub pointer: String,
    /// The rule that is broken, and the way out.
    pub message: String,
    /// Interruption of the work, if the budget ran out or it was called off.
    pub interrupted: Option<Interrupted>,
}

impl StructuralTagError {
    /// This error without the place in the source text, for a document that was put into text by
    /// others than who wrote it.
    #[must_use]
    pub fn without_span(&self) -> Self {
        Self { span: None, ..self.clone() }
    }
}

fn place(span: Option<Span>) -> String {
    span.map_or(String::new(), |span| format!("{span}: "))
}

fn at(pointer: &str) -> String {
    if pointer.is_empty() { String::new() } else { format!("at {pointer:?}: ") }
}
