//! Arguments of the command: load, machine, policies, output.

use std::path::PathBuf;

use anyhow::{bail, ensure};
use clap::Args;
use palmette_serve_schedule::{Config, Margin};

/// Requests of a run at most; each takes about a hundred bytes.
pub(super) const MAX_REQUESTS: usize = 5_000_000;

/// Ask what load a machine bears: requests, deadlines and a scheduler on a virtual clock
///
/// The scheduler is the one that serves; only the clock, the requests and the cores are invented.
/// Requests come at random (Poisson), with prompts of a power law, and each takes what the cost
/// model says, times a lognormal noise. At arrival a request is refused if it, or one that was
/// admitted before, would be late by the prediction.
///
/// A row for each load: requests a second offered and answered in time (goodput), its share of the
/// capacity, which is what the cores do without a pause when each request has one thread; then the
/// shares of all requests that were refused at arrival, dropped from the queue, and late (started,
/// but not answered by the deadline); median, 99th and 99.9th percentile from arrival to answer;
/// work done for requests that were not answered in time, and how busy the cores were.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SimulateArgs {
    /// Requests a second, a run for each
    #[arg(long, value_name = "RATES", value_delimiter = ',', conflicts_with = "load")]
    pub(super) rate: Vec<f64>,
    /// Rates as shares of the capacity [default: .3,.5,.8,1,1.5,2]
    #[arg(long, value_name = "LOADS", value_delimiter = ',')]
    pub(super) load: Vec<f64>,
    /// Requests from a file instead, JSON lines; - for standard input
    ///
    /// {"at_ms": 12.5, "prompt_tokens": 40} and, where they differ from the options here,
    /// "deadline_ms", "beam", "passes", "rows" (of all passes together), "bytes" (planned memory),
    /// and "class": "bulk".
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "load", "bursts", "requests", "seconds"])]
    pub(super) trace: Option<PathBuf>,
    /// Requests that run at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) streams: u32,
    /// Cores, which the streams share [default: one a stream]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<u32>,
    /// Time from arrival to deadline; of several, each request has one at random
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "200")]
    pub(super) deadline_ms: Vec<f64>,
    /// 2.5 times as many requests in 2 of every 10 seconds, and fewer between
    #[arg(long)]
    pub(super) bursts: bool,
    /// Standard deviation of the logarithm of actual over predicted time
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub(super) noise: f64,
    /// Shortest and longest prompt; between them a power law, by which half are shorter than twice
    /// the shortest
    #[arg(
        long,
        value_name = "MIN,MAX",
        value_delimiter = ',',
        num_args = 1,
        default_value = "8,512"
    )]
    pub(super) prompt_tokens: Vec<u32>,
    /// Rows of a decode pass
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(super) beam: u32,
    /// Decode passes, one fewer than a semantic ID has codes
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(super) passes: u32,
    /// Cost model as JSON, in microseconds: {"c0": …, "c1": …, "c2": …, "r0": …, "r1": …, "r2": …}
    ///
    /// A request of T prompt tokens takes c0 + c1·T + c2·T² + r0·passes + r1·rows + r2·rows·T on
    /// one thread; what is left out is 0. Built in: 600 + 162·T + 160·rows + 0.11·rows·T, a model
    /// of 10 million parameters on a server's core.
    #[arg(long, value_name = "FILE")]
    pub(super) cost: Option<PathBuf>,
    /// A device that runs batches: milliseconds for batches of 1, 2, 4, 8, … requests
    ///
    /// Such a device has one stream. 17.6,27.8,47.7,93.2 is what a vendor published of a model of
    /// 0.6 billion parameters.
    #[arg(long, value_name = "MS", value_delimiter = ',', conflicts_with_all = ["cost", "streams", "threads"])]
    pub(super) batch_ms: Vec<f64>,
    /// Time that a batch which is not full may wait for others, a run for each
    #[arg(
        long,
        value_name = "MS",
        value_delimiter = ',',
        requires = "batch_ms",
        default_value = "0"
    )]
    pub(super) quota_ms: Vec<f64>,
    /// Factor between a prediction and what is promised [default: the .95 quantile of what was
    /// measured]
    #[arg(long, value_name = "FACTOR")]
    pub(super) margin: Option<f64>,
    /// Requests of a run
    #[arg(long, value_name = "N", default_value_t = 12_000, conflicts_with = "seconds")]
    pub(super) requests: usize,
    /// Length of a run instead
    #[arg(long, value_name = "N")]
    pub(super) seconds: Option<f64>,
    /// Compare policies: queues that predict nothing, and the scheduler with parts of it turned off
    #[arg(long)]
    pub(super) ablations: bool,
    /// Seed of requests and noise; all policies meet the same ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Draw goodput and 99th percentile over load, as SVG
    #[arg(long, value_name = "FILE")]
    pub(super) plot: Option<PathBuf>,
    /// Write the events and actions of the run, which must be one, as --replay reads them
    #[arg(long, value_name = "FILE", conflicts_with = "ablations")]
    pub(super) record: Option<PathBuf>,
    /// Give recorded events to the scheduler again, and say where its actions first differ; - for
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "load", "trace", "cost", "batch_ms", "ablations", "plot", "record"])]
    pub(super) replay: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(super) json: bool,
}

