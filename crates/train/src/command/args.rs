//! The command line of `train`, and what it means to the library.

use clap::{Args, ValueEnum};
use palmette_model::{Architecture, ModelConfig};
use palmette_recommend::PromptFormat;
use palmette_train::{Duration, ExportDtype, TrainOptions};

use super::run_args::{RunArgs, at_least_one};

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
/// on (but see --hold-out), except that histories of fewer than 3 items are trained on whole. After
/// every few epochs the model is asked for the validation items, and OUT always holds the best
/// model so far: config.json, model.safetensors, generation_config.json, semantic_ids.json and a
/// log, training.json. Hugging Face transformers load the same directory. Where nobody can be
/// asked, OUT holds the latest model.
///
/// OUT/checkpoint holds what an interrupted run needs to go on with --resume, to the same bits as
/// without the interruption. It is written at every validation and after epochs that end a minute
/// or more after the last one, and may be deleted when training is over.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TrainArgs {
    /// Passes over the histories; the learning rate falls over them, to a tenth
    #[arg(long, value_name = "N", default_value_t = 90, help_heading = "Training")]
    epochs: u64,
    /// Histories per step
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Training")]
    batch_size: usize,
    /// Highest learning rate
    #[arg(long, value_name = "X", default_value_t = 2e-3, help_heading = "Training")]
    learning_rate: f32,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Memory of the weights' moving average, which is then what is validated and kept; 0 turns it
    /// off
    #[arg(long, value_name = "X", default_value_t = 0.0, help_heading = "Training")]
    average_decay: f32,

    /// Begin with the weights of this Hugging Face checkpoint of plain Qwen3, Qwen2, Llama or
    /// Mistral, trained further on prompts of text
    ///
    /// Its tokenizer.json gets a token for each of the catalog's codes that it lacks, and the
    /// embeddings rows for them, the mean of those before with a little noise. OUT gets the
    /// tokenizer too, and all other files beside the weights. Every item of a history but the first
    /// is an example: the prompt that serving writes of those before it, of which nothing is
    /// predicted, and the item. Where rows have a query, or the user's fields in an object "user",
    /// prompts have them too. Rows with the item that came next are an example each, with
    /// --hold-out nothing.
    #[arg(long, value_name = "DIR", help_heading = "Model",
        conflicts_with_all = ["layers", "hidden", "intermediate", "heads", "kv_heads", "head_dim", "max_history"])]
    pub(crate) from: Option<std::path::PathBuf>,
    /// The template of the prompts, in place of the checkpoint's prompt_template.json
    #[arg(long, value_name = "FILE", requires = "from", help_heading = "Model")]
    pub(crate) template: Option<std::path::PathBuf>,
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
    /// Limit on a prompt's items, the most recent ones
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Model")]
    pub(crate) max_history: usize,
    /// Number format of stored weights
    #[arg(long, value_enum, default_value_t = Dtype::F32, help_heading = "Model")]
    pub(crate) dtype: Dtype,

    /// Stop after this many validations without a better one; 0 never stops early. A resumed run
    /// may have another
    #[arg(long, default_value_t = 4, value_name = "N", help_heading = "Validation")]
    pub(crate) patience: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Dtype {
    F32,
    Bf16,
    F16,
}

impl From<Dtype> for ExportDtype {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::Float32,
            Dtype::Bf16 => Self::Bfloat16,
            Dtype::F16 => Self::Float16,
        }
    }
}

impl From<ExportDtype> for Dtype {
    fn from(dtype: ExportDtype) -> Self {
        match dtype {
            ExportDtype::Float32 => Self::F32,
            ExportDtype::Bfloat16 => Self::Bf16,
            ExportDtype::Float16 => Self::F16,
        }
    }
}

impl Dtype {
    /// Name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
        }
    }
}

impl TrainArgs {
    /// Checks what can be checked before data is read. [`TrainOptions::check`] has the rest.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.run.check()?;
        at_least_one("max-history", self.max_history as u64, "a prompt needs room for an item")?;
        let (asked, most) = (self.max_history, PromptFormat::MAX_HISTORY_ITEMS);
        anyhow::ensure!(
            asked <= most,
            "--max-history is {asked}; a prompt holds at most {most} items"
        );
        Ok(())
    }

    pub(crate) fn train_options(&self) -> TrainOptions {
        TrainOptions {
            duration: Duration::Epochs(self.epochs),
            batch_size: self.batch_size,
            learning_rate: self.learning_rate,
            average_decay: self.average_decay,
            ..self.run.train_options()
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
            architecture: Architecture::default(),
        }
    }
}
