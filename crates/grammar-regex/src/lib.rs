//! Regular expressions over text, and their Brzozowski derivatives.
//!
//! - A [`Regex`] is a plain tree, the set of texts that a terminal matches; [`parse`] makes it from
//!   the dialects of Python, ECMAScript and the `regex` crate, [`tokens`] for tokens that a grammar
//!   asks for by name or number.
//! - [`expressions`] are trees compiled to bytes and *hash-consed*: equal ones are one number. The *derivative*
//!   of an expression by a byte is the expression of what remains to be matched after it; bytes
//!   with equal derivatives are a class. So an expression is a state of a lazy DFA, and
//!   intersection, complement, counts and lookarounds need no automata of their own.
//! - A [`Budget`] bounds the work in steps and can call it off.
//!
//! Source: J. A. Brzozowski, "Derivatives of Regular Expressions" (1964); S. Owens, J. Reppy, A.
//! Turon, "Regular-expression derivatives re-examined" (2009), for classes of bytes and
//! simplification. We differ: an expression may ask something of the text that follows its lexeme,
//! a condition.
//!
//! # Decisions
//! - **Derivatives instead of ready-made automata.** The lexer's states are expressions, and a byte
//!   leads to their derivatives. With `regex-automata` each terminal would be a DFA built ahead of
//!   time; but schemas need intersection and complement (`pattern` with `format`, `not`), Lark
//!   needs lookarounds, and `maxLength: 100000` would be 100,000 states. As expressions the first
//!   are nodes like others, and a count is a number in a node. Source: the derivatives of
//!   Brzozowski (1964), extended by what must follow a lexeme.
#![forbid(unsafe_code)]

mod byte_set;
mod char_class;
pub mod expressions;
mod fingerprint;
mod first_bytes;
mod memory;
mod multiple;
pub mod parse;
pub mod tokens;

use std::sync::Arc;

pub use byte_set::ByteSet;
pub use char_class::CharClass;
pub use fingerprint::fingerprint;
pub use memory::CountedParts;
pub use multiple::Multiple;
pub use palmette_core::{Askers, Budget, Interrupted};
pub use tokens::{TokenError, TokenPart, TokenPattern};

/// A set of texts (UTF-8 strings).
///
/// A plain tree: shared subtrees are `Arc`s, nothing is simplified or interned here. The
/// constructors ([`concat`](Self::concat), …) drop what is trivial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Regex {
    /// No text at all.
    Never,
    /// The empty text.
    Empty,
    /// This text.
    Literal(Arc<str>),
    /// One character of a class.
    Class(CharClass),
    /// Concatenation.
    Concat(Arc<[Regex]>),
    /// Union.
    Alternate(Arc<[Regex]>),
    /// `min` to `max` times (`None`: without end).
    Repeat {
        /// Expression that is repeated.
        inner: Arc<Regex>,
        /// The least number of times.
        min: u32,
        /// The greatest number of times.
        max: Option<u32>,
        /// True when it is written with a reluctant quantifier (`*?`): the terminal then ends at
        /// the first place at which it can, as a backtracking matcher would end it.
        reluctant: bool,
    },
    /// The digits of the multiples of a number.
    Multiple(Multiple),
    /// Intersection.
    And(Arc<[Regex]>),
    /// Every text but these.
    Not(Arc<Regex>),
    /// Matches the empty text where what follows (or, with `behind`, precedes) does or does not
    /// match.
    Look {
        /// Expression that is looked for: for a lookahead a beginning of what follows, to the end
        /// of the lexeme and beyond it; for a lookbehind an end of the text before this place, that
        /// of earlier lexemes too.
        inner: Arc<Regex>,
        /// True when it looks at what precedes.
        behind: bool,
        /// True when a match forbids.
        negated: bool,
    },
    /// A text by itself, whatever is beside it: lookarounds within see that text alone. Among them
    /// a lookbehind is for all that is before its place, not for some end of it.
    Whole(Arc<Regex>),
    /// One token of a set, whatever its text. It matches no text, and stands alone as a terminal.
    Tokens(TokenPattern),
}

impl Regex {
    /// This text.
    pub fn literal(text: &str) -> Self {
        if text.is_empty() { Self::Empty } else { Self::Literal(text.into()) }
    }

    /// The concatenation of parts.
    pub fn concat(parts: impl IntoIterator<Item = Regex>) -> Self {
        let mut kept: Vec<_> = parts.into_iter().filter(|part| *part != Self::Empty).collect();
        if kept.contains(&Self::Never) {
            return Self::Never;
        }
        match kept.len() {
            0 => Self::Empty,
            1 => kept.remove(0),
            _ => Self::Concat(kept.into()),
        }
    }

    /// The union of options.
    pub fn alternate(options: impl IntoIterator<Item = Regex>) -> Self {
        let mut kept: Vec<_> =
            options.into_iter().filter(|option| *option != Self::Never).collect();
        match kept.len() {
            0 => Self::Never,
            1 => kept.remove(0),
            _ => Self::Alternate(kept.into()),
        }
    }

    /// `min` to `max` times (`None`: without end), as often as it goes.
    pub fn repeat(self, min: u32, max: Option<u32>) -> Self {
        match (min, max) {
            (_, Some(0)) => Self::Empty,
            (1, Some(1)) => self,
            _ => Self::Repeat { inner: Arc::new(self), min, max, reluctant: false },
        }
    }

    /// Once or not at all.
    pub fn optional(self) -> Self {
        self.repeat(0, Some(1))
    }

    /// The intersection of parts.
    pub fn and(parts: impl IntoIterator<Item = Regex>) -> Self {
        let mut kept: Vec<_> = parts.into_iter().collect();
        if kept.contains(&Self::Never) {
            return Self::Never;
        }
        if kept.len() == 1 { kept.remove(0) } else { Self::And(kept.into()) }
    }

    /// Every text but these.
    pub fn complement(inner: Regex) -> Self {
        Self::Not(Arc::new(inner))
    }

    /// Any text, of any characters.
    pub fn anything() -> Self {
        Self::Class(CharClass::any()).repeat(0, None)
    }
}
