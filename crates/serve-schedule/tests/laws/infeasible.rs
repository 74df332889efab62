//! Refused jobs were infeasible, by brute force over all orders of up to six jobs.

use palmette_serve_schedule::{Class, Config, Margin, Micros, Order, Refusal};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::cases;
use crate::ops::{COSTS, Op, What, arrivals};
use crate::world::{Known, State, World};

/// True where some order of the jobs (time each takes, deadline) over the streams has nobody late.
///
/// All jobs are there already, so a schedule that waits, or lets a stream idle, is never better
/// than the one in which its jobs start in the same order, each on the stream that is idle first.
fn feasible(jobs: &mut Vec<(Micros, Micros)>, free: &[Micros]) -> bool {
    if jobs.is_empty() {
        return true;
    }
    for place in 0..jobs.len() {
        let (takes, deadline) = jobs.swap_remove(place);
        let mut free = free.to_vec();
        let first = free.iter_mut().min().expect("a stream");
        *first = first.plus(takes);
        let fits = *first <= deadline && feasible(jobs, &free);
        jobs.push((takes, deadline));
        let last = jobs.len() - 1;
        jobs.swap(place, last);
        if fits {
            return true;
        }
    }
    false
}

/// Refusals that brute force checked, and how many of them it would have found a place for.
fn count(streams: u32) -> (u64, u64) {
    let config = Config {
        streams,
        threads: streams,
        join_idle: false,
        order: Order::Deadline,
        margin: Margin::Fixed(1.0),
        ..Config::default()
    };
    let (mut refused, mut conservative) = (0, 0);
    let mut runner =
        TestRunner::new_with_rng(cases(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    for _ in 0..cases().cases {
        let ops = arrivals().new_tree(&mut runner).expect("a strategy that draws").current();
        let mut world = World::new(config, true);
        for op in &ops {
            let What::Arrive { shape, slack, takes, .. } = op.what else { continue };
            let what =
                What::Arrive { class: Class::Interactive, shape, narrower: None, slack, takes };
            world.apply(&Op { gap: op.gap, what });
            let known = world.jobs.values().next_back().expect("the job that came");
            let waiting = world.queued(Class::Interactive);
            if known.state != State::Refused(Refusal::Late) || waiting.clone().count() > 5 {
                continue;
            }
            let alone = |known: &Known| {
                (Micros(COSTS.predict(&known.job.shape) as u64), known.job.deadline)
            };
            let mut jobs: Vec<_> = waiting.chain([known]).map(alone).collect();
            refused += 1;
            conservative += u64::from(feasible(&mut jobs, &world.free()));
        }
        world.finish();
    }
    (refused, conservative)
}

#[test]
fn on_one_stream_nothing_feasible_is_refused() {
    let (refused, conservative) = count(1);
    assert!(refused > 1000, "only {refused} refusals to look at");
    assert_eq!(conservative, 0, "of {refused}");
}

/// Finding the best order over several streams is NP-hard; earliest deadline first misses some.
#[test]
fn on_several_streams_few_feasible_jobs_are_refused() {
    for streams in [2, 3, 4] {
        let (refused, conservative) = count(streams);
        eprintln!(
            "{streams} streams: {conservative} of {refused} refused jobs had a place in another order"
        );
        assert!(refused > 500, "only {refused} refusals to look at");
        assert!(conservative * 10 < refused, "{conservative} of {refused} on {streams} streams");
    }
}
