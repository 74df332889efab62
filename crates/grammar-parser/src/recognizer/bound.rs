//! A recognizer under a binding: the sets of a grammar's slots, and the position before the first
//! byte.

use std::sync::Arc;

use palmette_core::{Binding, SlotId};

use super::error::CompileError;
use super::position::Position;
use super::scratch::RecognizerScratch;
use super::{Recognizer, RecognizerLimits};
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

impl BoundRecognizer {
    /// Binds sets to the slots of a grammar; `None` when no text is left. The grammar is made ready
    /// again only where a set is empty.
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
            empty => {
                let grammar = Arc::new(recognizer.source().without_slots(empty));
                let (limits, budget) = (RecognizerLimits::default(), &mut Budget::unlimited());
                Arc::new(Recognizer::new(grammar, &limits, budget)?)
            }
        };
        let start = recognizer.start_bound(&sets, &mut RecognizerScratch::default())?;
        Ok(start.map(|start| Self { recognizer, sets, start }))
    }
}
