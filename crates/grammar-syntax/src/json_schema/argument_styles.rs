//! Styles of arguments: JSON, parameters between marks, keywords, and notations like JSON.

use super::parameter_styles::ParameterStyle;
use crate::Symbol;

/// A way of writing the arguments of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ArgumentStyle {
    /// An object in JSON.
    #[default]
    Json,
    /// Parameters between marks: texts as they are, other values in JSON.
    Parameters(&'static ParameterStyle),
    /// Keywords as Python has them: `city="Oslo", days=3`.
    Keywords,
    /// An object in a notation of a family's own.
    Notated(&'static ValueNotation),
}

/// A notation of values that differs from JSON's in strings, names and words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueNotation {
    /// The text before and after a string, which is written as it is between them; empty where
    /// strings are JSON's.
    pub quote: &'static str,
    /// True where strings may stand in single quotes, too.
    pub single_quotes: bool,
    /// True where names of members stand without quotes.
    pub bare_names: bool,
    /// Words for null, true and false.
    pub words: [&'static str; 3],
}

/// JSON's own notation.
pub(crate) const JSON: ValueNotation = ValueNotation {
    quote: "",
    single_quotes: false,
    bare_names: false,
    words: ["null", "true", "false"],
};

/// The notation of values in keywords: Python's, with strings as in JSON.
const PYTHON: ValueNotation =
    ValueNotation { single_quotes: true, words: ["None", "True", "False"], ..JSON };

/// The notation of Gemma 4: `{city:<|"|>Oslo<|"|>,days:3}`.
pub(crate) const GEMMA: ValueNotation = ValueNotation { quote: "<|\"|>", bare_names: true, ..JSON };

/// The notation of FunctionGemma: `{city:<escape>Oslo<escape>,days:3}`.
pub(crate) const FUNCTION_GEMMA: ValueNotation = ValueNotation { quote: "<escape>", ..GEMMA };

impl ArgumentStyle {
    /// The notation of values within the arguments.
    pub fn notation(&self) -> &'static ValueNotation {
        match self {
            Self::Json | Self::Parameters(_) => &JSON,
            Self::Keywords => &PYTHON,
            Self::Notated(notation) => notation,
        }
    }

    /// Marks around parameters, where they stand between such.
    pub fn parameters(&self) -> Option<&'static ParameterStyle> {
        match self {
            Self::Parameters(style) => Some(style),
            Self::Json | Self::Keywords | Self::Notated(_) => None,
        }
    }
}

/// Parameters or keywords that are being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Marks around them; `None` for keywords.
    pub(super) style: Option<&'static ParameterStyle>,
    /// A nonterminal of the empty text, where JSON has braces.
    pub(super) empty: Symbol,
    /// The text between two of them.
    pub(super) comma: Symbol,
    /// A nonterminal of blanks, or none.
    pub(super) blanks: Symbol,
}
