//! Softmax and the gated activations.

use palmette_decode::exp;
use serde::{Deserialize, Serialize};

use super::reduce;

/// `row = softmax(row · scale)`. −∞ gives 0; at least one value must be finite.
#[inline(always)]
pub fn softmax_in_place(row: &mut [f32], scale: f32) {
    let max = reduce::max(row);
    row.iter_mut().for_each(|value| *value = exp((*value - max) * scale));
    let inverse = 1.0 / reduce::sum(row);
    row.iter_mut().for_each(|value| *value *= inverse);
}

/// `x · sigmoid(x)`
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `x · Φ(x)`, Φ by its tanh approximation: `x / 2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    // (1 + tanh u) / 2 = sigmoid(2 u)
    const TWICE_ROOT: f32 = 2.0 * 0.797_884_6;
    x / (1.0 + exp(-TWICE_ROOT * (x + 0.044_715 * x * x * x)))
}

/// `max(x, 0)`; NaN stays.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// The function that a gate's values go through, or all of a feed-forward part that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// [`silu`]
    #[default]
    Silu,
    /// [`gelu_tanh`]
    GeluTanh,
    /// [`relu`]
    Relu,
}

/// An [`Activation`] as a type, so that products with it are compiled apart and their loops do not
/// ask which it is.
pub(super) trait Gate: Copy {
    fn of(self, x: f32) -> f32;
}

/// [`silu`]
#[derive(Clone, Copy)]
pub(super) struct Silu;

/// [`gelu_tanh`]
#[derive(Clone, Copy)]
pub(super) struct GeluTanh;

/// [`relu`]
#[derive(Clone, Copy)]
pub(super) struct Relu;

impl Gate for Relu {
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        relu(x)
    }
}

impl Gate for Silu {
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        silu(x)
    }
}

impl Gate for GeluTanh {
    #[inline(always)]
    fn of(self, x: f32) -> f32 {
        gelu_tanh(x)
    }
}

/// SwiGLU: `out = silu(gate) · up`.
///
/// `gate_up`: `[rows, 2 F]`, a row's gate before its up part; `out`: `[rows, F]`.
pub fn swiglu(out: &mut [f32], gate_up: &[f32], width: usize) {
    for (out, gate_up) in out.chunks_exact_mut(width).zip(gate_up.chunks_exact(2 * width)) {
        let (gate, up) = gate_up.split_at(width);
        for ((out, &gate), &up) in out.iter_mut().zip(gate).zip(up) {
            *out = silu(gate) * up;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_is_the_definition() {
        for len in [1, 7, 8, 9, 33] {
            let values: Vec<f32> = (0..len).map(|i| (i * 37 % 11) as f32 - 5.0).collect();
            let mut row = values.clone();
            row[len / 2] = f32::NEG_INFINITY;
            if len == 1 {
                row[0] = 2.0;
            }
            let weights: Vec<f64> = row.iter().map(|&v| (f64::from(v) * 0.3).exp()).collect();
            let sum: f64 = weights.iter().sum();
            softmax_in_place(&mut row, 0.3);
            for (got, want) in row.iter().zip(weights) {
                assert!((f64::from(*got) - want / sum).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn silu_is_the_definition_far_out_too() {
        for x in [-200.0_f32, -20.0, -1.0, 0.0, 0.5, 30.0, 200.0] {
            let want = f64::from(x) / (1.0 + (-f64::from(x)).exp());
            assert!((f64::from(silu(x)) - want).abs() < 1e-5, "{x}");
        }
    }
    #[test]
    fn gelu_is_the_definition_far_out_too() {
        for x in [-1e6_f32, -200.0, -8.0, -1.0, -0.1, 0.0, 0.5, 3.0, 30.0, 200.0, 1e6] {
            let x64 = f64::from(x);
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x64 + 0.044_715 * x64.powi(3));
            let want = 0.5 * x64 * (1.0 + inner.tanh());
            let off = (f64::from(gelu_tanh(x)) - want).abs();
            assert!(off <= 1e-6 * x64.abs().max(1.0), "{x}: off by {off}");
        }
    }
}
