//! Results of simulations as a table and as JSON.

use palmette_serve_schedule::CostModel;
use palmette_serve_schedule::simulation::{Machine, Outcome, Service};
use serde_json::{Value, json};

use super::arguments::SimulateArgs;
use super::policy_run::Run;
use crate::output::table;

pub(super) fn text(args: &SimulateArgs, machine: &Machine, capacity: f64, runs: &[Run]) -> String {
    let headings = [
        "policy",
        " load",
        " offered/s",
        " in time/s",
        " of capacity",
        " refused",
        " dropped",
        " late",
        " p50 ms",
        " p99 ms",
        " p99.9 ms",
        " wasted",
        " busy",
    ];
    let mut last = "";
    let rows: Vec<_> = runs
        .iter()
        .map(|run| {
            let name = if run.policy == last { "" } else { run.policy.as_str() };
            last = &run.policy;
            row(name, run, capacity)
        })
        .collect();
    format!("{}\n\n{}", about(args, machine, capacity), table(&headings, &rows))
}

fn row(name: &str, run: &Run, capacity: f64) -> Vec<String> {
    let outcome = &run.outcome;
    let percent = |share: f64| match share {
        0.0 => "0".to_owned(),
        share => format!("{:.2}%", 100.0 * share),
    };
    let ms = |ms: f64| match ms {
        ms if ms < 99.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    };
    let Outcome { late, dropped, refused, .. } = *outcome;
    vec![
        name.to_owned(),
        format!("{:.2}", run.load),
        format!("{:.1}", outcome.offered_rate),
        format!("{:.1}", outcome.goodput),
        format!("{:.2}", outcome.goodput / capacity),
        percent(outcome.share(refused)),
        percent(outcome.share(dropped)),
        percent(outcome.share(late)),
        ms(outcome.p50_ms),
        ms(outcome.p99_ms),
        ms(outcome.p999_ms),
        percent(outcome.wasted),
        format!("{:.0}%", 100.0 * outcome.utilisation),
    ]
}

/// The machine and the load in a sentence.
fn about(args: &SimulateArgs, machine: &Machine, capacity: f64) -> String {
    let machine = match &machine.service {
        Service::Cost(_) => {
            let plural = |count: u32, what| match count {
                1 => format!("1 {what}"),
                count => format!("{count} {what}s"),
            };
            format!("{} on {}", plural(args.streams, "stream"), plural(machine.cores, "core"))
        }
        Service::Batches(_) => "a device that runs batches".to_owned(),
    };
    let deadlines: Vec<_> = args.deadline_ms.iter().map(f64::to_string).collect();
    let bursts = if args.bursts { ", in bursts" } else { "" };
    format!(
        "{machine}, capacity {capacity:.1} requests a second; deadline {} ms, noise {}{bursts}, seed {}",
        deadlines.join(" or "),
        args.noise,
        args.seed
    )
}

pub(super) fn document(
    args: &SimulateArgs,
    machine: &Machine,
    costs: &CostModel,
    capacity: f64,
    runs: &[Run],
) -> Value {
    let run = |run: &Run| {
        let mut document = json!({"policy": run.policy, "load": run.load});
        if let (Value::Object(document), Ok(Value::Object(outcome))) =
            (&mut document, serde_json::to_value(run.outcome))
        {
            document.extend(outcome);
        }
        document
    };
    let config = args.config();
    json!({
        "streams": config.streams,
        "cores": machine.cores,
        "capacity": capacity,
        "costs": costs,
        "deadline_ms": args.deadline_ms,
        "noise": args.noise,
        "bursts": args.bursts,
        "seed": args.seed,
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
    })
}
