//! Draft trees as Python has them: tokens, and the place of each one's parent.

use palmette_grammar::DraftTree;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::vocabulary::{numbers_of, tokens_of};

/// Tokens with the place of the token before each.
pub(crate) type NumberedTree = (Vec<i64>, Vec<Option<usize>>);

/// Numbers of a tree, not checked against a vocabulary: parents are -1 behind the text.
pub(crate) fn numbered_tree(
    tokens: &Bound<'_, PyAny>,
    parents: &Bound<'_, PyAny>,
) -> PyResult<NumberedTree> {
    let parent = |parent: i64| {
        match parent {
        -1 => Ok(None),
        _ => usize::try_from(parent).map(Some).map_err(|_| {
            PyValueError::new_err(format!(
                "a parent is {parent}; it is the place of an earlier token of its tree, or -1 behind the text"
            ))
        }),
    }
    };
    let parents = numbers_of(parents)?.into_iter().map(parent);
    Ok((numbers_of(tokens)?, parents.collect::<PyResult<Vec<_>>>()?))
}

/// The tree over a vocabulary of so many tokens.
pub(crate) fn checked_tree(
    (tokens, parents): NumberedTree,
    num_tokens: usize,
) -> PyResult<DraftTree> {
    DraftTree::new(tokens_of(&tokens, num_tokens)?, parents)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
