//! RMS norm.

/// `out = x / sqrt(mean(x²) + eps) · weight`, row by row.
///
/// `x`, `out`: `[rows, D]` with D the length of `weight`.
pub fn rms_norm(out: &mut [f32], x: &[f32], weight: &[f32], eps: f32) {
    let width = weight.len();
    for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
        let scale = rms_scale(x, eps);
        for ((out, &x), &weight) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * weight;
        }
    }
}

/// [`rms_norm`] of one row, over itself.
pub fn rms_norm_in_place(x: &mut [f32], weight: &[f32], eps: f32) {
    let scale = rms_scale(x, eps);
    for (x, &weight) in x.iter_mut().zip(weight) {
        *x *= scale * weight;
    }
}

fn rms_scale(x: &[f32], eps: f32) -> f32 {
    let mean = dot(x, x) / x.len() as f32;
    1.0 / (mean + eps).sqrt()
}

/// The dot product of two rows, summed in a fixed order of 8 lanes.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 8;
    let mut sums = [0.0_f32; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let (a_tail, b_tail) = (a_chunks.remainder(), b_chunks.remainder());
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let tail: f32 = a_tail.iter().zip(b_tail).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + tail
}
