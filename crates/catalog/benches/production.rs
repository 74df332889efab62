//! What does a catalog cost a server: to build, to keep, to open, and to filter?
//!
//! ```text
//! cargo bench -p palmette-catalog --bench production
//! cargo bench -p palmette-catalog --bench production -- 20000000
//! cargo bench -p palmette-catalog --bench production -- 20000000 --json
//! ```
//!
//! Data: as many items as the argument says (1,000,000 without one), from a fixed seed: 8 codes
//! below 2048, uniform; ids `i00000001`, …; a `region` (keyword, 20 values), `in_stock` (nine of
//! ten), and a `price` (2000 values from 0 to 99.95). The filter asks for one region, in stock, at
//! a price from 10 to 20: 0.45% of the items. The index chooses its dense levels itself.
//!
//! Measured, each figure named after what it is in [`Report`]:
//! - the build through [`CatalogBuilder`], from a row's arrival to the catalog. Rows are made up
//!   4096 at a time, which is not timed. The peak is `VmHWM` when the catalog is there;
//! - the file: its bytes, and the time to write and sync it. It lies in the system's temporary
//!   folder;
//! - opening it with either check. The file has just been written, so it is in the system's cache;
//! - steps of 140 beams at each level right after opening by map, when the process has not touched
//!   the file's pages, and the 20th such step. Every step has beams of its own, prefixes of random
//!   items; they are found in the built catalog beforehand, whose memory is not the file's;
//! - the filter over the opened file: compiled, from a [`FilterCache`], and from there with 50 more
//!   ids excluded, all of which match, other ones each time; and looking up random ids.
//!
//! Checked, with a panic where it is wrong: that the file holds what was built, that a step's masks
//! are those of the built catalog, how many items match, and whether 10,000 random ones do.
//!
//! Where `cargo test` runs it there are 10,000 items, for the checks alone.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use palmette_catalog::index::ItemSet;
use palmette_catalog::readers::ItemSink;
use palmette_catalog::{
    BuildOptions, Catalog, CatalogBuilder, CatalogState, Check, Filter, FilterCache,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

const NUM_LEVELS: usize = 8;
const NUM_CODES: u64 = 2048;
const NUM_REGIONS: u64 = 20;
const NUM_PRICES: u64 = 2000;
const FILTER: &str = r#"{"must": [{"match": {"region": "r03"}}, {"match": {"in_stock": true}},
    {"range": {"price": {"gte": 10, "lt": 20}}}]}"#;

const NUM_BEAMS: usize = 140;
/// Steps after each opening.
const NUM_STEPS: usize = 20;
/// Openings for the steps of each level.
const NUM_OPENINGS: usize = 5;
const NUM_EXCLUDED: usize = 50;

/// What was measured. Times are medians, but for building and writing, which are done once.
#[derive(Debug, Serialize)]
struct Report {
    items: u64,
    cores: usize,
    build_wall_s: f64,
    /// All threads, user and system; `None` where the system does not say, as the peak.
    build_cpu_s: Option<f64>,
    build_peak_bytes: Option<u64>,
    dense_levels: usize,
    file_bytes: u64,
    index_bytes_per_item: f64,
    id_bytes_per_item: f64,
    attribute_bytes_per_item: f64,
    write_s: f64,
    /// Of 20.
    open_frame_ms: f64,
    /// Of 3.
    open_whole_ms: f64,
    /// For each level, from the one before the first code; of 5 openings.
    step_first_us: [f64; NUM_LEVELS],
    step_20th_us: [f64; NUM_LEVELS],
    matching: u64,
    matching_share: f64,
    item_set_bytes: usize,
    filter_one_thread: Compiled,
    filter_all_threads: Compiled,
    /// Of 1000, as is the next.
    filter_cached_ns: f64,
    filter_cached_50_excluded_us: f64,
    /// Mean of 100,000.
    rank_of_ns: f64,
}

/// A filter becoming an item set: of 20.
#[derive(Debug, Serialize)]
struct Compiled {
    item_set_ms: f64,
    /// The part that finds the ranks.
    select_ms: f64,
    /// The part that makes masks of them.
    masks_ms: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = arguments.iter().find(|argument| !argument.starts_with('-'));
    // Only `cargo bench` says so.
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let items = match given.map(|number| number.parse()) {
        Some(Ok(items)) if items > 0 => items,
        Some(_) => panic!("{given:?} is no number of items"),
        None if is_bench => 1_000_000,
        None => 10_000,
    };
    let report = measure(items);
    if arguments.iter().any(|argument| argument == "--json") {
        print(&serde_json::to_string(&report).expect("plain data"));
    } else {
        print(&text(&report));
    }
}

