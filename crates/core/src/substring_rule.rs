//! Rules of substrings: which parts of documents are members of a set.

/// Unit of text at whose edges substrings begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SubstringUnit {
    /// Any characters.
    Chars,
    /// Words and single characters of punctuation: no part of a word, and no blanks at the edges.
    #[default]
    Words,
    /// Sentences: what begins a document or comes after the end of a sentence, up to such an end.
    Sentences,
}

/// Rule by which parts of documents are members: their unit, and how long they are.
///
/// A grammar names it, since it is part of what may be written; documents come with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubstringRule {
    unit: SubstringUnit,
    min: u32,
    max: Option<u32>,
}

/// A rule that no substring can follow; the message says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubstringRuleError {
    /// Substrings without a character.
    #[error("a substring has at least one character; `min` is 1 or more")]
    Empty,
    /// A lower bound over the upper one.
    #[error("no substring has at least {min} and at most {max} characters; `min` is at most `max`")]
    Bounds {
        /// Bound of the characters below.
        min: u32,
        /// Bound of the characters above.
        max: u32,
    },
}

impl SubstringUnit {
    /// Units of text, every one.
    pub const ALL: [Self; 3] = [Self::Chars, Self::Words, Self::Sentences];

    /// The name in grammars.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chars => "chars",
            Self::Words => "words",
            Self::Sentences => "sentences",
        }
    }

    /// The unit of a [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }
}

impl SubstringRule {
    /// Substrings of at least `min` and at most `max` characters.
    ///
    /// # Errors
    /// When none can be so long, or the empty one is asked for.
    pub fn new(
        unit: SubstringUnit,
        min: u32,
        max: Option<u32>,
    ) -> Result<Self, SubstringRuleError> {
        match max {
            _ if min == 0 => Err(SubstringRuleError::Empty),
            Some(max) if max < min => Err(SubstringRuleError::Bounds { min, max }),
            _ => Ok(Self { unit, min, max }),
        }
    }

    /// The unit.
    pub fn unit(self) -> SubstringUnit {
        self.unit
    }

    /// Number of characters that a substring has at least: 1 or more.
    pub fn min(self) -> u32 {
        self.min
    }

    /// Number of characters that a substring has at most, where there is a bound.
    pub fn max(self) -> Option<u32> {
        self.max
    }
}

impl From<SubstringUnit> for SubstringRule {
    /// Substrings of a unit, however long.
    fn from(unit: SubstringUnit) -> Self {
        Self { unit, min: 1, max: None }
    }
}

impl Default for SubstringRule {
    /// Whole words, however many.
    fn default() -> Self {
        SubstringUnit::default().into()
    }
}
