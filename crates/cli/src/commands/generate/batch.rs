//! `palmette generate --batch`: many prompts, an answer a line.

use std::collections::VecDeque;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, anyhow, bail, ensure};
use indicatif::ProgressBar;
use palmette_text::engine::{Engine, EngineOptions, Spent, TextStream, Update};
use palmette_text::{TextEvent, TextModel, TextRequest};
use serde_json::{Value, json};

use super::arguments::GenerateArgs;
use super::question::{Prepared, Question};
use super::shape::Shape;
use super::show::Show;
use super::written_text::{Clock, WrittenText, tokens_line};
use crate::commands::grammar::OpenCatalogs;
use crate::input::{Input, is_stdin};
use crate::output::{grouped, print_json, progress_bar};

/// Answers that are begun before the first of them is printed, for each that is written at once: a
/// long one keeps no places empty.
const BEGUN: usize = 4;

pub(super) fn run(
    args: &GenerateArgs,
    models: (TextModel, Option<TextModel>),
    shape: (Option<&Shape>, &Arc<OpenCatalogs>),
    path: &Path,
) -> anyhow::Result<()> {
    ensure!(args.at_once > 0, "--at-once is 0; it must be at least 1");
    let named = || path.display().to_string();
    let lines = Input::open(path, |source| source).with_context(named)?.reader().lines();
    let lines: Vec<String> = lines.collect::<Result<_, _>>().with_context(named)?;
    let asked = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let bar = progress_bar(asked, "answers", args.quiet || is_stdin(path));
    let mut batch = Batch::new(args.at_once, models, bar);
    for (number, line) in (1..).zip(&lines).filter(|(_, line)| !line.trim().is_empty()) {
        batch.totals.lines += 1;
        match prepare(args, &batch.model, shape, line) {
            Ok((id, prepared)) => {
                let count = prepared.num_answers();
                for index in 0..count {
                    let index_shown = (count > 1).then_some(index);
                    let (id, warnings) = (id.clone(), prepared.warnings.clone());
                    let line = Line { number, id, index: index_shown, warnings };
                    batch.begin(line, &prepared.request(index), prepared.clock())?;
                }
            }
            Err(error) => {
                let id = serde_json::from_str::<Value>(line).ok().map(|line| line["id"].clone());
                let line = Line { number, id, index: None, warnings: Vec::new() };
                batch.open.push_back((line, Answer::Refused(error)));
            }
        }
    }
    while batch.finish_first()? {}
    batch.bar.finish_and_clear();
    if let Some(option) = shape.1.unnamed().filter(|_| !args.quiet) {
        eprintln!("note: {option}: no line has a grammar that names it");
    }
    let totals = batch.totals;
    if !args.quiet {
        let of = |n: usize| grouped(n as u64);
        let line = tokens_line(totals.prompt, totals.tokens, totals.forced, &totals.spent);
        eprintln!(
            "{} answers to {} lines: {line}; {} cut off",
            of(totals.answers),
            of(totals.lines),
            of(totals.cut_off)
        );
    }
    match totals.first_error {
        Some(first) => bail!(
            "{} of {} lines could not be answered; the first: {first}",
            totals.errors,
            totals.lines
        ),
        None => Ok(()),
    }
}

/// The id of a line, and its request made ready.
fn prepare(
    args: &GenerateArgs,
    model: &TextModel,
    shape: (Option<&Shape>, &Arc<OpenCatalogs>),
    line: &str,
) -> anyhow::Result<(Option<Value>, Prepared)> {
    let mut question = Question::from_line(line)?;
    let id = question.id.take();
    let prepared = question.prepare(args, model, shape)?;
    ensure!(
        prepared.beams().is_none(),
        "use_beam_search: the texts of a batch are drawn; ask for one answer at a time (--chat, --prompt), or leave it out"
    );
    Ok((id, prepared))
}

/// The answers to a file's lines: written side by side, printed in their order.
struct Batch {
    at_once: usize,
    model: TextModel,
    draft_model: Option<TextModel>,
    /// `None` before the first text.
    engine: Option<Engine>,
    /// Begun and not printed, in the order of the lines.
    open: VecDeque<(Line, Answer)>,
    totals: Totals,
    bar: ProgressBar,
    began: Instant,
}

/// The line that an answer belongs to.
struct Line {
    number: usize,
    id: Option<Value>,
    /// The number of the answer, where the line asks for several.
    index: Option<usize>,
    /// Parts of it that have no effect.
    warnings: Vec<String>,
}

enum Answer {
    WrittenText(Box<(TextStream, Clock)>),
    Refused(anyhow::Error),
}

/// Numbers over all answers.
#[derive(Default)]
struct Totals {
    lines: usize,
    answers: usize,
    errors: usize,
    first_error: Option<String>,
    /// The line of the latest answer or error.
    last_line: usize,
    /// That line could not be answered, and has no further answers.
    last_failed: bool,
    prompt: usize,
    tokens: usize,
    forced: usize,
    cut_off: usize,
    spent: Spent,
}

