//! Languages of JSON Schemas.

mod keywords;
mod limits;
mod messages;
mod random;
mod repeated_names;
mod unique_items;
