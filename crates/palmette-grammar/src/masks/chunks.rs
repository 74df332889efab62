//! A list that grows without moving what is in it.

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

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T: Default> Chunks<T> {
    /// The entry at a place; those that were not there up to it are empty ones.
    pub(super) fn entry(&mut self, at: usize) -> &mut T {
        while self.len <= at {
            self.push(T::default());
        }
        &mut self[at]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_where_they_were_put() {
        let mut list = Chunks::default();
        for at in 0..1000_usize {
            assert_eq!(list.get(at), None);
            list.push(at * 7);
        }
        *list.entry(2000) = 3;
        assert_eq!(list.len(), 2001);
        assert!((0..1000).all(|at| list[at] == at * 7));
        assert_eq!(
            (list.get(1000), list[1999], list[2000], list.get(2001)),
            (Some(&0), 0, 3, None)
        );
        assert!(list.iter().copied().eq((0..2001).map(|at| list[at])));
    }
}
