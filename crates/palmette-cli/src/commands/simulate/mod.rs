//! `palmette simulate`: the scheduler of requests under invented or recorded load, on a virtual clock.

mod plot;
mod policy;
mod replay;
mod report;
mod trace;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use palmette_schedule::simulation::{
    Arrival, Bursts, Machine, Outcome, Service, Traffic, simulate,
};
use palmette_schedule::{Config, CostModel, Margin, Micros, Record};

use crate::output::{self, print, print_json};
use policy::Named;

/// Ask what load a machine bears: requests, deadlines and a scheduler on a virtual clock
///
/// The scheduler is the one that serves; only the clock, the requests and the cores are invented. Requests come at random
/// (Poisson), with prompts of a power law, and each takes what the cost model says, times a lognormal noise. At arrival
/// a request is refused if it, or one that was admitted before, would be late by the prediction.
///
/// A row for each load: requests a second offered and answered in time (goodput), its share of the capacity, which is what
/// the cores do without a pause when each request has one thread; then the shares of all requests that were refused at
/// arrival, dropped from the queue, and late (started, but not answered by the deadline); median, 99th and 99.9th
/// percentile from arrival to answer; work done for requests that were not answered in time, and how busy the cores were.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct SimulateArgs {
    /// Requests a second, a run for each
    #[arg(long, value_name = "RATES", value_delimiter = ',', conflicts_with = "load")]
    rate: Vec<f64>,
    /// Rates as shares of the capacity [default: .3,.5,.8,1,1.5,2]
    #[arg(long, value_name = "LOADS", value_delimiter = ',')]
    load: Vec<f64>,
    /// Requests from a file instead, JSON lines; - for standard input
    ///
    /// {"at_ms": 12.5, "prompt_tokens": 40} and, where they differ from the options here, "deadline_ms", "beam", "passes",
    /// "rows" (of all passes together), "bytes" (planned memory), and "class": "bulk".
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "load", "bursts", "requests", "seconds"])]
    trace: Option<PathBuf>,
    /// Requests that run at once
    #[arg(long, value_name = "N", default_value_t = 2)]
    streams: u32,
    /// Cores, which the streams share [default: one a stream]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Time from arrival to deadline; of several, each request has one at random
    #[arg(long, value_name = "MS", value_delimiter = ',', default_value = "200")]
    deadline_ms: Vec<f64>,
    /// 2.5 times as many requests in 2 of every 10 seconds, and fewer between
    #[arg(long)]
    bursts: bool,
    /// Standard deviation of the logarithm of actual over predicted time
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    noise: f64,
    /// Shortest and longest prompt; between them a power law, by which half are shorter than twice the shortest
    #[arg(
        long,
        value_name = "MIN,MAX",
        value_delimiter = ',',
        num_args = 1,
        default_value = "8,512"
    )]
    prompt_tokens: Vec<u32>,
    /// Rows of a decode pass
    #[arg(long, value_name = "N", default_value_t = 128)]
    beam: u32,
    /// Decode passes, one fewer than a semantic ID has codes
    #[arg(long, value_name = "N", default_value_t = 2)]
    passes: u32,
    /// Cost model as JSON, in microseconds: {"c0": …, "c1": …, "c2": …, "r0": …, "r1": …, "r2": …}
    ///
    /// A request of T prompt tokens takes c0 + c1·T + c2·T² + r0·passes + r1·rows + r2·rows·T on one thread; what is left
    /// out is 0. Built in: 600 + 162·T + 160·rows + 0.11·rows·T, a model of 10 million parameters on a server's core.
    #[arg(long, value_name = "FILE")]
    cost: Option<PathBuf>,
    /// A device that runs batches: milliseconds for batches of 1, 2, 4, 8, … requests
    ///
    /// Such a device has one stream. 17.6,27.8,47.7,93.2 is what a vendor published of a model of 0.6 billion parameters.
    #[arg(long, value_name = "MS", value_delimiter = ',', conflicts_with_all = ["cost", "streams", "threads"])]
    batch_ms: Vec<f64>,
    /// Time that a batch which is not full may wait for others, a run for each
    #[arg(
        long,
        value_name = "MS",
        value_delimiter = ',',
        requires = "batch_ms",
        default_value = "0"
    )]
    quota_ms: Vec<f64>,
    /// Factor between a prediction and what is promised [default: the .95 quantile of what was measured]
    #[arg(long, value_name = "FACTOR")]
    margin: Option<f64>,
    /// Requests of a run
    #[arg(long, value_name = "N", default_value_t = 12_000, conflicts_with = "seconds")]
    requests: usize,
    /// Length of a run instead
    #[arg(long, value_name = "N")]
    seconds: Option<f64>,
    /// Compare policies: queues that predict nothing, and the scheduler with parts of it turned off
    #[arg(long)]
    ablations: bool,
    /// Seed of requests and noise; all policies meet the same ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw goodput and 99th percentile over load, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the events and actions of the run, which must be one, as --replay reads them
    #[arg(long, value_name = "FILE", conflicts_with = "ablations")]
    record: Option<PathBuf>,
    /// Give recorded events to the scheduler again, and say where its actions first differ; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rate", "load", "trace", "cost", "batch_ms", "ablations", "plot", "record"])]
    replay: Option<PathBuf>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
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

