//! Arguments of the command: prompt, shape of the text, sampling, output.

use std::path::PathBuf;

use clap::Args;
use palmette_grammar::MaskBudget;
use palmette_text::engine::EngineOptions;

use super::options::SamplingArgs;
use super::shape::ShapeArgs;
use crate::commands::devices::DeviceArgs;
use crate::commands::grammar::CatalogArgs;
use crate::commands::loading::WeightsArg;
use crate::commands::vocabulary::VocabularyOptions;

/// Write text with a language model, free or under a grammar, a schema or tools
///
/// Under a grammar the model can write nothing else: at each step the tokens that cannot lead to a
/// text of the grammar are masked, exactly. Where one token alone can follow it is written without
/// asking the model.
///
/// The model is a folder as Hugging Face has it: config.json, model.safetensors, tokenizer.json,
/// and for --chat a chat template (chat_template.jinja, or in tokenizer_config.json).
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GenerateArgs {
    /// Folder of the model
    #[arg(long, value_name = "DIR")]
    pub(super) model: PathBuf,
    #[command(flatten)]
    pub(super) prompt: PromptArgs,
    /// Texts of a batch that are written at once, in the same passes of the model; answers do not
    /// depend on it
    #[arg(long, value_name = "N", default_value_t = EngineOptions::default().max_texts, conflicts_with_all = ["prompt", "prompt_file", "ask", "chat"],
        help_heading = "Prompt")]
    pub(super) at_once: usize,
    /// Draft model of a batch: the folder of a smaller model with the same tokens, which guesses
    /// what comes next, under a grammar only what it allows; answers are the same, and take fewer
    /// passes of the model
    #[arg(long, value_name = "DIR", conflicts_with_all = ["prompt", "prompt_file", "ask", "chat"], help_heading = "Prompt")]
    pub(super) draft_model: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shape: ShapeArgs,
    #[command(flatten)]
    pub(super) catalogs: CatalogArgs,
    #[command(flatten)]
    pub(super) sampling: SamplingArgs,
    #[command(flatten)]
    pub(super) vocabulary: VocabularyOptions,
    /// Form of the model's weights: int8 rounds its layers', which takes a quarter of the memory,
    /// and less time
    #[arg(long, value_enum, default_value_t = WeightsArg::F32)]
    pub(super) weights: WeightsArg,
    #[command(flatten)]
    pub(super) device: DeviceArgs,
    /// The chat template, in place of the model's own
    #[arg(long, value_name = "FILE")]
    pub(super) chat_template: Option<PathBuf>,
    /// Threads; the text does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    /// Work that one mask of a grammar may take, in steps of some hundreds of nanoseconds; a text
    /// with a mask that takes more breaks off
    #[arg(long, value_name = "N", default_value_t = MaskBudget::DEFAULT_STEPS)]
    pub(super) mask_steps: u64,
    /// Print text as it comes; the default where standard output is a terminal
    ///
    /// With --json: a JSON document a line, {"text": …} for each piece, then the whole answer.
    #[arg(long, conflicts_with = "batch")]
    pub(super) stream: bool,
    /// Print special tokens by name, except the one that ends the text
    #[arg(long)]
    pub(super) special: bool,
    /// Print one JSON document instead of text: texts, calls, reasons of their ends, tokens, times
    #[arg(long)]
    pub(super) json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short)]
    pub(super) quiet: bool,
    /// Leave out the mask: the prompt and the reading of calls stay, to see what the model would
    /// write by itself
    #[arg(long)]
    pub(super) no_mask: bool,
}

/// The prompt: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct PromptArgs {
    /// Text that the model continues
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    pub(super) prompt: Option<String>,
    /// A prompt from a file; - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    pub(super) prompt_file: Option<PathBuf>,
    /// A question, put into the model's chat template
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    pub(super) ask: Option<String>,
    /// A conversation, put into the model's chat template: a JSON list of messages, or a body as
    /// `palmette serve` takes it for /v1/chat/completions or /v1/completions, whose members go
    /// before options; - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    pub(super) chat: Option<PathBuf>,
    /// Many prompts, a JSON object a line; answers are JSON lines in their order
    ///
    /// A line is a body as `palmette serve` takes it for /v1/chat/completions ("messages") or
    /// /v1/completions ("prompt"), whose members go before options, and may have an "id", which is
    /// given back. docs/http.md lists the members; those of a server alone ("model", "stream", …)
    /// change nothing here, which "warnings" says. A line that cannot be answered has the reason in
    /// "error", and the others are answered.
    /// - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    pub(super) batch: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  palmette generate --model smollm2 --ask 'Name three trees.'
  palmette generate --model smollm2 --ask 'Describe a tent as JSON.' --schema order.json
  palmette generate --model smollm2 --ask 'Which tent is in stock?' --schema answer.json --catalog shop=shop.palm
  palmette generate --model smollm2 --chat request.json --tools tools.json --tool-choice required --one-call
  palmette generate --model smollm2 --prompt 'def add(a, b):' --stop $'\\n\\n' --temperature 0.7 --seed 4 -n 3
  palmette generate --model smollm2 --batch prompts.jsonl --schema order.json > answers.jsonl

A summary on standard error says how many tokens were forced and what masks cost: seldom more than a hundredth of the time.
docs/generating.md has a tour.";
