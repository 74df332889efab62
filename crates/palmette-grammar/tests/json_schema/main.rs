//! What JSON Schemas accept.

mod keywords;
mod limits;
#[path = "../machine/mod.rs"]
mod machine;
mod messages;
#[path = "../python_json/mod.rs"]
mod python_json;
mod random;
#[path = "../random_schemas/mod.rs"]
mod random_schemas;
mod repeated_names;
mod unique_items;
