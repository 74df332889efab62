//! The command line of `draft`, and what it means to the library.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use palmette_model::draft::{DraftForm, DraftInput, DraftTransition};
use palmette_train::{Augmentation, Duration, TrainOptions};

use super::run_args::RunArgs;

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

  A model of text (prompt_template.json in its directory) is trained after the prompts that serving
  writes: every item of a history but the first, after the prompt of those before it. Where rows of
  the histories have a query, or the user's fields in an object \"user\", prompts have them too; rows
  with the item that came next are an example each, with --hold-out nothing. --crop and --drop-items
  are without effect then. What ends an item's text is left to the decoder: a head says the codes.

  Press Ctrl-C to stop; the same command with --resume goes on.

  --input and --transition leave out parts of the head, as the NEZHA paper's ablations do: its
  NEZHA-1 is --input placeholder, NEZHA-2 --input state, NEZHA-3 --transition add, and independent
  heads for each level (MTP) are --input prompt.";

/// Train a draft head, from a trained model.
///
/// Histories, --hold-out and --cold-start mean what they mean to `train`; use what the model was
/// trained with. OUT becomes a model's directory with draft.safetensors in it and all files that
/// the model's has beside its weights. It holds the best so far by the items that the head finds
/// at validation. draft.json tells what was done.
///
/// OUT/checkpoint holds what an interrupted run needs to go on with --resume, to the same bits as
/// without the interruption, also with --head-only, which then computes the hidden states again. It
/// is written at every validation and after epochs that end a minute or more after the last one,
/// and may be deleted when training is over.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DraftArgs {
    /// Directory of the trained model: plain Qwen3, Qwen2, Llama or Mistral, of codes or of text
    #[arg(long, value_name = "DIR")]
    pub(crate) model: PathBuf,
    /// Leave the decoder as it is, and train the head on hidden states that are computed once, from
    /// whole histories; --crop, --drop-items, --dropout, --next-token-weight and --shards are
    /// without effect then
    #[arg(long, help_heading = "Head")]
    pub(crate) head_only: bool,
    /// Inputs from which a level's probabilities are made
    #[arg(long, value_enum, default_value_t = InputArg::Both, help_heading = "Head")]
    input: InputArg,
    /// Form of the state's move over a chosen code
    #[arg(long, value_enum, default_value_t = TransitionArg::Rnn, help_heading = "Head")]
    transition: TransitionArg,

    /// Passes over the histories; the learning rate falls over them, to a tenth
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Training")]
    epochs: u64,
    /// Histories per step, 64 of them; with --head-only items to be drafted, 512
    #[arg(long, value_name = "N", help_heading = "Training")]
    batch_size: Option<usize>,
    /// Highest learning rate
    #[arg(long, value_name = "X", default_value_t = 1e-3, help_heading = "Training")]
    learning_rate: f32,
    /// Weight of the loss of next tokens beside the head's. 0 is what the paper minimises; of 0.2
    /// and 1 the first gave the better heads on two data sets
    #[arg(long, value_name = "X", default_value_t = 0.2, help_heading = "Training")]
    next_token_weight: f32,
    #[command(flatten)]
    pub(crate) run: RunArgs,
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

    pub(crate) fn augmentation(&self) -> Augmentation {
        match self.head_only {
            true => Augmentation { crop: 0.0, drop_items: 0.0 },
            false => self.run.augmentation(),
        }
    }

    pub(crate) fn train_options(&self) -> TrainOptions {
        TrainOptions {
            duration: Duration::Epochs(self.epochs),
            batch_size: self.batch_size.unwrap_or(if self.head_only { 512 } else { 64 }),
            learning_rate: self.learning_rate,
            next_token_weight: self.next_token_weight,
            ..self.run.train_options()
        }
    }
}