fn measure(num_items: u64) -> Report {
    let Built { catalog: built, matching, clocks } = build(num_items);
    let build_peak_bytes = peak_resident_bytes();

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("items.palm");
    let (write_ns, ()) = timed(|| built.save(&path).expect("room for the file"));
    let open = |check| Catalog::open_with(&path, check).expect("the file just written");
    let open_frame_ns = median(20, || timed(|| open(Check::Frame)).0);
    let open_whole_ns = median(3, || timed(|| open(Check::Whole)).0);
    assert!(open(Check::Whole) == built, "the file holds another catalog");

    let mut random = Random(7);
    let steps = std::array::from_fn(|level| {
        steps_after_opening(&|| open(Check::Frame), &built, level, &mut random)
    });
    let stats = built.stats();
    drop(built);

    let catalog = Arc::new(open(Check::Frame));
    let filter = Filter::parse(FILTER).expect("a filter");
    let items = catalog.item_set(&filter).expect("attributes of their kinds");
    assert_eq!(items.len(), matching, "items match");
    check_sample(&catalog, &filter, &items, &mut random);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| compile(&catalog, &filter))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);

    let cache = FilterCache::new(catalog.clone(), 1 << 30);
    let cached = || black_box(cache.item_set(black_box(&filter)).expect("as before"));
    cached();
    const LOOK_UPS: usize = 16;
    let cached_ns =
        median(1000, || timed(|| (0..LOOK_UPS).for_each(|_| _ = cached())).0 / LOOK_UPS as f64);
    let per_item = |bytes: usize| bytes as f64 / num_items as f64;
    Report {
        items: num_items,
        cores,
        build_wall_s: clocks.wall_s,
        build_cpu_s: clocks.cpu_s,
        build_peak_bytes,
        dense_levels: catalog.index().num_dense_levels(),
        file_bytes: std::fs::metadata(&path).expect("the file").len(),
        index_bytes_per_item: per_item(stats.index_bytes),
        id_bytes_per_item: per_item(stats.id_bytes),
        attribute_bytes_per_item: per_item(stats.attribute_bytes),
        write_s: write_ns / 1e9,
        open_frame_ms: open_frame_ns / 1e6,
        open_whole_ms: open_whole_ns / 1e6,
        step_first_us: steps.map(|(first, _): (f64, f64)| first / 1e3),
        step_20th_us: steps.map(|(_, last)| last / 1e3),
        matching,
        matching_share: matching as f64 / num_items as f64,
        item_set_bytes: items.bytes(),
        filter_one_thread: on(1),
        filter_all_threads: on(cores),
        filter_cached_ns: cached_ns,
        filter_cached_50_excluded_us: with_excluded_ns(&cache, &items, &mut random) / 1e3,
        rank_of_ns: rank_of_ns(&catalog, &mut random),
    }
}

struct Built {
    catalog: Catalog,
    /// Items that the filter keeps, counted while they were made up.
    matching: u64,
    clocks: Clocks,
}

fn build(num_items: u64) -> Built {
    const BLOCK: u64 = 4096;
    let mut random = Random(1);
    let mut matching = 0;
    let mut clocks = Clocks { wall_s: 0.0, cpu_s: process_cpu_s().map(|_| 0.0) };
    let mut builder = CatalogBuilder::new(BuildOptions::default()).expect("no options");
    for first in (0..num_items).step_by(BLOCK as usize) {
        let numbers = first..num_items.min(first + BLOCK);
        let rows: Vec<Row> = numbers.map(|number| row(number, &mut random)).collect();
        matching += rows.iter().filter(|row| row.matches).count() as u64;
        clocks.run(|| {
            for Row { number, id, codes, attributes, .. } in rows {
                builder.push(number + 1, id, &codes, attributes).expect("a sound row");
            }
        });
    }
    let catalog = clocks.run(|| builder.finish(None, |_| {}).expect("sound rows"));
    assert_eq!(catalog.num_items(), num_items);
    Built { catalog, matching, clocks }
}

/// Sums of the times that pieces of work took.
struct Clocks {
    wall_s: f64,
    cpu_s: Option<f64>,
}

