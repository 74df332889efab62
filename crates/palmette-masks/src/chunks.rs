//! Sparse chunked list: entries at some of many places, of which chunks are made as they are asked for.

/// The length of each chunk.
const CHUNK: usize = 128;

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
