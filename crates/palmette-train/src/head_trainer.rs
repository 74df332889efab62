//! Training of a draft head alone: the decoder stands still, so its hidden states are computed once.

use std::sync::Arc;

use rayon::prelude::*;

use crate::data::{Dataset, Example, shuffled};
use crate::error::{TrainError, TrainErrorKind};
use crate::network::draft_head::{self, BRANCHES, DraftLossForm, DraftScratch};
use crate::network::{Network, PackedBatch, Workspace};
use crate::optimizer::{self, AdamW, GradientSum};
use crate::options::{Duration, TrainOptions};
use crate::params::Params;
use crate::schedule;
use crate::trainer::{StepReport, check_example};

/// Sequences that go through the decoder together when states are computed.
const SEQUENCES: usize = 16;

/// A run that trains a draft head and leaves the decoder before it, and the placeholders, as they are.
///
/// The examples are those of epoch 0; each branch is one of them. All hidden states are kept, `4 (1 + L) D` bytes a
/// branch. **Results do not depend on the number of threads**: a batch is cut into blocks of 64 branches, and
/// their gradients are added in their order.
#[derive(Debug)]
pub struct HeadTrainer {
    options: TrainOptions,
    params: Params,
    pool: rayon::ThreadPool,
    states: States,
    adam: AdamW,
    step: u64,
    order: Vec<u32>,
    /// The epoch whose order is held.
    ordered: Option<u64>,
    blocks: Vec<Block>,
    gradient: GradientSum,
}

/// The hidden states and targets of all branches.
#[derive(Debug, Default)]
struct States {
    /// `[branches, 1 + L, D]`
    hidden: Vec<f32>,
    /// `[branches, L]`
    targets: Vec<u32>,
    count: usize,
}

/// Some branches of a batch: their own gradient and their own memory.
#[derive(Debug, Default)]
struct Block {
    /// Of all weights; those of the decoder stay 0.
    gradient: Vec<f32>,
    scratch: DraftScratch,
    loss: f64,
}

impl HeadTrainer {
    /// Runs `data` through the decoder of `params`, which has a draft head. `computed` is told how many examples have
    /// been, from several threads.
    ///
    /// # Errors
    /// When an option or an example is unusable, or no example has a branch.
    pub fn new(
        params: Params,
        options: TrainOptions,
        data: &(impl Dataset + Sync),
        computed: impl Fn(usize) + Sync,
    ) -> Result<Self, TrainError> {
        options.check()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .build()
            .map_err(|error| TrainErrorKind::Threads(error.to_string()))?;
        let states = pool.install(|| States::compute(&params, &options, data, &computed))?;
        if states.count == 0 {
            return Err(TrainErrorKind::NoExamples.into());
        }
        let len = params.values().len();
        let learnt = len - params.layout().parts().0.last().map_or(0, |last| last.range().end);
        let blocks = options.batch_size.min(states.count).div_ceil(BRANCHES);
        let block = || Block { gradient: vec![0.0; len], ..Block::default() };
        Ok(Self {
            adam: AdamW::new(len),
            params,
            pool,
            states,
            step: 0,
            order: Vec::new(),
            ordered: None,
            blocks: std::iter::repeat_with(block).take(blocks).collect(),
            gradient: GradientSum::new(learnt),
            options,
        })
    }

