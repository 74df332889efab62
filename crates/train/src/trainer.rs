//! The loop: draw a batch, compute its gradient in shards, move the weights.

use std::path::Path;
use std::sync::Arc;

use palmette_model::ModelConfig;
use rayon::prelude::*;

use crate::checkpoint::{self, CheckpointArrays, CheckpointState};
use crate::data::{Dataset, Example};
use crate::error::{TrainError, TrainErrorKind};
use crate::network::{Dropout, LossSums, NO_TARGET, Network, Objective, PackedBatch, Workspace};
use crate::optimizer::{self, AdamW, GradientSum};
use crate::options::{Duration, TrainOptions};
use crate::params::{Layout, Params, check_trainable};
use crate::schedule;

/// Report of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Steps taken, this one included.
    pub step: u64,
    /// The epoch whose examples were read, from 0.
    pub epoch: u64,
    /// Loss before the update, label smoothing included, as it is minimised. It is the mean over
    /// the batch's targets, and over the codes that a draft head is to say.
    pub loss: f64,
    /// Draft head's part of the loss.
    pub draft_loss: f64,
    /// The learning rate of the update.
    pub learning_rate: f64,
    /// The gradient's norm before clipping.
    pub grad_norm: f64,
    /// Tokens read.
    pub tokens: usize,
}

/// A run: the weights, the optimizer's memory, and a position in the data.
///
/// ```
/// use palmette_model::{Architecture, ModelConfig};
/// use palmette_train::{Duration, TrainOptions, Trainer, VecDataset};
///
/// let config = ModelConfig {
///     vocab_size: 8, hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1,
///     num_attention_heads: 2, num_key_value_heads: 1, head_dim: 8, max_position_embeddings: 16,
///     rms_norm_eps: 1e-6, rope_theta: 10_000.0, tie_word_embeddings: true,
///     architecture: Architecture::default(),
/// };
/// let options = TrainOptions { duration: Duration::Steps(3), ..TrainOptions::default() };
/// let data = VecDataset::next_token(&[[1, 2, 3], [4, 5, 6]]);
/// let mut trainer = Trainer::new(&config, options, data)?;
/// while !trainer.is_finished() {
///     let report = trainer.step()?;
///     assert!(report.loss.is_finite());
/// }
/// # Ok::<(), palmette_train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct Trainer<D> {
    options: TrainOptions,
    data: D,
    network: Network,
    pool: rayon::ThreadPool,
    arrays: CheckpointArrays,
    /// Steps taken. With the seed it determines everything that is drawn.
    step: u64,
    feed: Feed,
    shards: Vec<Shard>,
    gradient: GradientSum,
}

/// The memory of batch drawing.
#[derive(Debug, Default)]
struct Feed {
    batch: PackedBatch,
    example: Example,
    order: Vec<u32>,
    /// The epoch whose order is held.
    epoch: Option<u64>,
}

/// One part of a batch: its own gradient and its own memory.
#[derive(Debug, Default)]
struct Shard {
    gradient: Vec<f32>,
    workspace: Workspace,
    loss: LossSums,
}

impl<D: Dataset> Trainer<D> {
    /// A run of a new model, drawn from the seed.
    ///
    /// # Errors
    /// When the shape or an option is unusable, or the data is empty.
    pub fn new(config: &ModelConfig, options: TrainOptions, data: D) -> Result<Self, TrainError> {
        check_trainable(config).map_err(TrainErrorKind::Config)?;
        let params = Params::init(config, options.seed);
        Self::from_params(params, options, data)
    }

    /// A run that starts from given weights, to go on training a model elsewhere or on other data.
    ///
    /// # Errors
    /// As [`Trainer::new`].
    pub fn from_params(params: Params, options: TrainOptions, data: D) -> Result<Self, TrainError> {
        check_trainable(params.config()).map_err(TrainErrorKind::Config)?;
        let adam = AdamW::new(params.values().len());
        let average = (options.average_decay > 0.0).then(|| params.values().to_vec());
        Self::assemble(options, data, CheckpointArrays { params, adam, average }, 0)
    }

