//! The command line of `draft`, and what it means to the library.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use palmette_eval::HoldOut;
use palmette_model::draft::{DraftForm, DraftHead, DraftInput, DraftTransition};
use palmette_train::{Augmentation, Duration, TrainOptions};

use super::args::HoldOutArg;

const AFTER_HELP: &str = "\
Example:
  palmette-train train --catalog shop.palm --histories histories.json --out model
  palmette-train draft --model model --catalog shop.palm --histories histories.json --out drafting
  palmette recommend --model drafting --catalog shop.palm --history 12,7,99 --mode draft

  A draft head finds items in one pass over the prompt, where beam search takes one more for each
  level of the semantic IDs. Head and decoder are best trained together, for some 20 epochs from a
  trained model; the decoder goes on learning next tokens, so that OUT serves both ways. With
  --head-only the decoder stays as it is, to the bit: its hidden states are computed once, epochs
  take seconds, and what the head finds is much worse, since states that were never asked for more
  than the next token know little of the tokens after it.

  --input and --transition leave out parts of the head, as the NEZHA paper's ablations do: its
  NEZHA-1 is --input placeholder, NEZHA-2 --input state, NEZHA-3 --transition add, and independent
  heads for each level (MTP) are --input prompt.";

/// Train a draft head, from a trained model.
///
/// Histories and --hold-out mean what they mean to `train`; use what the model was trained with. OUT
/// becomes a model's directory with draft.safetensors in it, and holds the best so far by the items
/// that the head finds at validation. draft.json tells what was done. An interrupted run begins anew.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DraftArgs {
    /// Directory of the trained model
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// Catalog of the items, made by `palmette catalog build`
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: PathBuf,
    /// Histories: {user: [item, …]} as JSON, oldest item first, or JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) histories: PathBuf,
    /// Directory of the model with its draft head
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Replace the model in OUT
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Leave the decoder as it is, and train the head on hidden states that are computed once
    #[arg(long, help_heading = "Head")]
    pub(crate) head_only: bool,
    /// What a level's probabilities are made from
    #[arg(long, value_enum, default_value_t = InputArg::Both, help_heading = "Head")]
    input: InputArg,
    /// How the state moves over a chosen code
    #[arg(long, value_enum, default_value_t = TransitionArg::Rnn, help_heading = "Head")]
    transition: TransitionArg,

    /// Passes over the histories; the learning rate falls over them, to a tenth
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Training")]
    epochs: u64,
    /// What is kept from training: both the validation and the test item, the test item only, or
    /// nothing
    #[arg(long, value_enum, default_value_t = HoldOutArg::Both, help_heading = "Training")]
    hold_out: HoldOutArg,
    /// Histories per step, 64 of them; with --head-only items to be drafted, 512
    #[arg(long, value_name = "N", help_heading = "Training")]
    batch_size: Option<usize>,
    /// Highest learning rate
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training")]
    learning_rate: f32,
    /// Steps over which the learning rate rises
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Training")]
    warmup_steps: u64,
    /// AdamW's weight decay; norms, biases and embeddings are left out
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    weight_decay: f32,
    /// Share of the decoder's activations dropped
    #[arg(long, value_name = "X", default_value_t = 0.2, help_heading = "Training")]
    dropout: f32,
    /// Share of the wanted distribution spread over the whole vocabulary, and over a level's codes
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    label_smoothing: f32,
    /// What the loss of next tokens counts beside the head's; 0 is what the paper minimises
    #[arg(long, value_name = "X", default_value_t = 1.0, help_heading = "Training")]
    next_token_weight: f32,
    /// Share of examples that begin at a random item; 0 with --head-only
    #[arg(long, value_name = "X", default_value_t = 0.3, help_heading = "Training")]
    crop: f32,
    /// Share of items left out of an example; 0 with --head-only
    #[arg(long, value_name = "X", default_value_t = 0.1, help_heading = "Training")]
    drop_items: f32,
    /// Decides everything random
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Training")]
    seed: u64,
    /// Parts of a batch that are computed side by side: the most threads that joint training can use
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
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum InputArg {
    /// The hidden state at the level's placeholder, and the state that knows the codes before
    Both,
    /// The hidden state at the placeholder alone
    Placeholder,
    /// The state alone; no placeholders
    State,
    /// The hidden state after the prompt, for all levels
    Prompt,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TransitionArg {
    /// tanh(A s + B e + b), e the embedding of the code
    Rnn,
    /// s + e
    Add,
}

impl DraftArgs {
    /// Checks what can be checked before data is read. [`TrainOptions::check`] has the rest.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let out = self.out.display();
        let holds_model = ["model.safetensors", DraftHead::FILE_NAME]
            .iter()
            .any(|name| self.out.join(name).exists());
        if holds_model && !self.overwrite {
            bail!(
                "{out} already holds a model: replace it with --overwrite, or choose another --out"
            );
        }
        for (name, share) in [("crop", self.crop), ("drop-items", self.drop_items)] {
            ensure!(
                (0.0..1.0).contains(&share),
                "--{name} is {share}; it must be at least 0 and below 1"
            );
        }
        for (name, value, needed_for) in [
            ("validate-every", self.validate_every, "validation follows whole epochs"),
            ("validation-beam-width", self.validation_beam_width as u64, "a search needs a beam"),
        ] {
            ensure!(value > 0, "--{name} is 0; {needed_for}: give at least 1");
        }
        Ok(())
    }

    pub(crate) fn form(&self) -> DraftForm {
        let input = match self.input {
            InputArg::Both => DraftInput::Both,
            InputArg::Placeholder => DraftInput::Placeholder,
            InputArg::State => DraftInput::State,
            InputArg::Prompt => DraftInput::Prompt,
        };
        let transition = match self.transition {
            TransitionArg::Rnn => DraftTransition::Rnn,
            TransitionArg::Add => DraftTransition::Add,
        };
        DraftForm { input, transition }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }

    pub(crate) fn hold_out(&self) -> HoldOut {
        self.hold_out.into()
    }

    pub(crate) fn augmentation(&self) -> Augmentation {
        match self.head_only {
            true => Augmentation { crop: 0.0, drop_items: 0.0 },
            false => Augmentation { crop: self.crop, drop_items: self.drop_items },
        }
    }

    pub(crate) fn train_options(&self) -> TrainOptions {
        TrainOptions {
            duration: Duration::Epochs(self.epochs),
            batch_size: self.batch_size.unwrap_or(if self.head_only { 512 } else { 64 }),
            learning_rate: self.learning_rate,
            warmup_steps: self.warmup_steps,
            weight_decay: self.weight_decay,
            dropout: self.dropout,
            label_smoothing: self.label_smoothing,
            next_token_weight: self.next_token_weight,
            seed: self.seed,
            shards: self.shards,
            threads: self.threads(),
            ..TrainOptions::default()
        }
    }
}
