//! From the shards' gradients to new weights: sum, norm, clipping, AdamW, moving average.
//!
//! Work is cut into chunks of a fixed size, whose partial results are combined in order: nothing
//! depends on the number of threads.

use rayon::prelude::*;

use crate::options::TrainOptions;
use crate::params::{Layout, Role};

/// Values per unit of parallel work.
const CHUNK: usize = 16 * 1024;

/// The sum of the shards' gradients and its norm.
#[derive(Debug)]
pub(crate) struct GradientSum {
    pub(crate) values: Vec<f32>,
    /// Σ g² of each chunk.
    squares: Vec<f64>,
}

impl GradientSum {
    pub(crate) fn new(len: usize) -> Self {
        Self { values: vec![0.0; len], squares: vec![0.0; len.div_ceil(CHUNK)] }
    }

    /// Adds up the gradients in their order; returns the norm of the sum.
    pub(crate) fn compute<T: Sync>(
        &mut self,
        shards: &[T],
        gradient: impl Fn(&T) -> &[f32] + Sync,
    ) -> f64 {
        let chunks = self.values.par_chunks_mut(CHUNK).zip(&mut self.squares).enumerate();
        chunks.for_each(|(chunk, (sums, squares))| {
            let at = chunk * CHUNK..chunk * CHUNK + sums.len();
            sums.fill(0.0);
            for shard in shards {
                let values = &gradient(shard)[at.clone()];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            *squares = sum_of_squares(sums);
        });
        self.squares.iter().sum::<f64>().sqrt()
    }
}

/// Σ v² in eight f64 lanes.
fn sum_of_squares(values: &[f32]) -> f64 {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut sums = [0.0_f64; 8];
    for chunk in chunks {
        for lane in 0..8 {
            sums[lane] += f64::from(chunk[lane]) * f64::from(chunk[lane]);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>()
}

/// Factor that reduces a gradient of this norm to `limit`; 0 is no limit.
pub(crate) fn clip_factor(norm: f64, limit: f32) -> f32 {
    let limit = f64::from(limit);
    if limit > 0.0 && norm > limit { (limit / norm) as f32 } else { 1.0 }
}

/// AdamW's two moments, laid out as the weights.
///
/// Source: Loshchilov and Hutter, arXiv 1711.05101, algorithm 2.
#[derive(Debug)]
pub(crate) struct AdamW {
    pub(crate) first: Vec<f32>,
    pub(crate) second: Vec<f32>,
}

/// One update's constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    gradient_scale: f32,
    beta1: f32,
    beta2: f32,
    /// Learning rate over the first moment's bias correction.
    rate: f32,
    /// 1 / √(bias correction) of the second moment.
    second_scale: f32,
    epsilon: f32,
}

impl Update {
    /// The update that counts as `step`, from 0, of gradients that are multiplied by
    /// `gradient_scale` first.
    pub(crate) fn new(
        [beta1, beta2]: [f32; 2],
        epsilon: f32,
        gradient_scale: f32,
        learning_rate: f64,
        step: u64,
    ) -> Self {
        let correction = |beta: f32| 1.0 - f64::from(beta).powf((step + 1) as f64);
        Self {
            gradient_scale,
            beta1,
            beta2,
            rate: (learning_rate / correction(beta1)) as f32,
            second_scale: (1.0 / correction(beta2).sqrt()) as f32,
            epsilon,
        }
    }

    /// Moves weights that decay alike: they are multiplied by `keep` first.
    pub(crate) fn apply(
        self,
        weights: &mut [f32],
        first: &mut [f32],
        second: &mut [f32],
        gradient: &[f32],
        keep: f32,
    ) {
        let Self { gradient_scale, beta1, beta2, rate, second_scale, epsilon } = self;
        let len = weights.len();
        let (first, second, gradient) = (&mut first[..len], &mut second[..len], &gradient[..len]);
        for i in 0..len {
            let g = gradient[i] * gradient_scale;
            first[i] = beta1 * first[i] + (1.0 - beta1) * g;
            second[i] = beta2 * second[i] + (1.0 - beta2) * g * g;
            let moved = rate * first[i] / (second[i].sqrt() * second_scale + epsilon);
            weights[i] = weights[i] * keep - moved;
        }
    }
}

impl AdamW {
    pub(crate) fn new(len: usize) -> Self {
        Self { first: vec![0.0; len], second: vec![0.0; len] }
    }

    /// Moves the weights; `step` counts from 0, `gradient` is multiplied by `gradient_scale` first.
    #[expect(clippy::too_many_arguments, reason = "the arrays and scalars of the published update")]
    pub(crate) fn step(
        &mut self,
        weights: &mut [f32],
        gradient: &[f32],
        layout: &Layout,
        options: &TrainOptions,
        gradient_scale: f32,
        learning_rate: f64,
        step: u64,
    ) {
        self.step_from(0, weights, gradient, layout, options, gradient_scale, learning_rate, step);
    }

    /// Updates the weights from place `from` on as [`step`](Self::step) does; the others stay.
    /// Their gradient alone is given.
    #[expect(clippy::too_many_arguments, reason = "the arrays and scalars of the published update")]
    pub(crate) fn step_from(
        &mut self,
        from: usize,
        weights: &mut [f32],
        gradient: &[f32],
        layout: &Layout,
        options: &TrainOptions,
        gradient_scale: f32,
        learning_rate: f64,
        step: u64,
    ) {
        let weights = &mut weights[from..];
        let (first, second) = (&mut self.first[from..], &mut self.second[from..]);
        let betas = [options.beta1, options.beta2];
        let update = Update::new(betas, options.adam_epsilon, gradient_scale, learning_rate, step);
        let decaying = (1.0 - learning_rate * f64::from(options.weight_decay)) as f32;
        let keep = |role: Role| match role {
            Role::Norm | Role::Bias => 1.0,
            Role::Embedding if !options.decay_embeddings => 1.0,
            _ => decaying,
        };
        let moments = first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK));
        let chunks = weights.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK)).zip(moments);
        chunks.enumerate().for_each(|(chunk, ((weights, gradient), (first, second)))| {
            let (start, mut from) = (from + chunk * CHUNK, 0);
            while from < weights.len() {
                let tensor = &layout.tensors()[layout.tensor_at(start + from)];
                let to = (tensor.range().end - start).min(weights.len());
                let run = from..to;
                update.apply(
                    &mut weights[run.clone()],
                    &mut first[run.clone()],
                    &mut second[run.clone()],
                    &gradient[run],
                    keep(tensor.role),
                );
                from = to;
            }
        });
    }
}