    /// Resumes a checkpoint with the shape and the options it holds.
    ///
    /// # Errors
    /// When the checkpoint cannot be read or is a [`HeadTrainer`](crate::HeadTrainer)'s, or the
    /// data has another number of examples.
    pub fn resume(dir: &Path, data: D) -> Result<Self, TrainError> {
        let (dir, state) = checkpoint::read_state(dir)?;
        state.check_trains_all(&dir)?;
        state.check_data(&dir, data.num_examples())?;
        let arrays = checkpoint::read_arrays(&dir, &state)?;
        Self::assemble(state.options, data, arrays, state.step)
    }

    /// Resumes a checkpoint that must be of this layout and these options.
    /// [`TrainOptions::threads`] may differ.
    ///
    /// # Errors
    /// As [`Trainer::resume`], and naming the first field in which the two differ.
    pub fn resume_expecting(
        dir: &Path,
        layout: &Layout,
        options: TrainOptions,
        data: D,
    ) -> Result<Self, TrainError> {
        let (dir, state) = checkpoint::read_state(dir)?;
        state.check_agrees(&dir, layout, false, &options)?;
        state.check_data(&dir, data.num_examples())?;
        let arrays = checkpoint::read_arrays(&dir, &state)?;
        Self::assemble(options, data, arrays, state.step)
    }

    /// Draws the next batch and updates the weights.
    ///
    /// Past the end of the planned duration it goes on, at the lowest learning rate.
    ///
    /// # Errors
    /// When an example is unusable, or the loss or the gradient stops being finite; the weights are
    /// then those before the step, and asking again gives the same error.
    pub fn step(&mut self) -> Result<StepReport, TrainError> {
        let epoch = self.draw_batch()?;
        let batch = &self.feed.batch;
        let objective = Objective {
            label_smoothing: self.options.label_smoothing,
            dropout: Dropout {
                rate: self.options.dropout,
                seed: self.options.seed,
                step: self.step,
            },
            num_targets: batch.num_targets(),
            next_token_weight: self.options.next_token_weight,
            num_draft_targets: batch.num_branch_targets(),
        };
        let learning_rate = schedule::learning_rate(&self.options, self.step, self.total_steps());
        let CheckpointArrays { params, adam, average } = &mut self.arrays;
        let (network, shards, gradient) = (&self.network, &mut self.shards, &mut self.gradient);
        let (options, step) = (&self.options, self.step);

        let (loss, grad_norm) = self.pool.install(|| {
            let count = shards.len();
            shards.par_iter_mut().enumerate().for_each(|(index, shard)| {
                shard.gradient.fill(0.0);
                shard.loss = network.loss_and_gradient(
                    params.values(),
                    &mut shard.gradient,
                    batch.shard(index, count),
                    objective,
                    &mut shard.workspace,
                );
            });
            let loss = sum_of_losses(shards);
            (loss, gradient.compute(shards, |shard| &shard.gradient))
        });
        let draft_loss = objective.mean(LossSums { next_token: 0.0, ..loss });
        let loss = objective.mean(loss);
        for (what, value) in [("the loss", loss), ("the gradient's norm", grad_norm)] {
            if !value.is_finite() {
                return Err(TrainErrorKind::Diverged { step: step + 1, what, value }.into());
            }
        }
        self.pool.install(|| {
            let layout = Arc::clone(params.layout());
            let scale = optimizer::clip_factor(grad_norm, options.clip_norm);
            let (weights, gradient) = (params.values_mut(), &gradient.values);
            adam.step(weights, gradient, &layout, options, scale, learning_rate, step);
            if let Some(average) = average {
                optimizer::update_average(average, weights, options.average_decay, step);
            }
        });
        self.step += 1;
        let tokens = self.feed.batch.num_tokens();
        Ok(StepReport {
            step: self.step,
            epoch,
            loss,
            draft_loss,
            learning_rate,
            grad_norm,
            tokens,
        })
    }

