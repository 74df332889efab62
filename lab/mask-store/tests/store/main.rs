//! The mask store and its streamlining against the definition, executed.

mod legality;
#[path = "../../examples/streamline/long_steps/mod.rs"]
mod long_steps;
mod masks;
