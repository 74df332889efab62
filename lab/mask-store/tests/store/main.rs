//! The mask store and its streamlining against the definition, executed.

mod constraint;
mod legality;
mod masks;
