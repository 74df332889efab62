//! Predictions that follow what was measured.

use super::*;

#[test]
fn a_slower_machine_is_noticed_in_the_cell_that_is_slower() {
    let mut bench = Bench::new(plain(1));
    let mut time = 0;
    for id in 0..100 {
        bench.at(time).arrive(id, tokens(40), 10_000);
        time += 80;
        bench.at(time).ended(0, 80);
    }
    bench.arrive(200, tokens(10), 10_000);
    bench.arrive(201, tokens(40), 10_000);
    let twice = bench.scheduler.status().queued_work;
    assert!((79_000..=80_000).contains(&twice.0), "{twice:?}");
    bench.at(time + 10).ended(0, 10);
    // New costs are taken as they are.
    let costs = CostModel { c1: 2000.0, ..COSTS };
    bench.step(Event::Costs { model: 0, costs });
    bench.arrive(202, tokens(40), 10_000);
    assert_eq!(bench.scheduler.status().queued_work, Micros(80_000));
}

#[test]
fn the_margin_grows_with_the_noise() {
    let mut bench = Bench::new(Config { margin: Margin::default(), ..plain(1) });
    assert_eq!(bench.scheduler.status().margin, 1.25);
    let mut time = 0;
    for id in 0..400 {
        bench.at(time).arrive(id, tokens(40), 10_000);
        // Half of them take 20 ms, half 60: the mean is right.
        let took = 20 + 40 * (id % 2);
        time += took;
        bench.at(time).ended(0, took);
    }
    let margin = bench.scheduler.status().margin;
    assert!((1.4..1.65).contains(&margin), "{margin}");
}

#[test]
fn a_batch_that_was_stopped_early_teaches_nothing() {
    let mut bench = Bench::new(Config { margin: Margin::default(), ..plain(1) });
    for id in 0..50 {
        bench.arrive(id, tokens(40), 10_000);
        bench.step(Event::Cancel { job: id });
        bench.ended(0, 1);
    }
    assert_eq!(bench.scheduler.status().margin, 1.25);
    bench.arrive(100, tokens(1), 10_000);
    bench.arrive(101, tokens(40), 10_000);
    assert_eq!(bench.scheduler.status().queued_work, Micros(40_000));
}
