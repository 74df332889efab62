//! `palmette bench grammar`: correctness and speed of grammars over a vocabulary.

mod peers;
mod store;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use palmette_bench::grammar::{
    CaseOutcome, CaseText, Compile, Floor, GrammarCase, GrammarReport, Percentiles, Walks,
    read_cases, read_schemas, walk,
};
use palmette_core::{TokenId, mask};
use palmette_grammar::{
    BackgroundPrecompute, Budget, GrammarConstraint, PrecomputeLimits, PreparedVocabulary,
    Recognizer, RecognizerLimits, prepare_json,
};
use palmette_vocabulary::LoadedVocabulary;
use peers::{PeerArgs, PeerReport};
use serde::Serialize;
use store::{StepRange, StoreCompiler, StoreReport};

use crate::commands::grammar::{ReadingArgs, Syntax};
use crate::commands::vocabulary::VocabularyOptions;
use crate::output::{bytes, grouped, print, print_json, progress_bar, table};

/// Compile grammars, follow texts token by token, and report correctness, times and sizes
///
/// Each text is followed --walks times: at every token a mask is made and the token committed. A
/// valid text counts as rejected when a mask lacks its next token or, behind the last, the end; an
/// invalid one counts as accepted when no mask does. One thread. Where a case is a JSON Schema, the
/// vocabulary is prepared for JSON before all.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GrammarArgs {
    /// JSON Schemas with instances, a line each: {"name", "schema", "tests": [{"valid", "data"}]};
    /// may be xz-compressed. An instance's text is that of Python's json.dumps
    #[arg(long, value_name = "FILE", required_unless_present_any = ["grammar", "cases"])]
    schemas: Option<PathBuf>,
    /// A grammar; its syntax goes by the file's ending
    #[arg(long, value_name = "FILE", requires = "text")]
    grammar: Option<PathBuf>,
    /// Texts of the grammar's language
    #[arg(long, value_name = "FILE", requires = "grammar")]
    text: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Cases prepared elsewhere, a line each: {"name", "kind", "grammar", "texts": [{"valid",
    /// "tokens"}]}
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Vocabulary: the name of an encoding such as o200k_base, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "o200k_base")]
    vocab: String,
    #[command(flatten)]
    vocabulary: VocabularyOptions,
    /// Source of masks; a mask store stands beside the automaton, once for each of --steps
    #[arg(long, value_name = "ENGINE", default_value = "automaton")]
    engine: Engine,
    /// Steps by which a mask store's rows are made fewer: so many of the first, or each number from
    /// A to B. Steps 1 to 4 are published, 5 and 6 experiments; rows are made when a mask first
    /// needs them [default: 0..4]
    #[arg(long, value_name = "N|A..B")]
    steps: Option<StepRange>,
    /// Work that a mask may take; one that takes more is an error, and its text is refused
    /// [default: any]
    #[arg(long, value_name = "STEPS", hide_default_value = true, default_value_t = u64::MAX)]
    mask_steps: u64,
    /// Cases to leave out at the start
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: usize,
    /// Largest number of cases to take
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Times each text is followed; masks and commits count with their fastest, the first also by
    /// itself
    #[arg(long, value_name = "N", default_value_t = 3)]
    walks: usize,
    /// Time before the first walk in which masks are found out ahead, as a server may while a
    /// prompt is read: on this thread and a second, with --pace on one of its own. Engines of --peers
    /// wait as long
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    ahead: u64,
    /// Find masks out ahead until as much time has gone by as this engine, one of --peers or --peer,
    /// took to compile the same grammar: both are ready for the first walk at the same time. Where
    /// it does not compile, as long as it takes at the median
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ahead", "pace", "lines"])]
    ahead_as: Option<String>,
    /// Time before each mask of the first walk, as a model takes for a token; meanwhile masks are
    /// found out ahead. Engines of --peers are paced alike
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    pace: u64,
    #[command(flatten)]
    peers: PeerArgs,
    /// Print a JSON line for each case, with all its times, instead of the report
    #[arg(long, conflicts_with = "json")]
    lines: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  palmette bench grammar --schemas jsonschemabench.jsonl.xz
  palmette bench grammar --schemas schemas.jsonl --vocab tokenizer.json --walks 1 --json
  palmette bench grammar --grammar json.lark --text a.json --text b.json
  palmette bench grammar --grammar python.lark --start file_input --text a.py --engine store --steps 0..4
  palmette bench grammar --cases cases.jsonl --peers lab/peers/bin --walks 1 --ahead-as glrmask
  palmette bench grammar --cases cases.jsonl --peers lab/peers/bin --peer \
      \"xgrammar=venv/bin/python lab/peers/grammar/xgrammar_worker.py --vocab vocabulary.json\"";

/// Source of masks.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Engine {
    /// The automaton that reads the parser's stack
    Automaton,
    /// The vocabulary's trie, walked for each mask
    Walk,
    /// The sequences of terminals that tokens spell, each asked of the parser; not for grammars
    /// with contextual lexing, distinct names, sets or limits on tokens
    Store,
}

