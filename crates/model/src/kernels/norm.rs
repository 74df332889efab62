//! RMS norm: `out = x / sqrt(mean(x²) + eps) · weight`, row by row.

use super::reduce::dot;

/// Norms every row: `x`, `out`: `[rows, D]` with D the length of `weight`.
pub fn rms_norm(out: &mut [f32], x: &[f32], weight: &[f32], eps: f32) {
    let width = weight.len();
    for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
        rms_norm_row(out, x, weight, eps);
    }
}

/// Norms one row; returns the factor `1 / sqrt(mean(x²) + eps)`, which the gradient needs.
///
/// # Panics
/// When `out` or `weight` is shorter than `x`.
#[inline(always)]
pub fn rms_norm_row(out: &mut [f32], x: &[f32], weight: &[f32], eps: f32) -> f32 {
    let width = x.len();
    let (out, weight) = (&mut out[..width], &weight[..width]);
    let scale = rms_scale(x, eps);
    for i in 0..width {
        out[i] = x[i] * scale * weight[i];
    }
    scale
}

/// [`rms_norm`] of one row, over itself.
#[inline(always)]
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let scale = rms_scale(x, eps);
    for (x, &weight) in x.iter_mut().zip(weight) {
        *x *= scale * weight;
    }
}

#[inline(always)]
fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let mean = dot(x, x) / x.len() as f32;
    1.0 / (mean + eps).sqrt()
}
