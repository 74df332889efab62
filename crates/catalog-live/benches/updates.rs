//! What do updates cost a decoder that goes on beside them, and how long until they are seen?
//!
//! ```text
//! cargo bench -p palmette-catalog-live --bench updates -- [--items N] [--seconds S] [--sync] [--json] [--dir DIR]
//!     [--checkpoint-mib M]
//! ```
//!
//! One thread takes decoding steps without a pause, each on the newest snapshot: 140 beams, at the
//! prefixes of items drawn at random among those that no update was about, commit a token and get
//! their masks. That is timed; finding the prefixes, of 0 to 2 codes and as many for all beams of a
//! step, is not. First alone, for half of `S` seconds (10); then for `S` seconds beside another
//! thread that applies 10,000 updates a second, half of them upserts (half of those of new ids) and
//! half deletes, in batches of 100, while merges and checkpoints run in the background; then alone
//! for the other half, over the snapshot of the beginning: a machine that is slower for a while is
//! so for both; and once more alone, over the snapshot of the end, which tells what its segments
//! cost from what is done beside it. In the end the contents are compared with those that the
//! updates should have led to.
//!
//! Data: `N` items (1,000,000) with 4 codes below 256, uniform from a fixed seed, a brand of 1000
//! and a price. `--sync` forces every batch to the disk; without it the disk's latency is left out
//! of it.
//!
//! After each step the same thread computes for some microseconds, which tells whether it had its
//! core for itself (`own_core`).
//!
//! Printed: percentiles of a step, without and with updates, in microseconds, and their ratio; the
//! same of the steps that had the core for themselves, and how many did; of the computing; of
//! `apply`; of the time from the call of `apply` until the other thread took a snapshot that has
//! the batch; of the steps that commit a first, second and third code; and, beside updates, of the
//! steps that come so many steps after a new snapshot was taken, and of those over so many
//! segments.

mod generated;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use generated::{NUM_CODES, NUM_LEVELS, NUM_TOKENS, base, codes, item, mix, tokens};
use palmette_bench::own_core;
use palmette_catalog::CodeTokens;
use palmette_catalog_live::{
    LiveCatalog, LiveOptions, MAX_SEGMENTS, Snapshot, SnapshotConstraint, SyncPolicy, Update,
};
use palmette_core::{Constraint, TokenId, mask};
use serde_json::json;

const NUM_BEAMS: usize = 140;
const BATCH: u64 = 100;
const UPDATES_A_SECOND: u64 = 10_000;

struct Options {
    items: u64,
    seconds: u64,
    sync: bool,
    json: bool,
    dir: Option<PathBuf>,
    checkpoint_mib: u64,
}

