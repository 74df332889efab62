//! `palmette generate`: text from a language model, free or under a grammar.

mod batch;
mod options;
mod question;
mod shape;
mod show;
mod written;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use palmette_grammar::MaskBudget;
use palmette_text::engine::EngineOptions;
use palmette_text::{TextModel, TextModelOptions, TextSession};
use serde_json::{Value, json};

use super::loading::{WeightsArg, set_threads};
use super::vocabulary::VocabularyOptions;
use crate::input;
use crate::output::print_json;
use options::SamplingArgs;
use question::Question;
use shape::ShapeArgs;
use show::Show;

/// Write text with a language model, free or under a grammar, a schema or tools
///
/// Under a grammar the model can write nothing else: at each step the tokens that cannot lead to a text of the grammar
/// are masked, exactly. Where one token alone can follow it is written without asking the model.
///
/// The model is a folder as Hugging Face has it: config.json, model.safetensors, tokenizer.json, and for --chat a chat
/// template (chat_template.jinja, or in tokenizer_config.json).
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GenerateArgs {
    /// Folder of the model
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    #[command(flatten)]
    prompt: PromptArgs,
    /// Texts of a batch that are written at once, in the same passes of the model; answers do not depend on it
    #[arg(long, value_name = "N", default_value_t = EngineOptions::default().max_texts, conflicts_with_all = ["prompt", "prompt_file", "ask", "chat"],
        help_heading = "Prompt")]
    at_once: usize,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    /// Form of the model's weights: int8 rounds its layers', which takes a quarter of the memory, and less time
    #[arg(long, value_enum, default_value_t = WeightsArg::F32)]
    weights: WeightsArg,
    /// The chat template, in place of the model's own
    #[arg(long, value_name = "FILE")]
    chat_template: Option<PathBuf>,
    /// Threads; the text does not depend on it [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Work that one mask of a grammar may take, in steps of some hundreds of nanoseconds; a text with a mask that takes more breaks off
    #[arg(long, value_name = "N", default_value_t = MaskBudget::DEFAULT_STEPS)]
    mask_steps: u64,
    /// Print text as it comes; the default where standard output is a terminal
    ///
    /// With --json: a JSON document a line, {"text": …} for each piece, then the whole answer.
    #[arg(long, conflicts_with = "batch")]
    stream: bool,
    /// Print special tokens by name, except the one that ends the text
    #[arg(long)]
    special: bool,
    /// Print one JSON document instead of text: texts, calls, reasons of their ends, tokens, times
    #[arg(long)]
    json: bool,
    /// Say nothing on standard error but errors
    #[arg(long, short)]
    quiet: bool,
    /// Leave out the mask: the prompt and the reading of calls stay, to see what the model would write by itself
    #[arg(long)]
    no_mask: bool,
}

/// The prompt: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct PromptArgs {
    /// Text that the model continues
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    prompt: Option<String>,
    /// A prompt from a file; - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    prompt_file: Option<PathBuf>,
    /// A question, put into the model's chat template
    #[arg(long, value_name = "TEXT", help_heading = "Prompt")]
    ask: Option<String>,
    /// A conversation, put into the model's chat template: a JSON list of messages, or a body as `palmette serve` takes it for
    /// /v1/chat/completions or /v1/completions, whose members go before options; - for standard input
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    chat: Option<PathBuf>,
    /// Many prompts, a JSON object a line; answers are JSON lines in their order
    ///
    /// A line is a body as `palmette serve` takes it for /v1/chat/completions ("messages") or /v1/completions ("prompt"), whose members go
    /// before options, and may have an "id", which is given back. docs/http.md lists the members; those of a server alone ("model", "stream",
    /// …) change nothing here, which "warnings" says. A line that cannot be answered has the reason in "error", and the others are answered.
    /// - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Prompt")]
    batch: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Examples:
  palmette generate --model smollm2 --ask 'Name three trees.'
  palmette generate --model smollm2 --ask 'Describe a tent as JSON.' --schema order.json
  palmette generate --model smollm2 --chat request.json --tools tools.json --tool-choice required --one-call
  palmette generate --model smollm2 --prompt 'def add(a, b):' --stop $'\\n\\n' --temperature 0.7 --seed 4 -n 3
  palmette generate --model smollm2 --batch prompts.jsonl --schema order.json > answers.jsonl

A summary on standard error says how many tokens were forced and what masks cost: seldom more than a hundredth of the time.
docs/generating.md has a tour.";

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    // What costs nothing is checked before the model is read.
    args.sampling.check()?;
    let shape = args.shape.read()?;
    let questions = args.questions()?;
    let threads = set_threads(args.threads)?;
    let mut model = TextModel::open(
        &args.model,
        &TextModelOptions {
            weights: args.weights.format()?,
            vocabulary: args.vocabulary.options(),
            mask_steps: args.mask_steps,
            threads,
            ..TextModelOptions::default()
        },
    )?;
    if let Some(path) = &args.chat_template {
        let template = String::from_utf8(input::read(path)?);
        let template = template.context("a template is text in UTF-8");
        let template = template.with_context(|| path.display().to_string())?;
        model = model.with_chat_template(&template).with_context(|| path.display().to_string())?;
    }
    match questions {
        Questions::One(question) => {
            answer(args, &mut TextSession::new(model), *question, shape.as_ref())
        }
        Questions::Batch(path) => batch::run(args, model, shape.as_ref(), &path),
    }
}

/// One question, or a file of them.
enum Questions {
    One(Box<Question>),
    Batch(PathBuf),
}

impl GenerateArgs {
    fn questions(&self) -> anyhow::Result<Questions> {
        let PromptArgs { prompt, prompt_file, ask, chat, batch } = &self.prompt;
        let question = match (prompt, prompt_file, ask, chat, batch) {
            (Some(prompt), ..) => Question::from_prompt(prompt.clone()),
            (_, Some(file), ..) => Question::from_prompt(text_of(file)?),
            (_, _, Some(words), ..) => Question::from_user(words),
            (_, _, _, Some(file), _) => {
                let text = text_of(file)?;
                Question::from_file(&text).with_context(|| file.display().to_string())?
            }
            (_, _, _, _, Some(file)) => return Ok(Questions::Batch(file.clone())),
            _ => bail!("give --prompt, --prompt-file, --ask, --chat or --batch"),
        };
        Ok(Questions::One(Box::new(question)))
    }
}

fn text_of(file: &Path) -> anyhow::Result<String> {
    input::read_text(file, "a request")
}

fn answer(
    args: &GenerateArgs,
    session: &mut TextSession,
    question: Question,
    shape: Option<&shape::Shape>,
) -> anyhow::Result<()> {
    let model = session.model().clone();
    let prepared = question.prepare(args, &model, shape)?;
    prepared.warn(args.quiet || args.json);
    let is_terminal = std::io::stdout().is_terminal();
    let mut answers: Vec<Value> = Vec::new();
    let count = prepared.num_answers();
    for index in 0..count {
        let mut show = Show::new(args, is_terminal, count, index);
        let written = prepared.write(session, index, &mut show)?;
        if show.is_gone() {
            return Ok(());
        }
        if args.json {
            answers.push(written.json(&model, None, &prepared.warnings));
            if args.stream {
                print_json(&answers[index])?;
            }
        }
        if !args.quiet && !args.json {
            eprintln!("{}", written.summary(&model));
        }
    }
    match (args.json && !args.stream, answers.len()) {
        (false, _) => Ok(()),
        (true, 1) => print_json(&answers[0]),
        (true, _) => print_json(&json!({"answers": answers})),
    }
}
