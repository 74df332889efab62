//! Rotary positions.

/// Cosines and sines for every position, in the "rotate half" arrangement of Hugging Face: value
/// `i` of a head turns with value `i + C/2`, by the angle `position · theta^(−2i/C)`.
#[derive(Clone, Debug)]
pub struct RopeTable {
    /// `[positions, C/2]`
    cos: Vec<f32>,
    /// `[positions, C/2]`
    sin: Vec<f32>,
    half: usize,
}

impl RopeTable {
    /// Angles for positions below `num_positions`. Memory: 4 · C bytes a position.
    pub fn new(head_dim: usize, num_positions: usize, theta: f64) -> Self {
        let places = num_positions * (head_dim / 2);
        let frequency = |i: usize| theta.powf(-((2 * i) as f64) / head_dim as f64);
        Self::fill(vec![0.0; places], vec![0.0; places], head_dim / 2, frequency, 1.0)
    }

    /// Cosines and sines as they multiply. Shape of each: `[positions, C/2]`.
    pub fn cosines_and_sines(&self) -> (&[f32], &[f32]) {
        (&self.cos, &self.sin)
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.cos) + size_of_val(&*self.sin)
    }

    /// Angles in memory that the caller has taken, `[positions, C/2]` each: `frequency(i)` a
    /// position for value `i`. Cosines and sines are multiplied by `factor`, and with them what is
    /// turned.
    pub(crate) fn fill(
        mut cos: Vec<f32>,
        mut sin: Vec<f32>,
        half: usize,
        frequency: impl Fn(usize) -> f64,
        factor: f64,
    ) -> Self {
        // By columns, so that each wavelength is computed once.
        for i in 0..half {
            let frequency = frequency(i);
            let column = cos[i..].iter_mut().step_by(half).zip(sin[i..].iter_mut().step_by(half));
            for (position, (cos, sin)) in column.enumerate() {
                let angle = position as f64 * frequency;
                (*cos, *sin) = ((angle.cos() * factor) as f32, (angle.sin() * factor) as f32);
            }
        }
        Self { cos, sin, half }
    }

    /// Turns one head's values, `[C]`, to `position`.
    ///
    /// # Panics
    /// When the table has no such position.
    #[inline(always)]
    pub fn rotate(&self, head: &mut [f32], position: usize) {
        self.turn(head, position, 1.0);
    }

    /// Turns back: the inverse of [`rotate`](Self::rotate), and its gradient.
    #[inline(always)]
    pub fn rotate_back(&self, head: &mut [f32], position: usize) {
        self.turn(head, position, -1.0);
    }

    #[inline(always)]
    fn turn(&self, head: &mut [f32], position: usize, direction: f32) {
        let row = position * self.half..(position + 1) * self.half;
        let (cos, sin) = (&self.cos[row.clone()], &self.sin[row]);
        let (low, high) = head.split_at_mut(self.half);
        for (((low, high), &cos), &sin) in low.iter_mut().zip(high).zip(cos).zip(sin) {
            let (x, y, sin) = (*low, *high, sin * direction);
            *low = x * cos - y * sin;
            *high = y * cos + x * sin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RopeTable;

    #[test]
    fn products_depend_on_the_distance_only_and_turning_back_undoes() {
        let table = RopeTable::new(8, 64, 1e4);
        let (q, k): (Vec<f32>, Vec<f32>) =
            (0..8).map(|i| ((i as f32).sin(), (i as f32 * 0.7).cos())).unzip();
        let product = |q_at: usize, k_at: usize| {
            let (mut q, mut k) = (q.clone(), k.clone());
            table.rotate(&mut q, q_at);
            table.rotate(&mut k, k_at);
            super::super::dot(&q, &k)
        };
        assert!((product(10, 3) - product(47, 40)).abs() < 1e-5);
        assert!((product(10, 3) - product(10, 4)).abs() > 1e-3);
        let mut turned = q.clone();
        table.rotate(&mut turned, 33);
        table.rotate_back(&mut turned, 33);
        assert!(turned.iter().zip(&q).all(|(a, b)| (a - b).abs() < 1e-6));
    }
}
