//! Fitting the cost model: what made the times comes back.

use palmette_serve_schedule::{CostModel, Micros, Shape, Work};
use proptest::prelude::*;

/// Twelve shapes as they are timed at a start.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for prompt_tokens in [8, 64, 256, 512] {
        for (passes, widest) in [(2, 16), (2, 128), (3, 64)] {
            let rows = passes * widest;
            shapes.push(Shape { prompt_tokens, passes, rows, widest, ..Shape::default() });
        }
    }
    shapes
}

fn timed(costs: &CostModel, noise: impl Fn(usize) -> f64) -> Vec<(Work, Micros)> {
    let time = |(number, shape): (usize, Shape)| {
        (Work::of(&shape), Micros((costs.predict(&shape) * noise(number)).round() as u64))
    };
    shapes().into_iter().enumerate().map(time).collect()
}

/// What is known of a prompt is not computed, and looked at all the same: a prompt in two parts
/// costs what it does at once.
#[test]
fn known_tokens_cost_what_rows_look_at() {
    let costs = CostModel { c0: 0.0, c1: 3.0, c2: 0.25, r0: 900.0, r1: 2.0, r2: 0.5 };
    let whole = Shape { prompt_tokens: 512, passes: 2, rows: 256, ..Shape::default() };
    let rest = Shape { known_tokens: 496, ..whole };
    let beginning = Shape { prompt_tokens: 496, ..Shape::default() };
    assert_eq!(costs.predict(&beginning) + costs.predict(&rest), costs.predict(&whole));
    assert_eq!(Work::of(&rest).tokens(), 16);
    let all = Shape { known_tokens: u32::MAX, ..whole };
    assert_eq!(costs.predict(&all), 900.0 * 2.0 + 2.0 * 256.0 + 0.5 * 256.0 * 512.0);
    // A record of a scheduler that knew of none says nothing of it.
    let mut record = serde_json::to_value(whole).unwrap();
    record.as_object_mut().unwrap().remove("known_tokens").unwrap();
    assert_eq!(serde_json::from_value::<Shape>(record).unwrap(), whole);
}

/// Batches tell a batch's own time from a request's.
#[test]
fn batches_are_measured_too() {
    let costs = CostModel { c0: 4000.0, c1: 3.0, r0: 900.0, r1: 2.0, ..CostModel::default() };
    let mut measured = timed(&costs, |_| 1.0);
    for jobs in [2, 4, 8] {
        let mut work = Work::default();
        (0..jobs).for_each(|_| work.add(&shapes()[7]));
        measured.push((work, Micros(costs.of(&work).round() as u64)));
    }
    let fitted = CostModel::fit(&measured);
    let mut work = Work::default();
    (0..6).for_each(|_| work.add(&shapes()[4]));
    let ratio = fitted.of(&work) / costs.of(&work);
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}: {fitted:?}");
}

proptest! {
    #[test]
    fn what_made_the_times_predicts_them(
        c in (0.0..5000.0, 0.0..500.0, 0.0..0.5, 0.0..5000.0, 50.0..300.0, 0.0..0.2),
    ) {
        let (c0, c1, c2, r0, r1, r2) = c;
        let costs = CostModel { c0, c1, c2, r0, r1, r2 };
        let fitted = CostModel::fit(&timed(&costs, |_| 1.0));
        for shape in shapes() {
            let [right, got] = [costs.predict(&shape), fitted.predict(&shape)];
            prop_assert!((got / right - 1.0).abs() < 1e-3, "{got} for {right}: {fitted:?}");
        }
        // Between and beyond what was timed.
        let shape = Shape { prompt_tokens: 800, passes: 2, rows: 400, widest: 200, ..Shape::default() };
        prop_assert!((fitted.predict(&shape) / costs.predict(&shape) - 1.0).abs() < 0.02);
    }

    #[test]
    fn whatever_was_measured_nothing_takes_less_than_no_time(
        times in prop::collection::vec(0..100_000u64, 0..12),
    ) {
        let measured: Vec<_> = shapes().iter().map(Work::of).zip(times.into_iter().map(Micros)).collect();
        let fitted = CostModel::fit(&measured);
        let CostModel { c0, c1, c2, r0, r1, r2 } = fitted;
        prop_assert!([c0, c1, c2, r0, r1, r2].iter().all(|&cost| cost >= 0.0 && cost.is_finite()));
    }
}

#[test]
fn noise_of_ten_percent_is_averaged() {
    let costs = CostModel { c0: 600.0, c1: 162.0, r1: 160.0, r2: 0.11, ..CostModel::default() };
    let fitted = CostModel::fit(&timed(&costs, |number| if number % 2 == 0 { 1.1 } else { 0.9 }));
    for shape in shapes() {
        let ratio = fitted.predict(&shape) / costs.predict(&shape);
        assert!((0.85..1.15).contains(&ratio), "{ratio}: {fitted:?}");
    }
}

#[test]
fn nothing_measured_and_one_shape_again_and_again() {
    assert_eq!(CostModel::fit(&[]), CostModel::default());
    assert_eq!(CostModel::fit(&[(Work::of(&Shape::default()), Micros(0))]), CostModel::default());
    let shape = shapes()[5];
    let work = Work::of(&shape);
    let fitted = CostModel::fit(&[(work, Micros(900)), (work, Micros(1100))]);
    // Relative errors of both count alike, so it is nearer to the shorter time.
    assert!((900.0..1100.0).contains(&fitted.predict(&shape)), "{fitted:?}");
}

#[test]
fn a_batch_shares_what_is_once_for_a_batch() {
    let costs = CostModel { c0: 1000.0, c1: 10.0, c2: 1.0, r0: 100.0, r1: 5.0, r2: 0.5 };
    let [short, long] = [(2, 10, 2), (4, 20, 3)].map(|(prompt_tokens, rows, passes)| Shape {
        prompt_tokens,
        rows,
        passes,
        ..Shape::default()
    });
    let mut work = Work::of(&short);
    work.add(&long);
    let by_hand =
        1000.0 + 10.0 * 6.0 + (4.0 + 16.0) + 100.0 * 3.0 + 5.0 * 30.0 + 0.5 * (20.0 + 80.0);
    assert_eq!(costs.of(&work), by_hand);
    let wild = CostModel { c0: -5.0, c1: f64::NAN, ..costs };
    assert_eq!(wild.predict(&short), 0.0);
}
