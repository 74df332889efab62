//! Arguments of both `train` and `draft`. They are the data, what is held out, how steps are taken,
//! and how the run is watched.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use palmette_model::draft::DraftHead;
use palmette_recommend_eval::{HistoryArgs, HoldOut, UnknownItems};
use palmette_train::{Augmentation, TrainOptions, has_checkpoint};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Catalog of the items, made by `palmette catalog build`
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: PathBuf,
    /// Histories, a whole one a user: .json, .jsonl, .inter (RecBole), .csv, .tsv, or .txt with a
    /// user and its items a line
    #[arg(long, value_name = "FILE")]
    pub(crate) histories: PathBuf,
    /// Items of histories that the catalog does not have: an error, or left out and counted (skip)
    ///
    /// They are left out before anything is held out. Give it as before with --resume.
    #[arg(long, value_name = "error|skip", value_parser = unknown_items, default_value = "error")]
    pub(crate) unknown: UnknownItems,
    /// Directory of what is trained, with its log and checkpoint
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Go on from the checkpoint in OUT; give all options as before, though --threads may differ
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace the model and the checkpoint in OUT
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,

    /// Items of each history that are kept from training. Both the validation and the test item, to
    /// choose and measure a model; the test item only, for a last run with what validation chose;
    /// or nothing, for a model that goes into service. Without validation OUT holds the latest
    /// model
    #[arg(long, value_enum, default_value_t = HoldOutArg::Both, help_heading = "Training")]
    hold_out: HoldOutArg,
    /// Hold out this share of the items too, the newest by first appearance in the histories: no
    /// history with one of them is trained on, nor asked about at validation. `palmette eval
    /// --cold-start` with the same share asks for them
    #[arg(long, value_name = "SHARE", help_heading = "Training")]
    pub(crate) cold_start: Option<f64>,
    /// Steps over which the learning rate rises
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Training")]
    warmup_steps: u64,
    /// AdamW's weight decay; norms, biases and embeddings are left out
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    weight_decay: f32,
    /// Share of the decoder's activations dropped
    #[arg(long, value_name = "X", default_value_t = 0.2, help_heading = "Training")]
    dropout: f32,
    /// Share of the wanted distribution spread over the whole vocabulary; of a draft head's, over
    /// the level's codes
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    label_smoothing: f32,
    /// Share of examples that begin at a random item; prompts of text are whole
    #[arg(long, value_name = "X", default_value_t = 0.3, help_heading = "Training")]
    crop: f32,
    /// Share of items left out of an example; prompts of text are whole
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    drop_items: f32,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Training")]
    pub(crate) seed: u64,
    /// Parts of a batch that are computed side by side: the most threads that training can use
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Training")]
    shards: usize,
    /// Threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Training")]
    threads: Option<NonZeroUsize>,

    /// Epochs from one validation to the next
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Validation")]
    pub(crate) validate_every: u64,
    /// Users asked at each validation, evenly spread over the file; 0 keeps the latest model
    #[arg(long, default_value_t = 2000, value_name = "N", help_heading = "Validation")]
    pub(crate) validation_users: usize,
    /// Beam width of validation
    #[arg(long, default_value_t = 20, value_name = "N", help_heading = "Validation")]
    pub(crate) validation_beam_width: usize,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) histories_args: HistoryArgs,
}

fn unknown_items(text: &str) -> Result<UnknownItems, String> {
    text.parse()
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HoldOutArg {
    Both,
    Test,
    Nothing,
}

impl RunArgs {
    /// Checks what can be checked before data is read. [`TrainOptions::check`] has the rest.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let out = self.out.display();
        let has_checkpoint = has_checkpoint(&self.checkpoint());
        let weights = ["model.safetensors", DraftHead::FILE_NAME];
        if self.resume {
            ensure!(
                has_checkpoint,
                "{out} holds no checkpoint to go on from; start without --resume"
            );
        } else if !self.overwrite
            && (has_checkpoint || weights.iter().any(|name| self.out.join(name).exists()))
        {
            let what = if has_checkpoint { "training run" } else { "model" };
            let ways = if has_checkpoint { "go on with --resume, replace" } else { "replace" };
            bail!(
                "{out} already holds a {what}: {ways} it with --overwrite, or choose another --out"
            );
        }
        for (name, share) in [("crop", self.crop), ("drop-items", self.drop_items)] {
            ensure!(
                (0.0..1.0).contains(&share),
                "--{name} is {share}; it must be at least 0 and below 1"
            );
        }
        at_least_one("validate-every", self.validate_every, "validation follows whole epochs")?;
        let width = self.validation_beam_width as u64;
        at_least_one("validation-beam-width", width, "a search needs a beam")
    }

    /// Directory of the run's checkpoint.
    pub(crate) fn checkpoint(&self) -> PathBuf {
        self.out.join("checkpoint")
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }

    pub(crate) fn augmentation(&self) -> Augmentation {
        Augmentation { crop: self.crop, drop_items: self.drop_items }
    }

    pub(crate) fn hold_out(&self) -> HoldOut {
        match self.hold_out {
            HoldOutArg::Both => HoldOut::Both,
            HoldOutArg::Test => HoldOut::Test,
            HoldOutArg::Nothing => HoldOut::Nothing,
        }
    }

    /// Options that both commands take alike; the rest is default.
    pub(crate) fn train_options(&self) -> TrainOptions {
        TrainOptions {
            warmup_steps: self.warmup_steps,
            weight_decay: self.weight_decay,
            dropout: self.dropout,
            label_smoothing: self.label_smoothing,
            seed: self.seed,
            shards: self.shards,
            threads: self.threads(),
            ..TrainOptions::default()
        }
    }
}

/// # Errors
/// When an option is 0.
pub(crate) fn at_least_one(option: &str, value: u64, needed_for: &str) -> anyhow::Result<()> {
    ensure!(value > 0, "--{option} is 0; {needed_for}: give at least 1");
    Ok(())
}
