//! Processes that fork: a child has none of its parent's threads, and keeps every lock as it was at
//! that moment.
//!
//! Three rules keep calls in a forked child from waiting for threads that are not there:
//! - calls that release the interpreter, and threads of ours, are *at work*, and a fork waits for
//!   their end or for a moment at which they hold no lock ([`detach`], [`pause`]);
//! - parallel work in a child runs in a pool of that process, never in the one that the parent used
//!   ([`detach_in_pool`]);
//! - what stands for threads of a process is used and ended in that process alone ([`OfProcess`]).
//!
//! Locks that are taken while attached to the interpreter need no care: who forks is attached, so
//! that nobody else holds them.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use palmette_grammar::HostProgram;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The longest that a fork waits for calls in other threads.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Pause between two looks at calls at work, or at forks that wait.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

/// Stack of a thread of the pool: that of a program's first thread.
const STACK_BYTES: usize = 8 << 20;

/// Forks between the process that loaded the module and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Threads at work, and forks that wait for them. Threads that would begin wait for forks.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Calls at work on this thread, one within another.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// The number of this process among its ancestors: 0 for the one that loaded the module.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// A thread at work, until it is dropped: it may hold locks.
pub(crate) struct AtWork(());

impl AtWork {
    /// Begins, once no fork waits.
    pub(crate) fn begin() -> Self {
        if DEPTH.get() == 0 {
            enter();
        }
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

fn enter() {
    loop {
        AT_WORK.fetch_add(1, Ordering::SeqCst);
        if FORKING.load(Ordering::SeqCst) == 0 {
            return;
        }
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// A moment at which this thread, if it is at work, holds no lock: a fork that waits goes first.
pub(crate) fn pause() {
    if FORKING.load(Ordering::SeqCst) > 0 && DEPTH.get() == 1 {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
        enter();
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            AT_WORK.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Works without the interpreter, on this thread alone.
pub(crate) fn detach<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        let _at_work = AtWork::begin();
        work()
    })
}

/// Host of the threads that grammars begin by themselves: an interpreter, which may fork.
#[derive(Debug)]
pub(crate) struct Interpreter;

impl HostProgram for Interpreter {
    fn at_work(&self) -> Box<dyn std::any::Any> {
        Box::new(AtWork::begin())
    }

    fn pause(&self) {
        pause();
    }

    fn in_pool(&self, work: &mut (dyn FnMut() + Send)) {
        in_pool(work);
    }
}

/// [`detach`] for work that may be spread over threads.
pub(crate) fn detach_in_pool<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    detach(py, || in_pool(work))
}

/// Works with the threads of this process: rayon's own in the first, which a child must not wait
/// for.
pub(crate) fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match pool_of_child() {
        None => work(),
        Some(pool) => pool.install(work),
    }
}

fn pool_of_child() -> Option<Arc<ThreadPool>> {
    static POOL: Mutex<Option<OfProcess<Arc<ThreadPool>>>> = Mutex::new(None);
    if generation() == 0 {
        return None;
    }
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = kept.as_ref().and_then(OfProcess::get) {
        return Some(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new()
        .stack_size(STACK_BYTES)
        .thread_name(|number| format!("palmette-{number}"))
        .build()
        .or_else(|_| ThreadPoolBuilder::new().num_threads(1).build());
    let pool = Arc::new(pool.expect("the system has a thread to give"));
    *kept = Some(OfProcess::new(Arc::clone(&pool)));
    Some(pool)
}

/// A value whose threads are those of the process that made it: in a child of that it is neither
/// used nor dropped.
#[derive(Debug)]
pub(crate) struct OfProcess<T> {
    generation: u32,
    /// Taken by dropping alone.
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { generation: generation(), value: Some(value) }
    }

    /// The value, in the process that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.generation == generation())
    }

    /// [`get`](Self::get), to change it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.generation == generation())
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.generation != generation() {
            std::mem::forget(self.value.take());
        }
    }
}

/// Has the interpreter say when it forks; where it cannot, nothing is to be done.
pub(crate) fn prepare(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? else { return Ok(()) };
    let hooks = PyDict::new(py);
    hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
    hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
    hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
    register.call((), Some(&hooks))?;
    Ok(())
}

/// Waits for a moment at which no other thread is at work; not for ever, since a call may take
/// minutes.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    FORKING.fetch_add(1, Ordering::SeqCst);
    let own = usize::from(DEPTH.get() > 0);
    let begun = Instant::now();
    let is_free = || AT_WORK.load(Ordering::SeqCst) <= own;
    while !is_free() && begun.elapsed() < LONGEST_WAIT {
        py.detach(|| {
            while !is_free() && begun.elapsed() < LONGEST_WAIT {
                std::thread::sleep(BETWEEN_LOOKS);
            }
        });
    }
}

#[pyfunction]
fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    FORKING.store(0, Ordering::SeqCst);
    AT_WORK.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    GENERATION.fetch_add(1, Ordering::SeqCst);
}