pub(crate) fn run(args: &GrammarArgs) -> anyhow::Result<()> {
    ensure!(args.walks > 0, "--walks is 0; a text is followed at least once");
    let steps = args.store_steps()?;
    let walks = Walks { times: args.walks, pace: Duration::from_millis(args.pace) };
    let ahead = Duration::from_millis(args.ahead);
    let others = args.peers.find(&args.vocab, ahead, walks)?;
    for name in steps.iter().flatten().map(|&steps| store::name(steps)) {
        ensure!(
            others.iter().all(|peer| peer.name != name),
            "--peer {name}: a mask store of --steps is called so; give it another name"
        );
    }
    if let Some(name) = &args.ahead_as {
        let names: Vec<&str> = others.iter().map(|peer| &*peer.name).collect();
        ensure!(
            names.contains(&name.as_str()),
            "--ahead-as {name}: no engine of --peers or --peer is called so; there are {names:?}"
        );
    }
    let loaded = args.vocabulary.load(&args.vocab, false)?;
    let mut cases = read(args, &loaded)?;
    cases.drain(..args.skip.min(cases.len()));
    cases.truncate(args.limit.unwrap_or(usize::MAX));
    ensure!(!cases.is_empty(), "there are no cases to measure");
    let Some(&end) = loaded.vocabulary.ends().first() else {
        bail!("vocabulary {} has no end token, so no text can end", args.vocab);
    };
    let peers = args.peers.run(&others, &cases, args.json)?;
    let vocabulary = Arc::new(PreparedVocabulary::new(loaded.vocabulary));
    // As a server would, before the first schema comes.
    if cases.iter().any(|case| case.kind == Syntax::JsonSchema.name()) {
        prepare_json(&vocabulary);
    }
    let (reading, engine, mask_steps) = (args.reading.clone(), args.engine, args.mask_steps);
    let as_peer =
        args.ahead_as.as_ref().and_then(|name| peers.iter().find(|of| of.engine == *name));
    let ahead = match as_peer {
        Some(peer) => TimeAhead::as_peer(&peer.outcomes),
        None => TimeAhead::Same(ahead),
    };
    let goes_on = !walks.pace.is_zero();
    let compiler = Compiler { reading, engine, mask_steps, ahead, goes_on, vocabulary, end };
    if let (true, Some(&[steps])) = (args.lines, steps.as_deref()) {
        let compiler = StoreCompiler { compiler: &compiler, steps };
        return print_lines(&compiler, &cases, walks);
    }
    if args.lines {
        return print_lines(&compiler, &cases, walks);
    }
    let outcomes = follow(&compiler, &cases, walks, "grammars", args.json);
    let num_words = mask::num_words(compiler.vocabulary.vocabulary().num_tokens());
    args.peers.keep_own(&outcomes)?;
    let own = GrammarReport::new(&outcomes, args.walks, num_words);
    let mut stores = Vec::new();
    for steps in steps.into_iter().flatten() {
        let name = store::name(steps);
        let outcomes =
            follow(&StoreCompiler { compiler: &compiler, steps }, &cases, walks, &name, args.json);
        args.peers.keep(&name, &outcomes)?;
        stores.push(StoreReport {
            steps,
            report: GrammarReport::new(&outcomes, args.walks, num_words),
        });
    }
    let peers = peers.into_iter().map(|peer| peer.report(args.walks, num_words)).collect();
    let report = Report { own, stores, peers };
    if args.json { print_json(&report) } else { print(&report.text()) }
}

