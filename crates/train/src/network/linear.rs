//! A product with a weight matrix: `y = x wᵀ`.
//!
//! `x`: `[N, in]`, `w`: `[out, in]`, `y`: `[N, out]`.

use palmette_train_matmul::{MatMut, MatRef, Write, matmul};

/// `y = x wᵀ`
pub(crate) fn forward(y: &mut [f32], x: &[f32], w: &[f32], rows: usize) {
    let (outputs, inputs) = widths(y, x, w, rows);
    matmul(
        MatMut::row_major(y, rows, outputs),
        Write::Replace,
        1.0,
        MatRef::row_major(x, rows, inputs),
        MatRef::row_major(w, outputs, inputs).transposed(),
        1,
    );
}

/// `d_x = d_y w`, replacing `d_x`.
pub(crate) fn backward_input(d_x: &mut [f32], d_y: &[f32], w: &[f32], rows: usize) {
    let (outputs, inputs) = widths(d_y, d_x, w, rows);
    matmul(
        MatMut::row_major(d_x, rows, inputs),
        Write::Replace,
        1.0,
        MatRef::row_major(d_y, rows, outputs),
        MatRef::row_major(w, outputs, inputs),
        1,
    );
}

/// `d_w += d_yᵀ x`
pub(crate) fn backward_weight(d_w: &mut [f32], d_y: &[f32], x: &[f32], rows: usize) {
    let (outputs, inputs) = widths(d_y, x, d_w, rows);
    matmul(
        MatMut::row_major(d_w, outputs, inputs),
        Write::Add,
        1.0,
        MatRef::row_major(d_y, rows, outputs).transposed(),
        MatRef::row_major(x, rows, inputs),
        1,
    );
}

/// (out, in), from the lengths of `[rows, out]`, `[rows, in]` and `[out, in]`.
fn widths(y: &[f32], x: &[f32], w: &[f32], rows: usize) -> (usize, usize) {
    if rows == 0 {
        // Nothing is read, but the shapes must still agree.
        return (0, 0);
    }
    let (outputs, inputs) = (y.len() / rows, x.len() / rows);
    assert_eq!((y.len(), x.len()), (outputs * rows, inputs * rows), "ragged rows");
    assert_eq!(w.len(), outputs * inputs, "weight of another shape");
    (outputs, inputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::{check_gradient, floats, to_f64, weighted_sum};

    #[test]
    fn gradients_match_the_definition() {
        let (rows, outputs, inputs) = (3, 5, 4);
        let (x, w) = (floats(rows * inputs, 1), floats(outputs * inputs, 2));
        let d_y = floats(rows * outputs, 3);
        let reference = |x: &[f64], w: &[f64]| -> Vec<f64> {
            let mut y = Vec::new();
            for row in x.chunks(inputs) {
                y.extend(
                    w.chunks(inputs).map(|w| row.iter().zip(w).map(|(a, b)| a * b).sum::<f64>()),
                );
            }
            y
        };
        let (mut y, mut d_x, mut d_w) =
            (vec![0.0; rows * outputs], vec![9.0; x.len()], vec![0.0; w.len()]);
        forward(&mut y, &x, &w, rows);
        crate::network::testing::assert_close("y", &y, &reference(&to_f64(&x), &to_f64(&w)));
        backward_input(&mut d_x, &d_y, &w, rows);
        backward_weight(&mut d_w, &d_y, &x, rows);
        let (x, w) = (to_f64(&x), to_f64(&w));
        check_gradient("d_x", &d_x, &x, |x| weighted_sum(&reference(x, &w), &d_y));
        check_gradient("d_w", &d_w, &w, |w| weighted_sum(&reference(&x, w), &d_y));
    }
}
