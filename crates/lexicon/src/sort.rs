//! Sorting of texts by eight bytes at a time.

use rayon::prelude::*;

/// Texts that are to be sorted, one after another.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) bytes: Vec<u8>,
    /// Ends of the texts in `bytes`.
    pub(crate) ends: Vec<u64>,
}

/// A text in the order that is made.
///
/// The words are the eight bytes of the text at the depth that is sorted by, the first in the
/// highest bits, zeros past its end. PERF: two words of four bytes, so that an entry takes twelve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    words: [u32; 2],
    text: u32,
}

/// Fewer texts than these are compared whole.
const COMPARED: usize = 24;
/// More texts than these are sorted on all threads.
const IN_PARALLEL: usize = 1 << 14;
/// Texts alike in so many bytes are compared whole: what is sorted by words calls itself.
const MAX_DEPTH: usize = 1 << 10;

impl Texts {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn get(&self, text: u32) -> &[u8] {
        let at = text as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    fn bytes_from(&self, text: u32, depth: usize) -> &[u8] {
        self.get(text).get(depth..).unwrap_or_default()
    }

    /// The numbers of the texts, sorted by their bytes; equal ones in any order.
    ///
    /// Cost: 12 bytes a text. Each text is read once for every eight bytes that it shares with
    /// others, on all threads (multikey quicksort, Bentley and Sedgewick 1997, on words instead of
    /// bytes).
    pub(crate) fn sorted(&self) -> Vec<Entry> {
        let entry = |text| Entry { words: [0; 2], text };
        let mut entries: Vec<Entry> = (0..self.len() as u32).into_par_iter().map(entry).collect();
        self.sort(&mut entries, 0);
        entries
    }

    /// Sorts entries whose texts share `depth` bytes.
    fn sort(&self, entries: &mut [Entry], depth: usize) {
        if entries.len() < COMPARED || depth >= MAX_DEPTH {
            let by_bytes = |a: &Entry, b: &Entry| {
                self.bytes_from(a.text, depth).cmp(self.bytes_from(b.text, depth))
            };
            return entries.sort_unstable_by(by_bytes);
        }
        let set_words = |entry: &mut Entry| entry.words = self.words(entry.text, depth);
        let is_same = |a: &Entry, b: &Entry| a.words == b.words;
        if entries.len() < IN_PARALLEL {
            entries.iter_mut().for_each(set_words);
            entries.sort_unstable_by_key(|entry| entry.words);
            entries.chunk_by_mut(is_same).for_each(|run| self.sort_run(run, depth));
        } else {
            entries.par_iter_mut().for_each(set_words);
            entries.par_sort_unstable_by_key(|entry| entry.words);
            entries.par_chunk_by_mut(is_same).for_each(|run| self.sort_run(run, depth));
        }
    }

    /// Sorts entries of equal words: texts that end within these eight bytes differ in zeros alone,
    /// and come first.
    fn sort_run(&self, run: &mut [Entry], depth: usize) {
        if run.len() == 1 {
            return;
        }
        let next = depth + 8;
        let len = |entry: &Entry| self.get(entry.text).len();
        let mut num_ended = 0;
        for at in 0..run.len() {
            if len(&run[at]) <= next {
                run.swap(at, num_ended);
                num_ended += 1;
            }
        }
        let (ended, longer) = run.split_at_mut(num_ended);
        ended.sort_unstable_by_key(len);
        if longer.len() > 1 {
            self.sort(longer, next);
        }
    }

    fn words(&self, text: u32, depth: usize) -> [u32; 2] {
        let bytes = self.bytes_from(text, depth);
        let word = match bytes.first_chunk() {
            Some(&eight) => u64::from_be_bytes(eight),
            None => {
                let mut eight = [0; 8];
                eight[..bytes.len()].copy_from_slice(bytes);
                u64::from_be_bytes(eight)
            }
        };
        [(word >> 32) as u32, word as u32]
    }
}

impl Entry {
    pub(crate) fn text(self) -> u32 {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(texts: &[Vec<u8>]) {
        let mut taken = Texts::default();
        for text in texts {
            taken.bytes.extend_from_slice(text);
            taken.ends.push(taken.bytes.len() as u64);
        }
        let sorted: Vec<&[u8]> =
            taken.sorted().into_iter().map(|entry| taken.get(entry.text)).collect();
        let mut expected: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        expected.sort();
        assert_eq!(sorted, expected);
    }

    proptest! {
        /// Few different bytes and zeros, so that texts share words, repeat, and differ in zeros at
        /// their ends.
        #[test]
        fn sorts_as_bytes_compare(texts in prop::collection::vec(
            prop::collection::vec(prop::sample::select(vec![0_u8, 0, 1, 255]), 0..30), 0..300)
        ) {
            check(&texts);
        }
    }

    #[test]
    fn deep_and_many_texts_are_sorted() {
        // Each is a prefix of the next, far deeper than words are sorted by.
        check(&(0..200).rev().map(|len| vec![b'a'; len * 40]).collect::<Vec<_>>());
        let text = |number: u32| {
            let digits = number.wrapping_mul(0x9E37_79B9) % 50_000;
            format!("https://example.com/{digits}").into_bytes()
        };
        check(&(0..40_000).map(text).collect::<Vec<_>>());
    }
}
