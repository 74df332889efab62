//! Do readers in other processes keep up with a writer, and what do they pay?
//!
//! ```text
//! cargo bench -p palmette-catalog-live --bench readers -- [--items N] [--readers N] [--seconds S] [--rate N] [--json]
//! ```
//!
//! A process writes 1,000 updates a second (`--rate`), in batches of 20, half of them patches of a
//! price and half upserts, each batch forced to the disk, to a catalog of a million items
//! (`--items`). Eight processes (`--readers`) read it, each by a [`LiveReader`] of its own: 50
//! times a second they take the newest snapshot and search it, a beam of 50 over logits that are
//! computed from the tokens, once over all items and once under a filter. Each batch changes one
//! item's attribute `sent` to the time of its sending, by which a reader tells its **lag**: from
//! the call of `apply` until a snapshot with the batch is there.
//!
//! Printed: the time from opening a reader until its first search is done, with and without
//! verifying checksums; percentiles of a search in microseconds, with the writer idle for half of
//! `S` seconds (20) and then beside it, and their ratio; percentiles of the lag in milliseconds;
//! reads, and reads that failed. There are more processes than processors on most machines, so that
//! times have the waiting for one in them.

#![allow(clippy::print_stdout)] // It reports.

mod generated;

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use generated::{NUM_LEVELS, NUM_TOKENS, base, item, mix, tokens};
use palmette_catalog_filter::Filter;
use palmette_catalog_live::{
    LiveCatalog, LiveOptions, LiveReader, ReaderOptions, Snapshot, SnapshotConstraint, Update,
};
use palmette_decode::{BeamOptions, BeamSearch, HostBackend};
use palmette_mapped::Check;
use palmette_testkit::logits::TableLogits;
use serde_json::{Value, json};

const BATCH: u64 = 20;
/// The item whose attribute tells when a batch was sent.
const CLOCK: &str = "clock";

struct Options {
    items: u64,
    readers: usize,
    seconds: u64,
    rate: u64,
    json: bool,
}

fn main() {
    let mut options =
        Options { items: 1_000_000, readers: 8, seconds: 20, rate: 1000, json: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok()).expect("a number");
        match arg.as_str() {
            "--items" => options.items = number(),
            "--readers" => options.readers = number() as usize,
            "--seconds" => options.seconds = number(),
            "--rate" => options.rate = number(),
            "--json" => options.json = true,
            "--read" => return read(Path::new(&args.next().expect("a directory"))),
            // What cargo passes on.
            "--bench" => {}
            other => panic!("unknown option {other}"),
        }
    }
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().join("live");
    let first = base(options.items);
    let live =
        LiveCatalog::create_with(&dir, Some(first), None, LiveOptions::default()).expect("new");
    live.apply(&[sent(0)]).expect("sound");
    let [open_frame, open_sums] = [Check::Frame, Check::Sums].map(|check| opening(&dir, check));
    let mut readers: Vec<Reader> = (0..options.readers).map(|_| Reader::start(&dir)).collect();
    let half = Duration::from_secs(options.seconds) / 2;
    std::thread::sleep(half);
    let idle: Vec<Value> = readers.iter_mut().map(Reader::report).collect();
    let mut applies = write(&live, &options, half);
    let beside: Vec<Value> = readers.iter_mut().map(Reader::report).collect();
    for reader in readers {
        reader.stop();
    }
    applies.sort_unstable();
    let report = json!({
        "items": options.items, "readers": options.readers, "rate": options.rate,
        "open_unchecked_ms": open_frame, "open_checked_ms": open_sums, "idle": summary(&idle), "beside": summary(&beside),
        "apply_ms": percentiles(&applies, 1e3),
        "status": live.status(),
    });
    if options.json {
        println!("{report}");
        return;
    }
    let status = live.status();
    println!(
        "{} items, {} readers, {} updates a second",
        options.items, options.readers, options.rate
    );
    println!(
        "writer: apply {}; {} checkpoints, {} merges, {} waits",
        report["apply_ms"], status.checkpoints_done, status.merges_done, status.waits
    );
    println!("opening: {open_frame} ms unchecked, {open_sums} ms with every checksum");
    for (name, of) in [("idle", &report["idle"]), ("beside", &report["beside"])] {
        println!("{name:7} {of}");
    }
}

/// Median milliseconds from opening a reader until its first search is done, the file being in
/// memory.
fn opening(dir: &Path, check: Check) -> f64 {
    let (mut search, mut failed) = (Search::new(), 0);
    let mut times: Vec<Micros> = (0..21)
        .map(|_| {
            let begun = Instant::now();
            let options = ReaderOptions { poll: None, check, ..ReaderOptions::default() };
            let reader = LiveReader::open_with(dir, options).expect("beside the writer");
            search.time(&reader.snapshot(), None, &mut failed);
            begun.elapsed().as_micros() as Micros
        })
        .collect();
    assert_eq!(failed, 0);
    times.sort_unstable();
    times[10] as f64 / 1e3
}

/// Applies batches for some time; returns what each took, in seconds.
fn write(live: &LiveCatalog, options: &Options, time: Duration) -> Vec<Micros> {
    let (begun, mut applies) = (Instant::now(), Vec::new());
    for n in 0.. {
        let due = begun + Duration::from_micros(n * BATCH * 1_000_000 / options.rate);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if begun.elapsed() > time {
            break;
        }
        let change = |i: u64| {
            let seed = mix(n * BATCH + i);
            let id = seed % options.items;
            if i.is_multiple_of(2) {
                let attributes = json!({"price": seed % 500});
                let attributes = attributes.as_object().expect("an object").clone();
                return Update::Patch { id: id.to_string(), attributes };
            }
            Update::Upsert(item(id, seed))
        };
        let mut batch: Vec<Update> = (1..BATCH).map(change).collect();
        batch.push(sent(now()));
        let called = Instant::now();
        live.apply(&batch).expect("sound updates");
        applies.push(called.elapsed().as_micros() as Micros);
    }
    applies
}

