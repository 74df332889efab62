//! Virtual clock: what can be worked out by hand, runs that repeat, and recordings.

use palmette_serve_schedule::simulation::{
    Ablation, Arrival, Bursts, Fifo, Machine, Service, Traffic, simulate,
};
use palmette_serve_schedule::{Class, Config, CostModel, Micros, Record, Scheduler, Shape};

use super::COSTS;

fn arrival(at_ms: u64, prompt_tokens: u32, within_ms: u64) -> Arrival {
    Arrival {
        at: Micros(at_ms * 1000),
        within: Micros(within_ms * 1000),
        class: Class::Interactive,
        shape: Shape { prompt_tokens, ..Shape::default() },
        noise: 1.0,
    }
}

const BY_TOKEN: CostModel = CostModel { c0: 0.0, c1: 1000.0, c2: 0.0, r0: 0.0, r1: 0.0, r2: 0.0 };

#[test]
fn threads_beyond_the_cores_share_them() {
    let arrivals = [arrival(0, 10, 100), arrival(5, 10, 100), arrival(50, 4, 100)];
    let times = |streams| {
        let machine = Machine { cores: 1, service: Service::Cost(BY_TOKEN) };
        let mut ended = Vec::new();
        let mut fifo = Fifo::new(streams, streams, false);
        let outcome = simulate(&arrivals, &machine, &mut fifo, &mut |now, event, _| {
            if matches!(event, palmette_serve_schedule::Event::Ended { .. }) {
                ended.push(now.0);
            }
        });
        assert_eq!((outcome.offered, outcome.in_time), (3, 3));
        // 24 ms of work in 54.
        assert!((outcome.utilisation - 24.0 / 54.0).abs() < 1e-3, "{outcome:?}");
        ended
    };
    // One after the other.
    assert_eq!(times(1), [10_000, 20_000, 54_000]);
    // 5 ms alone, then both at half the speed: 5 more of the first take 10, and so the second has 5
    // left.
    assert_eq!(times(2), [15_000, 20_000, 54_000]);
}

#[test]
fn work_that_is_stopped_ends_with_its_stage_and_is_wasted() {
    // The noise makes it late: stopped at 25, when the second of three stages (10, 20, 30) has 5 ms
    // to go… at twice the time.
    let costs = CostModel { r0: 10_000.0, ..BY_TOKEN };
    let shape = Shape { prompt_tokens: 10, passes: 2, ..Shape::default() };
    let late = Arrival { shape, noise: 2.0, ..arrival(0, 0, 31) };
    let machine = Machine { cores: 1, service: Service::Cost(costs) };
    let config =
        Config { margin: palmette_serve_schedule::Margin::Fixed(1.0), ..Config::default() };
    let mut scheduler = Scheduler::new(config, vec![costs]);
    let mut last = Micros(0);
    let outcome = simulate(&[late], &machine, &mut scheduler, &mut |now, _, _| last = now);
    assert_eq!((outcome.late, outcome.in_time), (1, 0));
    assert_eq!(last, Micros(40_000));
    assert_eq!(outcome.wasted, 1.0);
}

#[test]
fn equal_seeds_give_equal_runs_and_recordings_replay() {
    let machine = Machine { cores: 2, service: Service::Cost(COSTS) };
    let whole = Config { streams: 2, threads: 2, ..Config::default() };
    let traffic = Traffic {
        rate: 50.0,
        requests: 800,
        bursts: Some(Bursts::default()),
        ..Traffic::default()
    };
    let run = |seed| {
        let arrivals = Traffic { seed, ..traffic.clone() }.arrivals();
        let mut policy = Ablation::Joining.policy(whole, COSTS);
        let mut log = Vec::new();
        let outcome = simulate(&arrivals, &machine, &mut *policy, &mut |now, event, actions| {
            log.push(Record::Event { now, event: event.clone() });
            log.push(Record::Actions { actions: actions.to_vec() });
        });
        (outcome, log)
    };
    let (first, log) = run(7);
    assert_eq!(run(7).0, first);
    assert_ne!(run(8).0, first);
    let mut scheduler = Scheduler::new(whole, vec![COSTS]);
    for pair in log.chunks(2) {
        let [Record::Event { now, event }, Record::Actions { actions }] = pair else { panic!() };
        let mut again = Vec::new();
        scheduler.step(*now, event.clone(), &mut again);
        assert_eq!(&again, actions);
    }
}

#[test]
fn traffic_is_as_it_was_asked_for() {
    let traffic = Traffic {
        rate: 100.0,
        requests: 60_000,
        bursts: Some(Bursts::default()),
        ..Traffic::default()
    };
    let arrivals = traffic.arrivals();
    let seconds = arrivals.last().unwrap().at.0 as f64 / 1e6;
    assert!((0.97..1.03).contains(&(60_000.0 / seconds / 100.0)), "{seconds}");
    let in_bursts = arrivals.iter().filter(|arrival| arrival.at.0 % 10_000_000 < 2_000_000).count();
    assert!((0.48..0.52).contains(&(in_bursts as f64 / 60_000.0)), "{in_bursts}");
    let mut tokens: Vec<_> = arrivals.iter().map(|arrival| arrival.shape.prompt_tokens).collect();
    tokens.sort_unstable();
    assert!(tokens[0] >= 8 && *tokens.last().unwrap() <= 512);
    assert!((13..=16).contains(&tokens[30_000]), "{}", tokens[30_000]);
    assert!((240..=310).contains(&tokens[59_400]), "{}", tokens[59_400]);
    let mean = arrivals.iter().map(|arrival| arrival.noise).sum::<f64>() / 60_000.0;
    assert!((0.99..1.01).contains(&mean), "{mean}");
}
