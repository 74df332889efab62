//! Times of masks of JSON Schemas and Lark grammars, on the first visit and later, and whether they are right.
//!
//! ```text
//! mask_times CASES.jsonl [--walks N] [--limit N] [--check N] [--ahead MS] [--slowest N] [--prepare]
//!     [--cpu] [--whitespace bounded|flexible|compact|spaced] [--digits bounded|any]
//! ```
//!
//! A line is a case as `palmette bench grammar --cases` reads it: {"name", "kind", "grammar",
//! "texts": [{"valid", "tokens"}]}, of kind `json_schema` or `lark`, tokens being those of
//! `o200k_base`; cases of another kind are left out. The first walk along a text is reported by itself, of the others the fastest time of
//! each step. `--check` compares the masks of the first N steps of each text with those of a walk
//! over the vocabulary, after the times are taken.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use palmette_core::{Constraint, TokenId, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PrecomputeLimits, PreparedVocabulary, Recognizer,
    RecognizerLimits,
    frontends::json_schema::{self, Digits, JsonSchemaOptions, Whitespace},
    frontends::lark::{self, LarkOptions},
    prepare_json,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

#[derive(Debug, Parser)]
struct Arguments {
    cases: std::path::PathBuf,
    /// Number of walks of each text.
    #[arg(long, default_value_t = 3)]
    walks: usize,
    /// Take the first so many cases.
    #[arg(long)]
    limit: Option<usize>,
    /// Compare so many steps of each text.
    #[arg(long, default_value_t = 0)]
    check: usize,
    /// Prepare the vocabulary for JSON.
    #[arg(long)]
    prepare: bool,
    /// Find masks out ahead for at most so many milliseconds before the first walk.
    #[arg(long, default_value_t = 0)]
    ahead: u64,
    /// Memory at which that ends, in MiB.
    #[arg(long, default_value_t = 64)]
    ahead_mib: usize,
    /// Positions that agree in so many states of each stack are taken for one.
    #[arg(long, default_value_t = 3)]
    stack_depth: usize,
    /// Whitespace of the texts: bounded, flexible, compact or spaced.
    #[arg(long, default_value = "bounded", value_parser = whitespace)]
    whitespace: Whitespace,
    /// Lengths of numbers: bounded or any.
    #[arg(long, default_value = "bounded", value_parser = digits)]
    digits: Digits,
    /// Take times of masks and commits as processor time: on a machine that others use.
    #[arg(long)]
    cpu: bool,
    /// Show so many of the slowest compilations, first visits and later ones.
    #[arg(long, default_value_t = 0)]
    slowest: usize,
}

/// A step, and where it was.
struct Step {
    cold_us: f64,
    /// Of the commit after it.
    commit_us: f64,
    warm_us: f64,
    case: String,
    before: Vec<u8>,
}

/// Clock of the masks: the wall's, or the thread's processor time.
#[derive(Clone, Copy)]
struct Clock {
    cpu: bool,
}

impl Clock {
    fn now_us(self) -> f64 {
        let id = if self.cpu { ClockId::ThreadCPUTime } else { ClockId::Monotonic };
        let now = clock_gettime(id);
        now.tv_sec as f64 * 1e6 + now.tv_nsec as f64 / 1e3
    }
}

fn whitespace(name: &str) -> Result<Whitespace, serde_json::Error> {
    serde_json::from_value(Value::from(name))
}