type Micros = u64;

/// Microseconds since 1970.
fn now() -> Micros {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    now.as_micros() as Micros
}

/// The update that tells when its batch was sent.
fn sent(at: Micros) -> Update {
    let mut item = item(0, 1);
    item.id = CLOCK.to_owned();
    item.attributes.insert("sent".to_owned(), json!(at));
    Update::Upsert(item)
}

/// A process that reads.
struct Reader {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Reader {
    fn start(dir: &Path) -> Self {
        let program: PathBuf = std::env::current_exe().expect("this program");
        let process = Command::new(program)
            .arg("--read")
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.expect("a process");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, lines }
    }

    /// Measurements since the last report.
    fn report(&mut self) -> Value {
        let mut input = self.process.stdin.as_ref().expect("piped");
        writeln!(input, "report").expect("it reads");
        let line = self.lines.next().expect("it answers").expect("text");
        serde_json::from_str(&line).expect("JSON")
    }

    fn stop(mut self) {
        drop(self.process.stdin.take());
        self.process.wait().expect("it ends");
    }
}

/// Reads until its input ends; reports when asked.
fn read(dir: &Path) {
    let begun = Instant::now();
    let reader = LiveReader::open_with(dir, ReaderOptions::default()).expect("beside the writer");
    let opened = begun.elapsed().as_micros() as Micros;
    let (ask, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.is_err() || ask.send(()).is_err() {
                return;
            }
        }
    });
    // Sees each generation when it comes.
    let filter: Filter =
        Filter::parse(r#"{"must": {"range": {"price": {"lt": 100}}}}"#).expect("a filter");
    let mut search = Search::new();
    let (mut all, mut filtered, mut lags, mut failed) = (Vec::new(), Vec::new(), Vec::new(), 0_u64);
    let mut last = reader.snapshot().generation();
    let mut due = Instant::now();
    loop {
        match asked.try_recv() {
            Ok(()) => {
                println!(
                    "{}",
                    json!({
                        "opened": opened, "all": all, "filtered": filtered, "lags": lags, "failed": failed,
                    })
                );
                (all, filtered, lags, failed) = (Vec::new(), Vec::new(), Vec::new(), 0);
            }
            Err(std::sync::mpsc::TryRecvError::Disconnected) => return,
            Err(std::sync::mpsc::TryRecvError::Empty) => {}
        }
        let snapshot = reader.snapshot();
        if snapshot.generation() > last {
            last = snapshot.generation();
            let clock = snapshot.find(CLOCK).map(|at| snapshot.item(at));
            let at = clock.and_then(|item| item.attributes["sent"].as_u64()).expect("a time");
            lags.push(now().saturating_sub(at));
        }
        if Instant::now() >= due {
            due = Instant::now() + Duration::from_millis(20);
            all.push(search.time(&snapshot, None, &mut failed));
            filtered.push(search.time(&snapshot, Some(&filter), &mut failed));
        }
        failed += u64::from(reader.status().background_error.is_some());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A beam search that is used again and again.
struct Search {
    beam: BeamSearch<SnapshotConstraint>,
    logits: TableLogits,
}

impl Search {
    fn new() -> Self {
        let width = NonZeroUsize::new(50).expect("positive");
        let beam = BeamSearch::new(BeamOptions { width, max_tokens: NUM_LEVELS });
        Self { beam, logits: TableLogits { seed: 1, num_tokens: NUM_TOKENS, grades: 1000 } }
    }

    fn time(
        &mut self,
        snapshot: &Arc<Snapshot>,
        filter: Option<&Filter>,
        failed: &mut u64,
    ) -> Micros {
        let begun = Instant::now();
        let constraint = SnapshotConstraint::new(snapshot.clone(), tokens()).expect("they fit");
        let constraint = match filter {
            Some(filter) => constraint.with_filter(filter).expect("it fits"),
            None => constraint,
        };
        let mut backend = HostBackend::new(self.logits.source());
        let ran = self.beam.run(&constraint, &mut backend);
        *failed += u64::from(ran.is_err() || self.beam.results().count() < 50);
        begun.elapsed().as_micros() as Micros
    }
}

/// Percentiles over all readers.
fn summary(reports: &[Value]) -> Value {
    let all = |name: &str| -> Vec<Micros> {
        let lists = reports.iter().flat_map(|report| report[name].as_array().expect("a list"));
        let mut all: Vec<Micros> = lists.map(|n| n.as_u64().expect("a number")).collect();
        all.sort_unstable();
        all
    };
    let sum = |name: &str| -> u64 {
        reports.iter().map(|report| report[name].as_u64().expect("a number")).sum()
    };
    let (searches, filtered) = (all("all"), all("filtered"));
    json!({
        "open_ms": sum("opened") as f64 / 1e3 / reports.len().max(1) as f64,
        "reads": searches.len() + filtered.len(),
        "failed": sum("failed"),
        "search_ms": percentiles(&searches, 1e3),
        "filtered_ms": percentiles(&filtered, 1e3),
        "lag_ms": percentiles(&all("lags"), 1e3),
    })
}

fn percentiles(sorted: &[Micros], unit: f64) -> Value {
    let at = |share: f64| {
        let place = (sorted.len() as f64 * share) as usize;
        sorted.get(place.min(sorted.len().saturating_sub(1))).map(|&n| n as f64 / unit)
    };
    json!({"n": sorted.len(), "p50": at(0.5), "p99": at(0.99), "max": at(1.0)})
}