impl GrammarArgs {
    /// The numbers of steps of the mask stores that are asked for; `None` for another engine.
    fn store_steps(&self) -> anyhow::Result<Option<Vec<usize>>> {
        if !matches!(self.engine, Engine::Store) {
            ensure!(
                self.steps.is_none(),
                "--steps are those of a mask store; add --engine store, or leave them out"
            );
            return Ok(None);
        }
        ensure!(
            self.mask_steps == u64::MAX,
            "--mask-steps: the masks of a mask store have no budget; leave it out, or take another --engine"
        );
        let steps = self.steps.clone().unwrap_or_default().numbers();
        ensure!(
            !self.lines || steps.len() == 1,
            "--lines are those of one mask store; say which by one number, as in --steps {}",
            steps.last().copied().unwrap_or_default()
        );
        Ok(Some(steps))
    }
}

/// Follows all cases.
fn follow(
    compiler: &impl Compile,
    cases: &[GrammarCase],
    walks: Walks,
    name: &str,
    quiet: bool,
) -> Vec<CaseOutcome> {
    let bar = progress_bar(cases.len(), name, quiet);
    let outcomes = cases.iter().map(|case| {
        let outcome = walk(compiler, case, walks);
        bar.inc(1);
        outcome
    });
    let outcomes = outcomes.collect();
    bar.finish_and_clear();
    outcomes
}

/// Follows the cases and prints a line for each as it comes.
fn print_lines(compiler: &impl Compile, cases: &[GrammarCase], walks: Walks) -> anyhow::Result<()> {
    for case in cases {
        let outcome = walk(compiler, case, walks);
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &outcome)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Report that is printed.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    own: GrammarReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stores: Vec<StoreReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    peers: Vec<PeerReport>,
}

impl Report {
    fn text(&self) -> String {
        let Self { own, stores, peers } = self;
        let stores = stores.iter().map(|of| (store::name(of.steps), &of.report));
        let peers = peers.iter().map(|peer| (peer.engine.clone(), &peer.report));
        let others: Vec<(String, &GrammarReport)> = stores.chain(peers).collect();
        match others.is_empty() {
            true => text(own),
            false => format!("{}\n\n{}", text(own), peers::text(own, &others)),
        }
    }
}

fn read(args: &GrammarArgs, loaded: &LoadedVocabulary) -> anyhow::Result<Vec<GrammarCase>> {
    let named = |path: &Path| path.display().to_string();
    if let Some(path) = &args.cases {
        return read_cases(open(path)?).with_context(|| named(path));
    }
    let Some(tokenizer) = &loaded.tokenizer else {
        bail!(
            "vocabulary {} does not say how text is cut into tokens; choose another",
            loaded.name
        );
    };
    let mut cases = Vec::new();
    if let Some(path) = &args.schemas {
        let read = read_schemas(open(path)?, |text| tokenizer.encode(text));
        cases = read.with_context(|| named(path))?;
    }
    if let Some(path) = &args.grammar {
        let mut texts = Vec::new();
        for path in &args.text {
            let text = std::fs::read_to_string(path).with_context(|| named(path))?;
            let tokens = tokenizer.encode(&text).with_context(|| named(path))?;
            let tokens = tokens.into_iter().map(|token| token.0).collect();
            texts.push(CaseText { valid: true, tokens });
        }
        let kind = Syntax::of(path)?.name().to_owned();
        let grammar = std::fs::read_to_string(path).with_context(|| named(path))?;
        cases.push(GrammarCase { name: named(path), kind, grammar, texts });
    }
    Ok(cases)
}

