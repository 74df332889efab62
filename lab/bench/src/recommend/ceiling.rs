//! Ceiling of arithmetic: the speed of large matrix products on this machine.

use std::hint::black_box;
use std::time::Instant;

use palmette_train_matmul::{MatMut, MatRef, Write, matmul};

use crate::random::Random;

/// Rows, columns and depth of the product.
const SIZE: usize = 1024;

/// Billions of floating-point operations a second of the `gemm` crate: the best of `samples`
/// products of two `[1024, 1024]` matrices on `threads` threads.
pub(crate) fn gemm_gflops(threads: usize, samples: usize) -> f64 {
    let mut random = Random::new(1);
    let mut matrix = || -> Vec<f32> {
        (0..SIZE * SIZE).map(|_| random.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5).collect()
    };
    let (a, b, mut out) = (matrix(), matrix(), vec![0.0; SIZE * SIZE]);
    let mut best = f64::INFINITY;
    for _ in 0..samples.max(1) {
        let (a, b) = (MatRef::row_major(&a, SIZE, SIZE), MatRef::row_major(&b, SIZE, SIZE));
        let start = Instant::now();
        matmul(MatMut::row_major(&mut out, SIZE, SIZE), Write::Replace, 1.0, a, b, threads);
        best = best.min(start.elapsed().as_secs_f64());
        black_box(&mut out);
    }
    2.0 * (SIZE as f64).powi(3) / best / 1e9
}
