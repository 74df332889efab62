//! Languages of JSON Schemas.

mod closed;
mod keywords;
mod limits;
mod messages;
mod number_lengths;
mod openapi;
mod published;
mod random;
mod repeated_names;
mod unique_items;
