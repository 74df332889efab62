//! Readers of grammars as their authors write them; each makes a [`Grammar`](crate::Grammar).

pub mod lark;
mod span;

pub use span::Span;
