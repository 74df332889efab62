//! `palmette bench catalog`: what a catalog of a given size costs on this machine.

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use palmette_bench::{
    ByLevel, CatalogBench, Distribution, GeneratedItems, Microseconds, OwnCore, PeerReport,
    Progress, Report, Shape,
};

use crate::output::{bytes, grouped, print, print_json, progress_bar, table};

/// Build a generated catalog in memory and measure its steps
///
/// A step is what a decoder asks once for every code: for each of --beams beams, which codes may
/// follow. The beams of each sample are prefixes of items drawn at random. Steps run in one thread.
///
/// Cold: the beams' states are computed and the mask rows written over, then a buffer larger than
/// the last-level cache is read through, so that the index, the states and the mask rows have left
/// the caches; then the step is timed. A step writes every word of its rows, clearing them first.
/// Hot: the same step again at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CatalogArgs {
    /// Items to generate; several may share a semantic ID, and the report says how many are
    /// distinct
    #[arg(long, value_name = "N")]
    items: usize,
    /// Codes of each item's semantic ID
    #[arg(long, value_name = "N")]
    levels: usize,
    /// Codes that each level's codebook has, such as 2048
    #[arg(long, value_name = "N")]
    vocab: u32,
    /// First levels to keep as bit masks, as in `palmette catalog build` [default: as the index
    /// chooses]
    #[arg(long, value_name = "N")]
    dense: Option<usize>,
    /// Beams of a step: hypotheses that a decoder keeps at once
    #[arg(long, value_name = "N", default_value_t = 140)]
    beams: usize,
    /// Distribution from which codes are drawn
    #[arg(long, value_name = "KIND", default_value = "uniform")]
    distribution: Kind,
    /// With --distribution comb: last codes of each prefix; must divide --items [default: 64]
    #[arg(long, value_name = "N")]
    branching: Option<u32>,
    /// Share of the items that a filter keeps, chosen at random, for the filtered steps
    #[arg(long, value_name = "SHARE", default_value_t = 0.01)]
    filter_share: f64,
    /// Measure other engines over the same items as well; those that would not fit into memory
    /// are left out, which the report says
    #[arg(long)]
    peers: bool,
    /// Steps timed for each figure
    #[arg(long, value_name = "N", default_value_t = 200)]
    samples: usize,
    /// With --peers, steps timed for each figure of another engine, some of which take seconds
    #[arg(long, value_name = "N", default_value_t = 20)]
    peer_samples: usize,
    /// Bytes read through before each cold step [default: twice the last-level cache, or 64 MiB
    /// where its size is not known]
    #[arg(long, value_name = "BYTES")]
    sweep_bytes: Option<usize>,
    /// Seed of the items, the beams and the filter
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads that sort and index [default: one a processor]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  palmette bench catalog --items 1000000 --levels 3 --vocab 8192
  palmette bench catalog --items 20000000 --levels 8 --vocab 2048 --peers --json > 20m.json
  palmette bench catalog --items 8000000 --levels 3 --vocab 2048 \\
      --distribution comb --branching 1000

The table has a line for each level:
  follow       codes that follow a beam on average
  cold         median of cold steps, in microseconds; p99 and min are of the same steps
  hot          median of the same steps again
  kept rows    median of cold steps into rows that clear only what they set last
  successors   median of listing the codes with the states after them, cold
  filtered     median of cold steps that allow only the items of --filter-share
Below it is what reading one line of memory for each beam takes, cold, and nothing else: the
least that a step below the first level can take on this machine.

The processor time of the build is CLOCK_PROCESS_CPUTIME_ID over all threads, from a row's
arrival to the finished index; making up the rows is not in it. The memory peak is VmHWM at
the end of the build. Most of the running time goes into emptying the caches: where they are
large, fewer --samples or --sweep-bytes help.";

/// Distribution from which codes are drawn.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// Every code as likely as any other: prefixes share as little as they can
    Uniform,
    /// At each level a few likely codes and many rare ones, others for every parent, as residual
    /// quantisers give
    Power,
    /// Few distinct prefixes, shared deep into the levels
    Clustered,
    /// Every prefix of all codes but the last has exactly --branching last codes
    Comb,
}

pub(crate) fn run(args: &CatalogArgs) -> anyhow::Result<()> {
    let distribution = distribution(args)?;
    let shape = Shape { items: args.items, levels: args.levels, vocab: args.vocab };
    let bench = CatalogBench {
        items: GeneratedItems::new(shape, distribution, args.seed)?,
        dense: args.dense,
        beams: args.beams,
        samples: args.samples,
        peer_samples: args.peers.then_some(args.peer_samples),
        filter_share: args.filter_share,
        seed: args.seed,
        sweep_bytes: args.sweep_bytes,
        threads: args.threads,
    };
    let mut bars = Bars { bar: ProgressBar::hidden(), quiet: args.json };
    let report = bench.run(&mut bars)?;
    bars.bar.finish_and_clear();
    if args.json { print_json(&report) } else { print(&text(&report)) }
}