/// The lines of a file that may be xz-compressed.
fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead>> {
    const XZ: &[u8] = b"\xFD7zXZ\0";
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut file = BufReader::new(file);
    let compressed = file.fill_buf().with_context(|| path.display().to_string())?.starts_with(XZ);
    Ok(if compressed {
        Box::new(BufReader::new(lzma_rust2::XzReader::new(file, true)))
    } else {
        Box::new(file)
    })
}

/// Time for finding masks out before the first walk.
enum TimeAhead {
    Same(Duration),
    /// Time since compiling began, by case; for others, the median.
    AsPeer(HashMap<String, Duration>, Duration),
}

impl TimeAhead {
    /// The time for a case that took so long to compile.
    fn of(&self, case: &GrammarCase, compiling: Duration) -> Duration {
        match self {
            Self::Same(time) => *time,
            Self::AsPeer(times, median) => {
                times.get(&case.name).unwrap_or(median).saturating_sub(compiling)
            }
        }
    }

    /// Times that a peer took to compile.
    fn as_peer(outcomes: &[CaseOutcome]) -> Self {
        let time = |ms: f64| Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default();
        let compiled = outcomes.iter().filter(|outcome| outcome.compiled);
        let times: HashMap<_, _> =
            compiled.map(|outcome| (outcome.name.clone(), time(outcome.compile_ms))).collect();
        let mut sorted: Vec<Duration> = times.values().copied().collect();
        sorted.sort_unstable();
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        Self::AsPeer(times, median)
    }
}

struct Compiler {
    reading: ReadingArgs,
    engine: Engine,
    mask_steps: u64,
    ahead: TimeAhead,
    /// True if masks are found out ahead while texts are followed too.
    goes_on: bool,
    vocabulary: Arc<PreparedVocabulary>,
    end: TokenId,
}

impl Compiler {
    /// Lexer and parser of a case's grammar.
    fn recognizer(&self, case: &GrammarCase) -> Result<Arc<Recognizer>, String> {
        let mut syntaxes = Syntax::value_variants().iter().copied();
        let syntax = syntaxes.find(|syntax| syntax.name() == case.kind).ok_or_else(|| {
            let kind = &case.kind;
            format!(
                "a grammar of kind {kind:?} is not read; there are lark, gbnf, json_schema and regex"
            )
        })?;
        let source = self.reading.source(syntax, case.grammar.clone());
        let source = source.map_err(|error| format!("{error:#}"))?;
        let (grammar, _) = source.parse().map_err(|error| error.to_string())?;
        let grammar = grammar.with_tokens_of(self.vocabulary.vocabulary());
        let grammar = grammar.map_err(|error| error.to_string())?;
        let limits = RecognizerLimits::default();
        let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        recognizer.map(Arc::new).map_err(|error| error.to_string())
    }
}

impl Compile for Compiler {
    type Constraint = GrammarConstraint;
    type Running = Option<BackgroundPrecompute>;

    fn compile(&self, case: &GrammarCase) -> Result<GrammarConstraint, String> {
        let recognizer = self.recognizer(case)?;
        let vocabulary = Arc::clone(&self.vocabulary);
        let grammar = match self.engine {
            // A store stands beside the automaton.
            Engine::Automaton | Engine::Store => GrammarConstraint::new(recognizer, vocabulary),
            Engine::Walk => GrammarConstraint::by_walking(recognizer, vocabulary),
        };
        grammar.check_token_limits().map_err(|error| error.to_string())?;
        Ok(grammar.with_mask_steps(self.mask_steps))
    }

