//! Batches: budgets, the quota, and wake-ups.

use super::*;

fn device(quota_ms: u64) -> Config {
    Config { batch_jobs: 3, batch_tokens: 100, quota: Micros(quota_ms * 1000), ..plain(1) }
}

#[test]
fn what_waits_starts_together_within_the_budgets() {
    let mut bench = Bench::new(device(0));
    assert_eq!(bench.arrive(1, tokens(10), 1000), [start(0, &[1], 1)]);
    for (id, count) in [(2, 40), (3, 60), (4, 1), (5, 1), (6, 1), (7, 1)] {
        assert_eq!(bench.arrive(id, tokens(count), 1000), []);
    }
    assert_eq!(bench.at(10).ended(0, 10), [start(0, &[2, 3], 1)], "100 tokens");
    assert_eq!(bench.at(110).ended(0, 100), [start(0, &[4, 5, 6], 1)], "3 jobs");
    assert_eq!(bench.at(113).ended(0, 3), [start(0, &[7], 1)]);
    refused(&bench.arrive(8, tokens(101), 1000), 8, Refusal::Memory);
}

#[test]
fn kinds_of_search_do_not_mix_and_do_not_overtake() {
    let mut bench = Bench::new(device(0));
    bench.arrive(1, tokens(10), 1000);
    for (id, mode) in [(2, 0), (3, 1), (4, 0)] {
        bench.arrive(id, Shape { mode, ..tokens(5) }, 1000);
    }
    assert_eq!(bench.at(10).ended(0, 10), [start(0, &[2], 1)]);
    assert_eq!(bench.at(15).ended(0, 5), [start(0, &[3], 1)]);
    assert_eq!(bench.at(20).ended(0, 5), [start(0, &[4], 1)]);
}

#[test]
fn a_batch_that_may_grow_waits_for_its_quota() {
    let mut bench = Bench::new(device(20));
    let deadline = Micros(1_000_000);
    let job = |id, arrived| Job {
        id,
        class: Class::Interactive,
        arrived,
        deadline,
        shape: tokens(5),
        narrower: None,
    };
    let first = bench.all(Event::Arrive(job(1, Micros(0))));
    assert_eq!(first, [Action::WakeAt(Micros(20_000))]);
    assert_eq!(bench.at(8).step(Event::Arrive(job(2, bench_time(8)))), []);
    assert_eq!(bench.at(20).step(Event::Wake), [start(0, &[1, 2], 1)]);
    bench.at(30).ended(0, 10);
    // A full one does not wait.
    for id in 3..5 {
        assert_eq!(bench.step(Event::Arrive(job(id, bench_time(30)))), []);
    }
    assert_eq!(bench.step(Event::Arrive(job(5, bench_time(30)))), [start(0, &[3, 4, 5], 1)]);
}

fn bench_time(ms: u64) -> Micros {
    Micros(ms * 1000)
}

#[test]
fn a_batch_does_not_wait_itself_late() {
    let mut bench = Bench::new(device(20));
    let first = Event::Arrive(Job {
        id: 1,
        class: Class::Interactive,
        arrived: Micros(0),
        deadline: Micros(12_000),
        shape: tokens(5),
        narrower: None,
    });
    assert_eq!(bench.all(first), [Action::WakeAt(Micros(7000))]);
    assert_eq!(bench.at(7).step(Event::Wake), [start(0, &[1], 1)]);
}
