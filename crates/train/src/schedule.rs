//! The learning rate over time: a linear warm-up, then a cosine down to a floor.

use crate::options::TrainOptions;

/// The learning rate of step `step`, counted from 0, of `total`; past the end, the floor.
pub(crate) fn learning_rate(options: &TrainOptions, step: u64, total: u64) -> f64 {
    let peak = f64::from(options.learning_rate);
    let floor = peak * f64::from(options.final_learning_rate_share);
    let warmup = options.warmup_steps;
    if step < warmup {
        return peak * (step + 1) as f64 / warmup as f64;
    }
    let last = total.saturating_sub(1).max(warmup + 1);
    let progress = ((step - warmup) as f64 / (last - warmup) as f64).min(1.0);
    floor + (peak - floor) * 0.5 * (1.0 + (std::f64::consts::PI * progress).cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_falls_and_stays() {
        let options = TrainOptions {
            learning_rate: 1.0,
            final_learning_rate_share: 0.25,
            warmup_steps: 4,
            ..TrainOptions::default()
        };
        let rate = |step| learning_rate(&options, step, 101);
        assert_eq!([rate(0), rate(1), rate(3), rate(4)], [0.25, 0.5, 1.0, 1.0]);
        assert!((rate(52) - 0.625).abs() < 1e-9);
        assert!((rate(100) - 0.25).abs() < 1e-9);
        assert_eq!(rate(1_000), rate(100));
        assert!((4..100).all(|step| rate(step + 1) < rate(step)));
    }

    #[test]
    fn a_warm_up_longer_than_the_run_is_cut_off_by_its_end() {
        let options = TrainOptions { warmup_steps: 10, ..TrainOptions::default() };
        assert!(learning_rate(&options, 2, 3) < learning_rate(&options, 9, 3));
        let without = TrainOptions { warmup_steps: 0, ..TrainOptions::default() };
        assert!(learning_rate(&without, 0, 1).is_finite());
    }
}
