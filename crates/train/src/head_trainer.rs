//! Training of a draft head alone: the decoder stands still, so its hidden states are computed
//! once.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use crate::checkpoint::{self, CheckpointArrays, CheckpointState};
use crate::data::{Dataset, Example, shuffled};
use crate::error::{TrainError, TrainErrorKind};
use crate::network::draft_head::{self, BRANCHES, DraftLossForm, DraftScratch};
use crate::network::{Network, PackedBatch, Workspace};
use crate::optimizer::{self, AdamW, GradientSum};
use crate::options::{Duration, TrainOptions};
use crate::params::{Layout, Params};
use crate::schedule;
use crate::trainer::{StepReport, check_example};

/// Sequences that go through the decoder together when states are computed.
const SEQUENCES: usize = 16;

/// A run that trains a draft head and leaves the decoder before it, and the placeholders, as they
/// are.
///
/// The examples are those of epoch 0; each branch is one of them. All hidden states are kept, `4 (1 +
/// L) D` bytes a branch. **Results do not depend on the number of threads**: a batch is cut into
/// blocks of 64 branches, and their gradients are added in their order.
#[derive(Debug)]
pub struct HeadTrainer {
    options: TrainOptions,
    arrays: CheckpointArrays,
    pool: rayon::ThreadPool,
    num_examples: usize,
    states: States,
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
    /// Gradient of all weights; that of the decoder stays 0.
    gradient: Vec<f32>,
    scratch: DraftScratch,
    loss: f64,
}

impl HeadTrainer {
    /// Runs `data` through the decoder of `params`, which has a draft head. `computed` is told how
    /// many examples have been, from several threads.
    ///
    /// # Errors
    /// When an option or an example is unusable, or no example has a branch.
    pub fn new(
        params: Params,
        options: TrainOptions,
        data: &(impl Dataset + Sync),
        computed: impl Fn(usize) + Sync,
    ) -> Result<Self, TrainError> {
        let adam = AdamW::new(params.values().len());
        let arrays = CheckpointArrays { params, adam, average: None };
        Self::assemble(arrays, 0, options, data, computed)
    }

    /// Resumes a checkpoint that must be of this layout and these options.
    /// [`TrainOptions::threads`] may differ. The hidden states are computed again.
    ///
    /// # Errors
    /// As [`HeadTrainer::new`], when the checkpoint cannot be read, and naming the first field in
    /// which the two differ.
    pub fn resume_expecting(
        dir: &Path,
        layout: &Layout,
        options: TrainOptions,
        data: &(impl Dataset + Sync),
        computed: impl Fn(usize) + Sync,
    ) -> Result<Self, TrainError> {
        let (dir, state) = checkpoint::read_state(dir)?;
        state.check_agrees(&dir, layout, true, &options)?;
        state.check_data(&dir, data.num_examples())?;
        let arrays = checkpoint::read_arrays(&dir, &state)?;
        Self::assemble(arrays, state.step, options, data, computed)
    }

    /// Writes everything that [`HeadTrainer::resume_expecting`] needs, in place of what `dir` held.
    ///
    /// # Errors
    /// When a file cannot be written; `dir` then still holds what it held.
    pub fn save(&self, dir: &Path) -> Result<(), TrainError> {
        let (layout, options) = (self.params().layout(), &self.options);
        let state = CheckpointState::new(self.step, self.num_examples, layout, true, options);
        checkpoint::write(dir, &state, &self.arrays)
    }

