//! A grammar over a vocabulary, compiled, perhaps with catalogs bound to the sets that it names.

use std::sync::Arc;

use palmette_bindings::{BindingError, Bindings, BoundGrammar, BoundSource};
use palmette_grammar::{GrammarConstraint, Slot};

use crate::matcher::Matcher;
use crate::vocabulary::Vocabulary;

/// A grammar made ready to mask the tokens of a vocabulary. Frozen and cheap to clone; threads
/// share it.
#[derive(Clone, Debug)]
pub struct CompiledGrammar {
    cached: Arc<palmette_grammar::CompiledGrammar>,
    bound: Option<BoundGrammar>,
    vocabulary: Vocabulary,
}

impl CompiledGrammar {
    pub(crate) fn new(
        cached: Arc<palmette_grammar::CompiledGrammar>,
        vocabulary: Vocabulary,
    ) -> Self {
        Self { cached, bound: None, vocabulary }
    }

    /// The grammar with catalogs, lexicons and lists under the names that it calls them
    /// (`x-catalog` in a JSON Schema, `%catalog` in Lark, `<catalog:…>` in GBNF): for one request,
    /// pinned to the catalogs as they are now. What was bound before is bound anew.
    ///
    /// Cost: some look-ups, once a catalog's field and a filter were met before; nothing is
    /// compiled again unless a set is empty.
    ///
    /// # Errors
    /// When a name is missing or not asked for, a field is not there, a filter does not fit its
    /// catalog, or no text is left.
    pub fn bind(&self, bindings: &Bindings) -> Result<Self, BindingError> {
        let bound = Some(bindings.bind(&self.cached.constraint)?);
        Ok(Self { bound, ..self.clone() })
    }

    /// The sets that it leaves open, in the order in which the source names them.
    pub fn slots(&self) -> &[Slot] {
        self.cached.constraint.slots()
    }

    /// Sources that its names are bound to, ascending by name: generations, and how many items are
    /// left.
    pub fn sources(&self) -> &[BoundSource] {
        self.bound.as_ref().map_or(&[], BoundGrammar::sources)
    }

    /// Follows one sequence from its beginning. Where sets are not bound, its masks are errors that
    /// say so.
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
        self.bound.as_ref().map_or(&self.cached.constraint, BoundGrammar::constraint)
    }

    /// The grammar with its sets, where they are bound.
    pub(crate) fn bound(&self) -> Option<&BoundGrammar> {
        self.bound.as_ref()
    }
}
