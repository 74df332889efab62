//! A recognizer under a binding: the sets of a grammar's slots, and the position before the first
//! byte.

use std::sync::Arc;

use palmette_core::{Binding, SlotId};

use super::Recognizer;
use super::error::CompileError;
use super::position::Position;
use super::scratch::RecognizerScratch;
use crate::Budget;

/// A grammar whose slots have their sets.
#[derive(Clone, Debug)]
pub struct BoundRecognizer {
    /// The grammar made ready, without alternatives that need a member of an empty set.
    pub recognizer: Arc<Recognizer>,
    /// The sets.
    pub sets: Arc<Binding>,
    /// The position before the first byte, which carries the sets.
    pub start: Position,
}

impl Recognizer {
    /// The grammar made ready without what needs a member of these slots, within the limits of the
    /// whole.
    ///
    /// # Errors
    /// When a limit is exceeded, or what is left cannot be honoured.
    pub fn without_slots(&self, empty: &[SlotId]) -> Result<Self, CompileError> {
        let grammar = Arc::new(self.source.without_slots(empty));
        // A part of the grammar takes no more steps than the whole was allowed.
        Self::new(grammar, &self.limits, &mut Budget::unlimited())
    }

    /// Binds the sets that the grammar brings, where it has no open slots.
    pub(super) fn bind_own_sets(&mut self) -> Result<(), CompileError> {
        if self.grammar.open_slots().is_empty() && !self.grammar.slots().is_empty() {
            let sets: Vec<_> = self.grammar.own_sets().collect();
            let sets = Arc::new(Binding::new(sets));
            self.start = self.start_bound(&sets, &mut RecognizerScratch::default())?;
        }
        Ok(())
    }
}

impl BoundRecognizer {
    /// A grammar that brings the sets of all its slots; `None` where it has other slots or none, or
    /// no text.
    pub fn from_own_sets(recognizer: &Arc<Recognizer>) -> Option<Self> {
        let start = recognizer.start()?.clone();
        let sets = Arc::clone(start.binding()?);
        Some(Self { recognizer: Arc::clone(recognizer), sets, start })
    }

    /// Binds sets to the open slots of a grammar; `None` when no text is left. The grammar is made
    /// ready again only where a set is empty.
    ///
    /// # Errors
    /// When the grammar without what needs a member of an empty set cannot be made ready.
    ///
    /// # Panics
    /// When the grammar has another number of slots.
    pub fn new(
        recognizer: &Arc<Recognizer>,
        sets: Arc<Binding>,
    ) -> Result<Option<Self>, CompileError> {
        let empty: Vec<SlotId> = sets.empty_slots().collect();
        let recognizer = match &*empty {
            [] => Arc::clone(recognizer),
            empty => Arc::new(recognizer.without_slots(empty)?),
        };
        Self::from_parts(recognizer, sets)
    }

    /// Binds sets to the open slots of a grammar that has nothing left that needs a member of an
    /// empty one; `None` when it has no text.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    ///
    /// # Panics
    /// When the grammar has another number of slots.
    pub fn from_parts(
        recognizer: Arc<Recognizer>,
        sets: Arc<Binding>,
    ) -> Result<Option<Self>, CompileError> {
        let own: Vec<_> = recognizer.grammar().own_sets().collect();
        let sets = if own.is_empty() { sets } else { Arc::new(sets.with(own)) };
        let start = recognizer.start_bound(&sets, &mut RecognizerScratch::default())?;
        Ok(start.map(|start| Self { recognizer, sets, start }))
    }
}
