//! Batches on an accelerator: they raise goodput, waiting for them does not.

use palmette_serve_schedule::simulation::{Machine, Outcome, Service, Traffic, simulate};
use palmette_serve_schedule::{Config, Micros, Scheduler};

fn run(rate: f64, batch_jobs: u32, quota_ms: u64, admission: bool) -> Outcome {
    let machine = Machine { cores: 1, service: Service::accelerator() };
    let arrivals = Traffic { rate, noise: 0.0, requests: 5000, ..Traffic::default() }.arrivals();
    let costs = machine.service.costs(&arrivals[0].shape);
    let quota = Micros(quota_ms * 1000);
    let config = Config { batch_jobs, quota, admission, ..Config::default() };
    let mut scheduler = Scheduler::new(config, vec![costs]);
    simulate(&arrivals, &machine, &mut scheduler, &mut |_, _, _| {})
}

#[test]
fn batches_raise_the_rate_that_is_answered_in_time() {
    let [alone, batched] = [1, 8].map(|batch_jobs| run(66.0, batch_jobs, 0, false));
    assert!(alone.share(alone.in_time) < 0.95, "{alone:?}");
    assert!(batched.share(batched.in_time) > 0.995 && batched.p99_ms < 200.0, "{batched:?}");
    let [alone, batched] = [1, 8].map(|batch_jobs| run(30.0, batch_jobs, 0, true));
    assert!(batched.p99_ms < 0.9 * alone.p99_ms, "{batched:?} {alone:?}");
}

#[test]
fn waiting_for_a_batch_helps_nobody() {
    let [none, some, more] = [0, 5, 20].map(|quota_ms| run(30.0, 8, quota_ms, true));
    assert!(none.p50_ms < some.p50_ms && some.p50_ms < more.p50_ms);
    assert!(none.p99_ms < some.p99_ms && some.p99_ms < more.p99_ms);
    let [none, some, more] = [0, 5, 20].map(|quota_ms| run(66.0, 8, quota_ms, true));
    for waited in [some, more] {
        assert!(waited.in_time <= none.in_time + 25, "{waited:?} {none:?}");
    }
}

#[test]
fn far_above_capacity_admission_keeps_the_device_useful() {
    let [admitted, dropped] = [true, false].map(|admission| run(170.0, 8, 0, admission));
    assert!((72.0..90.0).contains(&admitted.goodput), "{admitted:?}");
    assert!(admitted.p99_ms <= 200.0 && admitted.late + admitted.dropped < 10, "{admitted:?}");
    assert!(dropped.goodput < 0.85 * admitted.goodput, "{dropped:?}");
}
