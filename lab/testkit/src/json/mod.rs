//! JSON for tests of schemas.
//!
//! - [`schemas`], [`values`]: random schemas, and values that may be valid for them.
//! - [`dumps`]: values as Python writes them.

mod python;
mod schemas;

pub use python::dumps;
pub use schemas::{schemas, values};
