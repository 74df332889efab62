//! Codebooks learned together with an encoder and a decoder.
//!
//! The encoder makes a short vector z of an embedding x; residual quantisation makes codes of z;
//! the decoder makes x again of the sum of their entries. With r_l what is left before level l and
//! e_l its entry, the loss of a row is `|x − x̂|² + Σ_l (|sg(r_l) − e_l|² + β |r_l − sg(e_l)|²)`,
//! where `sg` stops gradients: the residual-quantised autoencoder of Zeghidour et al.
//! ("SoundStream", 2021) and Lee et al. (2022) as TIGER uses it. The decoder's gradient goes
//! straight through to z. We differ: an r_l passes its gradient to z only, not to the entries
//! before it.

use rayon::prelude::*;

use super::draws::Draws;
use super::embeddings::rows_of;
use super::k_means::k_means;
use super::nearest::Nearest;
use super::perceptron::{Activations, Perceptron};
use super::quality::{mean, variance};
use super::residual_k_means::{quantise, subtract};
use crate::error::{TrainError, TrainErrorKind};
use crate::optimizer::{GradientSum, Update};

/// Rows that one thread computes at a time; gradients are summed in the order of these pieces.
const PIECE: usize = 128;
/// Limit on the rows from which codebooks are begun.
const ROWS_TO_BEGIN: usize = 20_000;
const ROUNDS_TO_BEGIN: usize = 20;
const BETAS: [f32; 2] = [0.9, 0.999];
const EPSILON: f32 = 1e-8;

/// Options of training an [`RqVae`].
#[derive(Clone, Debug, PartialEq)]
pub struct RqVaeOptions {
    /// Widths of the layers between an embedding and z; the decoder has them in reverse.
    pub hidden: Vec<usize>,
    /// Numbers in z.
    pub latent: usize,
    /// Steps; as many passes over the items are made as these need at least.
    pub steps: usize,
    /// Items per step.
    pub batch_size: usize,
    /// Adam's, from the first step to the last.
    pub learning_rate: f64,
    /// β: how strongly z is drawn to its entries.
    pub commitment: f32,
}

impl Default for RqVaeOptions {
    fn default() -> Self {
        Self {
            hidden: vec![512, 256, 128],
            latent: 32,
            steps: 5000,
            batch_size: 1024,
            learning_rate: 1e-3,
            commitment: 0.25,
        }
    }
}

impl RqVaeOptions {
    /// Passes over this many items.
    pub(super) fn epochs(&self, items: usize) -> usize {
        self.steps.div_ceil(items.div_ceil(self.batch_size))
    }
}

/// A residual-quantised variational autoencoder.
#[derive(Clone, Debug, PartialEq)]
pub struct RqVae {
    pub(super) scaling: Scaling,
    pub(super) encoder: Perceptron,
    pub(super) decoder: Perceptron,
    /// Weights of the encoder, then of the decoder.
    pub(super) weights: Vec<f32>,
    /// `[K, latent]` for each level.
    pub(super) codebooks: Vec<Vec<f32>>,
}

/// Scaling of embeddings before the encoder: their mean, and one number for unit variance.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scaling {
    pub(super) mean: Vec<f32>,
    pub(super) deviation: f32,
}

impl Scaling {
    fn of(rows: &[f32], width: usize) -> Self {
        let mean = mean(rows, width);
        // A row has `width` numbers: the variance of one is its share.
        let deviation = (variance(rows, width) / width as f64).sqrt() as f32;
        let deviation = if deviation > 0.0 { deviation } else { 1.0 };
        Self { mean: mean.into_iter().map(|x| x as f32).collect(), deviation }
    }

    fn apply(&self, rows: &[f32]) -> Vec<f32> {
        let scaled = rows.chunks(self.mean.len()).flat_map(|row| {
            row.iter().zip(&self.mean).map(|(x, mean)| (x - mean) / self.deviation)
        });
        scaled.collect()
    }
}

/// One piece of a batch: what is computed and its gradient.
#[derive(Debug)]
struct Piece {
    encoded: Activations,
    decoded: Activations,
    /// Gradient of encoder, decoder, and codebooks one after another.
    gradient: Vec<f32>,
    /// Codes, `[rows, L]`.
    codes: Vec<u32>,
    loss: f64,
}

