//! What does each segment cost a decoding step?
//!
//! ```text
//! cargo bench -p palmette-catalog-live --bench segments -- [--items N] [--rounds R]
//! ```
//!
//! `N` (20,000,000) items, of which one in 60 is then taken out, and segments of 266,000, 30,000,
//! 5,000 and 750 items on top, one after the other: five snapshots besides the first. In each of
//! `R` (20,000) rounds a step is taken over each of the six, in turns, so that a machine that is
//! slower for a while is so for all: 140 beams, at the prefixes of items drawn at random among
//! those that are left, others for each, commit a code and get their masks. Finding the prefixes is
//! not timed.
//!
//! Data: 4 codes below 256, uniform from a fixed seed, a brand of 1000 and a price.
//!
//! Printed: by snapshot and by the code that a step commits (the first to the third, in turns), the
//! 25th, 50th and 99th percentile in microseconds, of steps of all codes their ratio to the first
//! snapshot's as well; and once more of the steps that had their core for themselves (`own_core`),
//! where there are any.

mod generated;

use std::time::{Duration, Instant};

use generated::{NUM_CODES, NUM_LEVELS, NUM_TOKENS, base, codes, item, mix, tokens};
use palmette_bench::own_core;
use palmette_catalog_live::{
    LiveCatalog, LiveOptions, MergePolicy, SnapshotConstraint, SyncPolicy, Update,
};
use palmette_core::{Constraint, TokenId, mask};

const NUM_BEAMS: usize = 140;
/// One item in so many is taken out.
const TAKEN_OUT: u64 = 60;
const ADDED: [u64; 4] = [266_000, 30_000, 5_000, 750];

fn main() {
    let (num_items, rounds) = options();
    let dir = tempfile::tempdir().expect("a folder");
    let options = LiveOptions {
        sync: SyncPolicy::Never,
        merging: MergePolicy::Never,
        memory_items: 1,
        checkpoint_bytes: u64::MAX,
        ..LiveOptions::default()
    };
    let live =
        LiveCatalog::create_with(&dir.path().join("live"), Some(base(num_items)), None, options);
    let live = live.expect("an empty folder");
    let mut snapshots = vec![("one segment".to_owned(), live.snapshot())];
    let taken_out = (0..num_items).step_by(TAKEN_OUT as usize);
    let deletes: Vec<_> = taken_out.map(|id| Update::Delete(id.to_string())).collect();
    live.apply(&deletes).expect("sound updates");
    snapshots.push(("and tombstones".to_owned(), live.snapshot()));
    let mut next = num_items;
    for count in ADDED {
        let added = next..next + count;
        let upserts: Vec<_> = added.map(|id| Update::Upsert(item(id, id))).collect();
        live.apply(&upserts).expect("sound updates");
        next += count;
        snapshots.push((format!("and {count} items"), live.snapshot()));
    }

    let tokens = tokens();
    let constraints: Vec<_> = snapshots
        .iter()
        .map(|(_, snapshot)| SnapshotConstraint::new(snapshot.clone(), tokens.clone()))
        .map(|constraint| constraint.expect("tokens for all codes"))
        .collect();
    let words = mask::num_words(NUM_TOKENS);
    let (mut masks, mut scratch) = (vec![0; NUM_BEAMS * words], Default::default());
    let mut times: Vec<Times> = vec![Default::default(); constraints.len()];
    for round in 0..rounds {
        let code = 1 + (round % (NUM_LEVELS as u64 - 1)) as usize;
        for (at, constraint) in constraints.iter().enumerate() {
            // Other beams for each, as one step would bring in what the next is to find by itself.
            let first = (round * constraints.len() as u64 + at as u64) * 1000;
            let drawn = (first..).map(|drawn| mix(drawn) % num_items);
            let drawn = drawn.filter(|id| !id.is_multiple_of(TAKEN_OUT));
            let drawn: Vec<_> = drawn.take(NUM_BEAMS).map(codes).collect();
            let token =
                |codes: &[u32; NUM_LEVELS], at: usize| TokenId(at as u32 * NUM_CODES + codes[at]);
            let prefix = |codes| {
                let mut state = constraint.start();
                for at in 0..code - 1 {
                    constraint
                        .commit(&mut state, token(codes, at), &mut scratch)
                        .expect("an item has it");
                }
                state
            };
            let mut states: Vec<_> = drawn.iter().map(prefix).collect();
            let last: Vec<_> = drawn.iter().map(|codes| token(codes, code - 1)).collect();
            let begun = Instant::now();
            constraint.commit_all(&mut states, &last, &mut scratch).expect("an item has it");
            let Ok(()) = constraint.fill_masks(&states, &mut scratch, &mut masks);
            let took = begun.elapsed();
            std::hint::black_box(&mut masks);
            times[at][code].push((took, own_core::compute(round)));
        }
    }

    let computing = times.iter().flatten().flatten().map(|(_, computing)| *computing);
    let own = own_core::most_on_own_core(computing);
    let names = || snapshots.iter().map(|(name, _)| &**name);
    report("us", names().zip(&times), |_| true);
    report("us, own core", names().zip(&times), |computing| computing <= own);
}

/// The times of one snapshot's steps, and of the computing after each, by code.
type Times = [Vec<(Duration, Duration)>; NUM_LEVELS];

/// Prints a line for each snapshot, of those steps after which computing took such times.
#[allow(clippy::print_stdout, reason = "the report is what it is for")]
fn report<'a>(
    title: &str,
    snapshots: impl Iterator<Item = (&'a str, &'a Times)>,
    is_in: impl Fn(Duration) -> bool,
) {
    println!(
        "{title:<18} {:>6} {:>26} {:>20} {:>20} {:>20}",
        "steps", "all (p50, p99 ratio)", "first code", "second", "third"
    );
    let mut first = None;
    for (name, times) in snapshots {
        let of_code = |times: &Vec<(Duration, Duration)>| -> Vec<Duration> {
            times.iter().filter(|(_, computing)| is_in(*computing)).map(|(took, _)| *took).collect()
        };
        let by_code: Vec<_> = times.iter().map(of_code).collect();
        let all = by_code.concat();
        let num_steps = all.len();
        let [_, p50, p99] = percentiles(all);
        let (first_p50, first_p99) = *first.get_or_insert((p50, p99));
        print!("{name:<18} {num_steps:>6} {p50:>6.1} {p99:>6.1}");
        print!(" ({:.2}, {:.2})", p50 / first_p50, p99 / first_p99);
        for times in by_code.into_iter().skip(1) {
            let [p25, p50, p99] = percentiles(times);
            print!(" {p25:>6.1} {p50:>6.1} {p99:>6.1}");
        }
        println!();
    }
}

/// The 25th, 50th and 99th percentile, in microseconds.
fn percentiles(mut times: Vec<Duration>) -> [f64; 3] {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    [0.25, 0.5, 0.99].map(|share| {
        times.get((last as f64 * share) as usize).map_or(0.0, |time| time.as_nanos() as f64 / 1e3)
    })
}

fn options() -> (u64, u64) {
    let (mut num_items, mut rounds) = (20_000_000, 20_000);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|value| value.parse().ok());
            value.unwrap_or_else(|| panic!("{argument} takes a number"))
        };
        match argument.as_str() {
            "--items" => num_items = number(),
            "--rounds" => rounds = number(),
            "--bench" => {}
            other => panic!("{other} is no option; see the head of this file"),
        }
    }
    (num_items, rounds)
}
