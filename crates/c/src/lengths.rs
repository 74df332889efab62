//! Lengths that a text may still have, as C passes them.

use palmette_core::Lengths;

/// Numbers of tokens that a text may still take, the next one among them and end tokens left out.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthsLeft {
    /// The fewest: the text does not end before. 0 where it may end at once.
    pub tokens_needed: usize,
    /// The most: the text ends in time. SIZE_MAX where it may be cut off.
    pub tokens_left: usize,
}

impl LengthsLeft {
    /// The lengths; `None` where any will do.
    pub(crate) fn lengths(self) -> Option<Lengths> {
        let Self { tokens_needed, tokens_left } = self;
        let (least, most) = (tokens_needed > 0, tokens_left < usize::MAX);
        Lengths::of(least.then_some(tokens_needed), most.then_some(tokens_left))
    }
}