impl RqVae {
    /// Trains on rows `[N, D]`, and calls `done` with the epoch and its mean loss after each.
    ///
    /// # Errors
    /// When the loss stops being finite.
    pub(super) fn fit(
        rows: &[f32],
        width: usize,
        levels: usize,
        codes: usize,
        options: &RqVaeOptions,
        seed: u64,
        done: &mut dyn FnMut(usize, f64),
    ) -> Result<Self, TrainError> {
        let scaling = Scaling::of(rows, width);
        let rows = scaling.apply(rows);
        let widths = [&[width][..], &options.hidden, &[options.latent]].concat();
        let encoder = Perceptron::new(widths.clone());
        let decoder = Perceptron::new(widths.into_iter().rev().collect());
        let mut draws = Draws::new(seed, 0);
        let mut weights = encoder.init(&mut draws);
        weights.extend(decoder.init(&mut draws));
        let mut model = Self { scaling, encoder, decoder, weights, codebooks: Vec::new() };
        model.begin_codebooks(&rows, levels, codes, &mut draws);
        model.train(&rows, options, seed, done)?;
        Ok(model)
    }

    /// Numbers in an embedding (D).
    pub fn width(&self) -> usize {
        self.encoder.widths()[0]
    }

    /// Numbers in z.
    pub fn latent(&self) -> usize {
        self.decoder.widths()[0]
    }

    /// The codebooks, `[K, latent]` each.
    pub fn codebooks(&self) -> &[Vec<f32>] {
        &self.codebooks
    }

    /// z of rows `[N, D]`, as `[N, latent]`.
    pub(super) fn latents(&self, rows: &[f32]) -> Vec<f32> {
        self.latent_of(&self.scaling.apply(rows))
    }

    /// The embeddings `[N, D]` that the decoder makes of codes `[N, L]`, of which only the first
    /// `levels` count.
    pub(super) fn decode(&self, codes: &[u32], levels: usize) -> Vec<f32> {
        let latent = self.latent();
        let weights = &self.weights[self.encoder.num_weights()..];
        let pieces = codes.par_chunks(PIECE * self.codebooks.len()).flat_map_iter(|codes| {
            let rows = codes.len() / self.codebooks.len();
            let mut sums = vec![0.0; rows * latent];
            for (codes, sum) in codes.chunks(self.codebooks.len()).zip(sums.chunks_mut(latent)) {
                for (codebook, &code) in self.codebooks.iter().zip(codes).take(levels) {
                    let entry = &codebook[code as usize * latent..][..latent];
                    sum.iter_mut().zip(entry).for_each(|(sum, entry)| *sum += entry);
                }
            }
            let mut decoded = Activations::default();
            self.decoder.forward(weights, &sums, rows, &mut decoded);
            let Scaling { mean, deviation } = &self.scaling;
            let unscaled = decoded.output().chunks(mean.len()).flat_map(|row| {
                row.iter().zip(mean).map(|(x, mean)| x * deviation + mean).collect::<Vec<_>>()
            });
            unscaled.collect::<Vec<_>>()
        });
        pieces.collect()
    }

    /// z of scaled rows, `[N, latent]`.
    fn latent_of(&self, rows: &[f32]) -> Vec<f32> {
        let weights = &self.weights[..self.encoder.num_weights()];
        let pieces = rows.par_chunks(PIECE * self.width()).flat_map_iter(|rows| {
            let mut encoded = Activations::default();
            self.encoder.forward(weights, rows, rows.len() / self.width(), &mut encoded);
            encoded.output().to_vec()
        });
        pieces.collect()
    }