fn main() {
    let options = options();
    let temporary = tempfile::tempdir().expect("a folder");
    let dir = options.dir.clone().unwrap_or_else(|| temporary.path().to_owned()).join("live");
    let begun = Instant::now();
    let live =
        LiveCatalog::create_with(&dir, Some(base(options.items)), None, live_options(&options));
    let live = live.expect("an empty folder");
    eprintln!("{} items in {:.1} s", options.items, begun.elapsed().as_secs_f64());
    let tokens = tokens();

    let half = Duration::from_secs(options.seconds) / 2;
    let changed = Changed::new(options.items);
    let (seen, is_done) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let first = live.snapshot();
    let decode_first = || {
        let snapshot = || first.clone();
        decode(snapshot, &tokens, &options, &changed, &Mutex::default(), |took| took >= half).0
    };
    let mut alone = decode_first();
    let mut applies = Vec::new();
    let mut state = State::default();
    let beside = std::thread::scope(|scope| {
        let decoder = scope.spawn(|| {
            let snapshot = || live.snapshot();
            decode(snapshot, &tokens, &options, &changed, &seen, |_| {
                is_done.load(Ordering::Relaxed)
            })
        });
        let begun = Instant::now();
        for n in 0..options.seconds * UPDATES_A_SECOND / BATCH {
            let due = begun + Duration::from_micros(n * BATCH * 1_000_000 / UPDATES_A_SECOND);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let batch = state.batch(n, options.items);
            changed.mark(&batch);
            let called = Instant::now();
            let applied = live.apply(&batch).expect("sound updates");
            applies.push((applied.generation, called, called.elapsed()));
        }
        is_done.store(true, Ordering::Relaxed);
        decoder.join().expect("no panic")
    });
    let rate = (applies.len() as u64 * BATCH) as f64 / beside.1.as_secs_f64();
    let status = live.status();
    state.check(&live, options.items);
    let last = live.snapshot();
    live.wait_for_merges();
    state.check(&live, options.items);
    alone.extend(decode_first());
    let snapshot = || last.clone();
    let is_over = |took| took >= half;
    let (after, _) = decode(snapshot, &tokens, &options, &changed, &Mutex::default(), is_over);
    drop(last);
    drop(live);
    let begun = Instant::now();
    let live = LiveCatalog::open_with(&dir, live_options(&options)).expect("it was closed");
    let reopened = begun.elapsed();
    state.check(&live, options.items);

    let seen = seen.into_inner().expect("no panic");
    let visible: Vec<Duration> = applies
        .iter()
        .filter_map(|(generation, called, _)| {
            let at = seen.partition_point(|(other, _)| other < generation);
            Some(seen.get(at)?.1.duration_since(*called))
        })
        .collect();
    let applies: Vec<Duration> = applies.iter().map(|&(_, _, took)| took).collect();
    let all = alone.iter().chain(&beside.0);
    let own = own_core::most_on_own_core(all.map(|step| step.computing));
    let had_core = |step: &Step| step.computing <= own;
    let mut times = vec![
        ("step_us_alone".to_owned(), micros(times_of(&alone, |_| true))),
        ("step_us_with_updates".to_owned(), micros(times_of(&beside.0, |_| true))),
        ("step_us_after_updates".to_owned(), micros(times_of(&after, |_| true))),
        ("step_us_alone_own_core".to_owned(), micros(times_of(&alone, had_core))),
        ("step_us_with_updates_own_core".to_owned(), micros(times_of(&beside.0, had_core))),
        ("computing_us_alone".to_owned(), micros(computing_of(&alone))),
        ("computing_us_with_updates".to_owned(), micros(computing_of(&beside.0))),
        ("apply_us".to_owned(), micros(applies)),
        ("visible_us".to_owned(), micros(visible)),
    ];
    for code in 1..NUM_LEVELS {
        let steps = [("alone", &alone), ("with_updates", &beside.0), ("after_updates", &after)];
        for (name, steps) in steps {
            let times_of_code = times_of(steps, |step| step.code == code);
            times.push((format!("step_us_{name}_code_{code}"), micros(times_of_code)));
        }
    }
    for after in AFTER_SWAP.windows(2) {
        let times_after = times_of(&beside.0, |step| (after[0]..after[1]).contains(&step.after));
        times.push((format!("step_us_after_swap_{}", after[0]), micros(times_after)));
    }
    for number in 1..=MAX_SEGMENTS {
        let times_over = times_of(&beside.0, |step| step.num_segments == number);
        if !times_over.is_empty() {
            times.push((format!("step_us_segments_{number}"), micros(times_over)));
        }
    }
    report(
        &options,
        &times,
        &json!({
            "updates_a_second": rate.round(),
            "own_core_alone": share(&alone, had_core),
            "own_core_with_updates": share(&beside.0, had_core),
            "merges": status.merges_done,
            "items_merged": status.items_merged,
            "checkpoints": status.checkpoints_done,
            "waits": status.waits,
            "segments": status.segments.iter().map(|s| s.num_items).collect::<Vec<_>>(),
            "tombstones": status.num_tombstones,
            "reopen_ms": reopened.as_millis() as u64,
            "background_error": status.background_error,
        }),
    );
}

/// A step that was timed.
struct Step {
    took: Duration,
    /// What the computing after it took.
    computing: Duration,
    /// The code, counted from 1, that it committed.
    code: usize,
    /// Steps since the first over its snapshot.
    after: u64,
    num_segments: usize,
}

/// Where the groups of steps by their distance from a new snapshot begin.
const AFTER_SWAP: [u64; 6] = [0, 1, 2, 8, 32, u64::MAX];

fn times_of(steps: &[Step], is_in: impl Fn(&Step) -> bool) -> Vec<Duration> {
    steps.iter().filter(|step| is_in(step)).map(|step| step.took).collect()
}

