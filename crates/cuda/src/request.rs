//! A request on a device: its prompt, its pages, its beams and the memory of its answers.
//!
//! It belongs to the reading until it is posted, to the meeting until it comes back.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use palmette_core::TokenId;

use crate::arguments::BeamRows;
use crate::pages::{PageChain, Reservation};
use crate::plan::ReadingMemory;
use crate::slots::SlotRange;
use crate::{DeviceError, Event};

/// Rows that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The prompt's last, once all of the prompt is read.
    Prompt,
    /// One more token of each beam.
    Beams,
    /// The last ones of the prompt that are wanted, of a prompt that grows.
    Sequence,
    /// The last ones of the prompt, so many, whose hidden states are kept for a draft head: its
    /// placeholders are the prompt's end. No logits.
    Draft(usize),
}

impl RowKind {
    /// Last rows of the prompt that are kept for the reading: a pass computes them, whatever is
    /// found of the prompt.
    pub(crate) fn kept_rows(self) -> usize {
        match self {
            Self::Draft(rows) => rows,
            _ => 1,
        }
    }
}

/// Beams that a step on the device found, which the host has not seen.
#[derive(Debug)]
pub(crate) struct DeviceBeams {
    /// The rows, but for their place in the pass.
    pub(crate) rows: BeamRows,
    /// End of the step.
    pub(crate) end: Event,
}

/// A request between its reading and the meeting.
#[derive(Debug)]
pub(crate) struct DeviceRequest {
    pub(crate) kind: RowKind,
    pub(crate) prompt: Vec<TokenId>,
    /// Tokens of the prompt whose keys and values are in its pages, or are being computed.
    pub(crate) read: usize,
    pub(crate) chain: PageChain,
    pub(crate) beams: Vec<TokenId>,
    /// Beams that the device alone knows: their tokens here are any, their ancestors too.
    pub(crate) found: Option<DeviceBeams>,
    pub(crate) ancestors: Ancestors,
    /// Columns of the logits.
    pub(crate) columns: Range<usize>,
    pub(crate) memory: ReadingMemory,
    /// Row of the memory's logits that its own begin at.
    pub(crate) logits_row: usize,
    /// Last rows of a sequence whose logits are wanted.
    pub(crate) logits_rows: usize,
    /// End of the pass, once it is on its stream.
    pub(crate) outcome: Result<Event, DeviceError>,
    /// The way back to the reading.
    pub(crate) back: SyncSender<Box<DeviceRequest>>,
    /// Given back with the last request; the chain's pages are within it.
    pub(crate) _reserved: Arc<Reservation>,
}

impl DeviceRequest {
    /// Begins another prompt.
    pub(crate) fn set_prompt(&mut self, tokens: &[TokenId]) {
        self.prompt.clear();
        self.prompt.extend_from_slice(tokens);
        self.kind = RowKind::Prompt;
        self.forget_pages();
        self.ancestors.clear();
    }

    /// Gives the pages back: the prompt is read anew, but for what earlier prompts left.
    pub(crate) fn forget_pages(&mut self) {
        self.chain.clear();
        self.read = 0;
    }

    /// Ends a draft: the prompt is without placeholders again.
    pub(crate) fn end_draft(&mut self) {
        if let RowKind::Draft(rows) = self.kind {
            self.prompt.truncate(self.prompt.len() + 1 - rows);
            self.kind = RowKind::Prompt;
            // Tokens that come where they were are not theirs.
            self.forget_pages();
        }
    }

    /// Takes what pages the prompt lacks, and what earlier prompts left.
    pub(crate) fn take_pages(&mut self) {
        match self.chain.pages().is_empty() {
            true => self.read = self.chain.begin(&self.prompt, self.kind.kept_rows()),
            false => self.chain.cover(self.prompt.len()),
        }
    }

    /// Gives the request back to its reading; one that nobody waits for ends here.
    pub(crate) fn answer(mut self: Box<Self>, outcome: Result<Event, DeviceError>) {
        if outcome.is_err() {
            // What was computed of the prompt is not known.
            self.forget_pages();
        }
        self.outcome = outcome;
        self.found = None;
        let back = self.back.clone();
        let _ = back.send(self);
    }
}

/// Slots that the ancestors of each beam have written, pass by pass.
#[derive(Debug)]
pub(crate) struct Ancestors {
    range: SlotRange,
    next_slot: usize,
    /// `[passes][beams]`; those past `passes` are kept for their memory.
    slots: Vec<Vec<i32>>,
    passes: usize,
    swapped: Vec<i32>,
}

impl Ancestors {
    /// Beams that write into these slots: one a beam a pass.
    pub(crate) fn new(range: SlotRange) -> Self {
        let next_slot = range.first;
        Self { range, next_slot, slots: Vec::new(), passes: 0, swapped: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.next_slot = self.range.first;
        self.passes = 0;
    }

    pub(crate) fn passes(&self) -> usize {
        self.passes
    }

    /// Slot of the first beam of the next pass.
    pub(crate) fn next_slot(&self) -> usize {
        self.next_slot
    }

    /// Slots of the beams' ancestors, pass by pass; the last are the beams' own.
    pub(crate) fn slots(&self) -> &[Vec<i32>] {
        &self.slots[..self.passes]
    }

    /// Begins a pass whose beams continue these rows; each has a slot of its own there.
    pub(crate) fn fork(&mut self, parents: &[u32]) {
        for of_pass in &mut self.slots[..self.passes] {
            self.swapped.clear();
            self.swapped.extend(parents.iter().map(|&parent| of_pass[parent as usize]));
            std::mem::swap(of_pass, &mut self.swapped);
        }
        if self.slots.len() == self.passes {
            self.slots.push(Vec::new());
        }
        let (first, own) = (self.next_slot as i32, &mut self.slots[self.passes]);
        own.clear();
        own.extend(first..first + parents.len() as i32);
        self.passes += 1;
        self.next_slot += parents.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Slots;

    #[test]
    fn ancestors_follow_their_beams() {
        let slots = Slots::new(20);
        let _before = slots.take(10).unwrap();
        let mut ancestors = Ancestors::new(slots.take(9).unwrap());
        ancestors.fork(&[0, 0, 0]);
        ancestors.fork(&[2, 0]);
        ancestors.fork(&[1, 1, 0, 0]);
        let want = [vec![10, 10, 12, 12], vec![14, 14, 13, 13], vec![15, 16, 17, 18]];
        assert_eq!(ancestors.slots(), want);
        ancestors.clear();
        ancestors.fork(&[0]);
        assert_eq!(ancestors.slots(), [[10]]);
    }
}
