//! Kinds of the attributes that rules name.

use palmette_catalog_filter::ColumnKind;
use palmette_catalog_live::CatalogView;

use super::error::RulesError;

/// The kind of an attribute that a rule names.
pub(super) fn kind_of(
    view: &CatalogView,
    attribute: &str,
    rule: &str,
) -> Result<ColumnKind, RulesError> {
    view.kind_of(attribute).map_err(|error| RulesError::filter(rule, error))
}
