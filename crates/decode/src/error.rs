//! Errors of a search.

use palmette_core::{Lengths, TokenId};

use crate::sampler::SampleError;

/// A search that cannot give the exact answer, and says so instead of giving another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A logits row has no distribution.
    #[error(
        "the logits of beam {beam} at step {step} have no distribution: a value is NaN or +infinity, or all are -infinity"
    )]
    BadLogits {
        /// Row of the beam.
        beam: usize,
        /// Tokens generated before.
        step: usize,
    },
    /// The source's rows are not as long as the constraint's vocabulary.
    #[error(
        "the model gives {model} logits a row, the constraint is over {constraint} tokens: they belong to different vocabularies"
    )]
    VocabularyMismatch {
        /// Logits in a row.
        model: usize,
        /// Tokens the constraint knows.
        constraint: usize,
    },
    /// The wrong number of logits was given for the live beams.
    #[error("{beams} live beams need {beams} rows of {num_tokens} logits, not {got} values")]
    ShapeMismatch {
        /// Live beams.
        beams: usize,
        /// Vocabulary size.
        num_tokens: usize,
        /// Values given.
        got: usize,
    },
    /// The constraint allows a token whose logit was not asked for.
    #[error(
        "the constraint allows token {token} at step {step}, which is not among the tokens whose logits were given: \
         ask for all that may follow"
    )]
    MissingLogit {
        /// The token.
        token: TokenId,
        /// Tokens generated before.
        step: usize,
    },
    /// A sequence that is promised to be whole needs more tokens than it may have.
    #[error(
        "no sequence of the constraint is known that is whole within {max_tokens} tokens: the shortest takes {needed}; give it {needed} \
         or more, or have it cut off (length: cut)"
    )]
    TooFewTokens {
        /// Tokens of the shortest that is known.
        needed: usize,
        /// Tokens that it may have.
        max_tokens: usize,
    },
    /// A sequence that is promised to be whole is to have more tokens than any is known to have.
    #[error(
        "no sequence of the constraint is known that takes {} tokens; one of {known} or more is: ask for {known} at least, give it more \
         at most, or have the number be a wish (length: cut)",
        Lengths { least: *min_tokens, most: *max_tokens }
    )]
    TooManyTokens {
        /// Tokens that it must have.
        min_tokens: usize,
        /// Tokens that it may have.
        max_tokens: usize,
        /// The most that it can be made to have.
        known: usize,
    },
    /// The way to the end that was counted on is not there: a defect of the constraint.
    #[error(
        "no way to the end is left at step {step}, where one was known: a defect of the constraint"
    )]
    LostWay {
        /// Tokens generated before.
        step: usize,
    },
    /// The constraint broke its first law: its mask allows a token that it does not move over.
    #[error(
        "the constraint allows token {token} at step {step} and then refuses it: what it was made from is \
         damaged; check that, and open its file with all checks"
    )]
    BrokenConstraint {
        /// The token.
        token: TokenId,
        /// Tokens generated before.
        step: usize,
    },
    /// A limit of the constraint was exceeded, so that what it allows is unknown.
    #[error("at step {step}, the constraint does not know what may follow: {why}")]
    Constraint {
        /// Tokens generated before.
        step: usize,
        /// The limit, and the way out.
        why: String,
    },
    /// No token could be drawn from a row.
    #[error("at step {step}: {error}")]
    Sample {
        /// Tokens generated before.
        step: usize,
        /// The fault of the row.
        error: SampleError,
    },
    /// The backend gave extensions that the step did not ask for.
    #[error(
        "the backend of step {step} gave {reason}; it must give the best allowed extensions, in order"
    )]
    BrokenBackend {
        /// Tokens generated before.
        step: usize,
        /// The rule that was broken.
        reason: String,
    },
    /// The caller's control ended the search.
    #[error("cancelled at step {step}")]
    Cancelled {
        /// Tokens generated before.
        step: usize,
    },
    /// The constraint allows longer sequences than the search was told to plan for.
    #[error(
        "a sequence of the set is longer than the {max_tokens} tokens this search was made for; raise max_tokens"
    )]
    TooLong {
        /// The limit given in the options.
        max_tokens: usize,
    },
}