fn distribution(args: &CatalogArgs) -> anyhow::Result<Distribution> {
    let distribution = match args.distribution {
        Kind::Uniform => Distribution::Uniform,
        Kind::Power => Distribution::Power,
        Kind::Clustered => Distribution::Clustered,
        Kind::Comb => return Ok(Distribution::Comb { branching: args.branching.unwrap_or(64) }),
    };
    anyhow::ensure!(
        args.branching.is_none(),
        "--branching is the number of last codes of a comb; add --distribution comb"
    );
    Ok(distribution)
}

/// One progress bar after the other.
struct Bars {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress for Bars {
    fn begin(&mut self, stage: &str, steps: u64) {
        self.bar.finish_and_clear();
        self.bar = progress_bar(steps as usize, stage, self.quiet);
    }

    fn advance(&mut self, steps: u64) {
        self.bar.inc(steps);
    }
}

fn text(report: &Report) -> String {
    let items = grouped(report.items as u64);
    let mut text = format!(
        "{items} items of {} codes below {}, {}; {} distinct semantic IDs\n",
        report.levels,
        report.vocab,
        report.distribution,
        grouped(report.distinct_ids)
    );
    text += &format!(
        "index {} ({:.2} bytes an item), dense levels: {}\n",
        bytes(report.index_bytes),
        report.bytes_per_item,
        report.dense
    );
    let cpu = report.build_cpu_s.map_or("?".to_owned(), |seconds| format!("{seconds:.2}"));
    let peak = report.peak_bytes.map_or("not known".to_owned(), |peak| bytes(peak as usize));
    text += &format!(
        "build {:.2} s, {cpu} s of processor time, memory peak {peak}\n\n",
        report.build_wall_s
    );
    text += &format!(
        "Steps of {} beams in microseconds; cold after reading {}; half of {} samples took no longer\n",
        report.beams,
        bytes(report.sweep_bytes),
        report.samples
    );
    text += &steps(report);
    let reads = report.line_reads_us.p50;
    text += "own core: cold steps after which a short computation was as fast as it can be\n";
    text += &format!("A line of memory for each beam, cold, and nothing else: {reads:.1}\n");
    for peer in report.peers.iter().flatten() {
        text += &format!("\n{}", peer_text(peer));
    }
    let cpu = report.machine.cpu.as_deref().unwrap_or("an unknown processor");
    text + &format!("\n{cpu}, {} cores, seed {}", report.machine.cores, report.seed)
}

fn steps(report: &Report) -> String {
    let filtered = report.filtered_step_us.as_ref();
    let rows: Vec<Vec<String>> = (0..report.levels)
        .map(|level| {
            let cold = &report.step_us.0[level];
            let filtered = filtered.map_or("-".to_owned(), |times| p50(times, level));
            vec![
                level.to_string(),
                format!("{:.1}", report.branching.0[level]),
                p50(&report.step_us, level),
                own_core(&report.step_own_core_us.0[level]),
                format!("{:.1}", cold.p99),
                format!("{:.1}", cold.min),
                p50(&report.step_hot_us, level),
                p50(&report.kept_rows_us, level),
                p50(&report.successors_us, level),
                filtered,
            ]
        })
        .collect();
    let headings = [
        " level",
        " follow",
        " cold",
        " own core",
        " p99",
        " min",
        " hot",
        " kept rows",
        " successors",
        " filtered",
    ];
    table(&headings, &rows)
}

/// Half of these steps took no longer, and how many they were.
fn own_core(OwnCore { steps, times }: &OwnCore) -> String {
    times.map_or("-".to_owned(), |times| format!("{:.1} of {steps}", times.p50))
}

fn p50(times: &ByLevel<Microseconds>, level: usize) -> String {
    format!("{:.1}", times.0[level].p50)
}

fn peer_text(peer: &PeerReport) -> String {
    let (name, bytes_per_item, build_cpu_s, cold, hot) = match peer {
        PeerReport::Skipped { name, skipped } => return format!("{name}: left out, {skipped}\n"),
        PeerReport::Measured {
            name, bytes_per_item, build_cpu_s, step_us, step_hot_us, ..
        } => (name, bytes_per_item, build_cpu_s, step_us, step_hot_us),
    };
    let cpu = build_cpu_s.map_or("?".to_owned(), |seconds| format!("{seconds:.2}"));
    let list = |times: &ByLevel<Microseconds>| {
        let levels = (0..times.0.len()).map(|level| p50(times, level));
        levels.collect::<Vec<_>>().join("  ")
    };
    format!(
        "{name}: {bytes_per_item:.2} bytes an item, build {cpu} s of processor time{}\n  \
         cold by level  {}\n  hot by level   {}\n",
        errors(peer),
        list(cold),
        list(hot)
    )
}

/// Error rates of an approximate engine, in words.
fn errors(peer: &PeerReport) -> String {
    match peer {
        PeerReport::Measured {
            false_positive_rate: Some(positive),
            false_negative_rate: Some(negative),
            ..
        } => format!(
            "\n  not exact: allows {:.2}% of invalid codes, forbids {:.2}% of valid ones",
            100.0 * positive,
            100.0 * negative
        ),
        _ => String::new(),
    }
}