impl Clocks {
    fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let before = process_cpu_s();
        let (ns, made) = timed(work);
        self.wall_s += ns / 1e9;
        let parts = self.cpu_s.zip(before).zip(process_cpu_s());
        self.cpu_s = parts.map(|((sum, from), to)| sum + to - from);
        made
    }
}

struct Row {
    number: u64,
    id: String,
    codes: [u32; NUM_LEVELS],
    attributes: Map<String, Value>,
    /// Whether the filter keeps it.
    matches: bool,
}

fn row(number: u64, random: &mut Random) -> Row {
    let codes = std::array::from_fn(|_| random.below(NUM_CODES) as u32);
    let region = random.below(NUM_REGIONS);
    let in_stock = random.below(10) < 9;
    let twentieths = random.below(NUM_PRICES);
    let mut attributes = Map::new();
    attributes.insert("region".into(), format!("r{region:02}").into());
    attributes.insert("in_stock".into(), in_stock.into());
    attributes.insert("price".into(), json!(twentieths as f64 / 20.0));
    let matches = region == 3 && in_stock && (200..400).contains(&twentieths);
    Row { number, id: format!("i{:08}", number + 1), codes, attributes, matches }
}

/// Nanoseconds of the first and of the last step at a level after opening.
fn steps_after_opening(
    open: &dyn Fn() -> Catalog,
    built: &Catalog,
    level: usize,
    random: &mut Random,
) -> (f64, f64) {
    let words = NUM_CODES as usize / 32;
    let mut masks = vec![u32::MAX; NUM_BEAMS * words];
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for _ in 0..NUM_OPENINGS {
        let beams: Vec<Vec<CatalogState>> =
            (0..NUM_STEPS).map(|_| beams(built, level, random)).collect();
        let opened = open();
        let mut times = beams.iter().map(|states| {
            timed(|| opened.index().fill_masks(states, None, &[], words, &mut masks)).0
        });
        first.extend(times.next());
        last.extend(times.last());
        let mut expected = vec![0; masks.len()];
        let states = beams.last().expect("there are steps");
        built.index().fill_masks(states, None, &[], words, &mut expected);
        assert!(masks == expected, "masks of level {level} differ");
    }
    (middle(first), middle(last))
}

/// Prefixes of random items.
fn beams(catalog: &Catalog, level: usize, random: &mut Random) -> Vec<CatalogState> {
    let beam = |_| {
        let codes = catalog.codes(random.below(catalog.num_items()));
        let child = |state, &code: &u32| catalog.child(&state, code).expect("an item's code");
        codes[..level].iter().fold(catalog.start(), child)
    };
    (0..NUM_BEAMS).map(beam).collect()
}

/// The definition of the filter, item by item.
fn check_sample(catalog: &Catalog, filter: &Filter, items: &ItemSet, random: &mut Random) {
    let kind = |name: &str| {
        let mut columns = catalog.columns().columns();
        columns.find(|column| column.name == name).map(|column| column.kind)
    };
    for _ in 0..10_000 {
        let rank = random.below(catalog.num_items());
        let expected = filter.matches(catalog.id(rank), &catalog.attributes(rank), &kind);
        assert_eq!(items.ranks().contains(rank), expected, "item {}", catalog.id(rank));
    }
}

fn compile(catalog: &Catalog, filter: &Filter) -> Compiled {
    let select = || catalog.select(black_box(filter)).expect("as before");
    let ranks = select();
    let item_set = || catalog.item_set(black_box(filter)).expect("as before");
    Compiled {
        item_set_ms: median(20, || timed(item_set).0) / 1e6,
        select_ms: median(20, || timed(select).0) / 1e6,
        masks_ms: median(20, || {
            let ranks = ranks.clone();
            timed(|| catalog.index().item_set(ranks)).0
        }) / 1e6,
    }
}

fn with_excluded_ns(cache: &FilterCache, items: &ItemSet, random: &mut Random) -> f64 {
    let catalog = cache.catalog();
    let matching: Vec<u64> = items.ranks().iter().collect();
    let mut excluding = || {
        let ids: Vec<&str> = (0..NUM_EXCLUDED)
            .map(|_| catalog.id(matching[random.below(matching.len() as u64) as usize]))
            .collect();
        let mut filter: Value = serde_json::from_str(FILTER).expect("JSON");
        filter["exclude"] = json!(ids);
        Filter::from_value(&filter).expect("a filter")
    };
    let filters: Vec<Filter> = (0..1000).map(|_| excluding()).collect();
    for filter in &filters[..10] {
        let left = cache.item_set(filter).expect("as before");
        assert_eq!(left.len(), items.len() - filter.excluded().len() as u64, "excluded");
    }
    let mut filters = filters.iter();
    median(1000, || {
        let filter = filters.next().expect("one for each time");
        timed(|| cache.item_set(filter).expect("as before")).0
    })
}

