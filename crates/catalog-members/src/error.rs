//! Errors of asking for a field.

use palmette_catalog::{FilterError, TokensError};

/// A set that cannot be had of a catalog; the message says why and what there is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(transparent)]
pub struct FieldError(#[from] FieldErrorKind);

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FieldErrorKind {
    #[error("field {field:?} is not there; {hint}")]
    Unknown { field: String, hint: String },
    #[error(
        "field {field:?} has the value {value}, of item {item}: members are texts, numbers, true, \
         false, times, or lists of texts"
    )]
    Value { field: String, value: String, item: String },
    #[error(
        "attribute {field:?} may have several values an item, so that items have no one group by it; name one with one value an item"
    )]
    ManyValues { field: String },
    #[error("field {field:?} cannot be indexed: item {item}: {problem}")]
    Index { field: String, item: String, problem: String },
    #[error(
        "the items have no semantic IDs, so nothing spells them as codes; name \"id\" or an attribute"
    )]
    NoCodes,
    #[error(
        "codes are tokens of a model and no texts; ask for them with the tokens that spell them"
    )]
    CodesAsTexts,
    #[error(transparent)]
    Tokens(TokensError),
    #[error(transparent)]
    Filter(#[from] FilterError),
}

impl FieldError {
    /// True if no item has such a field.
    pub fn is_unknown_field(&self) -> bool {
        matches!(self.0, FieldErrorKind::Unknown { .. })
    }

    /// The error of the filter, where it is one.
    pub fn filter(&self) -> Option<&FilterError> {
        match &self.0 {
            FieldErrorKind::Filter(error) => Some(error),
            _ => None,
        }
    }
}

impl From<FilterError> for FieldError {
    fn from(error: FilterError) -> Self {
        FieldErrorKind::Filter(error).into()
    }
}
