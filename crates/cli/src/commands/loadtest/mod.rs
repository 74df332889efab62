//! `palmette loadtest`: a server under load.

mod bodies;
mod curves;
mod text;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use palmette_recommend_eval::UnknownItems;
use palmette_serve_loadtest::{
    Answer, AnswerWriter, Arrivals, Comparison, Driver, Endpoint, Load, Observer, Progress,
    RateReport, Requests, Saved, Settings, Stop, plot,
};
use serde_json::json;

use super::histories::{HistoriesOptions, Notes, unknown_items};
use crate::output::{Reported, grouped, make_parent, print, print_json, progress_bar};

/// Measure a server under load: requests arrive when they will, however long answers take
///
/// Open loop: the times at which requests arrive are drawn before, as those of many independent
/// people, and latency counts from these times. So what waits, here or in the server, is seen to
/// have waited; a client that sends the next request when the last is answered slows down with the
/// server, and hides that it is overloaded.
///
/// Request i asks about history i, counted round and round; the numbers go on from one rate to the
/// next.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct LoadtestArgs {
    /// The server's address, as `palmette serve` prints it; http only
    #[arg(long, value_name = "URL")]
    url: String,
    /// Requests a second to offer, one rate after the other, such as 50,100,200
    #[arg(
        long,
        value_name = "RATES",
        value_delimiter = ',',
        required_unless_present = "sequential"
    )]
    rate: Vec<f64>,
    /// Time that each rate is offered
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value_t = 30.0)]
    seconds: f64,
    /// Time that each rate is offered before, without being counted
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value_t = 2.0)]
    warmup: f64,
    /// Send each request when the one before has ended, instead of at a rate: no load, but answers
    /// to --compare those under load with
    #[arg(long, conflicts_with_all = ["rate", "seconds", "warmup", "plot"])]
    sequential: bool,
    /// With --sequential, how many requests [default: one a history]
    #[arg(long, value_name = "N", requires = "sequential")]
    requests: Option<u64>,
    #[command(flatten)]
    body: BodyArgs,
    /// A file whose first line is a key, sent as `Authorization: Bearer`
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// The most requests on their way at once, each on a connection of its own
    #[arg(long, value_name = "N", default_value_t = 256)]
    connections: usize,
    /// Time until a request is given up: so long after it arrived if it has no connection, after it
    /// was sent if it has no answer
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    timeout_ms: u64,
    /// Threads that send and receive
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Seed of the arrival times
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write goodput and p99 over the rates to this file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// With --plot, draw beside them what `palmette simulate --json` or another `loadtest --json`
    /// gave
    #[arg(long, value_name = "FILE", requires = "plot")]
    beside: Option<PathBuf>,
    /// Write every answer to this file: JSON lines of {"index", "status", "items"}, in the order of
    /// the requests
    #[arg(long, value_name = "FILE")]
    save_answers: Option<PathBuf>,
    /// Compare the items of each answer, byte for byte, with those in a file of --save-answers
    /// about the same histories; a difference is a failure
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Body of each request.
#[derive(Debug, Args)]
struct BodyArgs {
    /// Histories, oldest item first, in any format that `palmette eval` reads; - for JSON lines on
    /// standard input
    #[arg(long, value_name = "FILE")]
    histories: PathBuf,
    #[command(flatten)]
    histories_options: HistoriesOptions,
    /// Items that the server's catalog does not have: an error, or skipped [default: as the server
    /// does]
    #[arg(long, value_name = "error|skip", value_parser = unknown_items)]
    unknown: Option<UnknownItems>,
    /// Target to ask, where the server has several: an alias, or model:catalog
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Number of items to ask for
    #[arg(short, long, value_name = "K", default_value_t = 10)]
    k: usize,
    /// Hypotheses kept at each level
    #[arg(long, value_name = "N", default_value_t = 128)]
    beam_width: usize,
    /// Ask only for items that match this filter, as JSON or @FILE
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
    /// The deadline of each request; answers after it are late [default: the server's, and none is
    /// late]
    #[arg(long, value_name = "MS")]
    deadline_ms: Option<u64>,
    /// Members to add to every body, as a JSON object such as '{"mode": "draft", "min_beam_width":
    /// 32}'
    #[arg(long, value_name = "JSON")]
    with: Option<String>,
}

