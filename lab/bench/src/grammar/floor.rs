//! Floor of all masks: a row written at the speed of memory.

use std::hint::black_box;
use std::time::Instant;

use palmette_core::mask;
use serde::Serialize;

/// Times of copying a mask row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Floor {
    /// Bytes of a row.
    pub row_bytes: usize,
    /// From a row that was just copied; the median of many.
    pub hot_us: f64,
    /// From one of more rows than caches hold; the median of many.
    pub cold_us: f64,
}

/// More than the caches of a core hold.
const COLD_BYTES: usize = 256 << 20;

/// Copies are timed this often.
const COPIES: usize = 2_001;

impl Floor {
    /// Measures with rows of this many words. Takes 256 MB and about a fifth of a second.
    pub fn measure(num_words: usize) -> Self {
        let row_bytes = num_words * size_of::<u32>();
        let num_rows = (COLD_BYTES / row_bytes.max(1)).max(1);
        let rows: Vec<u32> = (0..num_rows * num_words).map(|word| word as u32).collect();
        let mut target = vec![0_u32; num_words];
        // Far from the row before, and back at one only after thousands of others.
        let stride = (num_rows * 5 / 8) | 1;
        let mut time = |stride: usize| {
            let mut times: Vec<f64> = (0..COPIES)
                .map(|nth| {
                    let row = &rows[nth * stride % num_rows * num_words..][..num_words];
                    let began = Instant::now();
                    mask::copy(black_box(row), &mut target);
                    black_box(&mut target);
                    began.elapsed().as_secs_f64() * 1e6
                })
                .collect();
            times.sort_unstable_by(f64::total_cmp);
            times[COPIES / 2]
        };
        Self { row_bytes, hot_us: time(0), cold_us: time(stride) }
    }
}