fn rank_of_ns(catalog: &Catalog, random: &mut Random) -> f64 {
    const LOOK_UPS: usize = 100_000;
    let ranks: Vec<u64> = (0..LOOK_UPS).map(|_| random.below(catalog.num_items())).collect();
    let ids: Vec<String> = ranks.iter().map(|&rank| catalog.id(rank).to_owned()).collect();
    let mut found = Vec::with_capacity(LOOK_UPS);
    let (ns, ()) = timed(|| found.extend(ids.iter().map(|id| catalog.rank_of(id))));
    assert!(found.iter().zip(&ranks).all(|(found, &rank)| *found == Some(rank)));
    ns / LOOK_UPS as f64
}

/// Nanoseconds that work took, and what it made.
fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let start = Instant::now();
    let made = black_box(work());
    (start.elapsed().as_nanos() as f64, made)
}

/// The median of `times` calls.
fn median(times: usize, mut time: impl FnMut() -> f64) -> f64 {
    middle((0..times).map(|_| time()).collect())
}

fn middle(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Seconds of processor time of this process, all threads.
fn process_cpu_s() -> Option<f64> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
    }
    #[cfg(not(unix))]
    None
}

/// The most bytes this process has had in memory so far.
fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn text(report: &Report) -> String {
    let known = |value: Option<String>| value.unwrap_or_else(|| "not known".into());
    let compiled = |name: &str, of: &Compiled| {
        let Compiled { item_set_ms, select_ms, masks_ms } = of;
        format!(
            "filter compiled, {name}: {item_set_ms:.2} ms (select {select_ms:.2}, masks {masks_ms:.2})\n"
        )
    };
    let list = |times: &[f64]| {
        let times = times.iter().map(|time| format!("{time:.1}"));
        times.collect::<Vec<_>>().join("  ")
    };
    let Report { items, cores, file_bytes, .. } = report;
    let mut text = format!(
        "{items} items of {NUM_LEVELS} codes below {NUM_CODES}, {} dense levels; {cores} cores\n",
        report.dense_levels
    );
    text += &format!(
        "build: {:.2} s, {} s of processor time, memory peak {} MB\n",
        report.build_wall_s,
        known(report.build_cpu_s.map(|seconds| format!("{seconds:.2}"))),
        known(report.build_peak_bytes.map(|bytes| (bytes / 1_000_000).to_string()))
    );
    text += &format!(
        "file: {file_bytes} bytes, {:.2} an item (index {:.2}, ids {:.2}, attributes {:.2}), written in {:.2} s\n",
        *file_bytes as f64 / *items as f64,
        report.index_bytes_per_item,
        report.id_bytes_per_item,
        report.attribute_bytes_per_item,
        report.write_s
    );
    text += &format!(
        "open: {:.3} ms by its frame, {:.1} ms checked whole\n",
        report.open_frame_ms, report.open_whole_ms
    );
    text += &format!("step of {NUM_BEAMS} beams by level, us\n");
    text += &format!("  the first after opening  {}\n", list(&report.step_first_us));
    text += &format!("  the 20th                 {}\n", list(&report.step_20th_us));
    text += &format!(
        "filter: {} items match ({:.3}%), a set of {} bytes\n",
        report.matching,
        100.0 * report.matching_share,
        report.item_set_bytes
    );
    text += &compiled("1 thread", &report.filter_one_thread);
    text += &compiled(&format!("{cores} threads"), &report.filter_all_threads);
    text += &format!(
        "filter from the cache: {:.0} ns; with {NUM_EXCLUDED} ids excluded: {:.1} us\n",
        report.filter_cached_ns, report.filter_cached_50_excluded_us
    );
    text + &format!("rank of an id: {:.0} ns", report.rank_of_ns)
}

#[allow(clippy::print_stdout, reason = "what the bench is for")]
fn print(text: &str) {
    println!("{text}");
}

/// Numbers that are the same on every platform: splitmix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ (x >> 31)) * u128::from(bound)) >> 64) as u64
    }
}
