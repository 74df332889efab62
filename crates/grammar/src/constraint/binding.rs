//! Binding: the sets of a grammar's slots for one request.

use std::sync::Arc;

use palmette_core::{Binding, MemberSet, SlotId};
use palmette_grammar_parser::Slot;
use palmette_grammar_parser::recognizer::{
    BoundRecognizer, CompileError, RecognizerError, WrittenMember,
};

use super::{GrammarConstraint, GrammarScratch};

/// The set that a request gives for a slot.
pub type SetBinding = Arc<dyn MemberSet>;

/// Sets that cannot be bound to a grammar.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No text is left: alternatives that need a member of an empty set are not there.
    #[error("no text is left: {} has no member, and the grammar needs one; bind a set that has", .empty.join(", "))]
    Empty {
        /// Names of the slots without members.
        empty: Vec<String>,
    },
    /// The grammar without what needs a member of an empty set cannot be made ready.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

impl GrammarConstraint {
    /// The sets that the grammar leaves open, in the order in which they are bound.
    pub fn slots(&self) -> &[Slot] {
        self.recognizer.source().slots()
    }

    /// A constraint on the texts whose members are of these sets, `set` giving one for each slot.
    /// The grammar is not compiled again, unless a set is empty.
    ///
    /// # Errors
    /// When no text is left, or what `set` says.
    ///
    /// # Panics
    /// When the grammar has no slots.
    pub fn bind<E: From<BindError>>(
        &self,
        mut set: impl FnMut(&Slot) -> Result<SetBinding, E>,
    ) -> Result<Self, E> {
        let slots = self.slots();
        assert!(!slots.is_empty(), "a grammar without slots");
        let sets = slots.iter().map(&mut set).collect::<Result<Vec<_>, E>>()?;
        Ok(self.bind_all(Arc::new(Binding::new(sets)))?)
    }

    /// A constraint on the texts whose members are of these sets, in the order of the
    /// [slots](Self::slots).
    ///
    /// # Errors
    /// When no text is left.
    ///
    /// # Panics
    /// When the grammar has another number of slots.
    pub fn bind_all(&self, sets: Arc<Binding>) -> Result<Self, BindError> {
        let label = |slot: SlotId| self.slots()[slot.index()].label();
        let empty = sets.empty_slots().map(label).collect();
        let bound = BoundRecognizer::new(&self.recognizer, sets)?;
        let bound = Arc::new(bound.ok_or(BindError::Empty { empty })?);
        let (recognizer, dictionary) = (Arc::clone(&bound.recognizer), Arc::default());
        Ok(Self { recognizer, bound: Some(bound), dictionary, ..self.clone() })
    }

    /// The sets that are bound.
    pub fn binding(&self) -> Option<&Arc<Binding>> {
        self.bound.as_ref().map(|bound| &bound.sets)
    }

    /// The members that a text has, in their order; `None` where it begins no text of the language.
    /// A member counts where it has ended, or where the text may end with it.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn members(
        &self,
        text: &[u8],
        scratch: &mut GrammarScratch,
    ) -> Result<Option<Vec<WrittenMember>>, RecognizerError> {
        match self.binding() {
            None => Ok(Some(Vec::new())),
            Some(sets) => self.recognizer.members(sets, text, &mut scratch.recognizer),
        }
    }
}