    /// Centres of what the fresh encoder makes of some rows: random entries would mostly never be
    /// nearest.
    fn begin_codebooks(&mut self, rows: &[f32], levels: usize, codes: usize, draws: &mut Draws) {
        let drawn = draws.sample(rows.len() / self.width(), ROWS_TO_BEGIN);
        let latent = self.latent();
        let mut residual = self.latent_of(&rows_of(rows, self.width(), &drawn));
        let (mut chosen, mut distances) = (vec![0; drawn.len()], vec![0.0; drawn.len()]);
        for _ in 0..levels {
            let codebook = k_means(&residual, latent, codes, ROUNDS_TO_BEGIN, draws);
            Nearest::new(&codebook, latent).assign(&residual, &mut chosen, &mut distances);
            subtract(&mut residual, latent, &codebook, &chosen);
            self.codebooks.push(codebook);
        }
    }

    fn train(
        &mut self,
        rows: &[f32],
        options: &RqVaeOptions,
        seed: u64,
        done: &mut dyn FnMut(usize, f64),
    ) -> Result<(), TrainError> {
        let (width, num_rows) = (self.width(), rows.len() / self.width());
        let codebook_len = self.codebooks[0].len();
        let num_networks = self.weights.len();
        let len = num_networks + codebook_len * self.codebooks.len();
        let (mut first, mut second) = (vec![0.0; len], vec![0.0; len]);
        let mut sum = GradientSum::new(len);
        let num_pieces = options.batch_size.min(num_rows).div_ceil(PIECE);
        let mut pieces: Vec<Piece> = (0..num_pieces).map(|_| Piece::new(len)).collect();
        let epochs = options.epochs(num_rows);
        let mut step = 0;
        for epoch in 0..epochs {
            let mut draws = Draws::new(seed, 1 + epoch as u64);
            let order = draws.sample(num_rows, num_rows);
            let mut used = vec![false; len / self.latent()];
            let mut loss = 0.0;
            for batch in order.chunks(options.batch_size) {
                let batch_rows = rows_of(rows, width, batch);
                let of_batch = &mut pieces[..batch.len().div_ceil(PIECE)];
                of_batch
                    .par_iter_mut()
                    .zip(batch_rows.par_chunks(PIECE * width))
                    .for_each(|(piece, rows)| self.compute(rows, options.commitment, piece));
                let norm = sum.compute(of_batch, |piece| &piece.gradient);
                loss += of_batch.iter().map(|piece| piece.loss).sum::<f64>();
                if !(loss.is_finite() && norm.is_finite()) {
                    let what = "the loss of the tokenizer";
                    return Err(TrainErrorKind::Diverged { step, what, value: loss }.into());
                }
                let scale = 1.0 / batch.len() as f32;
                let update = Update::new(BETAS, EPSILON, scale, options.learning_rate, step);
                let (of_networks, of_codebooks) = sum.values.split_at(num_networks);
                let (first_networks, first_codebooks) = first.split_at_mut(num_networks);
                let (second_networks, second_codebooks) = second.split_at_mut(num_networks);
                update.apply(&mut self.weights, first_networks, second_networks, of_networks, 1.0);
                for (level, codebook) in self.codebooks.iter_mut().enumerate() {
                    let range = level * codebook_len..(level + 1) * codebook_len;
                    update.apply(
                        codebook,
                        &mut first_codebooks[range.clone()],
                        &mut second_codebooks[range.clone()],
                        &of_codebooks[range],
                        1.0,
                    );
                }
                for piece in of_batch.iter() {
                    self.note_used(&piece.codes, &mut used);
                }
                step += 1;
            }
            // Towards the end nothing is moved: what moved could not settle any more.
            if epoch + 1 < epochs.div_ceil(2) {
                self.revive(rows, &used, &mut draws);
            }
            done(epoch + 1, loss / num_rows as f64);
        }
        Ok(())
    }

    fn note_used(&self, codes: &[u32], used: &mut [bool]) {
        let (levels, count) = (self.codebooks.len(), self.codebooks[0].len() / self.latent());
        for codes in codes.chunks(levels) {
            for (level, &code) in codes.iter().enumerate() {
                used[level * count + code as usize] = true;
            }
        }
    }

