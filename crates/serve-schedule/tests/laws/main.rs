//! Laws of the scheduler over random sequences of events.
//!
//! `PALMETTE_SCHEDULE_CASES=100000 cargo test -p palmette-serve-schedule --test laws` runs so many
//! cases of each law.

mod exact;
mod infeasible;
mod ops;
mod safety;
mod world;

/// Cases of each law.
fn cases() -> proptest::test_runner::Config {
    let cases = std::env::var("PALMETTE_SCHEDULE_CASES").ok().and_then(|cases| cases.parse().ok());
    proptest::test_runner::Config {
        cases: cases.unwrap_or(1000),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..proptest::test_runner::Config::default()
    }
}
