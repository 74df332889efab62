//! Grammars and masks together, outside the engines' own tests: blocks by indentation, tokens in tags, steps of the mask store.

mod indentation;
mod legality;
#[path = "../../examples/streamline/long_steps/mod.rs"]
mod long_steps;
mod tag_tokens;
