//! Catalogs: items, the sets that filters make of them, and beams that spell nothing else.

mod answer;
mod answer_table;
mod arrays;
mod arrow;
pub(crate) mod beams;
mod bitmask;
mod build;
mod codes;
pub(crate) mod constraint;
pub(crate) mod errors;
mod files;
pub(crate) mod filter;
pub(crate) mod frozen;
mod item_codes;
pub(crate) mod live;
pub(crate) mod recommender;
mod static_tables;
mod values;
mod view_constraint;

use pyo3::prelude::*;

/// Adds the classes and exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add(module)?;
    module.add_class::<beams::Beams>()?;
    module.add_class::<frozen::Catalog>()?;
    module.add_class::<constraint::CatalogConstraint>()?;
    module.add_class::<filter::Filter>()?;
    module.add_class::<filter::ItemSet>()?;
    module.add_class::<live::LiveCatalog>()?;
    module.add_class::<live::LiveReader>()?;
    module.add_class::<recommender::Recommender>()?;
    module.add_class::<answer::Answer>()?;
    module.add_class::<answer::Recommendation>()?;
    module.add_class::<answer_table::AnswerTable>()
}
