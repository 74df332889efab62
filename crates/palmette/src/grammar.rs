//! A grammar over a vocabulary, compiled.

use std::sync::Arc;

use palmette_grammar::GrammarConstraint;

use crate::matcher::Matcher;
use crate::vocabulary::Vocabulary;

/// A grammar made ready to mask the tokens of a vocabulary. Frozen and cheap to clone; threads
/// share it.
#[derive(Clone, Debug)]
pub struct CompiledGrammar {
    cached: Arc<palmette_grammar::CompiledGrammar>,
    vocabulary: Vocabulary,
}

impl CompiledGrammar {
    pub(crate) fn new(
        cached: Arc<palmette_grammar::CompiledGrammar>,
        vocabulary: Vocabulary,
    ) -> Self {
        Self { cached, vocabulary }
    }

    /// Follows one sequence from its beginning.
    pub fn matcher(&self) -> Matcher {
        Matcher::new(self.clone())
    }

    /// Parts of the source that have no effect, and texts that contextual lexing takes from it, one
    /// sentence each.
    pub fn warnings(&self) -> impl ExactSizeIterator<Item = String> + use<> {
        self.cached.notes().into_iter()
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// About how much memory it takes by now: masks that were asked for are kept.
    pub fn bytes(&self) -> usize {
        self.cached.bytes()
    }

    /// The grammar as a [`Constraint`](crate::Constraint), for searches and the engine crates.
    pub fn constraint(&self) -> &GrammarConstraint {
        &self.cached.constraint
    }
}