    /// Moves entries that no row of the epoch was nearest to, to residuals of drawn rows.
    fn revive(&mut self, rows: &[f32], used: &[bool], draws: &mut Draws) {
        let latent = self.latent();
        let count = self.codebooks[0].len() / latent;
        let drawn = draws.sample(rows.len() / self.width(), count);
        let mut residual = self.latent_of(&rows_of(rows, self.width(), &drawn));
        let (mut chosen, mut distances) = (vec![0; drawn.len()], vec![0.0; drawn.len()]);
        for level in 0..self.codebooks.len() {
            let codebook = &self.codebooks[level];
            Nearest::new(codebook, latent).assign(&residual, &mut chosen, &mut distances);
            let before = residual.clone();
            subtract(&mut residual, latent, codebook, &chosen);
            let unused = (0..count).filter(|code| !used[level * count + code]);
            for (code, row) in unused.zip(before.chunks(latent)) {
                self.codebooks[level][code * latent..][..latent].copy_from_slice(row);
            }
        }
    }

    /// The loss of a piece's rows and its gradient.
    fn compute(&self, rows: &[f32], commitment: f32, piece: &mut Piece) {
        let Piece { encoded, decoded, gradient, codes, loss } = piece;
        let (latent, num_rows) = (self.latent(), rows.len() / self.width());
        let (of_encoder, of_decoder) = self.weights.split_at(self.encoder.num_weights());
        self.encoder.forward(of_encoder, rows, num_rows, encoded);
        let (found, errors) = quantise(encoded.output(), latent, &self.codebooks);
        *codes = found;
        gradient.fill(0.0);
        let (d_networks, d_codebooks) = gradient.split_at_mut(self.weights.len());
        let (d_encoder, d_decoder) = d_networks.split_at_mut(of_encoder.len());

        // What is left at each level draws the entry and z to each other.
        let mut residual = encoded.output().to_vec();
        let mut d_latent = vec![0.0; residual.len()];
        let (levels, codebook_len) = (self.codebooks.len(), self.codebooks[0].len());
        for (row, codes) in codes.chunks(levels).enumerate() {
            let left = &mut residual[row * latent..][..latent];
            let d_latent = &mut d_latent[row * latent..][..latent];
            for (level, &code) in codes.iter().enumerate() {
                let at = code as usize * latent;
                let entry = &self.codebooks[level][at..][..latent];
                let d_entry = &mut d_codebooks[level * codebook_len + at..][..latent];
                for i in 0..latent {
                    let difference = left[i] - entry[i];
                    d_entry[i] -= 2.0 * difference;
                    d_latent[i] += 2.0 * commitment * difference;
                    left[i] = difference;
                }
            }
        }
        let sums: Vec<f32> =
            encoded.output().iter().zip(&residual).map(|(z, left)| z - left).collect();
        self.decoder.forward(of_decoder, &sums, num_rows, decoded);
        let d_output: Vec<f32> =
            decoded.output().iter().zip(rows).map(|(found, x)| 2.0 * (found - x)).collect();
        let mut d_sums = Vec::new();
        self.decoder.backward(of_decoder, &sums, decoded, &d_output, d_decoder, Some(&mut d_sums));
        d_latent.iter_mut().zip(d_sums).for_each(|(d, straight)| *d += straight);
        self.encoder.backward(of_encoder, rows, encoded, &d_latent, d_encoder, None);

        let square = |&d: &f32| f64::from(d / 2.0).powi(2);
        let quantised = errors.iter().copied().map(f64::from).sum::<f64>();
        *loss = d_output.iter().map(square).sum::<f64>() + f64::from(1.0 + commitment) * quantised;
    }
}