fn computing_of(steps: &[Step]) -> Vec<Duration> {
    steps.iter().map(|step| step.computing).collect()
}

/// The share of steps, to a hundredth.
fn share(steps: &[Step], is_in: impl Fn(&Step) -> bool) -> f64 {
    let num_in = steps.iter().filter(|step| is_in(step)).count();
    (100.0 * num_in as f64 / steps.len().max(1) as f64).round() / 100.0
}

/// Takes steps until it is over; when each generation was first seen is added to `seen`. Returns
/// the steps, and how long all of them took.
fn decode(
    snapshot: impl Fn() -> Arc<Snapshot>,
    tokens: &Arc<CodeTokens>,
    options: &Options,
    changed: &Changed,
    seen: &Mutex<Vec<(u64, Instant)>>,
    is_over: impl Fn(Duration) -> bool,
) -> (Vec<Step>, Duration) {
    let words = mask::num_words(NUM_TOKENS);
    let mut masks = vec![0; NUM_BEAMS * words];
    let (mut scratch, mut steps) = (Default::default(), Vec::new());
    let (mut states, mut last_tokens) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    let mut last = u64::MAX;
    let mut times = Vec::new();
    let (mut number, mut swapped_at) = (0, 0);
    while !is_over(begun.elapsed()) {
        number += 1;
        let snapshot = snapshot();
        if snapshot.generation() != last {
            (last, swapped_at) = (snapshot.generation(), number);
            times.push((last, Instant::now()));
        }
        let num_segments = snapshot.segments().len();
        let constraint = SnapshotConstraint::new(snapshot, tokens.clone()).expect("they fit");
        let level = level_of(number);
        states.clear();
        last_tokens.clear();
        let mut drawn = number * 1000;
        while states.len() < NUM_BEAMS {
            let item = mix(drawn) % options.items;
            drawn += 1;
            if changed.contains(item) {
                continue;
            }
            let codes = codes(item);
            let token = |at: usize| TokenId(at as u32 * NUM_CODES + codes[at]);
            let mut state = constraint.start();
            (0..level - 1).for_each(|at| {
                constraint.commit(&mut state, token(at), &mut scratch).expect("it is there")
            });
            states.push(state);
            last_tokens.push(token(level - 1));
        }
        let step = Instant::now();
        constraint.commit_all(&mut states, &last_tokens, &mut scratch).expect("they are allowed");
        let Ok(()) = constraint.fill_masks(&states, &mut scratch, &mut masks);
        let (took, after) = (step.elapsed(), number - swapped_at);
        std::hint::black_box(&mut masks);
        let computing = own_core::compute(number);
        steps.push(Step { took, computing, code: level, after, num_segments });
    }
    seen.lock().expect("no panic").extend(times);
    (steps, begun.elapsed())
}

/// The code, counted from 1, that a step commits.
fn level_of(step: u64) -> usize {
    1 + (step % (NUM_LEVELS as u64 - 1)) as usize
}

/// The items of the beginning that an update was about: their prefixes may be gone. Asking the
/// catalog would bring in what a step is to find by itself.
struct Changed(Vec<AtomicU64>);

