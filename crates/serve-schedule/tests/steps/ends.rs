//! Ends: deadlines, clients that go away, drains, sizes.

use super::*;

#[test]
fn what_overruns_its_deadline_is_stopped_once() {
    let mut bench = Bench::new(plain(1));
    let arrived = Event::Arrive(Job {
        id: 1,
        class: Class::Interactive,
        arrived: Micros(0),
        deadline: Micros(60_000),
        shape: tokens(50),
        narrower: None,
    });
    assert_eq!(bench.all(arrived), [start(0, &[1], 1), Action::WakeAt(Micros(60_001))]);
    assert_eq!(bench.at(60).step(Event::Phase { stream: 0, job: 1, phase: 0 }), []);
    bench.now = Micros(60_001);
    assert_eq!(bench.all(Event::Wake), [stop(1, StopReason::Deadline)]);
    assert_eq!(bench.all(Event::Wake), []);
    assert_eq!(bench.all(Event::Cancel { job: 1 }), []);
    assert_eq!(bench.at(70).ended(0, 70), []);
    assert!(bench.scheduler.status().is_empty());
}

#[test]
fn clients_go_away_from_the_queue_and_from_streams() {
    let mut bench = Bench::new(plain(1));
    bench.arrive(1, tokens(50), 1000);
    bench.arrive(2, tokens(50), 1000);
    assert_eq!(bench.step(Event::Cancel { job: 2 }), [stop(2, StopReason::Cancelled)]);
    assert_eq!(bench.step(Event::Cancel { job: 2 }), []);
    assert_eq!(bench.step(Event::Cancel { job: 1 }), [stop(1, StopReason::Cancelled)]);
    assert_eq!(bench.at(10).ended(0, 10), []);
    assert!(bench.scheduler.status().is_empty());
}

#[test]
fn a_drain_ends_what_was_admitted_and_a_second_one_stops_it() {
    let mut bench = Bench::new(plain(1));
    for id in 1..4 {
        bench.arrive(id, tokens(50), 1000);
    }
    assert_eq!(bench.step(Event::Drain), []);
    refused(&bench.arrive(9, tokens(1), 1000), 9, Refusal::Draining);
    assert_eq!(bench.at(50).ended(0, 50), [start(0, &[2], 1)]);
    let second = bench.step(Event::Drain);
    assert_eq!(second, [stop(3, StopReason::Drained), stop(2, StopReason::Drained)]);
    assert!(!bench.scheduler.status().is_empty() && bench.scheduler.status().draining);
    assert_eq!(bench.at(55).ended(0, 5), []);
    assert!(bench.scheduler.status().is_empty());
}

#[test]
fn fewer_streams_end_what_they_run() {
    let mut bench = Bench::new(plain(3));
    for id in 1..6 {
        bench.arrive(id, tokens(50), 1000);
    }
    assert_eq!(bench.step(Event::Resize { streams: 1 }), []);
    assert_eq!(bench.at(50).ended(2, 50), []);
    assert_eq!(bench.ended(0, 50), [start(0, &[4], 1)]);
    assert_eq!(bench.ended(1, 50), []);
    assert_eq!(bench.step(Event::Resize { streams: 2 }), [start(1, &[5], 1)]);
}