const AFTER_HELP: &str = "\
Examples:
  palmette loadtest --url http://127.0.0.1:8080 --rate 20,40,80 --histories shop/histories.json --deadline-ms 200
  palmette loadtest … --rate 10,20,30,40,60,80 --seconds 60 --plot load.svg --json > load.json
  palmette loadtest … --sequential --save-answers alone.jsonl
  palmette loadtest … --rate 80 --compare alone.jsonl       fails if load changes an answer

The first table, a line for each rate; times in milliseconds, from the time at which a request arrived:
  offered      requests that arrived
  in time      answered within --deadline-ms; late: answered after it
  429, 503     refused; refused p99 is the time that this took. 504: the server missed the deadline
  errors       other statuses, timeouts, broken connections; the first kinds are named below
  in time/s    goodput: answers in time for each second
The second tells of the driver, whose own lateness and cost are in the first:
  unsent       requests that had no connection --timeout-ms after they arrived; sent: all others
  short        answers of fewer items than were asked for
  late         sent more than 1 ms after they arrived; waited: since all --connections were busy
  at once      the most requests on their way; opened: connections made
  cores        processor seconds of this process for each second
docs/load-testing.md says how to read them.";

pub(crate) fn run(args: &LoadtestArgs) -> anyhow::Result<()> {
    let endpoint = Endpoint::parse(&args.url).context("--url")?;
    let loads = loads(args)?;
    check_files(args)?;
    let (requests, notes) = requests(args)?;
    notes.say(args.json);
    let histories = requests.len();
    ensure!(args.requests != Some(0), "--requests is 0; at least 1 request must be sent");
    let curves_beside = args.beside.as_deref().map(curves::beside).transpose()?;
    let comparison = args.compare.as_deref().map(|path| saved(path, histories)).transpose()?;
    let mut driver = Driver::new(endpoint, requests, settings(args))?;
    driver.check()?;

    let plot_file = args.plot.as_deref().map(create).transpose()?;
    let writer = args.save_answers.as_deref().map(create).transpose()?;
    let mut listener = Listener {
        bar: ProgressBar::hidden(),
        writer: writer.map(|file| AnswerWriter::new(BufWriter::new(file))),
        comparison,
        stop: driver.stop(),
        failed: None,
    };
    driver.stop_on_interrupt();
    let mut reports = Vec::with_capacity(loads.len().max(1));
    if args.sequential {
        let count = args.requests.unwrap_or(histories as u64);
        listener.begin("one at a time", args.json);
        reports.push(driver.run_one_at_a_time(count, &mut listener));
    }
    for load in &loads {
        listener.begin(&format!("{}/s", load.rate), args.json);
        reports.push(driver.run(load, &mut listener)?);
        if reports.iter().any(|report| report.interrupted) {
            break;
        }
    }
    listener.bar.finish_and_clear();
    let comparison = listener.finish(args)?;
    if let Some(mut file) = plot_file {
        let curves: Vec<_> = [curves::measured(&reports)]
            .into_iter()
            .chain(curves_beside.into_iter().flatten())
            .collect();
        let title = format!("{} under load", args.url);
        let svg = plot(&title, &curves, args.body.deadline_ms.map(|ms| ms as f64));
        file.write_all(svg.as_bytes()).with_context(|| format!("--plot {:?}", args.plot))?;
    }
    report(args, histories, &notes, &reports, comparison.as_ref())
}