impl Piece {
    fn new(len: usize) -> Self {
        Self {
            encoded: Activations::default(),
            decoded: Activations::default(),
            gradient: vec![0.0; len],
            codes: Vec::new(),
            loss: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::testing::floats;

    fn options(steps: usize) -> RqVaeOptions {
        let hidden = vec![12];
        RqVaeOptions { hidden, latent: 3, steps, batch_size: 50, ..RqVaeOptions::default() }
    }

    fn fit(rows: &[f32], steps: usize) -> (RqVae, Vec<f64>) {
        let mut losses = Vec::new();
        let mut note = |_, loss| losses.push(loss);
        let model = RqVae::fit(rows, 6, 2, 4, &options(steps), 1, &mut note).unwrap();
        (model, losses)
    }

    /// The gradients with codes held, against differences of the loss whose stopped parts are held
    /// too.
    #[test]
    fn gradients_match_differences() {
        let rows = floats(6 * 7, 3);
        let (model, _) = fit(&floats(6 * 40, 4), 0);
        let len = model.weights.len() + 2 * model.codebooks[0].len();
        let mut piece = Piece::new(len);
        model.compute(&rows, 0.25, &mut piece);
        let (codes, latent) = (piece.codes.clone(), model.latent());
        let held = |model: &RqVae, rows: &[f32]| {
            // z, and for each level what is left before it and its entry.
            let z = model.latent_of(rows);
            let mut left = z.clone();
            let mut levels = Vec::new();
            for level in 0..2 {
                let entry = |row: usize| {
                    let code = codes[row * 2 + level] as usize;
                    model.codebooks[level][code * latent..][..latent].to_vec()
                };
                let entries: Vec<f32> = (0..rows.len() / 6).flat_map(entry).collect();
                levels.push((left.clone(), entries.clone()));
                left.iter_mut().zip(&entries).for_each(|(left, entry)| *left -= entry);
            }
            (z, levels)
        };
        let (z0, levels0) = held(&model, &rows);
        let loss = |changed: &RqVae| -> f64 {
            let (z, levels) = held(changed, &rows);
            let mut sum = 0.0;
            let mut sums = vec![0.0; z.len()];
            for ((left0, entries0), (_, entries)) in levels0.iter().zip(&levels) {
                for i in 0..z.len() {
                    // The residual moves with z alone.
                    let left = left0[i] + z[i] - z0[i];
                    sum += f64::from(left0[i] - entries[i]).powi(2);
                    sum += 0.25 * f64::from(left - entries0[i]).powi(2);
                    sums[i] += entries0[i];
                }
            }
            // Straight through: the decoder sees the held entries, moved as z moves.
            (0..z.len()).for_each(|i| sums[i] += z[i] - z0[i]);
            let mut decoded = Activations::default();
            let weights = &changed.weights[changed.encoder.num_weights()..];
            changed.decoder.forward(weights, &sums, rows.len() / 6, &mut decoded);
            let differences = decoded.output().iter().zip(&rows);
            sum + differences.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()
        };
        assert!((loss(&model) - piece.loss).abs() < 1e-3 * piece.loss, "{}", piece.loss);
        let difference = |change: &dyn Fn(&mut RqVae, f32)| {
            let (mut up, mut down) = (model.clone(), model.clone());
            change(&mut up, 1e-2);
            change(&mut down, -1e-2);
            (loss(&up) - loss(&down)) / 2e-2
        };
        let mut checked = 0;
        for at in (0..len).step_by(3) {
            let networks = model.weights.len();
            let wanted = difference(&|model, by| match at.checked_sub(networks) {
                None => model.weights[at] += by,
                Some(at) => {
                    let size = model.codebooks[0].len();
                    model.codebooks[at / size][at % size] += by;
                }
            });
            let found = f64::from(piece.gradient[at]);
            // A ReLU may turn within the difference: rarely, and then the two disagree.
            let close = (found - wanted).abs() <= 0.02 * (1.0 + wanted.abs());
            checked += usize::from(close);
        }
        let all = len.div_ceil(3);
        assert!(checked * 100 >= all * 97, "{checked} of {all} agree");
    }

    #[test]
    fn training_lowers_the_loss_and_repeats() {
        let corners = floats(6 * 5, 9);
        let noise = floats(6 * 300, 10);
        let rows: Vec<f32> =
            (0..6 * 300).map(|at| 3.0 * corners[at % 30] + 0.2 * noise[at]).collect();
        let (model, losses) = fit(&rows, 360);
        assert!(losses[59] < 0.5 * losses[0], "{losses:?}");
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(pool.install(|| fit(&rows, 360)), (model.clone(), losses));
        let (codes, _) = quantise(&model.latents(&rows), model.latent(), &model.codebooks);
        let error = |levels| {
            let made = model.decode(&codes, levels);
            made.iter().zip(&rows).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>()
        };
        assert!(error(2) < error(1) && error(1) < error(0), "each level comes nearer");
    }
}