    /// Takes the next batch of branches and updates the head.
    ///
    /// # Errors
    /// When the loss or the gradient stops being finite; the weights are then those before the
    /// step.
    pub fn step(&mut self) -> Result<StepReport, TrainError> {
        let per_epoch = self.steps_per_epoch();
        let (epoch, place) = (self.step / per_epoch, self.step % per_epoch);
        if self.ordered != Some(epoch) {
            shuffled(self.options.seed, epoch, self.states.count, &mut self.order);
            self.ordered = Some(epoch);
        }
        let from = place as usize * self.options.batch_size;
        let batch = &self.order[from..(from + self.options.batch_size).min(self.order.len())];
        let layout = Arc::clone(self.params().layout());
        let draft = layout.draft.as_ref().expect("checked when the states were computed");
        let levels = draft.levels.len();
        let num_targets = batch.len() * levels;
        let (label_smoothing, scale) = (self.options.label_smoothing, 1.0 / num_targets as f32);
        let form = DraftLossForm { label_smoothing, scale };
        let (states, weights, width) =
            (&self.states, self.arrays.params.values(), layout.config().hidden_size);
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
        let (CheckpointArrays { params, adam, .. }, gradient) =
            (&mut self.arrays, &self.gradient.values);
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
        &self.arrays.params
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

    fn assemble(
        arrays: CheckpointArrays,
        step: u64,
        options: TrainOptions,
        data: &(impl Dataset + Sync),
        computed: impl Fn(usize) + Sync,
    ) -> Result<Self, TrainError> {
        options.check()?;
        if options.average_decay > 0.0 {
            return Err(TrainErrorKind::Option {
                field: "average_decay",
                value: options.average_decay.to_string(),
                rule: "no average is kept of a head that is trained alone: it must be 0",
            }
            .into());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .build()
            .map_err(|error| TrainErrorKind::Threads(error.to_string()))?;
        let states = pool.install(|| States::compute(&arrays.params, &options, data, &computed))?;
        if states.count == 0 {
            return Err(TrainErrorKind::NoExamples.into());
        }
        let len = arrays.params.values().len();
        let learnt =
            len - arrays.params.layout().parts().0.last().map_or(0, |last| last.range().end);
        let blocks = options.batch_size.min(states.count).div_ceil(BRANCHES);
        let block = || Block { gradient: vec![0.0; len], ..Block::default() };
        Ok(Self {
            arrays,
            pool,
            num_examples: data.num_examples(),
            states,
            step,
            order: Vec::new(),
            ordered: None,
            blocks: std::iter::repeat_with(block).take(blocks).collect(),
            gradient: GradientSum::new(learnt),
            options,
        })
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

#[cfg(test)]
mod tests {
    use palmette_model::draft::{DraftForm, DraftInput, DraftShape};
    use palmette_recommend::{LevelFormat, PromptFormat};

    use super::*;
    use crate::history_dataset::{Augmentation, HistoryDataset};
    use crate::network::testing::tiny_config;
    use crate::trainer::Trainer;

    const LEVELS: [(u32, u32); 2] = [(2, 4), (6, 5)];

    fn options() -> TrainOptions {
        TrainOptions {
            duration: Duration::Steps(12),
            batch_size: 7,
            learning_rate: 0.01,
            warmup_steps: 3,
            threads: 1,
            ..TrainOptions::default()
        }
    }

    fn shape() -> DraftShape {
        DraftShape { levels: LEVELS.to_vec() }
    }

    /// Nine histories of one to three items, with their branches.
    fn data() -> HistoryDataset {
        let level = |(first_token, num_codes)| LevelFormat::run("a", first_token, num_codes);
        let format = PromptFormat {
            bos_token: Some(1),
            pad_token: Some(0),
            end_tokens: Vec::new(),
            levels: LEVELS.map(level).to_vec(),
            max_history_items: 3,
            history_step: None,
            witnesses: Vec::new(),
        };
        let history = |user: u32| (0..1 + user % 3).map(|at| vec![(user + at) % 4, at]).collect();
        let whole = Augmentation { crop: 0.0, drop_items: 0.0 };
        HistoryDataset::new((0..9).map(history).collect(), format, whole).with_branches()
    }

    fn params() -> Params {
        let decoder = Params::init(&tiny_config(true), 1);
        Params::with_draft(&decoder, DraftForm::default(), &shape(), 2)
    }

    fn trainer() -> HeadTrainer {
        HeadTrainer::new(params(), options(), &data(), |_| {}).unwrap()
    }

    fn resume(
        dir: &Path,
        form: DraftForm,
        options: TrainOptions,
    ) -> Result<HeadTrainer, TrainError> {
        let layout = Layout::with_draft(&tiny_config(true), form, &shape());
        HeadTrainer::resume_expecting(dir, &layout, options, &data(), |_| {})
    }

    #[test]
    fn a_resumed_run_goes_on_bit_for_bit_in_the_middle_of_an_epoch() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("checkpoint");
        let mut straight = trainer();
        assert!(straight.steps_per_epoch() > 1);
        let reports: Vec<_> = (0..9).map(|_| straight.step().unwrap()).collect();
        let mut broken = trainer();
        for report in &reports[..4] {
            assert_eq!(broken.step().unwrap(), *report);
        }
        broken.save(&dir).unwrap();
        let other_threads = TrainOptions { threads: 2, ..options() };
        let mut resumed = resume(&dir, DraftForm::default(), other_threads).unwrap();
        for report in &reports[4..] {
            assert_eq!(resumed.step().unwrap(), *report);
        }
        assert_eq!(straight.params().values(), resumed.params().values());
        assert_ne!(straight.params().values(), params().values());
    }

    #[test]
    fn a_checkpoint_of_another_run_is_refused_by_field() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("checkpoint");
        let check = |error: TrainError, part: &str| {
            assert!(error.is_disagreement(), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        };
        trainer().save(&dir).unwrap();
        check(Trainer::resume(&dir, data()).unwrap_err(), "`head_only` = true, but this run");
        let other = DraftForm { input: DraftInput::State, ..DraftForm::default() };
        check(
            resume(&dir, other, options()).unwrap_err(),
            "`draft` = {\"form\":{\"input\":\"both\"",
        );
        let other = TrainOptions { seed: 5, ..options() };
        check(resume(&dir, DraftForm::default(), other).unwrap_err(), "`seed` = 0");

        let together = Trainer::from_params(params(), options(), data()).unwrap();
        together.save(&dir).unwrap();
        let part = "`head_only` = false, but this run has true";
        check(resume(&dir, DraftForm::default(), options()).unwrap_err(), part);
        assert_eq!(Trainer::resume(&dir, data()).unwrap().params().values(), params().values());
        let layout = Layout::new(&tiny_config(true));
        let error = Trainer::resume_expecting(&dir, &layout, options(), data()).unwrap_err();
        check(error, "but this run has null");
    }

    #[test]
    fn levels_beyond_the_vocabulary_are_refused_when_they_are_read() {
        let dir = tempfile::tempdir().unwrap();
        trainer().save(dir.path()).unwrap();
        let path = dir.path().join("state.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut state: serde_json::Value = serde_json::from_str(&text).unwrap();
        for level in [(2, 0), (6, 6), (u32::MAX, u32::MAX)] {
            state["draft"]["levels"][1] = serde_json::json!(level);
            std::fs::write(&path, state.to_string()).unwrap();
            let error = resume(dir.path(), DraftForm::default(), options()).unwrap_err();
            assert!(error.to_string().contains("a level of the draft head"), "{error}");
        }
    }
}
