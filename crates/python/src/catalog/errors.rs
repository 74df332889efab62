//! Exceptions of catalogs, filters and recommendations.

use palmette_catalog::{BuildError, FileError, FilterError as Refused, TokensError};
use pyo3::create_exception;
use pyo3::prelude::*;

use crate::errors::{Error, none_unless_set, with};

create_exception!(
    palmette,
    CatalogError,
    Error,
    "Items that make no catalog, or a catalog that does not fit: `line` (or row) from 1 and `item`, where one is at fault, \
     and `level` of a code."
);
create_exception!(
    palmette,
    FilterError,
    Error,
    "A filter that is none, or that asks for what the catalog does not have."
);
create_exception!(palmette, RecommendError, Error, "A request that cannot be answered.");

/// Adds the exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let catalog = py.get_type::<CatalogError>();
    none_unless_set(&catalog, &["line", "column", "item", "level"])?;
    module.add("CatalogError", catalog)?;
    module.add("FilterError", py.get_type::<FilterError>())?;
    module.add("RecommendError", py.get_type::<RecommendError>())
}

/// The exception of items that make no catalog.
pub(crate) fn of_build(py: Python<'_>, error: &BuildError) -> PyErr {
    let raised = CatalogError::new_err(error.to_string());
    let raised = with(raised, py, "line", error.line());
    with(raised, py, "item", error.id())
}

/// The exception of a catalog's file.
pub(crate) fn of_file(error: &FileError) -> PyErr {
    let message = error.to_string();
    match error.is_missing() {
        true => pyo3::exceptions::PyFileNotFoundError::new_err(message),
        false => CatalogError::new_err(message),
    }
}

/// The exception of tokens that do not spell a catalog.
pub(crate) fn of_tokens(py: Python<'_>, error: &TokensError) -> PyErr {
    let raised = CatalogError::new_err(error.to_string());
    let (level, item) = match error {
        TokensError::PastVocabulary { level, .. }
        | TokensError::TokenPastVocabulary { level, .. }
        | TokensError::RepeatedToken { level, .. } => (*level, None),
        TokensError::TooManyLevels { model, .. } => (*model, None),
        TokensError::CodeWithoutToken { level, item, .. }
        | TokensError::UnspelledCode { level, item, .. } => (*level, Some(item.as_str())),
    };
    with(with(raised, py, "level", level), py, "item", item)
}

/// The exception of a filter.
pub(crate) fn of_filter(error: &Refused) -> PyErr {
    FilterError::new_err(error.to_string())
}