/// A recommendation of beam 128 over three levels with a model of 10 million parameters, as measured:
/// 0.6 ms + 0.162 ms a token, then 41 ms + 0.0285 ms a token for 256 rows.
const COSTS: CostModel =
    CostModel { c0: 600.0, c1: 162.0, c2: 0.0, r0: 0.0, r1: 41_000.0 / 256.0, r2: 28.5 / 256.0 };

/// The run of a policy at a load.
struct Run {
    policy: String,
    load: f64,
    outcome: Outcome,
}

pub(crate) fn run(args: &SimulateArgs) -> anyhow::Result<()> {
    if let Some(path) = &args.replay {
        return replay::run(path, args.json);
    }
    args.check()?;
    let machine = args.machine()?;
    let loads = args.loads(&machine)?;
    let costs = machine.service.costs(&args.shape());
    let policies = policy::named(args, &machine);
    ensure!(
        args.record.is_none() || loads.shares.len() * policies.len() == 1,
        "--record writes one run, and there are {}: give one --rate, --load or --quota-ms",
        loads.shares.len() * policies.len()
    );
    let capacity = loads.capacity;
    // The requests of one load at a time, which all policies meet; told policy by policy.
    let mut runs: Vec<Vec<Run>> = policies.iter().map(|_| Vec::new()).collect();
    for &load in &loads.shares {
        let arrivals = match &loads.trace {
            Some(arrivals) => arrivals,
            None => &args.traffic(load * capacity)?.arrivals(),
        };
        for (policy, runs) in policies.iter().zip(&mut runs) {
            let outcome = args.run_one(policy, arrivals, &machine, costs)?;
            runs.push(Run { policy: policy.name.clone(), load, outcome });
        }
    }
    let runs: Vec<Run> = runs.into_iter().flatten().collect();
    if let Some(path) = &args.plot {
        let svg = plot::svg(&runs, capacity);
        output::make_parent(path)?;
        std::fs::write(path, svg).with_context(|| path.display().to_string())?;
    }
    match args.json {
        true => print_json(&report::document(args, &machine, &costs, capacity, &runs)),
        false => print(&report::text(args, &machine, capacity, &runs)),
    }
}

/// Loads that are simulated.
struct Loads {
    /// Requests a second that the machine can do.
    capacity: f64,
    /// Shares of it, a run for each.
    shares: Vec<f64>,
    /// Requests of a file, in place of invented ones.
    trace: Option<Vec<Arrival>>,
}

impl SimulateArgs {
    fn cores(&self) -> u32 {
        match self.batch_ms.is_empty() {
            true => self.threads.unwrap_or(self.streams),
            false => 1,
        }
    }

    /// The whole scheduler's configuration.
    fn config(&self) -> Config {
        let margin = self.margin.map_or_else(Margin::default, Margin::Fixed);
        let streams = if self.batch_ms.is_empty() { self.streams } else { 1 };
        Config { streams, threads: self.cores(), margin, ..Config::default() }
    }

    fn shape(&self) -> palmette_schedule::Shape {
        palmette_schedule::Shape {
            prompt_tokens: self.prompt_tokens[0],
            passes: self.passes,
            rows: self.beam.saturating_mul(self.passes),
            widest: self.beam,
            ..palmette_schedule::Shape::default()
        }
    }