    /// The mean loss per next token over other data, nothing dropped and no label smoothing, of
    /// [`Trainer::averaged`]'s weights.
    ///
    /// # Errors
    /// When an example is unusable, or no example has a target.
    pub fn mean_loss(&mut self, data: &impl Dataset) -> Result<f64, TrainError> {
        let weights = match &self.arrays.average {
            Some(average) => average,
            None => self.arrays.params.values(),
        };
        let (network, shards, count) = (&self.network, &mut self.shards, self.options.shards);
        let (mut sum, mut num_targets) = (0.0, 0);
        let mut batch = PackedBatch::default();
        let mut example = Example::default();
        for from in (0..data.num_examples()).step_by(self.options.batch_size) {
            batch.clear();
            for index in from..(from + self.options.batch_size).min(data.num_examples()) {
                data.example(self.options.seed, 0, index, &mut example);
                check_example(&example, index, network)?;
                batch.push(&example.tokens, &example.targets);
            }
            self.pool.install(|| {
                shards.par_iter_mut().enumerate().for_each(|(index, shard)| {
                    let part = batch.shard(index, count);
                    shard.loss = network.loss(weights, part, 0.0, &mut shard.workspace);
                });
            });
            sum += sum_of_losses(shards).next_token;
            num_targets += batch.num_targets();
        }
        if num_targets == 0 {
            let count = data.num_examples();
            return Err(TrainErrorKind::NoTargets { step: self.step, count }.into());
        }
        Ok(sum / num_targets as f64)
    }

    /// Writes everything that [`Trainer::resume`] needs, in place of what `dir` held.
    ///
    /// # Errors
    /// When a file cannot be written; `dir` then still holds what it held.
    pub fn save(&self, dir: &Path) -> Result<(), TrainError> {
        let num_examples = self.data.num_examples();
        let layout = self.params().layout();
        let state = CheckpointState::new(self.step, num_examples, layout, false, &self.options);
        checkpoint::write(dir, &state, &self.arrays)
    }

    /// The shape of the model.
    pub fn config(&self) -> &ModelConfig {
        self.arrays.params.config()
    }

    /// Options of this run.
    pub fn options(&self) -> &TrainOptions {
        &self.options
    }

    /// The weights as of the last step.
    pub fn params(&self) -> &Params {
        &self.arrays.params
    }

    /// The weights to export: the moving average when there is one, else the last step's.
    pub fn averaged(&self) -> Params {
        match &self.arrays.average {
            None => self.arrays.params.clone(),
            Some(average) => {
                Params::from_values(Arc::clone(self.arrays.params.layout()), average.clone())
            }
        }
    }

    /// Steps taken.
    pub fn steps_taken(&self) -> u64 {
        self.step
    }

    /// Steps of one epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        self.data.num_examples().div_ceil(self.options.batch_size) as u64
    }

    /// Steps of the planned duration.
    pub fn total_steps(&self) -> u64 {
        match self.options.duration {
            Duration::Steps(steps) => steps,
            Duration::Epochs(epochs) => epochs.saturating_mul(self.steps_per_epoch()),
        }
    }

    /// True if the planned duration is over.
    pub fn is_finished(&self) -> bool {
        self.step >= self.total_steps()
    }
}

