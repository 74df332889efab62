//! Counting what a piece of code allocates, and what a program holds.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, counting the allocations of each thread and the bytes that all of them
/// hold.
///
/// A test that counts makes it its own: `#[global_allocator] static ALLOCATOR: Counting =
/// Counting;`.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Calls of `alloc`, `alloc_zeroed` and `realloc` by this thread so far.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes that all threads hold by now.
pub fn held_bytes() -> usize {
    HELD.load(Ordering::Relaxed)
}

fn count_held(new: usize, old: usize) {
    HELD.fetch_add(new.wrapping_sub(old), Ordering::Relaxed);
}

fn count_one() {
    // A thread that is ending no longer has its counter, and nobody to read it.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call goes to `System` with the caller's own arguments, and what it returns is
// returned. Counting does not allocate: the counter is const-initialised and needs no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        count_held(layout.size(), 0);
        // SAFETY: the caller keeps `alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_one();
        count_held(layout.size(), 0);
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is `System`'s.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        count_held(new_size, layout.size());
        // SAFETY: `block` came from one of the methods here, so from `System`; the rest is the
        // caller's contract.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_held(0, layout.size());
        // SAFETY: `block` came from one of the methods here, so from `System`, with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}