    /// Takes the next batch of branches and updates the head.
    ///
    /// # Errors
    /// When the loss or the gradient stops being finite; the weights are then those before the step.
    pub fn step(&mut self) -> Result<StepReport, TrainError> {
        let per_epoch = self.steps_per_epoch();
        let (epoch, place) = (self.step / per_epoch, self.step % per_epoch);
        if self.ordered != Some(epoch) {
            shuffled(self.options.seed, epoch, self.states.count, &mut self.order);
            self.ordered = Some(epoch);
        }
        let from = place as usize * self.options.batch_size;
        let batch = &self.order[from..(from + self.options.batch_size).min(self.order.len())];
        let layout = Arc::clone(self.params.layout());
        let draft = layout.draft.as_ref().expect("checked when the states were computed");
        let levels = draft.levels.len();
        let num_targets = batch.len() * levels;
        let (label_smoothing, scale) = (self.options.label_smoothing, 1.0 / num_targets as f32);
        let form = DraftLossForm { label_smoothing, scale };
        let (states, weights, width) =
            (&self.states, self.params.values(), layout.config().hidden_size);
        let (blocks, gradient) = (&mut self.blocks, &mut self.gradient);
        let start = draft.start;
        let (loss, grad_norm) = self.pool.install(|| {
            let count = batch.len().div_ceil(BRANCHES);
            let blocks = &mut blocks[..count];
            blocks.par_iter_mut().zip(batch.par_chunks(BRANCHES)).for_each(|(block, branches)| {
                block.gradient[start..].fill(0.0);
                block.scratch.prepare(draft, width, branches.len());
                states.gather(branches, levels, width, &mut block.scratch);
                block.loss = draft_head::loss(
                    &layout,
                    weights,
                    branches.len(),
                    form,
                    Some(&mut block.gradient),
                    false,
                    &mut block.scratch,
                );
            });
            let loss = blocks.iter().map(|block| block.loss).sum::<f64>();
            let norm = gradient.compute(blocks, |block| &block.gradient[start..]);
            (loss / num_targets as f64, norm)
        });
        for (what, value) in [("the loss", loss), ("the gradient's norm", grad_norm)] {
            if !value.is_finite() {
                let step = self.step + 1;
                return Err(TrainErrorKind::Diverged { step, what, value }.into());
            }
        }
        let learning_rate = schedule::learning_rate(&self.options, self.step, self.total_steps());
        let scale = optimizer::clip_factor(grad_norm, self.options.clip_norm);
        let (options, step) = (&self.options, self.step);
        let (params, adam, gradient) = (&mut self.params, &mut self.adam, &self.gradient.values);
        self.pool.install(|| {
            adam.step_from(
                start,
                params.values_mut(),
                gradient,
                &layout,
                options,
                scale,
                learning_rate,
                step,
            );
        });
        self.step += 1;
        let tokens = num_targets;
        let draft_loss = loss;
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

    /// The weights as of the last step.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Branches to learn from.
    pub fn num_branches(&self) -> usize {
        self.states.count
    }

    /// Steps taken.
    pub fn steps_taken(&self) -> u64 {
        self.step
    }

    /// Steps of one epoch.
    pub fn steps_per_epoch(&self) -> u64 {
        self.states.count.div_ceil(self.options.batch_size) as u64
    }

    /// Steps of the planned duration.
    pub fn total_steps(&self) -> u64 {
        match self.options.duration {
            Duration::Steps(steps) => steps,
            Duration::Epochs(epochs) => epochs.saturating_mul(self.steps_per_epoch()),
        }
    }
}

impl States {
    /// The states of every branch, in the order of the examples.
    fn compute(
        params: &Params,
        options: &TrainOptions,
        data: &(impl Dataset + Sync),
        computed: &(impl Fn(usize) + Sync),
    ) -> Result<Self, TrainError> {
        let network = Network::new(Arc::clone(params.layout()));
        let starts: Vec<usize> = (0..data.num_examples()).step_by(SEQUENCES).collect();
        let done = std::sync::atomic::AtomicUsize::new(0);
        let part = |workspace: &mut Workspace, &from: &usize| -> Result<Self, TrainError> {
            let (mut batch, mut example, mut part) =
                (PackedBatch::default(), Example::default(), Self::default());
            let to = (from + SEQUENCES).min(data.num_examples());
            for index in from..to {
                data.example(options.seed, 0, index, &mut example);
                check_example(&example, index, &network)?;
                let Example { tokens, targets, branches } = &example;
                batch.push_with_branches(tokens, targets, branches, network.placeholders());
                part.targets.extend_from_slice(&branches.targets);
                part.count += branches.after.len();
            }
            part.hidden = network.draft_states(params.values(), batch.view(), workspace);
            let step = to - from;
            let before = done.fetch_add(step, std::sync::atomic::Ordering::Relaxed);
            computed(before + step);
            Ok(part)
        };
        let parts: Vec<Self> =
            starts.par_iter().map_init(Workspace::default, part).collect::<Result<_, _>>()?;
        let mut all = Self::default();
        for part in parts {
            all.hidden.extend_from_slice(&part.hidden);
            all.targets.extend_from_slice(&part.targets);
            all.count += part.count;
        }
        Ok(all)
    }

    /// Puts some branches where the head reads them, level by level.
    fn gather(&self, branches: &[u32], levels: usize, width: usize, scratch: &mut DraftScratch) {
        let count = branches.len();
        for (place, &branch) in branches.iter().enumerate() {
            let states = &self.hidden[branch as usize * (1 + levels) * width..];
            for (level, state) in states.chunks_exact(width).take(1 + levels).enumerate() {
                scratch.hidden[(level * count + place) * width..][..width].copy_from_slice(state);
            }
            let targets = &self.targets[branch as usize * levels..][..levels];
            for (level, &token) in targets.iter().enumerate() {
                scratch.targets[level * count + place] = token;
            }
        }
    }
}
