//! Dividing rows into blocks, and blocks among threads.

use std::sync::{Mutex, PoisonError};

use crate::kernels::PANEL;

/// Largest number of rows of a block. Their activations stay in the second-level cache, and each
/// weight that is read serves many.
pub(crate) const MAX_BLOCK_ROWS: usize = 192;

/// Rows of a block when `rows` are divided among `threads`: as even as multiples of [`PANEL`]
/// allow.
pub(crate) fn block_rows(rows: usize, threads: usize) -> usize {
    let blocks = rows.div_ceil(MAX_BLOCK_ROWS).next_multiple_of(threads.max(1));
    rows.div_ceil(blocks.max(1)).next_multiple_of(PANEL).min(MAX_BLOCK_ROWS)
}

/// Number of threads that `operations` are worth, at most `threads`.
///
/// PERF: waking a thread takes some 20 us, in which one core does 2 million operations.
pub(crate) fn worthwhile_threads(operations: usize, threads: usize) -> usize {
    const OPERATIONS_A_THREAD: usize = 10_000_000;
    threads.min(operations / OPERATIONS_A_THREAD).max(1)
}

/// Calls `work` for every block, with a scratch that no other call has at the time: on as many
/// rayon workers as there are scratches. Which worker takes which block is left to chance; blocks
/// do not touch each other.
pub(crate) fn for_each_block<W: Send, B: Send>(
    scratches: &mut [W],
    blocks: impl Iterator<Item = B> + Send,
    work: impl Fn(&mut W, B) + Sync,
) {
    let Some((first, others)) = scratches.split_first_mut() else { return };
    if others.is_empty() {
        return blocks.for_each(|block| work(first, block));
    }
    let blocks = Mutex::new(blocks);
    let take_all = |scratch: &mut W| {
        loop {
            // A worker that panicked is passed on by the scope.
            let block = blocks.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(block) = block else { return };
            work(scratch, block);
        }
    };
    rayon::scope(|scope| {
        for scratch in others {
            scope.spawn(|_| take_all(scratch));
        }
        take_all(first);
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn blocks_cover_rows_evenly() {
        for rows in 1..700 {
            for threads in [1, 2, 3, 7] {
                let block = block_rows(rows, threads);
                assert!(block > 0 && block <= MAX_BLOCK_ROWS && block.is_multiple_of(PANEL));
            }
        }
        assert_eq!(block_rows(128, 2), 64);
        assert_eq!(block_rows(128, 1), 128);
        assert_eq!(block_rows(512, 2), 128);
        assert_eq!(block_rows(16, 2), 16);
    }

    #[test]
    fn small_work_stays_on_one_thread() {
        assert_eq!(worthwhile_threads(1_000_000, 8), 1);
        assert_eq!(worthwhile_threads(30_000_000, 8), 3);
        assert_eq!(worthwhile_threads(usize::MAX, 8), 8);
    }

    #[test]
    fn every_block_is_done_once_on_no_more_threads_than_scratches() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(8).build().unwrap();
        for (scratches, blocks) in [(1, 4), (4, 1), (3, 40), (5, 0)] {
            let mut done = vec![0; blocks];
            let mut seen: Vec<HashSet<thread::ThreadId>> = vec![HashSet::new(); scratches];
            pool.install(|| {
                for_each_block(&mut seen, done.iter_mut().enumerate(), |seen, (place, done)| {
                    seen.insert(thread::current().id());
                    *done += place + 1;
                });
            });
            assert!(done.into_iter().eq(1..=blocks), "{scratches} scratches, {blocks} blocks");
            let threads: HashSet<_> = seen.into_iter().flatten().collect();
            assert!(threads.len() <= scratches);
        }
    }
}
