//! A list that grows while others read it, without a lock for readers.

use std::sync::OnceLock;

/// The first chunk's length; each further chunk is as long as all before it.
const FIRST: usize = 64;

/// Enough chunks for all indices below 2³².
const CHUNKS: usize = 27;

/// Entries by index. Chunks double, so an entry is found by two look-ups and never moves.
///
/// One thread at a time may [`push`](Self::push) (its callers hold a lock); any may read meanwhile.
#[derive(Debug)]
pub struct AppendOnly<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

impl<T> AppendOnly<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The entry at `index`.
    ///
    /// # Panics
    /// When none was pushed there.
    pub fn get(&self, index: usize) -> &T {
        let (chunk, within, _) = place(index);
        let entry = self.chunks[chunk].get().and_then(|entries| entries[within].get());
        entry.expect("the index was handed out when the entry was pushed")
    }

    /// Puts an entry at `index`, which is the number of entries so far.
    pub fn push(&self, index: usize, entry: T) {
        let (chunk, within, len) = place(index);
        let entries =
            self.chunks[chunk].get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
        let vacant = entries[within].set(entry).is_ok();
        assert!(vacant, "index {index} is taken");
    }
}

/// The chunk of an index, the place within it, and the chunk's length.
fn place(index: usize) -> (usize, usize, usize) {
    let chunk = (index / FIRST + 1).ilog2() as usize;
    let before = FIRST * ((1 << chunk) - 1);
    (chunk, index - before, FIRST << chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stay_where_they_were_pushed() {
        let list = AppendOnly::new();
        for index in 0..5000 {
            list.push(index, index * 7);
        }
        assert!((0..5000).all(|index| *list.get(index) == index * 7));
    }

    #[test]
    fn chunks_follow_each_other() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            let (chunk, within, len) = place(index);
            assert_eq!((chunk, within), expected);
            expected = if within + 1 == len { (chunk + 1, 0) } else { (chunk, within + 1) };
        }
        assert!(place(u32::MAX as usize).0 < CHUNKS);
    }
}
