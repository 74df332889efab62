//! Working memories for calls that bring none.

use std::sync::Mutex;

use crate::recognizer::RecognizerScratch;

/// As many threads find one at a time; others go without what it remembers.
const NUM_SCRATCHES: usize = 8;

/// Some working memories. A call takes the first that is free, so that one thread always has the same, which knows its
/// way; none is waited for.
#[derive(Debug, Default)]
pub(super) struct Scratches([Mutex<RecognizerScratch>; NUM_SCRATCHES]);

impl Scratches {
    /// Does `work` with a working memory.
    pub(super) fn lend<R>(&self, work: impl FnOnce(&mut RecognizerScratch) -> R) -> R {
        match self.0.iter().find_map(|scratch| scratch.try_lock().ok()) {
            Some(mut scratch) => work(&mut scratch),
            None => work(&mut RecognizerScratch::default()),
        }
    }

    /// About how much memory they take; those in use are left out.
    pub(super) fn bytes(&self) -> usize {
        let free = self.0.iter().filter_map(|scratch| scratch.try_lock().ok());
        free.map(|scratch| scratch.bytes()).sum()
    }
}
