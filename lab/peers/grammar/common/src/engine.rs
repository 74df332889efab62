//! What an engine is to the walks.

use crate::cases::Kind;

/// An engine with a vocabulary.
pub trait Engine {
    /// The token that ends a text.
    fn end(&self) -> u32;
    /// A grammar made ready.
    fn compile(&self, kind: Kind, grammar: &str) -> anyhow::Result<Box<dyn Compiled + '_>>;
}

/// A grammar made ready.
pub trait Compiled {
    /// Before the first token.
    fn start(&self) -> Box<dyn Walk + '_>;
}

/// A position.
pub trait Walk {
    /// Makes the whole mask and says whether it has `token`.
    fn allows(&mut self, token: u32) -> bool;
    /// Moves over `token`.
    fn commit(&mut self, token: u32) -> bool;
}
