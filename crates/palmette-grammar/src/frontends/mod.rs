//! Readers of grammars as their authors write them; each makes a [`Grammar`](crate::Grammar).

pub mod gbnf;
pub mod json_schema;
pub mod lark;
pub mod regex;
pub mod structural_tag;
mod token_references;

pub use crate::span::Span;
