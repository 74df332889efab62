//! Rotary positions, in the "rotate half" convention of Hugging Face.
//!
//! Values `j` and `j + C/2` of a head form a pair, turned by the angle `position · theta^(-2j/C)`.

/// Cosines and sines of every angle that occurs: `[positions, C/2]` each.
#[derive(Clone, Debug)]
pub(crate) struct RopeTable {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeTable {
    pub(crate) fn new(head_dim: usize, positions: usize, theta: f64) -> Self {
        let half = head_dim / 2;
        let frequency = |j: usize| theta.powf(-2.0 * j as f64 / head_dim as f64);
        let frequencies: Vec<f64> = (0..half).map(frequency).collect();
        let mut cos = Vec::with_capacity(positions * half);
        let mut sin = Vec::with_capacity(positions * half);
        for position in 0..positions {
            for frequency in &frequencies {
                let angle = position as f64 * frequency;
                cos.push(angle.cos() as f32);
                sin.push(angle.sin() as f32);
            }
        }
        Self { half, cos, sin }
    }

    /// Turns one head's values, in place, to their place in the sequence.
    #[inline]
    pub(crate) fn rotate(&self, head: &mut [f32], position: usize) {
        let (cos, sin) = self.angles(position);
        let (low, high) = head.split_at_mut(self.half);
        for j in 0..cos.len() {
            let (a, b) = (low[j], high[j]);
            low[j] = a * cos[j] - b * sin[j];
            high[j] = b * cos[j] + a * sin[j];
        }
    }

    /// Turns back: the transpose of [`RopeTable::rotate`], hence its backward pass.
    #[inline]
    pub(crate) fn rotate_back(&self, head: &mut [f32], position: usize) {
        let (cos, sin) = self.angles(position);
        let (low, high) = head.split_at_mut(self.half);
        for j in 0..cos.len() {
            let (a, b) = (low[j], high[j]);
            low[j] = a * cos[j] + b * sin[j];
            high[j] = b * cos[j] - a * sin[j];
        }
    }

    fn angles(&self, position: usize) -> (&[f32], &[f32]) {
        let at = position * self.half..(position + 1) * self.half;
        (&self.cos[at.clone()], &self.sin[at])
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
        let table = RopeTable::new(6, 10, 100.0);
        for position in [0, 1, 9] {
            let (x, mut d) = (floats(6, 1), floats(6, 2));
            let d_y = d.clone();
            let mut y = x.clone();
            table.rotate(&mut y, position);
            let turn = |x: &[f64]| reference::rope(x, position, 100.0);
            assert_close("y", &y, &turn(&to_f64(&x)));
            table.rotate_back(&mut d, position);
            check_gradient("d_x", &d, &to_f64(&x), |x| weighted_sum(&turn(x), &d_y));
        }
    }
}