impl Batch {
    fn new(
        at_once: usize,
        (model, draft_model): (TextModel, Option<TextModel>),
        bar: ProgressBar,
    ) -> Self {
        let (engine, open, totals) = Default::default();
        let began = Instant::now();
        Self { at_once, model, draft_model, engine, open, totals, bar, began }
    }

    /// Begins an answer; where too many are begun, prints the first of them before.
    ///
    /// # Errors
    /// When nothing can be printed.
    fn begin(&mut self, line: Line, request: &TextRequest, clock: Clock) -> anyhow::Result<()> {
        while self.open.len() >= BEGUN * self.at_once {
            self.finish_first()?;
        }
        let tokens = request.prompt.len() + request.max_tokens;
        if self.engine.as_ref().is_none_or(|engine| engine.max_positions() < tokens) {
            // Not both at once.
            while self.finish_first()? {}
            self.engine = None;
        }
        let answer = match self.submit(request, tokens) {
            Ok(stream) => Answer::WrittenText(Box::new((stream, clock))),
            Err(error) => Answer::Refused(error),
        };
        self.open.push_back((line, answer));
        Ok(())
    }

    /// Hands a request to the engine, which is started where there is none.
    fn submit(&mut self, request: &TextRequest, tokens: usize) -> anyhow::Result<TextStream> {
        let engine = match &self.engine {
            Some(engine) => engine,
            None => {
                // Texts of about the same length need no engine each.
                let tokens = tokens.next_power_of_two();
                let usual = EngineOptions::default();
                let prompt_rows = match self.model.engine().shares_passes() {
                    true => EngineOptions::DEVICE_PROMPT_ROWS,
                    false => usual.prompt_rows,
                };
                let options = EngineOptions {
                    max_texts: self.at_once,
                    max_tokens: tokens.max(usual.max_tokens.min(tokens * self.at_once)),
                    max_waiting: BEGUN * self.at_once,
                    prompt_rows,
                    ..usual
                };
                let models = (self.model.clone(), self.draft_model.clone());
                let engine = Engine::start_with_draft_model(models.0, models.1, options)?;
                self.engine.insert(engine)
            }
        };
        Ok(engine.submit(request)?)
    }

    /// Waits for the first answer and prints it; false where there is none.
    ///
    /// # Errors
    /// When nothing can be printed.
    fn finish_first(&mut self) -> anyhow::Result<bool> {
        let Some((line, answer)) = self.open.pop_front() else { return Ok(false) };
        if self.totals.last_line != line.number {
            self.totals.last_line = line.number;
            self.totals.last_failed = false;
            self.bar.inc(1);
        } else if self.totals.last_failed {
            return Ok(true);
        }
        let written = match answer {
            Answer::WrittenText(begun) => {
                let (stream, clock) = *begun;
                written(stream, clock)
            }
            Answer::Refused(error) => Err(error),
        };
        match written {
            Ok(written) => {
                self.totals.add(&written);
                print_json(&line.with(written.json(&self.model, line.index, &line.warnings)))?;
            }
            Err(error) => {
                let message = format!("{error:#}");
                self.totals.fail(&message);
                print_json(&line.with(json!({"error": message})))?;
            }
        }
        let seconds = self.began.elapsed().as_secs_f64().max(1e-9);
        let rate = self.totals.tokens as f64 / seconds;
        self.bar.set_message(format!("answers, {rate:.1} tokens/s"));
        Ok(true)
    }
}

/// Waits for a text.
fn written(stream: TextStream, mut clock: Clock) -> anyhow::Result<WrittenText> {
    for update in stream {
        match update {
            Update::Text(piece) => {
                let _ = clock.hear(TextEvent::Text(piece), &mut Show::Nothing);
            }
            Update::End(ended, spent) => {
                clock.count(spent);
                return clock.end(ended, &mut Show::Nothing);
            }
            Update::Prompt(_) => {}
            Update::Failed(error) => return Err(error.into()),
            Update::Missing => {}
        }
    }
    Err(anyhow!("the text has no end"))
}

impl Line {
    /// A document with the line's number and id in front.
    fn with(&self, document: Value) -> Value {
        let mut whole = json!({"line": self.number});
        if let Some(id) = self.id.as_ref().filter(|id| !id.is_null()) {
            whole["id"] = id.clone();
        }
        if let (Some(whole), Value::Object(document)) = (whole.as_object_mut(), document) {
            whole.extend(document);
        }
        whole
    }
}

impl Totals {
    fn add(&mut self, written: &WrittenText) {
        let usage = written.ended.usage;
        self.answers += 1;
        self.prompt += usage.prompt_tokens;
        self.tokens += usage.completion_tokens;
        self.forced += usage.forced_tokens;
        self.cut_off += usize::from(!written.ended.is_complete);
        self.spent += written.spent;
    }

    /// Counts the line of the latest answer as one that could not be answered.
    fn fail(&mut self, message: &str) {
        self.errors += 1;
        self.last_failed = true;
        self.first_error.get_or_insert_with(|| format!("line {}: {message}", self.last_line));
    }
}