/// Loads, parsed together so that a wrong one is said before any is offered.
fn loads(args: &LoadtestArgs) -> anyhow::Result<Vec<Load>> {
    const MAX_RATES: usize = 1_000;
    let rates = args.rate.len();
    ensure!(rates <= MAX_RATES, "--rate has {rates} rates; at most {MAX_RATES} are offered");
    let time = |name: &str, seconds: f64| {
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            anyhow::anyhow!("--{name} is {seconds}; it must be a time in seconds, not below 0")
        })
    };
    let (lasting, warmup) = (time("seconds", args.seconds)?, time("warmup", args.warmup)?);
    let load = |&rate: &f64| {
        Arrivals::new(rate, args.seed, 0).context("--rate")?;
        let load = Load { rate, lasting, warmup };
        load.check().context("--seconds, --warmup")?;
        Ok(load)
    };
    args.rate.iter().map(load).collect()
}

/// Files that are written are none of those that are read, nor each other.
fn check_files(args: &LoadtestArgs) -> anyhow::Result<()> {
    let read = [Some(&args.body.histories), args.compare.as_ref(), args.beside.as_ref()];
    let written = [("--plot", args.plot.as_ref()), ("--save-answers", args.save_answers.as_ref())];
    let same = |a: &Path, b: &Path| {
        a == b
            || std::fs::canonicalize(a)
                .ok()
                .is_some_and(|a| std::fs::canonicalize(b).ok() == Some(a))
    };
    for (name, path) in written.iter().filter_map(|(name, path)| Some((name, (*path)?))) {
        ensure!(!path.is_dir(), "{name} {}: it is a directory; name a file", path.display());
        let is_read = read.iter().flatten().any(|read| same(read, path));
        ensure!(!is_read, "{name} {} is a file that is read; it would be lost", path.display());
    }
    if let (Some(plot), Some(answers)) = (&args.plot, &args.save_answers) {
        ensure!(!same(plot, answers), "--plot and --save-answers are the same file");
    }
    Ok(())
}

fn requests(args: &LoadtestArgs) -> anyhow::Result<(Requests, Notes)> {
    let (bodies, notes) = bodies::bodies(&args.body)?;
    ensure!(
        !bodies.is_empty(),
        "{} has no histories; give a file with at least one",
        args.body.histories.display()
    );
    let requests = Requests::new(bodies, args.body.k);
    let Some(path) = &args.key_file else { return Ok((requests, notes)) };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("--key-file {}", path.display()))?;
    let key = text.lines().next().unwrap_or_default().trim();
    let requests = requests.with_key(key);
    Ok((requests.with_context(|| format!("--key-file {}", path.display()))?, notes))
}

fn settings(args: &LoadtestArgs) -> Settings {
    Settings {
        connections: args.connections,
        timeout: Duration::from_millis(args.timeout_ms),
        deadline: args.body.deadline_ms.map(Duration::from_millis),
        seed: args.seed,
        threads: args.threads,
    }
}

fn saved(path: &Path, histories: usize) -> anyhow::Result<Comparison> {
    let name = || format!("--compare {}", path.display());
    let file = File::open(path).with_context(name)?;
    let saved = Saved::read(BufReader::new(file)).with_context(name)?;
    Ok(Comparison::new(saved, histories))
}

/// Files are made before the first request: a wrong name must not cost a measurement.
fn create(path: &Path) -> anyhow::Result<File> {
    make_parent(path)?;
    File::create(path).with_context(|| format!("{}: cannot be written", path.display()))
}

/// Takes answers to where they are wanted.
struct Listener {
    bar: ProgressBar,
    writer: Option<AnswerWriter<BufWriter<File>>>,
    comparison: Option<Comparison>,
    stop: Stop,
    failed: Option<std::io::Error>,
}

impl Listener {
    fn begin(&mut self, what: &str, quiet: bool) {
        const STEPS: usize = 1_000;
        self.bar.finish_and_clear();
        self.bar = progress_bar(STEPS, "", quiet);
        let style = "{prefix} {bar:30} {percent}% {msg}  {eta} left";
        self.bar.set_style(ProgressStyle::with_template(style).expect("a sound template"));
        self.bar.set_prefix(what.to_owned());
    }

