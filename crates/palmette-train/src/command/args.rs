//! The command line of `train`, and what it means to the library.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use palmette_eval::HoldOut;
use palmette_model::ModelConfig;
use palmette_recommend::PromptFormat;
use palmette_train::{Augmentation, Duration, ExportDtype, TrainOptions, has_checkpoint};

const AFTER_HELP: &str = "\
Example:
  palmette-train train --catalog shop.palm --histories histories.json --out model

  The defaults suit tens of thousands of histories: a model of about a million weights, trained for
  at most 90 epochs and kept where validation was best. With fewer histories raise --dropout and
  --weight-decay; with many more lower --dropout and --epochs and raise --layers, --hidden and
  --intermediate (3 times --hidden is usual). When training diverges, lower --learning-rate or raise
  --warmup-steps. Each step computes --shards parts of the batch side by side, so on a machine of
  many cores raise it with --batch-size.

  Press Ctrl-C to stop; the same command with --resume goes on.";

/// Train a next-item model on user histories.
///
/// The last item of each history is the test and the one before it validation; neither is trained
/// on (but see --hold-out), except that histories of fewer than 3 items are trained on whole. After every few epochs the
/// model is asked for the validation items, and OUT always holds the best model so far:
/// config.json, model.safetensors, generation_config.json, semantic_ids.json and a log,
/// training.json. Hugging Face transformers load the same directory. Where nobody can be asked, OUT
/// holds the latest model.
///
/// OUT/checkpoint holds what an interrupted run needs to go on with --resume, to the same bits as
/// without the interruption. It is written at every validation and after epochs that end a minute or
/// more after the last one, and may be deleted when training is over.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TrainArgs {
    /// Catalog of the items, made by `palmette catalog build`
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: PathBuf,
    /// Histories: {user: [item, …]} as JSON, oldest item first, or JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) histories: PathBuf,
    /// Directory of the trained model
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Go on from the checkpoint in OUT; only --patience and --threads may differ from before
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace the model and the checkpoint in OUT
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,

    /// Passes over the histories; the learning rate falls over them, to a tenth
    #[arg(long, value_name = "N", default_value_t = 90, help_heading = "Training")]
    epochs: u64,
    /// What is kept from training: both the validation and the test item, to choose and measure a
    /// model; the test item only, for a last run with what validation chose; or nothing, for a
    /// model that goes into service. Without validation OUT holds the latest model
    #[arg(long, value_enum, default_value_t = HoldOutArg::Both, help_heading = "Training")]
    hold_out: HoldOutArg,
    /// Hold out this share of the items too, the newest by first appearance in the histories: no
    /// history with one of them is trained on, nor asked about at validation. `palmette eval
    /// --cold-start` with the same share asks for them
    #[arg(long, value_name = "SHARE", help_heading = "Training")]
    pub(crate) cold_start: Option<f64>,
    /// Histories per step
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Training")]
    batch_size: usize,
    /// Highest learning rate
    #[arg(long, value_name = "X", default_value_t = 2e-3, help_heading = "Training")]
    learning_rate: f32,
    /// Steps over which the learning rate rises
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Training")]
    warmup_steps: u64,
    /// AdamW's weight decay; norms and embeddings are left out
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    weight_decay: f32,
    /// Share of activations dropped
    #[arg(long, value_name = "X", default_value_t = 0.2, help_heading = "Training")]
    dropout: f32,
    /// Share of the wanted distribution spread over the whole vocabulary
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    label_smoothing: f32,
    /// Memory of the weights' moving average, which is then what is validated and kept; 0 turns it off
    #[arg(long, value_name = "X", default_value_t = 0.0, help_heading = "Training")]
    average_decay: f32,
    /// Share of examples that begin at a random item
    #[arg(long, value_name = "X", default_value_t = 0.3, help_heading = "Training")]
    crop: f32,
    /// Share of items left out of an example
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    drop_items: f32,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Training")]
    seed: u64,
    /// Parts of a batch that are computed side by side: the most threads that training can use
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Training")]
    shards: usize,
    /// Threads; the result does not depend on it [default: one per core]
    #[arg(long, value_name = "N", help_heading = "Training")]
    threads: Option<NonZeroUsize>,

    /// Decoder layers
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Model")]
    layers: usize,
    /// Width of the residual stream
    #[arg(long, value_name = "N", default_value_t = 128, help_heading = "Model")]
    hidden: usize,
    /// Width of the feed-forward layers
    #[arg(long, value_name = "N", default_value_t = 384, help_heading = "Model")]
    intermediate: usize,
    /// Query heads
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Model")]
    heads: usize,
    /// Key/value heads
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Model")]
    kv_heads: usize,
    /// Width of a head
    #[arg(long, value_name = "N", default_value_t = 32, help_heading = "Model")]
    head_dim: usize,
    /// Most recent items that a prompt holds
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Model")]
    pub(crate) max_history: usize,
    /// How weights are stored
    #[arg(long, value_enum, default_value_t = Dtype::F32, help_heading = "Model")]
    dtype: Dtype,

    /// Epochs from one validation to the next
    #[arg(long, default_value_t = 5, value_name = "N", help_heading = "Validation")]
    pub(crate) validate_every: u64,
    /// Users asked at each validation, evenly spread over the file; 0 keeps the latest model
    #[arg(long, default_value_t = 2000, value_name = "N", help_heading = "Validation")]
    pub(crate) validation_users: usize,
    /// Beam width of validation
    #[arg(long, default_value_t = 20, value_name = "N", help_heading = "Validation")]
    pub(crate) validation_beam_width: usize,
    /// Stop after this many validations without a better one; 0 never stops early
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Validation")]
    pub(crate) patience: u64,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dtype {
    F32,
    Bf16,
    F16,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum HoldOutArg {
    Both,
    Test,
    Nothing,
}

impl TrainArgs {
    /// Checks what can be checked before data is read. [`TrainOptions::check`] has the rest.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let out = self.out.display();
        let has_checkpoint = has_checkpoint(&self.checkpoint());
        if self.resume {
            ensure!(
                has_checkpoint,
                "{out} holds no checkpoint to go on from; start without --resume"
            );
        } else if !self.overwrite && (has_checkpoint || self.out.join("model.safetensors").exists())
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
        for (name, value, needed_for) in [
            ("max-history", self.max_history as u64, "a prompt needs room for an item"),
            ("validate-every", self.validate_every, "validation follows whole epochs"),
            ("validation-beam-width", self.validation_beam_width as u64, "a search needs a beam"),
        ] {
            ensure!(value > 0, "--{name} is 0; {needed_for}: give at least 1");
        }
        let (asked, most) = (self.max_history, PromptFormat::MAX_HISTORY_ITEMS);
        ensure!(asked <= most, "--max-history is {asked}; a prompt holds at most {most} items");
        Ok(())
    }

    /// Where the run's checkpoint is.
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

    pub(crate) fn dtype(&self) -> ExportDtype {
        match self.dtype {
            Dtype::F32 => ExportDtype::Float32,
            Dtype::Bf16 => ExportDtype::Bfloat16,
            Dtype::F16 => ExportDtype::Float16,
        }
    }

    pub(crate) fn train_options(&self) -> TrainOptions {
        TrainOptions {
            duration: Duration::Epochs(self.epochs),
            batch_size: self.batch_size,
            learning_rate: self.learning_rate,
            warmup_steps: self.warmup_steps,
            weight_decay: self.weight_decay,
            dropout: self.dropout,
            label_smoothing: self.label_smoothing,
            average_decay: self.average_decay,
            seed: self.seed,
            shards: self.shards,
            threads: self.threads(),
            ..TrainOptions::default()
        }
    }

    pub(crate) fn model_config(&self, format: &PromptFormat) -> ModelConfig {
        ModelConfig {
            vocab_size: format.vocab_size(),
            hidden_size: self.hidden,
            intermediate_size: self.intermediate,
            num_hidden_layers: self.layers,
            num_attention_heads: self.heads,
            num_key_value_heads: self.kv_heads,
            head_dim: self.head_dim,
            max_position_embeddings: format.max_prompt_tokens() + format.levels.len(),
            rms_norm_eps: 1e-6,
            rope_theta: 10_000.0,
            tie_word_embeddings: true,
        }
    }
}
