//! What does it cost when beams fork: to remember ancestors, to move keys and values in place, or
//! to copy them?
//!
//! ```text
//! cargo bench -p palmette-model --bench fork
//! ```
//!
//! Measured, for one earlier token of each beam, at the shape of 10 million parameters that
//! `palmette bench recommend` takes (6 layers of 2 x 2 heads of 64 values, 6 KiB a slot):
//! - `remembered`: what the session does, a number a beam;
//! - `moved_in_place`: xGR's two directions (arXiv 2512.11529, §5.1), with the parents in order, as
//!   it needs them;
//! - `copied`: into a second buffer, which is kept.
//!
//! Data: a fixed draw of parents, ascending, of which about one beam in three has no child. Moving
//! and copying must agree before anything is timed.

use divan::{Bencher, black_box};
use palmette_testkit::beam_slots;

const SLOT_VALUES: usize = 6 * 2 * 2 * 64;
const WIDTHS: [usize; 3] = [128, 512, 1024];

fn main() {
    for beams in WIDTHS {
        let (mut slots, parents) = (slots(beams), parents(beams));
        let expected = beam_slots::copied(&slots, SLOT_VALUES, &parents);
        let mut after = vec![0.0; slots.len()];
        copy(&slots, &parents, &mut after);
        assert!(after == expected);
        beam_slots::permuted_in_place(&mut slots, SLOT_VALUES, &parents).expect("they ascend");
        assert!(slots == expected);
    }
    divan::main();
}

fn slots(beams: usize) -> Vec<f32> {
    (0..beams * SLOT_VALUES).map(|at| at as f32).collect()
}

fn parents(beams: usize) -> Vec<u32> {
    let draw = |at: usize| (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let mut parents: Vec<u32> = (0..beams).map(|at| (draw(at) % beams as u64) as u32).collect();
    parents.sort_unstable();
    parents
}

#[divan::bench(args = WIDTHS)]
fn remembered(bencher: Bencher<'_, '_>, beams: usize) {
    let parents = parents(beams);
    let (before, mut after) = (parents.clone(), vec![0; beams]);
    bencher.bench_local(|| {
        for (row, &parent) in after.iter_mut().zip(&parents) {
            *row = before[parent as usize];
        }
        black_box(&mut after);
    });
}

#[divan::bench(args = WIDTHS)]
fn moved_in_place(bencher: Bencher<'_, '_>, beams: usize) {
    let (mut slots, parents) = (slots(beams), parents(beams));
    bencher.bench_local(|| {
        beam_slots::permuted_in_place(&mut slots, SLOT_VALUES, &parents).expect("they ascend");
        black_box(&mut slots);
    });
}

#[divan::bench(args = WIDTHS)]
fn copied(bencher: Bencher<'_, '_>, beams: usize) {
    let (slots, parents) = (slots(beams), parents(beams));
    let mut after = vec![0.0; slots.len()];
    bencher.bench_local(|| {
        copy(&slots, &parents, &mut after);
        black_box(&mut after);
    });
}

fn copy(slots: &[f32], parents: &[u32], after: &mut [f32]) {
    for (slot, &parent) in after.chunks_exact_mut(SLOT_VALUES).zip(parents) {
        slot.copy_from_slice(&slots[parent as usize * SLOT_VALUES..][..SLOT_VALUES]);
    }
}
