//! A multilayer perceptron with ReLU between its layers, and its gradient.
//!
//! Layer i maps `[N, width_i]` to `[N, width_i+1]`: `y = x wᵀ + b`. Weights lie in one flat array:
//! w and b of the first layer, then of the second, and so on.

use std::ops::Range;

use super::draws::Draws;
use crate::network::linear;

/// The shape of a perceptron.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Perceptron {
    /// Width of the input, then of each layer's output.
    widths: Vec<usize>,
}

/// The activations of some rows, kept for the backward pass.
#[derive(Debug, Default)]
pub(super) struct Activations {
    /// Output of each layer, after ReLU where there is one.
    layers: Vec<Vec<f32>>,
    gradient: Vec<f32>,
    below: Vec<f32>,
}

impl Activations {
    /// The last layer's.
    pub(super) fn output(&self) -> &[f32] {
        self.layers.last().map_or(&[], Vec::as_slice)
    }
}

impl Perceptron {
    /// Perceptron of these widths: the input's, then each layer's.
    pub(super) fn new(widths: Vec<usize>) -> Self {
        Self { widths }
    }

    /// The widths, the input's first.
    pub(super) fn widths(&self) -> &[usize] {
        &self.widths
    }

    pub(super) fn num_weights(&self) -> usize {
        self.widths.windows(2).map(|pair| pair[0] * pair[1] + pair[1]).sum()
    }

    /// Places of layer `layer`'s w `[out, in]` and b `[out]`.
    pub(super) fn ranges(&self, layer: usize) -> (Range<usize>, Range<usize>) {
        let size = |pair: &[usize]| pair[0] * pair[1] + pair[1];
        let start: usize = self.widths.windows(2).take(layer).map(size).sum();
        let (inputs, outputs) = (self.widths[layer], self.widths[layer + 1]);
        let middle = start + inputs * outputs;
        (start..middle, middle..middle + outputs)
    }

    pub(super) fn num_layers(&self) -> usize {
        self.widths.len() - 1
    }

    /// Weights uniform within ±√(6 / in), as ReLU wants them (He et al., 2015); biases 0.
    pub(super) fn init(&self, draws: &mut Draws) -> Vec<f32> {
        let mut weights = vec![0.0; self.num_weights()];
        for layer in 0..self.num_layers() {
            let bound = (6.0 / self.widths[layer] as f64).sqrt();
            for weight in &mut weights[self.ranges(layer).0] {
                *weight = ((2.0 * draws.uniform() - 1.0) * bound) as f32;
            }
        }
        weights
    }

    /// Computes the layers of `rows` rows of `x`.
    pub(super) fn forward(
        &self,
        weights: &[f32],
        x: &[f32],
        rows: usize,
        activations: &mut Activations,
    ) {
        activations.layers.resize(self.num_layers(), Vec::new());
        for layer in 0..self.num_layers() {
            let (below, here) = activations.layers.split_at_mut(layer);
            let (input, output) = (below.last().map_or(x, Vec::as_slice), &mut here[0]);
            output.resize(rows * self.widths[layer + 1], 0.0);
            let (w, b) = self.ranges(layer);
            linear::forward(output, input, &weights[w], rows);
            let is_last = layer + 1 == self.num_layers();
            for row in output.chunks_mut(self.widths[layer + 1]) {
                for (value, bias) in row.iter_mut().zip(&weights[b.clone()]) {
                    *value += bias;
                    if !is_last {
                        *value = value.max(0.0);
                    }
                }
            }
        }
    }

    /// Adds the gradient of the weights to `d_weights`, given that of the output; puts that of the
    /// input into `d_x` if it is wanted.
    pub(super) fn backward(
        &self,
        weights: &[f32],
        x: &[f32],
        activations: &mut Activations,
        d_output: &[f32],
        d_weights: &mut [f32],
        d_x: Option<&mut Vec<f32>>,
    ) {
        let rows = x.len() / self.widths[0];
        let Activations { layers, gradient, below } = activations;
        gradient.clear();
        gradient.extend_from_slice(d_output);
        for layer in (0..self.num_layers()).rev() {
            let input = if layer == 0 { x } else { &layers[layer - 1] };
            let (w, b) = self.ranges(layer);
            linear::backward_weight(&mut d_weights[w.clone()], gradient, input, rows);
            for row in gradient.chunks(self.widths[layer + 1]) {
                d_weights[b.clone()].iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
            if layer == 0 && d_x.is_none() {
                return;
            }
            below.resize(rows * self.widths[layer], 0.0);
            linear::backward_input(below, gradient, &weights[w], rows);
            if layer > 0 {
                // ReLU passes where it gave something.
                for (value, output) in below.iter_mut().zip(&layers[layer - 1]) {
                    if *output <= 0.0 {
                        *value = 0.0;
                    }
                }
            }
            std::mem::swap(gradient, below);
        }
        if let Some(d_x) = d_x {
            d_x.clear();
            d_x.extend_from_slice(gradient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::{assert_close, check_gradient, floats, to_f64, weighted_sum};

    fn reference(shape: &Perceptron, weights: &[f64], x: &[f64]) -> Vec<f64> {
        let mut rows: Vec<Vec<f64>> = x.chunks(shape.widths[0]).map(<[f64]>::to_vec).collect();
        for layer in 0..shape.num_layers() {
            let (w, b) = shape.ranges(layer);
            for row in &mut rows {
                let of_output = weights[w.clone()].chunks(shape.widths[layer]);
                *row = of_output
                    .zip(&weights[b.clone()])
                    .map(|(w, bias)| row.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + bias)
                    .map(|y| if layer + 1 < shape.num_layers() { y.max(0.0) } else { y })
                    .collect();
            }
        }
        rows.concat()
    }

    #[test]
    fn gradients_match_the_definition() {
        let shape = Perceptron::new(vec![4, 6, 5, 3]);
        let mut weights = shape.init(&mut Draws::new(1, 0));
        weights.iter_mut().zip(floats(shape.num_weights(), 4)).for_each(|(w, x)| *w += 0.1 * x);
        let (x, d_y) = (floats(8, 2), floats(6, 3));
        let mut kept = Activations::default();
        shape.forward(&weights, &x, 2, &mut kept);
        let (exact_weights, exact_x) = (to_f64(&weights), to_f64(&x));
        assert_close("y", kept.output(), &reference(&shape, &exact_weights, &exact_x));
        let (mut d_weights, mut d_x) = (vec![0.0; weights.len()], Vec::new());
        shape.backward(&weights, &x, &mut kept, &d_y, &mut d_weights, Some(&mut d_x));
        check_gradient("d_weights", &d_weights, &exact_weights, |w| {
            weighted_sum(&reference(&shape, w, &exact_x), &d_y)
        });
        check_gradient("d_x", &d_x, &exact_x, |x| {
            weighted_sum(&reference(&shape, &exact_weights, x), &d_y)
        });
    }
}
