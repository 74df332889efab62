//! Policies of a simulation by name: the scheduler, or all that it is compared with.

use palmette_serve_schedule::simulation::{Ablation, Machine, Policy, Service};
use palmette_serve_schedule::{Config, CostModel, Micros, Scheduler};

use super::arguments::SimulateArgs;

/// Policy with its name in the table.
pub(super) struct NamedPolicy {
    pub(super) name: String,
    pub(super) config: Config,
    /// A policy of the simulation's own, where it is not the scheduler by `config`.
    ablation: Option<Ablation>,
}

impl NamedPolicy {
    pub(super) fn start(&self, costs: CostModel) -> Box<dyn Policy> {
        match self.ablation {
            Some(ablation) => ablation.policy(self.config, costs),
            None => Box::new(Scheduler::new(self.config, vec![costs])),
        }
    }
}

pub(super) fn named(args: &SimulateArgs, machine: &Machine) -> Vec<NamedPolicy> {
    let whole = args.config();
    match &machine.service {
        Service::Cost(_) if args.ablations => {
            let ablation = |ablation: Ablation| NamedPolicy {
                name: ablation.name().to_owned(),
                config: whole,
                ablation: Some(ablation),
            };
            Ablation::ALL.map(ablation).into()
        }
        Service::Cost(_) => {
            vec![NamedPolicy { name: "the scheduler".to_owned(), config: whole, ablation: None }]
        }
        Service::Batches(batches) => {
            let largest = batches.iter().map(|&(jobs, _)| jobs).max().unwrap_or(1);
            batching(args, whole, largest)
        }
    }
}

fn batching(args: &SimulateArgs, whole: Config, largest: u32) -> Vec<NamedPolicy> {
    let named = |name: String, config| NamedPolicy { name, config, ablation: None };
    let batches = Config { batch_jobs: largest, ..whole };
    let mut policies = Vec::new();
    if args.ablations {
        policies.push(named("one at a time".to_owned(), whole));
        let admission = false;
        policies.push(named(
            format!("up to {largest}, drop what would be late"),
            Config { admission, ..batches },
        ));
    }
    policies.extend(args.quota_ms.iter().map(|&ms| {
        let config = Config { quota: Micros::from_ms(ms), ..batches };
        named(format!("up to {largest}, quota {ms} ms"), config)
    }));
    policies
}
