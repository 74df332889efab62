//! `palmette simulate`: the scheduler of requests under invented or recorded load, on a virtual
//! clock.

mod arguments;
mod json_lines;
mod plot;
mod policy;
mod policy_run;
mod replay;
mod report;
mod trace;

use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::{Context, ensure};
use palmette_serve_schedule::simulation::{
    Arrival, Bursts, Machine, Outcome, Service, Traffic, simulate,
};
use palmette_serve_schedule::{CostModel, Micros, Record};

use crate::output::{self, print, print_json};
use arguments::MAX_REQUESTS;
use policy::NamedPolicy;
use policy_run::Run;

pub(crate) use arguments::SimulateArgs;

/// A recommendation of beam 128 over three levels with a model of 10 million parameters, as
/// measured: 0.6 ms + 0.162 ms a token, then 41 ms + 0.0285 ms a token for 256 rows.
const COSTS: CostModel =
    CostModel { c0: 600.0, c1: 162.0, c2: 0.0, r0: 0.0, r1: 41_000.0 / 256.0, r2: 28.5 / 256.0 };

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
            palmette_serve_schedule::simulation::draw_noise(&mut arrivals, self.noise, self.seed);
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
        policy: &NamedPolicy,
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

fn write_line(file: &mut impl Write, record: &Record) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *file, record)?;
    Ok(file.write_all(b"\n")?)
}