const AFTER_HELP: &str = "\
Examples:
  palmette simulate                              what two cores bear, from .3 to 2 times their capacity
  palmette simulate --ablations --plot load.svg  and what each part of the scheduler is worth
  palmette simulate --streams 16 --deadline-ms 50,100,400 --bursts
  palmette simulate --cost model.cost --rate 50,100 --noise .1
  palmette simulate --trace requests.jsonl --streams 8
  palmette simulate --batch-ms 17.6,27.8,47.7,93.2 --quota-ms 0,5,20 --rate 30,60,170
  palmette simulate --load 2 --record log.jsonl && palmette simulate --replay log.jsonl";

impl SimulateArgs {
    pub(super) fn cores(&self) -> u32 {
        match self.batch_ms.is_empty() {
            true => self.threads.unwrap_or(self.streams),
            false => 1,
        }
    }

    /// The whole scheduler's configuration.
    pub(super) fn config(&self) -> Config {
        let margin = self.margin.map_or_else(Margin::default, Margin::Fixed);
        let streams = if self.batch_ms.is_empty() { self.streams } else { 1 };
        Config { streams, threads: self.cores(), margin, ..Config::default() }
    }

    pub(super) fn shape(&self) -> palmette_serve_schedule::Shape {
        palmette_serve_schedule::Shape {
            prompt_tokens: self.prompt_tokens[0],
            passes: self.passes,
            rows: self.beam.saturating_mul(self.passes),
            widest: self.beam,
            ..palmette_serve_schedule::Shape::default()
        }
    }

    pub(super) fn check(&self) -> anyhow::Result<()> {
        let in_range = |name: &str, values: &[f64], least: f64, most: f64| match values
            .iter()
            .find(|value| !(least..=most).contains(*value))
        {
            Some(value) => bail!("{name} {value}: must be from {least} to {most}"),
            None => Ok(()),
        };
        in_range("--rate", &self.rate, 0.001, 1e6)?;
        in_range("--load", &self.load, 0.001, 1000.0)?;
        in_range("--deadline-ms", &self.deadline_ms, 0.001, 1e9)?;
        in_range("--noise", &[self.noise], 0.0, 3.0)?;
        in_range("--batch-ms", &self.batch_ms, 0.001, 1e6)?;
        in_range("--quota-ms", &self.quota_ms, 0.0, 1e6)?;
        in_range("--margin", self.margin.as_slice(), 1.0, 100.0)?;
        in_range("--seconds", self.seconds.as_slice(), 0.001, 1e7)?;
        let counts = [
            ("--streams", u64::from(self.streams), u64::from(Config::MAX_STREAMS)),
            ("--threads", self.cores().into(), u64::from(Config::MAX_STREAMS)),
            ("--beam", self.beam.into(), 1 << 20),
            ("--passes", self.passes.into(), 64),
            ("--requests", self.requests as u64, MAX_REQUESTS as u64),
        ];
        for (name, count, most) in counts {
            ensure!((1..=most).contains(&count), "{name} {count}: must be from 1 to {most}");
        }
        match self.prompt_tokens.as_slice() {
            [least, most] if (1..=*most).contains(least) && *most <= 1 << 24 => {}
            tokens => {
                bail!(
                    "--prompt-tokens {tokens:?}: must be a least and a largest number, such as 8,512"
                )
            }
        }
        ensure!(
            self.batch_ms.len() <= 16,
            "--batch-ms has {} times: at most 16",
            self.batch_ms.len()
        );
        Ok(())
    }
}