    fn finish(self, args: &LoadtestArgs) -> anyhow::Result<Option<Comparison>> {
        let finished = match (self.failed, self.writer) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish().map(|_| ()),
            (None, None) => Ok(()),
        };
        finished.with_context(|| match &args.save_answers {
            Some(path) => format!("--save-answers {}", path.display()),
            None => "--save-answers".to_owned(),
        })?;
        Ok(self.comparison)
    }
}

impl Observer for Listener {
    fn progress(&mut self, progress: Progress) {
        self.bar.set_position((progress.done * 1e3) as u64);
        let (sent, in_time) = (grouped(progress.sent), grouped(progress.in_time));
        self.bar.set_message(format!("{sent} sent, {in_time} in time"));
    }

    fn keeps_answers(&self) -> bool {
        self.writer.is_some() || self.comparison.is_some()
    }

    fn answer(&mut self, answer: Answer) {
        if let Some(comparison) = &mut self.comparison {
            comparison.push(&answer);
        }
        if let Some(writer) = &mut self.writer
            && self.failed.is_none()
            && let Err(error) = writer.push(answer)
        {
            self.failed = Some(error);
            self.stop.stop();
        }
    }
}

fn report(
    args: &LoadtestArgs,
    histories: usize,
    notes: &Notes,
    reports: &[RateReport],
    comparison: Option<&Comparison>,
) -> anyhow::Result<()> {
    let differs = comparison.and_then(|comparison| difference(args, comparison).err());
    if args.json {
        print_json(&json!({
            "url": args.url,
            "histories": histories,
            "notes": notes,
            "k": args.body.k,
            "beam_width": args.body.beam_width,
            "deadline_ms": args.body.deadline_ms,
            "timeout_ms": args.timeout_ms,
            "connections": args.connections,
            "threads": args.threads,
            "seed": args.seed,
            "highest_kept_rate": highest_kept_rate(args.body.deadline_ms, reports),
            "interrupted": reports.iter().any(|report| report.interrupted),
            "rates": reports,
            "comparison": comparison.map(|comparison| json!({
                "compared": comparison.compared(),
                "different": comparison.different(),
                "first": comparison.first(),
            })),
        }))?;
        return differs.map_or(Ok(()), |error| Err(Reported(error.to_string()).into()));
    }
    print(&text::text(args, histories, reports, comparison))?;
    differs.map_or(Ok(()), Err)
}

/// The highest rate whose p99 was within the deadline and of which fewer than 0.1% had no answer in
/// time.
fn highest_kept_rate(deadline_ms: Option<u64>, reports: &[RateReport]) -> Option<f64> {
    let deadline = deadline_ms? as f64;
    let is_kept = |report: &&RateReport| {
        let p99 = report.latency_ms.map_or(f64::INFINITY, |latency| latency.p99);
        let missed = report.offered - report.in_time;
        p99 <= deadline && (missed as f64) < 1e-3 * report.offered as f64
    };
    let kept = reports.iter().filter(|report| !report.interrupted).filter(is_kept);
    kept.filter_map(|report| report.rate).max_by(f64::total_cmp)
}

/// The error where answers differ, or where none could be compared.
fn difference(args: &LoadtestArgs, comparison: &Comparison) -> anyhow::Result<()> {
    let path = args.compare.as_deref().unwrap_or(Path::new("")).display();
    if comparison.compared() == 0 {
        bail!(
            "--compare {path}: no request of this run has an answer there; save them with --sequential and the same histories"
        );
    }
    let Some(first) = comparison.first() else { return Ok(()) };
    bail!(
        "--compare {path}: {} of {} answers are others; the first is that to request {}, \
         items {} here and {} there (request {})",
        grouped(comparison.different()),
        grouped(comparison.compared()),
        first.index,
        first.now,
        first.saved,
        first.saved_index
    )
}
