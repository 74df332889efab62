//! Grammars and masks together, outside the engines' own tests: blocks by indentation, tokens in
//! tags, steps of the mask store.

mod indentation;
mod tag_tokens;
