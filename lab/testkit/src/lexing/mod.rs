//! Definitions, executed, of regular expressions' matches and of cutting texts into lexemes.
//!
//! Everything is seen whole: a text with all that follows, so lookaheads need no care. Nothing is
//! fast.

mod cut;
mod matching;

pub use cut::{Cutting, cuttings, first_lexemes};
pub use matching::lexeme_ends;
