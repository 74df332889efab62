//! Work that waits for nobody else's.

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// A pool of one thread. Catalogs are sorted and indexed by whatever pool they are built in; in one
/// that all share, indexing the memory segment would wait for a part of a large merge: 28 ms
/// instead of 2, at p99. And a merge takes no more than one processor from those who decode.
pub(crate) fn one_thread(name: &'static str) -> Result<ThreadPool, ThreadPoolBuildError> {
    ThreadPoolBuilder::new().num_threads(1).thread_name(move |_| name.to_owned()).build()
}
