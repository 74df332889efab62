//! Matrix products over strided f32 views, through the kernels of the `gemm` crate.
//!
//! Training computes them, and benches take their speed as what this machine can do. Serving has
//! products of its own (`palmette-model`, `kernels/panels.rs`), so that these kernels, which take
//! half a minute to compile, are a crate that it does not build.
//!
//! ```
//! use palmette_train_matmul::{MatMut, MatRef, Write, matmul};
//!
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]);
//! let mut out = [0.0; 2];
//! let (a, b) = (MatRef::row_major(&a, 2, 2), MatRef::row_major(&b, 2, 1));
//! matmul(MatMut::row_major(&mut out, 2, 1), Write::Replace, 1.0, a, b, 1);
//! assert_eq!(out, [17.0, 39.0]);
//! ```
#![deny(unsafe_code)]

use std::mem::swap;

use gemm_common::Parallelism;

/// A read-only `[rows, cols]` view of f32 values; element `(r, c)` is `data[r * row_stride + c *
/// col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct MatRef<'a> {
    data: &'a [f32],
    shape: Shape,
}

/// A writable `[rows, cols]` view of f32 values, laid out as [`MatRef`]; no two elements may share
/// a place.
#[derive(Debug)]
pub struct MatMut<'a> {
    data: &'a mut [f32],
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl Shape {
    /// One past the last element's place; 0 for an empty view.
    fn extent(&self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }

    /// True if distinct elements have distinct places, as a written view must.
    fn is_injective(&self) -> bool {
        let (near, near_len, far, far_len) = if self.col_stride <= self.row_stride {
            (self.col_stride, self.cols, self.row_stride, self.rows)
        } else {
            (self.row_stride, self.rows, self.col_stride, self.cols)
        };
        (near_len <= 1 || near > 0) && (far_len <= 1 || far > near * near_len.saturating_sub(1))
    }
}

