//! A recommended item with its score.

/// An item with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommended {
    /// The item's number in the answer's [view](crate::Recommendations::view).
    pub number: u64,
    /// Sum of the log-probabilities of its codes, and of the tokens that end them, plus its boost.
    /// Items that share a semantic ID and a boost share a score.
    pub score: f32,
    /// The part of the score that the request's rules added.
    pub boost: f32,
    /// True for an item of [`must_include`](crate::Rules::must_include).
    pub pinned: bool,
}
