//! One end for every job, budgets, order, drains and replays, whatever happens and however wrong
//! the costs are.

use palmette_serve_schedule::{Config, Margin, Micros, Record, Scheduler};
use proptest::prelude::*;

use crate::cases;
use crate::ops::{Op, all, device, processor};
use crate::world::World;

fn check(config: Config, admission: bool, ops: &[Op]) {
    let config = Config { admission, margin: Margin::default(), ..config };
    let world = World::run(config, false, ops);
    replay(&world.log);
}

/// The log, written and read as JSON lines, gives the same actions byte for byte.
fn replay(log: &[Record]) {
    let lines: Vec<String> =
        log.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let mut scheduler = Scheduler::new(Config::default(), Vec::new());
    let mut actions = Vec::new();
    for line in &lines {
        match serde_json::from_str(line).unwrap() {
            Record::Begin { config, costs } => scheduler = Scheduler::new(config, costs),
            Record::Event { now, event } => {
                actions.clear();
                scheduler.step(now, event, &mut actions);
            }
            Record::Actions { .. } => {
                let again =
                    serde_json::to_string(&Record::Actions { actions: actions.clone() }).unwrap();
                assert_eq!(&again, line);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn laws_hold_on_a_processor(config in processor(), admission in prop::bool::weighted(0.8), ops in all()) {
        check(config, admission, &ops);
    }

    #[test]
    fn laws_hold_on_a_device(config in device(), admission in prop::bool::weighted(0.8), ops in all()) {
        check(config, admission, &ops);
    }
}

#[test]
fn times_that_never_come_and_streams_out_of_range_are_no_trouble() {
    use palmette_serve_schedule::{Class, Event, Job, Shape};
    let costs = palmette_serve_schedule::CostModel {
        c1: f64::INFINITY,
        c2: f64::NAN,
        ..Default::default()
    };
    let mut scheduler = Scheduler::new(
        Config {
            streams: 0,
            threads: 0,
            batch_jobs: 0,
            bulk_share: f32::NAN,
            margin: Margin::Fixed(f64::NAN),
            ..Config::default()
        },
        vec![costs],
    );
    let mut actions = Vec::new();
    let shape = Shape {
        model: 9,
        prompt_tokens: u32::MAX,
        rows: u32::MAX,
        bytes: u64::MAX,
        ..Shape::default()
    };
    for id in 0..4 {
        let class = if id % 2 == 0 { Class::Bulk } else { Class::Interactive };
        let model = if id < 2 { 9 } else { 0 };
        let shape = Shape { model, ..shape };
        let job = Job {
            id,
            class,
            arrived: Micros::NEVER,
            deadline: Micros::NEVER,
            shape,
            narrower: Some(shape),
        };
        scheduler.step(Micros(id), Event::Arrive(job), &mut actions);
    }
    scheduler.step(Micros(9), Event::Resize { streams: u32::MAX }, &mut actions);
    scheduler.step(
        Micros(9),
        Event::Ended { stream: u32::MAX, worked: Micros::NEVER },
        &mut actions,
    );
    scheduler.step(Micros(9), Event::Costs { model: u32::MAX, costs }, &mut actions);
    for stream in 0..4 {
        scheduler.step(Micros::NEVER, Event::Ended { stream, worked: Micros::NEVER }, &mut actions);
    }
    scheduler.step(Micros::NEVER, Event::Drain, &mut actions);
    scheduler.step(Micros::NEVER, Event::Drain, &mut actions);
    assert_eq!(scheduler.status().queued, 0);
}
