//! The mask store: for each lexer state, which sequences of terminals each token can spell.
mod interchange;
mod legality;
mod reading;
mod rules;
mod successors;

pub use interchange::Interchange;
pub use legality::Legality;
pub use successors::Successors;
