//! Catalogs: items, the sets that filters make of them, and beams that spell nothing else.

mod arrays;
mod bitmask;
mod build;
pub(crate) mod catalog;
mod codes;
pub(crate) mod constraint;
mod errors;
pub(crate) mod filter;
mod spelled;
mod values;

use pyo3::prelude::*;

/// Adds the classes and exceptions to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add(module)?;
    module.add_class::<catalog::Catalog>()?;
    module.add_class::<constraint::CatalogConstraint>()?;
    module.add_class::<filter::Filter>()?;
    module.add_class::<filter::ItemSet>()
}
