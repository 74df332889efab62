//! `palmette generate --batch`: many prompts, an answer a line.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use palmette_text::{TextModel, TextSession};
use serde_json::{Value, json};

use super::GenerateArgs;
use super::ask::Ask;
use super::shape::Shape;
use super::show::Show;
use super::written::{Times, Written, tokens_line};
use crate::input::{Input, is_stdin};
use crate::output::{grouped, print_json, progress_bar};

/// Numbers over all answers.
#[derive(Default)]
struct Totals {
    lines: usize,
    answers: usize,
    errors: usize,
    first_error: Option<String>,
    prompt: usize,
    tokens: usize,
    forced: usize,
    cut_off: usize,
    times: Times,
}

pub(super) fn run(
    args: &GenerateArgs,
    session: &mut TextSession,
    shape: Option<&Arc<Shape>>,
    path: &Path,
) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    let lines = Input::open(path, |source| source).with_context(named)?.reader().lines();
    let lines: Vec<String> = lines.collect::<Result<_, _>>().with_context(named)?;
    let asked = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let model = session.model().clone();
    let mut totals = Totals::default();
    let bar = progress_bar(asked, "answers", args.quiet || is_stdin(path));
    for (number, line) in (1..).zip(&lines).filter(|(_, line)| !line.trim().is_empty()) {
        totals.lines += 1;
        if let Err(error) = answer(args, session, shape, &model, number, line, &mut totals) {
            let message = format!("{error:#}");
            totals.errors += 1;
            totals.first_error.get_or_insert_with(|| format!("line {number}: {message}"));
            let id = serde_json::from_str::<Value>(line).ok().map(|line| line["id"].clone());
            print_json(&with_head(json!({"error": message}), number, id.as_ref()))?;
        }
        bar.inc(1);
        let writing = (totals.times.total() - totals.times.prefill).as_secs_f64().max(1e-9);
        bar.set_message(format!("answers, {:.1} tokens/s", totals.tokens as f64 / writing));
    }
    bar.finish_and_clear();
    if !args.quiet {
        let of = |n: usize| grouped(n as u64);
        let line = tokens_line(totals.prompt, totals.tokens, totals.forced, &totals.times);
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

fn answer(
    args: &GenerateArgs,
    session: &mut TextSession,
    shape: Option<&Arc<Shape>>,
    model: &TextModel,
    number: usize,
    line: &str,
    totals: &mut Totals,
) -> anyhow::Result<()> {
    let ask: Ask = serde_json::from_str(line)?;
    let prepared = ask.prepare(args, model, shape)?;
    for index in 0..prepared.n {
        let written = prepared.write(session, index, &mut Show::Nothing)?;
        totals.add(&written);
        let n = (prepared.n > 1).then_some(index);
        print_json(&with_head(written.json(model, n), number, ask.id.as_ref()))?;
    }
    Ok(())
}

/// A document with the line's number and id in front.
fn with_head(document: Value, number: usize, id: Option<&Value>) -> Value {
    let mut whole = json!({"line": number});
    if let Some(id) = id.filter(|id| !id.is_null()) {
        whole["id"] = id.clone();
    }
    if let (Some(whole), Value::Object(document)) = (whole.as_object_mut(), document) {
        whole.extend(document);
    }
    whole
}

impl Totals {
    fn add(&mut self, written: &Written) {
        let usage = written.ended.usage;
        self.answers += 1;
        self.prompt += usage.prompt_tokens;
        self.tokens += usage.completion_tokens;
        self.forced += usage.forced_tokens;
        self.cut_off += usize::from(!written.ended.is_complete);
        self.times.add(&written.times);
    }
}