/// Moves the average towards the weights; `step` counts from 0.
///
/// Early on the memory is (1 + step) / (10 + step) where that is shorter: the initial weights are
/// forgotten soon, whatever the final memory.
pub(crate) fn update_average(average: &mut [f32], weights: &[f32], decay: f32, step: u64) {
    let decay = f64::from(decay).min((1 + step) as f64 / (10 + step) as f64) as f32;
    average.par_chunks_mut(CHUNK).zip(weights.par_chunks(CHUNK)).for_each(|(average, weights)| {
        for (average, weight) in average.iter_mut().zip(weights) {
            *average += (1.0 - decay) * (weight - *average);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::{floats, tiny_config};

    #[test]
    fn the_sum_and_its_norm_are_those_of_plain_loops() {
        let len = 2 * CHUNK + 77;
        let shards = [floats(len, 1), floats(len, 2), floats(len, 3)];
        let mut sum = GradientSum::new(len);
        let norm = sum.compute(&shards, |shard| shard);
        let plain = |i: usize| shards[0][i] + shards[1][i] + shards[2][i];
        assert!((0..len).all(|i| sum.values[i] == plain(i)));
        let squares: f64 = (0..len).map(|i| f64::from(plain(i)).powi(2)).sum();
        assert!((norm - squares.sqrt()).abs() < 1e-9 * norm);
    }

    #[test]
    fn clipping_only_shrinks() {
        assert_eq!(clip_factor(4.0, 1.0), 0.25);
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert_eq!(clip_factor(4.0, 0.0), 1.0);
    }

    /// The published algorithm in f64, three steps, every tensor.
    #[test]
    fn adamw_is_the_published_algorithm_and_spares_norms() {
        let layout = Layout::new(&tiny_config(true));
        for decay_embeddings in [false, true] {
            let options =
                TrainOptions { weight_decay: 0.3, decay_embeddings, ..TrainOptions::default() };
            let len = layout.num_weights();
            let mut weights = floats(len, 1);
            let mut adam = AdamW::new(len);
            let mut exact: Vec<f64> = weights.iter().copied().map(f64::from).collect();
            let (mut m, mut v) = (vec![0.0; len], vec![0.0; len]);
            let (beta1, beta2) = (f64::from(options.beta1), f64::from(options.beta2));
            for step in 0..3 {
                let gradient = floats(len, 10 + step);
                adam.step(&mut weights, &gradient, &layout, &options, 0.5, 0.01, step);
                for i in 0..len {
                    let name = &layout.tensors()[layout.tensor_at(i)].name;
                    let spared = name.contains("norm")
                        || (name.contains("embed_tokens") && !decay_embeddings);
                    let g = 0.5 * f64::from(gradient[i]);
                    m[i] = beta1 * m[i] + (1.0 - beta1) * g;
                    v[i] = beta2 * v[i] + (1.0 - beta2) * g * g;
                    let t = (step + 1) as i32;
                    let m_hat = m[i] / (1.0 - beta1.powi(t));
                    let v_hat = v[i] / (1.0 - beta2.powi(t));
                    let decay = if spared { 0.0 } else { 0.3 };
                    exact[i] -= 0.01 * (m_hat / (v_hat.sqrt() + 1e-8) + decay * exact[i]);
                }
            }
            for (i, (&found, &wanted)) in weights.iter().zip(&exact).enumerate() {
                assert!((f64::from(found) - wanted).abs() < 1e-5, "{i}: {found}, not {wanted}");
            }
        }
    }

    #[test]
    fn the_average_follows_the_weights() {
        let (mut average, weights) = (vec![0.0; 3], vec![1.0; 3]);
        update_average(&mut average, &weights, 0.5, 1_000_000);
        assert_eq!(average, [0.5; 3]);
        update_average(&mut average, &weights, 0.999, 0);
        assert!((average[0] - 0.95).abs() < 1e-6, "an early step forgets fast: {}", average[0]);
    }
}
