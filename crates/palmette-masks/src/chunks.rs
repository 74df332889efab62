//! Chunked lists, which grow without moving what is in them.

use std::ops::{Index, IndexMut};

/// The length of each chunk.
const CHUNK: usize = 128;

/// Entries by number, in chunks of equal length.
///
/// PERF: lists here grow to hundreds of thousands of entries, under a lock that masks wait for: where all had to be moved, some masks waited
/// for 5 to 90 ms.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, entry: T) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks.last_mut().expect("there is room").push(entry);
        self.len += 1;
    }
}

impl<T> Index<usize> for Chunks<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

impl<T> IndexMut<usize> for Chunks<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }
}

/// Entries at some of many places, the others being empty; a chunk is there once one of its places was asked for.
#[derive(Debug)]
pub(super) struct SparseChunks<T> {
    chunks: Vec<Box<[T]>>,
    /// Those that are there.
    num_chunks: usize,
}

impl<T> Default for SparseChunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), num_chunks: 0 }
    }
}

impl<T: Default> SparseChunks<T> {
    /// The entry at a place, if its chunk is there.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// The entry at a place.
    pub(super) fn entry(&mut self, at: usize) -> &mut T {
        let chunk = at / CHUNK;
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, Box::default);
        }
        if self.chunks[chunk].is_empty() {
            self.chunks[chunk] = (0..CHUNK).map(|_| T::default()).collect();
            self.num_chunks += 1;
        }
        &mut self.chunks[chunk][at % CHUNK]
    }

    /// All entries that are there, with their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        let chunks = self.chunks.iter().zip((0..).step_by(CHUNK));
        chunks.flat_map(|(chunk, first)| (first..).zip(chunk))
    }

    /// About how much memory it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.chunks) + self.num_chunks * CHUNK * size_of::<T>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_where_they_were_put() {
        let mut list = Chunks::default();
        for at in 0..1000_usize {
            list.push(at * 7);
        }
        list[500] = 3;
        assert_eq!(list.len(), 1000);
        let expected = |at: usize| if at == 500 { 3 } else { at * 7 };
        assert!((0..1000).all(|at| list[at] == expected(at)));
    }

    #[test]
    fn places_are_empty_until_something_is_put_there() {
        let mut list = SparseChunks::<u32>::default();
        *list.entry(2000) = 3;
        *list.entry(5) = 4;
        assert_eq!(list.get(2000), Some(&3));
        assert_eq!((list.get(5), list.get(6)), (Some(&4), Some(&0)));
        assert_eq!((list.get(500), list.get(9000)), (None, None));
        let full: Vec<_> = list.iter().filter(|(_, entry)| **entry != 0).collect();
        assert_eq!(full, [(5, &4), (2000, &3)]);
    }
}
