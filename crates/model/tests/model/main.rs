//! The model and its draft against a reference.

mod architectures;
mod draft;
mod encoder_decoder;
mod load;
mod prompt_store;
mod reference;
mod rows;
mod sequences;