    fn check(&self) -> anyhow::Result<()> {
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

    fn machine(&self) -> anyhow::Result<Machine> {
        let service = match (&self.cost, self.batch_ms.as_slice()) {
            (Some(path), _) => {
                let bytes = crate::input::read(path)?;
                let costs: CostModel = serde_json::from_slice(&bytes)
                    .with_context(|| format!("{}: no cost model", path.display()))?;
                let time = costs.predict(&self.shape());
                ensure!(
                    time >= 1.0,
                    "{}: a request of {} tokens takes {time} µs by it; costs are in microseconds",
                    path.display(),
                    self.prompt_tokens[0]
                );
                Service::Cost(costs)
            }
            (None, []) => Service::Cost(COSTS),
            (None, times) => {
                let batch = |(place, ms): (usize, &f64)| (1u32 << place, ms * 1000.0);
                Service::Batches(times.iter().enumerate().map(batch).collect())
            }
        };
        Ok(Machine { cores: self.cores(), service })
    }

    fn loads(&self, machine: &Machine) -> anyhow::Result<Loads> {
        let capacity =
            |arrivals: &[Arrival]| machine.capacity(arrivals.iter().map(|arrival| &arrival.shape));
        if let Some(path) = &self.trace {
            let mut arrivals = trace::read(path, self)?;
            palmette_schedule::simulation::draw_noise(&mut arrivals, self.noise, self.seed);
            let capacity = capacity(&arrivals);
            let span = arrivals[arrivals.len() - 1].at.since(arrivals[0].at).0 as f64 / 1e6;
            let rate = if span > 0.0 { arrivals.len() as f64 / span } else { 0.0 };
            ensure!(
                capacity > 0.0 && capacity.is_finite(),
                "{}: its requests take no time by the cost model",
                path.display()
            );
            return Ok(Loads { capacity, shares: vec![rate / capacity], trace: Some(arrivals) });
        }
        let drawn = Traffic { requests: 12_000, ..self.traffic(1.0)? };
        let capacity = capacity(&drawn.arrivals());
        let shares = match (self.rate.as_slice(), self.load.as_slice()) {
            ([], []) => vec![0.3, 0.5, 0.8, 1.0, 1.5, 2.0],
            ([], loads) => loads.to_vec(),
            (rates, _) => rates.iter().map(|rate| rate / capacity).collect(),
        };
        for share in &shares {
            self.traffic(share * capacity)?;
        }
        Ok(Loads { capacity, shares, trace: None })
    }

    /// The requests of a run, to be drawn.
    fn traffic(&self, rate: f64) -> anyhow::Result<Traffic> {
        let requests = match self.seconds {
            Some(seconds) => ((rate * seconds).ceil() as usize).max(1),
            None => self.requests,
        };
        ensure!(
            requests <= MAX_REQUESTS,
            "{rate:.1} requests a second for so long are {requests}: at most {MAX_REQUESTS}"
        );
        Ok(Traffic {
            rate,
            requests,
            bursts: self.bursts.then(Bursts::default),
            tokens: (self.prompt_tokens[0], self.prompt_tokens[1]),
            passes: self.passes,
            beam: self.beam,
            within: self.deadline_ms.iter().map(|&ms| Micros::from_ms(ms)).collect(),
            noise: self.noise,
            seed: self.seed,
            ..Traffic::default()
        })
    }

    fn run_one(
        &self,
        policy: &Named,
        arrivals: &[Arrival],
        machine: &Machine,
        costs: CostModel,
    ) -> anyhow::Result<Outcome> {
        let mut decider = policy.start(costs);
        let Some(path) = &self.record else {
            return Ok(simulate(arrivals, machine, &mut *decider, &mut |_, _, _| {}));
        };
        output::make_parent(path)?;
        let named = || path.display().to_string();
        let mut file = BufWriter::new(File::create(path).with_context(named)?);
        let config = policy.config;
        let mut written = write_line(&mut file, &Record::Begin { config, costs: vec![costs] });
        let outcome = simulate(arrivals, machine, &mut *decider, &mut |now, event, actions| {
            if written.is_ok() {
                written = write_line(&mut file, &Record::Event { now, event: event.clone() });
            }
            if written.is_ok() && !actions.is_empty() {
                written = write_line(&mut file, &Record::Actions { actions: actions.to_vec() });
            }
        });
        written.and_then(|()| Ok(file.flush()?)).with_context(named)?;
        Ok(outcome)
    }
}

/// Requests of a run at most; each takes about a hundred bytes.
const MAX_REQUESTS: usize = 5_000_000;

fn write_line(file: &mut impl Write, record: &Record) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *file, record)?;
    Ok(file.write_all(b"\n")?)
}

/// The lines of a text file with their numbers, blank ones left out.
fn lines(path: &Path) -> anyhow::Result<Vec<(usize, String)>> {
    let bytes = crate::input::read(path)?;
    let text = String::from_utf8(bytes)
        .with_context(|| format!("{}: must be JSON lines in UTF-8", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    Ok(lines.map(|(number, line)| (number + 1, line.to_owned())).collect())
}
