//! Table of the sequences of a store, by their ids, and the rules of its passes.

use std::ops::{Index, IndexMut};

use crate::sequence_store::{SequenceId, SequencesError, SequencesOptions, Stretch};

/// Places of sequences, each with what a [store](crate::SequenceStore) keeps of one.
#[derive(Debug)]
pub struct SequenceSlots<T> {
    slots: Vec<Slot<T>>,
    passes: u64,
}

#[derive(Debug)]
struct Slot<T> {
    stored: T,
    serial: u32,
    is_taken: bool,
    /// The pass that it stands in.
    pass: u64,
}

/// Sizes of a sequence in a store.
pub trait StoredSequence {
    /// Number of tokens.
    fn num_tokens(&self) -> usize;

    /// Number of pages that it has.
    fn num_pages(&self) -> usize;

    /// Number of pages that it takes to grow by `more` tokens.
    fn more_pages(&self, more: usize) -> usize {
        (self.num_tokens() + more).div_ceil(SequencesOptions::PAGE_TOKENS) - self.num_pages()
    }
}

/// Limits of a pass.
#[derive(Clone, Copy, Debug)]
pub struct PassLimits {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Rows of all stretches.
    pub max_rows: usize,
    /// Tokens of one sequence.
    pub max_positions: usize,
    /// Pages that no sequence has.
    pub free_pages: usize,
}

impl<T> SequenceSlots<T> {
    /// A place for each of these.
    pub fn new(stored: impl IntoIterator<Item = T>) -> Self {
        let slot = |stored| Slot { stored, serial: 0, is_taken: false, pass: 0 };
        Self { slots: stored.into_iter().map(slot).collect(), passes: 0 }
    }

    /// Takes a place that is free.
    ///
    /// # Errors
    /// When none is.
    pub fn add(&mut self) -> Result<SequenceId, SequencesError> {
        let max = self.slots.len();
        let free = self.slots.iter_mut().enumerate().find(|(_, slot)| !slot.is_taken);
        let (place, slot) = free.ok_or(SequencesError::TooManySequences { max })?;
        slot.is_taken = true;
        Ok(SequenceId { slot: place as u32, serial: slot.serial })
    }

    /// The place of a sequence.
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn find(&self, sequence: SequenceId) -> Result<usize, SequencesError> {
        let place = sequence.slot as usize;
        match self.slots.get(place) {
            Some(slot) if slot.is_taken && slot.serial == sequence.serial => Ok(place),
            _ => Err(SequencesError::UnknownSequence(sequence)),
        }
    }

    /// Frees the place of a sequence and returns it.
    ///
    /// # Errors
    /// When there is no such sequence.
    pub fn remove(&mut self, sequence: SequenceId) -> Result<usize, SequencesError> {
        let place = self.find(sequence)?;
        let slot = &mut self.slots[place];
        slot.is_taken = false;
        slot.serial = slot.serial.wrapping_add(1);
        Ok(place)
    }

    /// Parts kept of all places, taken or not.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().map(|slot| &slot.stored)
    }
}

impl<T: StoredSequence> SequenceSlots<T> {
    /// Checks the stretches of a pass.
    ///
    /// # Errors
    /// When they break a rule, or there are no pages for them.
    pub fn check(
        &mut self,
        stretches: &[Stretch<'_>],
        limits: &PassLimits,
    ) -> Result<(), SequencesError> {
        self.passes += 1;
        let &PassLimits { vocab_size, max_rows, max_positions, free_pages } = limits;
        let (mut rows, mut needed) = (0_usize, 0);
        for Stretch { sequence, tokens, .. } in stretches {
            let place = self.find(*sequence)?;
            let slot = &mut self.slots[place];
            if std::mem::replace(&mut slot.pass, self.passes) == self.passes {
                return Err(SequencesError::NamedTwice(*sequence));
            }
            if tokens.is_empty() {
                return Err(SequencesError::NoTokens(*sequence));
            }
            let unknown = tokens.iter().find(|token| token.index() >= vocab_size);
            if let Some(&token) = unknown {
                return Err(SequencesError::UnknownToken { token, vocab_size });
            }
            let all = slot.stored.num_tokens() + tokens.len();
            if all > max_positions {
                return Err(SequencesError::TooManyPositions { tokens: all, max: max_positions });
            }
            rows += tokens.len();
            needed += slot.stored.more_pages(tokens.len());
        }
        if rows > max_rows {
            return Err(SequencesError::TooManyRows { rows, max: max_rows });
        }
        if needed > free_pages {
            return Err(SequencesError::NoRoom { needed, free: free_pages });
        }
        Ok(())
    }
}

impl<T> Index<usize> for SequenceSlots<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        &self.slots[place].stored
    }
}

impl<T> IndexMut<usize> for SequenceSlots<T> {
    fn index_mut(&mut self, place: usize) -> &mut T {
        &mut self.slots[place].stored
    }
}
