//! Random sequences of what clients, workers and operators do.

use palmette_serve_schedule::{Class, Config, CostModel, Margin, Micros, Order, Shape};
use proptest::prelude::*;

/// Something done a while after the one before.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) gap: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Arrive {
        class: Class,
        shape: Shape,
        narrower: Option<Shape>,
        /// Time to the deadline, in percent of the time that the job takes by itself.
        slack: u64,
        /// Actual over predicted time, in percent, where costs are not exact.
        takes: u64,
    },
    /// Cancels the job that came so many before the last.
    Cancel(u64),
    /// A stage ends on a stream.
    Phase(u32),
    Drain,
    Resize(u32),
    /// The end of a stream that may run nothing.
    Stray(u32),
}

/// Whole numbers, so that predictions are exact.
pub(crate) const COSTS: CostModel =
    CostModel { c0: 500.0, c1: 150.0, c2: 0.0, r0: 300.0, r1: 30.0, r2: 0.0 };

fn shape() -> impl Strategy<Value = Shape> {
    (0..2u8, 1..400u32, 0..800u32, 1..4u32, 1..200u32, 0..40u64).prop_map(
        |(mode, prompt_tokens, known, passes, widest, bytes)| Shape {
            model: 0,
            mode,
            prompt_tokens,
            // Of half of them nothing.
            known_tokens: known.saturating_sub(400).min(prompt_tokens - 1),
            passes,
            rows: widest * passes,
            widest,
            bytes,
        },
    )
}

fn arrive() -> impl Strategy<Value = What> {
    let class = prop_oneof![6 => Just(Class::Interactive), 1 => Just(Class::Bulk)];
    let slack = prop_oneof![4 => 50..400u64, 2 => 400..1500u64];
    (class, shape(), any::<bool>(), slack, 40..250u64).prop_map(
        |(class, shape, narrows, slack, takes)| {
            let widest = shape.widest.div_ceil(4);
            let narrower =
                Shape { widest, rows: widest * shape.passes, bytes: shape.bytes / 2, ..shape };
            What::Arrive { class, shape, narrower: narrows.then_some(narrower), slack, takes }
        },
    )
}

fn gap() -> impl Strategy<Value = u64> {
    // Bursts at one moment, and pauses in which everything ends.
    prop_oneof![3 => Just(0), 6 => 0..20_000u64, 2 => 0..80_000u64, 1 => 0..400_000u64]
}

/// Arrivals and nothing else.
pub(crate) fn arrivals() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((gap(), arrive()).prop_map(|(gap, what)| Op { gap, what }), 1..60)
}

/// Arrivals, and clients that go away.
pub(crate) fn with_cancels() -> impl Strategy<Value = Vec<Op>> {
    let what = prop_oneof![5 => arrive(), 1 => (0..6u64).prop_map(What::Cancel)];
    prop::collection::vec((gap(), what).prop_map(|(gap, what)| Op { gap, what }), 1..60)
}

/// Everything.
pub(crate) fn all() -> impl Strategy<Value = Vec<Op>> {
    let what = prop_oneof![
        40 => arrive(),
        6 => (0..6u64).prop_map(What::Cancel),
        6 => (0..6u32).prop_map(What::Phase),
        1 => Just(What::Drain),
        3 => (0..7u32).prop_map(What::Resize),
        2 => (0..9u32).prop_map(What::Stray),
    ];
    prop::collection::vec((gap(), what).prop_map(|(gap, what)| Op { gap, what }), 1..60)
}

/// Streams of one thread or more, one job each.
pub(crate) fn processor() -> impl Strategy<Value = Config> {
    (1..5u32, 1..3u32, any::<bool>(), any::<bool>(), 40..120u64, 0..10u32).prop_map(
        |(streams, own, join_idle, by_deadline, memory, share)| Config {
            streams,
            threads: streams * own,
            join_idle,
            memory,
            order: if by_deadline { Order::Deadline } else { Order::Arrival },
            bulk_share: share as f32 / 9.0,
            margin: Margin::Fixed(1.0),
            ..Config::default()
        },
    )
}

/// Batches, with budgets and a quota.
pub(crate) fn device() -> impl Strategy<Value = Config> {
    let quota = prop_oneof![Just(0), Just(5_000), Just(20_000)];
    (processor(), 2..9u32, 400..1500u32, 200..900u32, quota).prop_map(
        |(config, batch_jobs, batch_tokens, batch_rows, quota)| Config {
            batch_jobs,
            batch_tokens,
            batch_rows,
            quota: Micros(quota),
            ..config
        },
    )
}