impl<D: Dataset> Trainer<D> {
    fn assemble(
        options: TrainOptions,
        data: D,
        arrays: CheckpointArrays,
        step: u64,
    ) -> Result<Self, TrainError> {
        options.check()?;
        if data.num_examples() == 0 {
            return Err(TrainErrorKind::NoExamples.into());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .build()
            .map_err(|error| TrainErrorKind::Threads(error.to_string()))?;
        let len = arrays.params.values().len();
        let shard = || Shard { gradient: vec![0.0; len], ..Shard::default() };
        Ok(Self {
            network: Network::new(Arc::clone(arrays.params.layout())),
            pool,
            step,
            feed: Feed::default(),
            shards: std::iter::repeat_with(shard).take(options.shards).collect(),
            gradient: GradientSum::new(len),
            options,
            data,
            arrays,
        })
    }

    /// Fills the batch of the step to come; returns its epoch. An epoch's last batch may be
    /// smaller.
    fn draw_batch(&mut self) -> Result<u64, TrainError> {
        let (epoch, place) =
            (self.step / self.steps_per_epoch(), self.step % self.steps_per_epoch());
        let Feed { batch, example, order, epoch: ordered } = &mut self.feed;
        if *ordered != Some(epoch) {
            self.data.order(self.options.seed, epoch, order);
            assert_eq!(order.len(), self.data.num_examples(), "an order gives each example once");
            *ordered = Some(epoch);
        }
        let from = place as usize * self.options.batch_size;
        let indices = &order[from..(from + self.options.batch_size).min(order.len())];
        batch.clear();
        for &index in indices {
            self.data.example(self.options.seed, epoch, index as usize, example);
            check_example(example, index as usize, &self.network)?;
            let Example { tokens, targets, branches } = &*example;
            batch.push_with_branches(tokens, targets, branches, self.network.placeholders());
        }
        if batch.num_targets() + batch.num_branch_targets() == 0 {
            let (step, count) = (self.step + 1, indices.len());
            return Err(TrainErrorKind::NoTargets { step, count }.into());
        }
        Ok(epoch)
    }
}

fn sum_of_losses(shards: &[Shard]) -> LossSums {
    shards.iter().fold(LossSums::default(), |sum, shard| sum + shard.loss)
}

/// Checks what the network relies on.
pub(crate) fn check_example(
    example: &Example,
    index: usize,
    network: &Network,
) -> Result<(), TrainError> {
    let Example { tokens, targets, branches } = example;
    let config = network.config();
    let (vocab, limit) = (config.vocab_size, config.max_position_embeddings);
    if targets.len() != tokens.len() {
        let (tokens, targets) = (tokens.len(), targets.len());
        return Err(TrainErrorKind::TargetCount { example: index, tokens, targets }.into());
    }
    let latest = branches.after.iter().map(|&after| after as usize + network.placeholders().len());
    let length = latest.fold(tokens.len(), usize::max);
    if length > limit {
        return Err(TrainErrorKind::TooLong { example: index, length, limit }.into());
    }
    for (what, values) in [("token", tokens), ("target", targets)] {
        let outside =
            |&token: &u32| token as usize >= vocab && !(what == "target" && token == NO_TARGET);
        if let Some(position) = values.iter().position(outside) {
            let token = values[position];
            let example = index;
            return Err(TrainErrorKind::TokenRange { example, what, position, token, vocab }.into());
        }
    }
    network
        .check_branches(branches, tokens.len())
        .map_err(|reason| TrainErrorKind::Branches { example: index, reason }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::VecDataset;
    use crate::network::testing::tiny_config;

    fn options() -> TrainOptions {
        TrainOptions {
            duration: Duration::Steps(12),
            batch_size: 5,
            learning_rate: 0.01,
            warmup_steps: 3,
            dropout: 0.2,
            label_smoothing: 0.1,
            average_decay: 0.9,
            seed: 4,
            shards: 3,
            threads: 1,
            ..TrainOptions::default()
        }
    }

    /// Thirteen sequences of different lengths in which each token follows from the one before.
    fn data() -> VecDataset {
        let sequence = |i: u32| (0..2 + i % 7).map(|j| (i + 3 * j) % 11).collect::<Vec<_>>();
        VecDataset::next_token(&(0..13).map(sequence).collect::<Vec<_>>())
    }

    fn trainer(options: TrainOptions) -> Trainer<VecDataset> {
        Trainer::new(&tiny_config(true), options, data()).unwrap()
    }

    #[test]
    fn the_loss_falls_to_almost_nothing_on_predictable_data() {
        let options = TrainOptions {
            duration: Duration::Steps(250),
            dropout: 0.0,
            label_smoothing: 0.0,
            learning_rate: 0.03,
            ..options()
        };
        let mut trainer = trainer(options);
        let first = trainer.step().unwrap();
        assert!((first.loss - 11_f64.ln()).abs() < 0.2, "a new model knows nothing: {first:?}");
        while !trainer.is_finished() {
            trainer.step().unwrap();
        }
        let loss = trainer.mean_loss(&data()).unwrap();
        assert!(loss < 0.1, "{loss}");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let run = |threads| {
            let mut trainer = trainer(TrainOptions { threads, ..options() });
            let reports: Vec<_> = (0..6).map(|_| trainer.step().unwrap()).collect();
            (reports, trainer.params().values().to_vec(), trainer.averaged().values().to_vec())
        };
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(5));
    }

    #[test]
    fn a_resumed_run_goes_on_bit_for_bit() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("checkpoint");
        let mut straight = trainer(options());
        let reports: Vec<_> = (0..9).map(|_| straight.step().unwrap()).collect();
        let mut broken = trainer(options());
        for report in &reports[..4] {
            assert_eq!(broken.step().unwrap(), *report);
            broken.save(&dir).unwrap();
        }
        let mut resumed = Trainer::resume(&dir, data()).unwrap();
        for report in &reports[4..] {
            assert_eq!(resumed.step().unwrap(), *report);
        }
        assert_eq!(straight.params().values(), resumed.params().values());
        assert_eq!(straight.averaged().values(), resumed.averaged().values());
        assert_ne!(straight.averaged().values(), straight.params().values());
    }