impl<'a> MatRef<'a> {
    /// A row-major matrix whose rows lie one after another.
    pub fn row_major(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// A row-major matrix whose rows begin `row_stride` values apart.
    ///
    /// # Panics
    /// When `data` is shorter than the view.
    pub fn strided(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        let shape = Shape { rows, cols, row_stride, col_stride: 1 };
        assert!(shape.extent() <= data.len(), "{shape:?} over {} values", data.len());
        Self { data, shape }
    }

    /// Exchanges rows and columns; no value moves.
    pub fn transposed(self) -> Self {
        let Shape { rows, cols, row_stride, col_stride } = self.shape;
        let shape =
            Shape { rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride };
        Self { shape, ..self }
    }
}

impl<'a> MatMut<'a> {
    /// A row-major matrix whose rows lie one after another.
    pub fn row_major(data: &'a mut [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    /// A row-major matrix whose rows begin `row_stride` values apart.
    ///
    /// # Panics
    /// When `data` is shorter than the view, or rows overlap.
    pub fn strided(data: &'a mut [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        let shape = Shape { rows, cols, row_stride, col_stride: 1 };
        assert!(shape.extent() <= data.len(), "{shape:?} over {} values", data.len());
        assert!(shape.is_injective(), "{shape:?} writes a place twice");
        Self { data, shape }
    }
}

/// Treatment of the values already in a product's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// `out = a × b`
    Replace,
    /// `out += a × b`
    Add,
}

/// `out ← scale · a × b`: `a` is `[m, k]`, `b` is `[k, n]`, `out` is `[m, n]`.
///
/// `threads` bounds the rayon workers used; the result does not depend on it, since work is never
/// split between workers along `k`. Cost: 2·m·n·k floating-point operations.
///
/// The result does depend on the shape, in its last bits: `gemm` takes another path for a matrix of
/// one row than for several, and chooses by m, n and k after how many products along `k` a partial
/// sum is put away. A row computed alone and the same row computed among others may therefore
/// differ by rounding.
///
/// # Panics
/// When the shapes do not agree.
pub fn matmul(
    out: MatMut<'_>,
    write: Write,
    scale: f32,
    a: MatRef<'_>,
    b: MatRef<'_>,
    threads: usize,
) {
    let (m, k, n) = (a.shape.rows, a.shape.cols, b.shape.cols);
    assert_eq!(k, b.shape.rows, "inner sizes of a product differ");
    assert_eq!((m, n), (out.shape.rows, out.shape.cols), "output shape of a product");
    if m == 0 || n == 0 {
        return;
    }
    let parallelism = if threads > 1 { Parallelism::Rayon(threads) } else { Parallelism::None };
    let Shape { row_stride: mut down, col_stride: mut right, .. } = out.shape;
    let (mut m, mut n, mut left, mut other) = (m, n, a, b);
    // The kernels write columns. Rows are the columns of the transposed product, `bᵀ × aᵀ`.
    if right < down {
        swap(&mut m, &mut n);
        swap(&mut down, &mut right);
        (left, other) = (b.transposed(), a.transposed());
    }
    let multiply = gemm_f32::gemm::f32::get_gemm_fn();
    // SAFETY: every view's constructor checked that its last element lies inside its slice, the
    // shapes agree (asserted above; transposing both sides and the output keeps that), `out` is
    // injective, and Rust's borrows keep `out` apart from `a` and `b`. The function is the one for
    // this processor. PERF: these kernels have no safe interface. Training a model of 1M weights
    // through them, all else included, runs at 99 GFLOP/s on one core with AVX-512 and 65 with
    // AVX2: `cargo run --release -p palmette-train --example throughput -- 1`.
    #[allow(unsafe_code)]
    unsafe {
        multiply(
            m,
            n,
            k,
            out.data.as_mut_ptr(),
            right as isize,
            down as isize,
            write == Write::Add,
            left.data.as_ptr(),
            left.shape.col_stride as isize,
            left.shape.row_stride as isize,
            other.data.as_ptr(),
            other.shape.col_stride as isize,
            other.shape.row_stride as isize,
            1.0,
            scale,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 24) as f32 - 0.5
            })
            .collect()
    }

    #[test]
    fn equals_three_loops() {
        for (m, k, n) in [(1, 1, 1), (3, 5, 2), (17, 33, 9), (128, 64, 200), (2, 0, 3)] {
            let (a, b_t, start) = (values(m * k, 1), values(n * k, 2), values(m * n, 3));
            for write in [Write::Replace, Write::Add] {
                let mut out = start.clone();
                let b = MatRef::row_major(&b_t, n, k).transposed();
                let view = MatMut::row_major(&mut out, m, n);
                matmul(view, write, 0.5, MatRef::row_major(&a, m, k), b, 1);
                for i in 0..m {
                    for j in 0..n {
                        let product: f32 = (0..k).map(|l| a[i * k + l] * b_t[j * k + l]).sum();
                        let kept = if write == Write::Add { start[i * n + j] } else { 0.0 };
                        let want = kept + 0.5 * product;
                        assert!((out[i * n + j] - want).abs() < 1e-4, "{m}x{k}x{n} at {i},{j}");
                    }
                }
            }
        }
    }

    #[test]
    fn thread_count_changes_nothing() {
        let (m, k, n) = (130, 300, 257);
        let (a, b) = (values(m * k, 4), values(k * n, 5));
        let run = |threads| {
            let mut out = vec![0.0; m * n];
            let (a, b) = (MatRef::row_major(&a, m, k), MatRef::row_major(&b, k, n));
            matmul(MatMut::row_major(&mut out, m, n), Write::Replace, 1.0, a, b, threads);
            out
        };
        let one = run(1);
        for threads in [2, 3, 8] {
            assert_eq!(one, run(threads), "{threads} threads");
        }
    }

    #[test]
    #[should_panic(expected = "writes a place twice")]
    fn overlapping_output_is_refused() {
        let mut data = [0.0; 8];
        MatMut::strided(&mut data, 3, 4, 2);
    }
}