    fn ahead(
        &self,
        case: &GrammarCase,
        constraint: &GrammarConstraint,
        compiling: Duration,
    ) -> Result<Self::Running, String> {
        let ahead = self.ahead.of(case, compiling);
        if ahead.is_zero() && !self.goes_on {
            return Ok(None);
        }
        let limits = PrecomputeLimits { steps: u64::MAX, ..PrecomputeLimits::default() };
        if self.goes_on {
            let running = constraint.precompute_in_background(limits);
            let running = running.map_err(|error| error.to_string())?;
            running.wait(ahead);
            return Ok(Some(running));
        }
        complete_for(constraint, &limits, ahead).map(|()| None)
    }

    fn stop(&self, running: Self::Running) -> Result<(), String> {
        let Some(running) = running else { return Ok(()) };
        running.stop();
        running.join().map(|_| ()).map_err(|error| error.to_string())
    }

    fn bytes(&self, constraint: &GrammarConstraint) -> usize {
        constraint.bytes()
    }

    fn walked(&self, constraint: &GrammarConstraint) -> Option<u64> {
        Some(constraint.prepared_vocabulary().walks())
    }

    fn end(&self) -> TokenId {
        self.end
    }
}

/// Finds masks out for so long at most; on this thread, as peers compile on theirs, so that the
/// first walk finds as much in the caches.
fn complete_for(
    constraint: &GrammarConstraint,
    limits: &PrecomputeLimits,
    time: Duration,
) -> Result<(), String> {
    let cancelled = AtomicBool::new(false);
    let (ended, has_ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let is_over = &cancelled;
        scope.spawn(move || {
            if has_ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                is_over.store(true, Ordering::Relaxed);
            }
        });
        let completed = constraint.precompute(limits, &cancelled);
        drop(ended);
        completed.map(|_| ()).map_err(|error| error.to_string())
    })
}

fn text(report: &GrammarReport) -> String {
    let count = |count: usize| grouped(count as u64);
    let mut text = format!(
        "{} of {} grammars compiled\n{} of {} valid texts rejected, {} of {} invalid ones accepted\n",
        count(report.compiled),
        count(report.schemas),
        count(report.valid_rejected),
        count(report.valid),
        count(report.invalid_accepted),
        count(report.invalid)
    );
    for name in &report.wrong {
        text += &format!("  wrong: {name}\n");
    }
    let figures = [
        ("compile ms", report.compile_ms),
        ("ahead ms", report.ahead_ms.filter(|figure| figure.max > 0.01)),
        ("mask us, first walk", report.mask_us_cold),
        ("mask us", report.mask_us),
        ("commit us", report.commit_us),
        ("mask + commit us", report.step_us),
    ];
    let row = |name: &str, percentiles: Percentiles, show: &dyn Fn(f64) -> String| {
        let Percentiles { p50, p90, p99, p999, p9999, max, .. } = percentiles;
        let values = [p50, p90, p99, p999, p9999, max].map(show);
        [vec![name.to_owned()], values.into()].concat()
    };
    let mut rows: Vec<_> = figures
        .into_iter()
        .filter_map(|(name, figure)| Some(row(name, figure?, &|value| format!("{value:.2}"))))
        .collect();
    rows.extend(report.bytes.map(|figure| row("memory", figure, &|value| bytes(value as usize))));
    text +=
        &format!("\n{}", table(&["", " p50", " p90", " p99", " p99.9", " p99.99", " max"], &rows));
    for reason in &report.unsupported_reasons {
        text += &format!("\n{} not compiled: {}", count(reason.cases), reason.reason);
    }
    if let Some(walked @ 1..) = report.walked {
        let masks = report.mask_us_cold.map_or(0, |masks| masks.count);
        text += &format!(
            "\n{} of {} masks of the first walks found by walking the vocabulary",
            grouped(walked),
            count(masks)
        );
    }
    let cpu = report.machine.cpu.as_deref().unwrap_or("an unknown processor");
    let Floor { row_bytes, hot_us, cold_us } = report.floor;
    text += &format!(
        "\na mask has {}; copying one takes {hot_us:.2} us from the cache, {cold_us:.2} us from memory",
        bytes(row_bytes)
    );
    text + &format!("\n{} walks of each text; {cpu}", report.walks)
}
