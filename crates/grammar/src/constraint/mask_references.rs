//! Masks of states by reference, from the dictionary.

use palmette_core::{Constraint, mask};
use palmette_grammar_parser::recognizer::RecognizerError;

use super::dictionary::{DictionaryStatistics, MaskId, MaskRef, Parts};
use super::{GrammarConstraint, GrammarScratch, GrammarState, MaskBudget};

impl GrammarConstraint {
    /// The mask of [`fill_mask`](Constraint::fill_mask), shared instead of copied.
    ///
    /// Cost: where the automaton has been here, some look-ups, and no look at the mask's words. A
    /// mask that is not in the dictionary yet, and every mask that does not come from the
    /// automaton, is filled and looked up by its words. Those of a grammar with bound sets, of
    /// which no two may be equal, are filled and not kept: they have no [number](MaskRef::id).
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn mask(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
    ) -> Result<MaskRef, RecognizerError> {
        self.mask_within(state, scratch, &MaskBudget::unlimited())
    }

    /// [`mask`](Self::mask) with limits on its work.
    ///
    /// # Errors
    /// As [`fill_mask_within`](Self::fill_mask_within).
    pub fn mask_within(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<MaskRef, RecognizerError> {
        let parts = self.parts(state, scratch, work)?;
        if let Some(known) = parts.as_ref().and_then(|parts| self.dictionary.known(parts)) {
            return Ok(known);
        }
        let mut words = std::mem::take(&mut scratch.mask);
        words.resize(mask::num_words(self.num_tokens()), 0);
        let filled = self.fill_mask_within(state, scratch, &mut words, work);
        let found = filled.map(|()| match self.bound {
            None => self.dictionary.intern(&words, parts),
            Some(_) => MaskRef::new(&words),
        });
        scratch.mask = words;
        found
    }

    /// The mask of an id; `None` when it has been dropped since, or is of another constraint.
    pub fn mask_of(&self, id: MaskId) -> Option<MaskRef> {
        self.dictionary.mask_of(id)
    }

    /// All masks of the dictionary from `first` on, in the order of their indices: pass the number
    /// of those that a copy has. Where the [generation](DictionaryStatistics::generation) is
    /// another, a copy has none.
    pub fn masks(&self, first: usize) -> Vec<MaskRef> {
        self.dictionary.masks(first)
    }

    /// Contents of the dictionary.
    pub fn dictionary(&self) -> DictionaryStatistics {
        self.dictionary.statistics()
    }

    /// Masks of which that of a state is the union; `None` where the engine cannot say, or not
    /// within the work allowed.
    fn parts(
        &self,
        state: &GrammarState,
        scratch: &mut GrammarScratch,
        work: &MaskBudget<'_>,
    ) -> Result<Option<Parts>, RecognizerError> {
        let Some(position) = state.position().filter(|_| !state.ended()) else { return Ok(None) };
        let Some(automaton) = self.mask_automaton().filter(|_| self.bound.is_none()) else {
            return Ok(None);
        };
        if self.limits_matter(position)? {
            return Ok(None);
        }
        let (parts, budget) = (&mut scratch.parts, &mut work.exploring());
        let generation = match automaton.parts(&self.recognizer, position, parts, budget) {
            Ok(generation) => generation,
            // The mask may be found by walking.
            Err(RecognizerError::Interrupted(why)) if why.is_limit() => return Ok(None),
            Err(error) => return Err(error),
        };
        let ends = self.recognizer.is_accepting(position, &mut scratch.recognizer)?;
        let denied = self.repeated_names(position, scratch)?;
        Ok(Some(Parts { generation, parts: scratch.parts.as_slice().into(), denied, ends }))
    }
}
