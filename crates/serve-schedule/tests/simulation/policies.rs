//! Shape of the comparison of policies on two cores.

use palmette_serve_schedule::simulation::{
    Ablation, Bursts, Machine, Outcome, Service, Traffic, simulate,
};
use palmette_serve_schedule::{Config, Micros};

use super::COSTS;

/// Outcome, and the share of the capacity that was answered in time.
fn run(ablation: Ablation, load: f64, change: impl Fn(&mut Traffic)) -> (Outcome, f64) {
    let machine = Machine { cores: 2, service: Service::Cost(COSTS) };
    let mut traffic = Traffic { requests: 6000, ..Traffic::default() };
    change(&mut traffic);
    let shapes: Vec<_> = traffic.arrivals().iter().map(|arrival| arrival.shape).collect();
    let capacity = machine.capacity(shapes.iter());
    assert!((40.0..45.0).contains(&capacity), "{capacity}");
    traffic.rate = load * capacity;
    let whole = Config { streams: 2, threads: 2, ..Config::default() };
    let mut policy = ablation.policy(whole, COSTS);
    let outcome = simulate(&traffic.arrivals(), &machine, &mut *policy, &mut |_, _, _| {});
    let Outcome { offered, in_time, late, dropped, refused, .. } = outcome;
    assert_eq!(offered, 6000);
    assert_eq!(in_time + late + dropped + refused, offered, "{outcome:?}");
    assert!((0.0..=1.0 + 1e-9).contains(&outcome.utilisation), "{outcome:?}");
    (outcome, outcome.goodput / capacity)
}

fn plain(ablation: Ablation, load: f64) -> (Outcome, f64) {
    run(ablation, load, |_| {})
}

#[test]
fn a_queue_without_limit_collapses_and_admission_does_not() {
    let (fifo, goodput) = plain(Ablation::Fifo, 2.0);
    assert!(goodput < 0.02 && fifo.p50_ms > 10_000.0 && fifo.wasted > 0.98, "{fifo:?}");
    let (_, drops_late) = plain(Ablation::FifoDropsLate, 2.0);
    let (dequeue, drops_early) = plain(Ablation::DropsAtDequeue, 2.0);
    assert!(drops_late < 0.2, "{drops_late}");
    assert!((0.8..1.0).contains(&drops_early) && dequeue.wasted > 0.1, "{drops_early}");
    for ablation in [Ablation::Admission, Ablation::Deadlines, Ablation::Joining] {
        let (outcome, goodput) = plain(ablation, 2.0);
        assert!((0.98..1.12).contains(&goodput), "{ablation:?}: {goodput}");
        assert!((0.4..0.55).contains(&outcome.share(outcome.refused)), "{outcome:?}");
        assert!(outcome.share(outcome.late + outcome.dropped) < 0.005, "{outcome:?}");
        assert!(outcome.p99_ms < 200.0 && outcome.wasted < 0.01, "{outcome:?}");
    }
}

#[test]
fn below_capacity_all_are_answered_and_joining_is_quicker() {
    let (fifo, _) = plain(Ablation::Fifo, 0.5);
    let (alone, goodput) = plain(Ablation::Deadlines, 0.5);
    let (joined, goodput_joined) = plain(Ablation::Joining, 0.5);
    assert!((0.47..0.53).contains(&goodput) && (0.47..0.53).contains(&goodput_joined));
    assert!((45.0..55.0).contains(&fifo.p50_ms) && (45.0..55.0).contains(&alone.p50_ms));
    assert!(joined.p50_ms < 0.8 * alone.p50_ms, "{} {}", joined.p50_ms, alone.p50_ms);
    assert!(joined.share(joined.refused) < 0.01, "{joined:?}");
}

#[test]
fn mixed_deadlines_in_bursts_gain_from_their_order_and_from_idle_cores() {
    let within = [50, 100, 200, 400].map(|ms| Micros(ms * 1000)).to_vec();
    let mixed = |traffic: &mut Traffic| {
        traffic.within.clone_from(&within);
        traffic.bursts = Some(Bursts::default());
    };
    let [by_arrival, by_deadline, joined] =
        [Ablation::Admission, Ablation::Deadlines, Ablation::Joining]
            .map(|ablation| run(ablation, 2.0, mixed));
    assert!(by_deadline.1 > by_arrival.1 + 0.01, "{} {}", by_deadline.1, by_arrival.1);
    assert!(joined.1 > by_arrival.1 + 0.01, "{}", joined.1);
    for (outcome, _) in [by_deadline, joined] {
        assert!(outcome.share(outcome.late + outcome.dropped) < 0.005, "{outcome:?}");
    }
    // On one core a deadline of 50 ms is nearly out of reach; on two it is not.
    let [alone, joined] =
        [Ablation::Deadlines, Ablation::Joining].map(|ablation| run(ablation, 0.3, mixed).0);
    assert!(
        joined.share(joined.refused) + 0.1 < alone.share(alone.refused),
        "{joined:?} {alone:?}"
    );
}