    #[test]
    fn a_checkpoint_interrupted_between_its_renames_is_found() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("checkpoint");
        let mut trainer = trainer(options());
        trainer.step().unwrap();
        trainer.save(&dir).unwrap();
        std::fs::rename(&dir, parent.path().join(".checkpoint.previous")).unwrap();
        assert_eq!(Trainer::resume(&dir, data()).unwrap().steps_taken(), 1);
    }

    #[test]
    fn a_checkpoint_of_another_run_is_refused_by_field() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("checkpoint");
        trainer(options()).save(&dir).unwrap();
        let resume = |config: ModelConfig, options: TrainOptions| {
            Trainer::resume_expecting(&dir, &Layout::new(&config), options, data())
        };
        let config = tiny_config(true);
        resume(config.clone(), TrainOptions { threads: 2, ..options() }).unwrap();
        let check = |error: TrainError, part: &str| {
            assert!(error.is_disagreement());
            assert!(error.to_string().contains(part), "{error}");
        };
        let other = TrainOptions { dropout: 0.25, ..options() };
        check(resume(config.clone(), other).unwrap_err(), "`dropout` = 0.2, but this run has 0.25");
        let other = ModelConfig { hidden_size: 8, ..config };
        check(resume(other, options()).unwrap_err(), "`hidden_size` = 6, but this run has 8");
        let fewer = VecDataset::next_token(&[[1, 2]]);
        check(Trainer::resume(&dir, fewer).unwrap_err(), "`num_examples` = 13");
    }

    #[track_caller]
    fn check_step_error(sequences: &[Vec<u32>], part: &str) {
        let data = VecDataset::next_token(sequences);
        let mut trainer = Trainer::new(&tiny_config(true), options(), data).unwrap();
        let before = trainer.params().values().to_vec();
        let error = trainer.step().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(trainer.params().values(), before);
    }

    #[test]
    fn unusable_examples_are_named() {
        check_step_error(&[vec![1, 2], vec![3, 11, 4]], "example 1 has token 11 at position 1");
        check_step_error(&[vec![1, 2, 40]], "example 0 has target 40 at position 1");
        check_step_error(&[vec![1; 18]], "example 0 has 17 tokens");
        check_step_error(&[vec![1], vec![]], "no target at all");
        let empty = VecDataset::default();
        let error = Trainer::new(&tiny_config(true), options(), empty).unwrap_err();
        assert!(error.to_string().contains("no training examples"));
    }

    #[test]
    fn divergence_stops_before_the_weights_are_touched() {
        let mut params = Params::init(&tiny_config(true), 1);
        let place = params.layout().final_norm.start;
        params.values_mut()[place] = f32::NAN;
        let mut trainer = Trainer::from_params(params, options(), data()).unwrap();
        let error = trainer.step().unwrap_err();
        assert!(error.is_divergence());
        assert!(error.to_string().contains("the loss is NaN at step 1"), "{error}");
        let finite = trainer.params().values().iter().filter(|v| v.is_finite()).count();
        assert_eq!(finite + 1, trainer.params().values().len());
    }

    #[test]
    fn every_epoch_reads_every_example() {
        let mut trainer = trainer(TrainOptions { duration: Duration::Epochs(2), ..options() });
        assert_eq!((trainer.steps_per_epoch(), trainer.total_steps()), (3, 6));
        let reports: Vec<_> = (0..6).map(|_| trainer.step().unwrap()).collect();
        let epochs: Vec<_> = reports.iter().map(|report| report.epoch).collect();
        assert_eq!(epochs, [0, 0, 0, 1, 1, 1]);
        let tokens = |reports: &[StepReport]| reports.iter().map(|r| r.tokens).sum::<usize>();
        assert_eq!(tokens(&reports[..3]), tokens(&reports[3..]));
    }
}