fn digits(name: &str) -> Result<Digits, serde_json::Error> {
    serde_json::from_value(Value::from(name))
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let vocabulary = palmette_vocabulary::load("o200k_base")?.vocabulary;
    let slices = Arc::new(PreparedVocabulary::new(Arc::clone(&vocabulary)));
    let began = Instant::now();
    if arguments.prepare {
        prepare_json(&slices);
    }
    let prepare_ms = began.elapsed().as_secs_f64() * 1e3;
    let end = vocabulary.ends()[0];
    let (mut steps, mut compiled, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut ahead_ms = Vec::new();
    let (mut checked, mut refused) = (0, 0);
    let Arguments { whitespace, digits, cpu, .. } = arguments;
    let clock = Clock { cpu };
    let options = JsonSchemaOptions { whitespace, digits, ..JsonSchemaOptions::default() };
    for line in std::fs::read_to_string(&arguments.cases)?
        .lines()
        .take(arguments.limit.unwrap_or(usize::MAX))
    {
        let case: Value = serde_json::from_str(line)?;
        let name = case["name"].as_str().unwrap_or_default();
        let began = Instant::now();
        let source = case["grammar"].as_str().unwrap_or_default();
        let parsed = match case["kind"].as_str() {
            Some("json_schema") => json_schema::parse(source, &options).map_err(anyhow::Error::new),
            Some("lark") => {
                lark::parse(source, &LarkOptions::default()).map_err(anyhow::Error::new)
            }
            _ => continue,
        };
        let grammar = match parsed {
            Ok(grammar) => grammar,
            Err(why) => {
                if arguments.slowest > 0 {
                    let ms = began.elapsed().as_secs_f64() * 1e3;
                    println!("refused after {ms:.1} ms {name}: {why}");
                }
                refused += 1;
                continue;
            }
        };
        let recognizer = Recognizer::new(
            Arc::new(grammar),
            &RecognizerLimits::default(),
            &mut Budget::unlimited(),
        );
        let Ok(recognizer) = recognizer else {
            refused += 1;
            continue;
        };
        let constraint = GrammarConstraint::new(Arc::new(recognizer), Arc::clone(&slices));
        let ms = began.elapsed().as_secs_f64() * 1e3;
        compiled.push((ms, name.to_owned()));
        if arguments.ahead > 0 {
            let began = Instant::now();
            let limits = PrecomputeLimits {
                steps: u64::MAX,
                bytes: arguments.ahead_mib << 20,
                stack_depth: arguments.stack_depth,
            };
            let running = constraint.precompute_in_background(limits)?;
            if !running.wait(Duration::from_millis(arguments.ahead)) {
                running.stop();
            }
            let (visited, open) = running.progress();
            let done = running.join()?;
            let ms = began.elapsed().as_secs_f64() * 1e3;
            ahead_ms.push(ms);
            if arguments.slowest > 0 {
                println!("ahead {name}: {visited} visited, {open} open, {ms:.1} ms, {done:?}");
            }
        }
        let texts: Vec<Vec<TokenId>> = case["texts"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|text| {
                let tokens = text["tokens"].as_array().into_iter().flatten();
                tokens
                    .map(|token| TokenId(token.as_u64().unwrap_or(0) as u32))
                    .chain([end])
                    .collect()
            })
            .collect();
        let mut scratch = GrammarScratch::default();
        // Written before, as a server's rows are.
        let mut row = vec![u32::MAX; mask::num_words(constraint.num_tokens())];
        for text in &texts {
            let first = steps.len();
            for walk in 0..arguments.walks {
                let (mut state, mut before) = (constraint.start(), Vec::new());
                for (step, &token) in text.iter().enumerate() {
                    let began = clock.now_us();
                    let filled = constraint.fill_mask(&state, &mut scratch, &mut row);
                    let us = clock.now_us() - began;
                    filled?;
                    if walk == 0 {
                        let (case, before) = (name.to_owned(), before.clone());
                        let commit_us = 0.0;
                        steps.push(Step { cold_us: us, commit_us, warm_us: us, case, before });
                    } else {
                        let known: &mut Step = &mut steps[first + step];
                        known.warm_us = known.warm_us.min(us);
                    }
                    before.extend_from_slice(vocabulary.text(token));
                    if !mask::contains(&row, token) {
                        break;
                    }
                    let began = clock.now_us();
                    let committed = constraint.commit(&mut state, token, &mut scratch);
                    if walk == 0 {
                        steps[first + step].commit_us = clock.now_us() - began;
                    }
                    if committed.is_err() {
                        break;
                    }
                }
            }
        }
        bytes.push(constraint.bytes() as f64 / 1024.0);
        checked += check(&constraint, &slices, &texts, arguments.check, name)?;
    }
    println!("prepared in {prepare_ms:.1} ms");
    println!(
        "{} compiled, {refused} refused, {} steps, {checked} compared",
        compiled.len(),
        steps.len()
    );
    println!("{:20} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "p50", "p90", "p99", "p99.9", "max");
    show("compile ms", compiled.iter().map(|&(ms, _)| ms).collect());
    compiled.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    for (ms, name) in compiled.iter().take(arguments.slowest) {
        println!("compile {ms:9.1} ms {name}");
    }
    if !ahead_ms.is_empty() {
        show("ahead ms", ahead_ms);
    }
    show("memory KiB", bytes);
    show("first visit us", steps.iter().map(|step| step.cold_us).collect());
    show("first commit us", steps.iter().map(|step| step.commit_us).collect());
    show("later us", steps.iter().map(|step| step.warm_us).collect());
    let first: fn(&Step) -> f64 = |step| step.cold_us;
    for (title, time) in
        [("first", first), ("commit", |step| step.commit_us), ("later", |step| step.warm_us)]
    {
        steps.sort_by(|a, b| time(b).total_cmp(&time(a)));
        for step in steps.iter().take(arguments.slowest) {
            let before = String::from_utf8_lossy(&step.before);
            let tail: Vec<char> = before.chars().rev().take(70).collect();
            let tail: String = tail.into_iter().rev().collect();
            println!("{title} {:9.1} us {} after {tail:?}", time(step), step.case);
        }
    }
    Ok(())
}

/// Compares masks with those of a walk; gives how many.
fn check(
    constraint: &GrammarConstraint,
    slices: &Arc<PreparedVocabulary>,
    texts: &[Vec<TokenId>],
    steps: usize,
    name: &str,
) -> anyhow::Result<usize> {
    let walking =
        GrammarConstraint::by_walking(Arc::clone(constraint.recognizer()), Arc::clone(slices));
    let mut scratch = GrammarScratch::default();
    let mut rows = [(); 2].map(|()| vec![0; mask::num_words(constraint.num_tokens())]);
    let mut checked = 0;
    for text in texts {
        let (mut state, mut before) = (constraint.start(), Vec::new());
        for &token in text.iter().take(steps) {
            let [read, walked] = &mut rows;
            constraint.fill_mask(&state, &mut scratch, read)?;
            walking.fill_mask(&state, &mut scratch, walked)?;
            let differing: Vec<_> = (0..read.len() as u32 * 32)
                .map(TokenId)
                .filter(|&token| mask::contains(read, token) != mask::contains(walked, token))
                .map(|token| String::from_utf8_lossy(slices.vocabulary().text(token)).into_owned())
                .collect();
            let before_text = String::from_utf8_lossy(&before);
            anyhow::ensure!(differing.is_empty(), "{name} after {before_text:?}: {differing:?}");
            checked += 1;
            before.extend_from_slice(slices.vocabulary().text(token));
            if constraint.commit(&mut state, token, &mut scratch).is_err() {
                break;
            }
        }
    }
    Ok(checked)
}

fn show(title: &str, mut values: Vec<f64>) {
    if values.is_empty() {
        println!("{title:20} none");
        return;
    }
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values[((values.len() - 1) as f64 * part).round() as usize];
    let [p50, p90, p99, p999, max] = [0.5, 0.9, 0.99, 0.999, 1.0].map(at);
    println!("{title:20} {p50:9.2} {p90:9.2} {p99:9.2} {p999:9.2} {max:9.2}");
}
