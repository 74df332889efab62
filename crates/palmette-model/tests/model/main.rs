//! The model and its draft against a reference.

mod draft;
mod reference;
mod rows;
