//! The gradient of [`swiglu`](palmette_model::kernels::swiglu), `y = silu(gate) ∘ up`.
//!
//! silu(g) = g / (1 + e⁻ᵍ). `gate_up`: `[N, 2F]`, a row holding F gate values, then F up values.
//! `y`: `[N, F]`.

use palmette_model::kernels::exp;

/// Replaces `d_gate_up`. The sigmoid is computed again rather than kept.
pub(crate) fn backward(d_gate_up: &mut [f32], d_y: &[f32], gate_up: &[f32], inner: usize) {
    let rows = d_gate_up.chunks_mut(2 * inner).zip(gate_up.chunks(2 * inner));
    for ((d_row, row), d_y) in rows.zip(d_y.chunks(inner)) {
        let (gate, up) = row.split_at(inner);
        let (d_gate, d_up) = d_row.split_at_mut(inner);
        for j in 0..inner {
            let sigmoid = 1.0 / (1.0 + exp(-gate[j]));
            let silu = gate[j] * sigmoid;
            d_up[j] = d_y[j] * silu;
            d_gate[j] = d_y[j] * up[j] * (sigmoid + silu * (1.0 - sigmoid));
        }
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
        let (rows, inner) = (2, 7);
        let gate_up: Vec<f32> = floats(rows * 2 * inner, 1).iter().map(|x| x * 4.0).collect();
        let d_y = floats(rows * inner, 2);
        let (mut y, mut d) = (vec![0.0; d_y.len()], vec![9.0; gate_up.len()]);
        palmette_model::kernels::swiglu(&mut y, &gate_up, inner);
        backward(&mut d, &d_y, &gate_up, inner);
        let gate_up = to_f64(&gate_up);
        assert_close("y", &y, &reference::swiglu(&gate_up, inner));
        check_gradient("d_gate_up", &d, &gate_up, |x| {
            weighted_sum(&reference::swiglu(x, inner), &d_y)
        });
    }
}