impl Changed {
    fn new(num_items: u64) -> Self {
        Self((0..num_items.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    fn mark(&self, batch: &[Update]) {
        for update in batch {
            let id = update.id();
            let id: u64 = id.parse().expect("a number");
            if let Some(word) = self.0.get((id / 64) as usize) {
                word.fetch_or(1 << (id % 64), Ordering::Relaxed);
            }
        }
    }

    fn contains(&self, item: u64) -> bool {
        self.0[(item / 64) as usize].load(Ordering::Relaxed) >> (item % 64) & 1 == 1
    }
}

/// What the updates should have led to, where it differs from the items of the beginning.
#[derive(Default)]
struct State {
    changed: HashMap<u64, Option<u64>>,
    next_id: u64,
}

impl State {
    fn batch(&mut self, n: u64, num_items: u64) -> Vec<Update> {
        let update = |at: u64| {
            let random = mix(n * BATCH + at + (1 << 50));
            let known = random % (num_items + self.next_id);
            match at % 4 {
                0 => {
                    self.next_id += 1;
                    let id = num_items + self.next_id - 1;
                    self.changed.insert(id, Some(random));
                    Update::Upsert(item(id, random))
                }
                1 => {
                    self.changed.insert(known, Some(random));
                    Update::Upsert(item(known, random))
                }
                _ => {
                    self.changed.insert(known, None);
                    Update::Delete(known.to_string())
                }
            }
        };
        (0..BATCH).map(update).collect()
    }

    fn check(&self, live: &LiveCatalog, num_items: u64) {
        let snapshot = live.snapshot();
        let is_there = |id: &u64| self.changed.get(id).is_none_or(Option::is_some);
        let expected = (0..num_items + self.next_id).filter(is_there).count() as u64;
        assert_eq!(snapshot.num_items(), expected);
        let mut num_found = 0;
        for at in snapshot.items() {
            let id: u64 = snapshot.id(at).parse().expect("a number");
            let (catalog, rank) = snapshot.place(at);
            let seed = self.changed.get(&id).copied().unwrap_or(Some(id));
            let seed = seed.unwrap_or_else(|| panic!("item {id} was deleted"));
            assert_eq!(catalog.codes(rank), codes(seed), "item {id}");
            num_found += 1;
        }
        assert_eq!(num_found, expected);
    }
}

fn live_options(options: &Options) -> LiveOptions {
    let sync = if options.sync { SyncPolicy::EveryBatch } else { SyncPolicy::Never };
    let checkpoint_bytes = options.checkpoint_mib << 20;
    LiveOptions { sync, checkpoint_bytes, ..LiveOptions::default() }
}

/// p50, p99, p99.9 and the largest.
fn micros(mut times: Vec<Duration>) -> [f64; 4] {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let at = |share: f64| times.get((last as f64 * share) as usize).copied().unwrap_or_default();
    [0.5, 0.99, 0.999, 1.0].map(|share| at(share).as_nanos() as f64 / 1000.0)
}

#[allow(clippy::print_stdout, reason = "the report is what it is for")]
fn report(options: &Options, times: &[(String, [f64; 4])], counts: &serde_json::Value) {
    let ratio_of = |beside: usize, alone: usize| -> [f64; 4] {
        std::array::from_fn(|at| times[beside].1[at] / times[alone].1[at])
    };
    let (ratio, after_ratio, own_ratio) = (ratio_of(1, 0), ratio_of(2, 0), ratio_of(4, 3));
    if options.json {
        let mut report = counts.as_object().expect("an object").clone();
        report.insert("items".into(), options.items.into());
        report.insert("sync".into(), options.sync.into());
        report.insert("step_ratio".into(), json!(ratio));
        report.insert("step_ratio_after".into(), json!(after_ratio));
        report.insert("step_ratio_own_core".into(), json!(own_ratio));
        for (name, times) in times {
            report.insert(name.clone(), json!(times));
        }
        println!("{}", serde_json::Value::Object(report));
        return;
    }
    println!("{:<29} {:>10} {:>10} {:>10} {:>10}", "", "p50", "p99", "p99.9", "most");
    for (name, [p50, p99, p999, most]) in times {
        println!("{name:<29} {p50:>10.1} {p99:>10.1} {p999:>10.1} {most:>10.1}");
    }
    let ratios = [
        ("ratio of steps", ratio),
        ("ratio of steps after", after_ratio),
        ("ratio of those with own core", own_ratio),
    ];
    for (name, [p50, p99, p999, most]) in ratios {
        println!("{name:<29} {p50:>10.2} {p99:>10.2} {p999:>10.2} {most:>10.2}");
    }
    println!("{counts}");
}

fn options() -> Options {
    let mut options = Options {
        items: 1_000_000,
        seconds: 10,
        sync: false,
        json: false,
        dir: None,
        checkpoint_mib: 16,
    };
    let mut arguments = std::env::args().skip(1);
    let number = |value: Option<String>| {
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("a number is missing"))
    };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--items" => options.items = number(arguments.next()),
            "--seconds" => options.seconds = number(arguments.next()),
            "--sync" => options.sync = true,
            "--json" => options.json = true,
            "--checkpoint-mib" => options.checkpoint_mib = number(arguments.next()),
            "--dir" => options.dir = arguments.next().map(PathBuf::from),
            "--bench" => {}
            other => panic!("{other} is no option; see the head of this file"),
        }
    }
    options
}
