//! Neighbouring pieces of one long array, four bytes each.

use std::ops::Range;

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

/// Pieces between two bases.
const BLOCK: usize = 256;
/// A piece is shorter than this, so that the offsets of a block fit a u32.
pub(crate) const MAX_PIECE: usize = (1 << 24) - 1;

/// Bounds of pieces in an array: piece `i` lies at `start(i)..start(i + 1)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spans {
    /// Start of every block of 256 pieces.
    bases: Array<u64>,
    /// Start of each piece within its block, and last of the piece that would follow.
    offsets: Array<u32>,
}

impl Spans {
    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// The piece numbered `index`; something that need not lie in the array where there is none or
    /// the contents are damaged.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }

    fn start(&self, index: usize) -> usize {
        let (bases, offsets) = (self.bases.as_slice(), self.offsets.as_slice());
        match (bases.get(index / BLOCK), offsets.get(index)) {
            (Some(&base), Some(&offset)) => base.saturating_add(offset.into()) as usize,
            _ => usize::MAX,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bases.as_bytes().len() + self.offsets.as_bytes().len()
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> SpansMeta {
        let (bases, offsets) = (out.add_array(&self.bases), out.add_array(&self.offsets));
        SpansMeta { len: self.len() as u64, bases, offsets }
    }

    pub(crate) fn load(meta: &SpansMeta, sections: &SectionsIn) -> Result<Self, String> {
        let num_starts = meta.len.checked_add(1).ok_or("more pieces than there can be")?;
        let bases = sections.array(meta.bases, meta.len / BLOCK as u64 + 1)?;
        Ok(Self { bases, offsets: sections.array(meta.offsets, num_starts)? })
    }

    /// Fails unless the pieces follow each other from 0 to `end`.
    pub(crate) fn check(&self, end: usize) -> Result<(), String> {
        let ascending = (0..self.len()).all(|i| {
            let Range { start, end } = self.get(i);
            start <= end && end - start <= MAX_PIECE
        });
        if self.start(0) != 0 || !ascending || self.start(self.len()) != end {
            return Err("pieces of an array that do not follow each other".to_owned());
        }
        Ok(())
    }
}

/// Serialised place of [`Spans`] in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SpansMeta {
    pub(crate) len: u64,
    bases: u32,
    offsets: u32,
}

/// [`Spans`] that grow.
#[derive(Clone, Debug)]
pub(crate) struct SpansBuilder {
    bases: Vec<u64>,
    offsets: Vec<u32>,
    end: u64,
}

impl Default for SpansBuilder {
    fn default() -> Self {
        Self { bases: vec![0], offsets: vec![0], end: 0 }
    }
}

impl SpansBuilder {
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Adds a piece of `len` at the end.
    pub(crate) fn push(&mut self, len: usize) {
        assert!(len <= MAX_PIECE, "a piece of {len}");
        self.end += len as u64;
        if self.offsets.len().is_multiple_of(BLOCK) {
            self.bases.push(self.end);
        }
        let base = self.bases[self.bases.len() - 1];
        self.offsets.push((self.end - base) as u32);
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Range<usize> {
        self.start(index)..self.start(index + 1)
    }

    fn start(&self, index: usize) -> usize {
        self.bases[index / BLOCK] as usize + self.offsets[index] as usize
    }

    pub(crate) fn build(self) -> Spans {
        Spans { bases: self.bases.into(), offsets: self.offsets.into() }
    }
}
