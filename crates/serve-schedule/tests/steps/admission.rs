//! Who is let in: predicted ends, others' deadlines, narrower work, memory, idle cores.

use super::*;

#[test]
fn what_would_be_late_is_refused_with_the_time_it_would_have_taken() {
    let mut bench = Bench::new(plain(1));
    assert_eq!(bench.arrive(1, tokens(50), 100), [start(0, &[1], 1)]);
    assert_eq!(bench.arrive(2, tokens(50), 100), []);
    let (finish, retry_after) = refused(&bench.arrive(3, tokens(50), 100), 3, Refusal::Late);
    assert_eq!(finish, 150_000);
    assert!((40_000..=60_000).contains(&retry_after), "{retry_after}");
    // The same id waits as long; another one another time.
    assert_eq!(refused(&bench.arrive(3, tokens(50), 100), 3, Refusal::Late).1, retry_after);
    assert_ne!(refused(&bench.arrive(4, tokens(50), 100), 4, Refusal::Late).1, retry_after);
    assert_eq!(bench.at(50).ended(0, 50), [start(0, &[2], 1)]);
}

#[test]
fn who_would_make_an_admitted_one_late_is_refused() {
    let mut bench = Bench::new(plain(1));
    bench.arrive(1, tokens(50), 1000);
    assert_eq!(bench.arrive(2, tokens(40), 100), []);
    // Before job 2, and ends in time itself: but job 2 would end at 110.
    let (finish, _) = refused(&bench.arrive(3, tokens(20), 90), 3, Refusal::Late);
    assert_eq!(finish, 100_000, "its own 90 and the 10 that job 2 would be late");
    assert_eq!(bench.arrive(4, tokens(10), 90), []);
    assert_eq!(bench.at(50).ended(0, 50), [start(0, &[4], 1)]);
}

#[test]
fn one_that_is_late_anyway_keeps_nobody_out() {
    let mut bench = Bench::new(plain(1));
    bench.arrive(1, tokens(50), 1000);
    assert_eq!(bench.arrive(2, tokens(50), 100), []);
    // Job 1 overruns: job 2 cannot be in time any more, whatever comes.
    assert_eq!(bench.at(70).arrive(3, tokens(5), 20), []);
    // When its turn comes it is dropped.
    assert_eq!(bench.at(71).ended(0, 71), [start(0, &[3], 1)]);
    assert_eq!(bench.at(76).ended(0, 5), [stop(2, StopReason::Deadline)]);
}

#[test]
fn less_work_is_done_where_the_work_wanted_would_be_late() {
    let mut bench = Bench::new(plain(1));
    bench.arrive(1, tokens(50), 1000);
    let narrower = Some(tokens(20));
    assert_eq!(bench.arrive_as(2, Class::Interactive, tokens(60), narrower, 100), []);
    let narrowed = Jobs::from_iter([BatchJob { job: 2, narrowed: true }]);
    let expected = Action::Start { stream: 0, jobs: narrowed, threads: 1 };
    assert_eq!(bench.at(50).ended(0, 50), [expected]);
}

#[test]
fn memory_is_waited_for_and_never_overtaken() {
    let mut bench = Bench::new(Config { memory: 10, ..plain(2) });
    let with = |prompt_tokens, bytes| Shape { prompt_tokens, bytes, ..Shape::default() };
    refused(&bench.arrive(1, with(1, 11), 1000), 1, Refusal::Memory);
    assert_eq!(bench.arrive(2, with(50, 8), 1000), [start(0, &[2], 1)]);
    // A stream is idle, but 8 of 10 bytes are taken until 50.
    let (finish, _) = refused(&bench.arrive(3, with(10, 3), 55), 3, Refusal::Late);
    assert_eq!(finish, 60_000);
    assert_eq!(bench.arrive(4, with(10, 3), 60), []);
    assert_eq!(bench.arrive(5, with(10, 1), 70), []);
    assert_eq!(bench.at(50).ended(0, 50), [start(0, &[4], 1), start(1, &[5], 1)]);
}

#[test]
fn idle_streams_lend_their_threads_to_a_job_behind_which_nobody_waits() {
    let mut bench = Bench::new(Config { join_idle: true, ..plain(2) });
    // 100 ms of work on two threads at 1.905 times the speed: 52.5.
    refused(&bench.arrive(1, tokens(100), 52), 1, Refusal::Late);
    assert_eq!(bench.arrive(2, tokens(100), 53), [start(0, &[2], 2)]);
    assert_eq!(bench.scheduler.status().busy, 2);
    // The lent stream gets no work until then.
    assert_eq!(bench.at(10).arrive(3, tokens(10), 60), []);
    assert_eq!(bench.at(10).arrive(4, tokens(10), 60), []);
    assert_eq!(bench.at(53).ended(0, 53), [start(0, &[3], 1), start(1, &[4], 1)]);
}

#[test]
fn bulk_runs_when_nobody_waits_and_on_its_share() {
    let mut bench = Bench::new(Config { bulk_share: 0.5, ..plain(2) });
    let bulk = |bench: &mut Bench, id| bench.arrive_as(id, Class::Bulk, tokens(50), None, 10_000);
    assert_eq!(bulk(&mut bench, 1), [start(0, &[1], 1)]);
    // The idle stream is not for it: it would end at 100.
    let late = bench.arrive_as(9, Class::Bulk, tokens(50), None, 60);
    assert_eq!(refused(&late, 9, Refusal::Late).0, 100_000);
    assert_eq!(bulk(&mut bench, 2), []);
    assert_eq!(bench.arrive(3, tokens(50), 1000), [start(1, &[3], 1)]);
    assert_eq!(bench.arrive(4, tokens(50), 1000), []);
    assert_eq!(bench.at(50).ended(0, 50), [start(0, &[4], 1)]);
    assert_eq!(bench.ended(1, 50), [start(1, &[2], 1)]);
    // Nothing at all of the streams is still one of them.
    let mut bench = Bench::new(Config { bulk_share: 0.0, ..plain(1) });
    assert_eq!(bulk(&mut bench, 1), [start(0, &[1], 1)]);
}
