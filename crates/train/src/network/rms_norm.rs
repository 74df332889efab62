//! Root-mean-square norm: `y = w ∘ x / √(mean(x²) + eps)`, row by row.

use palmette_model::kernels::{rms_norm_row, sum};

/// Adds to `d_x` and `d_w` of one row; `scale` is what [`rms_norm_row`] returned.
///
/// With x̂ = x · scale and g = d_y ∘ w: `d_x += scale · (g − x̂ · mean(g ∘ x̂))`, `d_w += d_y ∘
/// x̂`. `product` is scratch of the row's width.
#[inline]
pub(crate) fn backward_row(
    d_x: &mut [f32],
    d_w: &mut [f32],
    product: &mut [f32],
    d_y: &[f32],
    x: &[f32],
    w: &[f32],
    scale: f32,
) {
    let width = x.len();
    let (d_x, d_w, product) = (&mut d_x[..width], &mut d_w[..width], &mut product[..width]);
    let (d_y, w) = (&d_y[..width], &w[..width]);
    for i in 0..width {
        let d_y_x = d_y[i] * x[i];
        d_w[i] += d_y_x * scale;
        product[i] = d_y_x * w[i];
    }
    let mean = sum(product) * scale * scale / width as f32;
    for i in 0..width {
        d_x[i] += scale * (d_y[i] * w[i] - x[i] * mean);
    }
}

/// [`rms_norm_row`] over the rows of `x`: `[N, D]`; `scales`: `[N]`.
pub(crate) fn forward(y: &mut [f32], scales: &mut [f32], x: &[f32], w: &[f32], eps: f32) {
    let width = w.len();
    for ((y, x), scale) in y.chunks_mut(width).zip(x.chunks(width)).zip(scales) {
        *scale = rms_norm_row(y, x, w, eps);
    }
}

/// [`backward_row`] over the rows of `x`: `[N, D]`.
pub(crate) fn backward(
    d_x: &mut [f32],
    d_w: &mut [f32],
    product: &mut [f32],
    d_y: &[f32],
    x: &[f32],
    w: &[f32],
    scales: &[f32],
) {
    let width = w.len();
    for (row, &scale) in scales.iter().enumerate() {
        let at = row * width..(row + 1) * width;
        backward_row(&mut d_x[at.clone()], d_w, product, &d_y[at.clone()], &x[at], w, scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::{
        assert_close, check_gradient, floats, reference, to_f64, weighted_sum,
    };

    #[test]
    fn gradients_match_the_definition() {
        let (rows, width, eps) = (3, 19, 1e-3);
        let (x, w, d_y) = (floats(rows * width, 1), floats(width, 2), floats(rows * width, 3));
        let mut y = vec![0.0; x.len()];
        let mut scales = vec![0.0; rows];
        forward(&mut y, &mut scales, &x, &w, eps);
        let norm = |x: &[f64], w: &[f64]| reference::rms_norm(x, w, f64::from(eps));
        assert_close("y", &y, &norm(&to_f64(&x), &to_f64(&w)));

        // What `d_x` held before stays in it: it is the residual stream's gradient.
        let mut d_x = vec![1.0; x.len()];
        let (mut d_w, mut product) = (vec![0.0; width], vec![0.0; width]);
        backward(&mut d_x, &mut d_w, &mut product, &d_y, &x, &w, &scales);
        d_x.iter_mut().for_each(|d| *d -= 1.0);
        let (x, w) = (to_f64(&x), to_f64(&w));
        check_gradient("d_x", &d_x, &x, |x| weighted_sum(&norm(x, &w), &d_y));
        check_gradient("d_w", &d_w, &w, |w| weighted_sum(&norm(&x, w), &d_y));
    }
}
