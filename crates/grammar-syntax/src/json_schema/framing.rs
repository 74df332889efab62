//! Framing of a schema's values: the text that they are a part of.

use super::argument_styles::ArgumentStyle;

/// The text that a schema's values are a part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Framing {
    /// Values that are no objects are left out: they are arguments of a call.
    pub(crate) objects: bool,
    /// The way in which an object is written.
    pub(crate) style: ArgumentStyle,
    /// At most so many blanks in a row, instead of those of [`Whitespace`](super::Whitespace).
    pub(crate) max_blanks: Option<u32>,
}
