//! The normaliser of a logits row.

use pulp::{Arch, Simd, WithSimd};

use crate::exp::exp;

/// Sums kept side by side, so that the compiler can use vector registers; part of the definition,
/// since the order of additions decides the last bits.
const LANES: usize = 16;

/// `ln Σ exp(logits)`: subtracting it from a logit gives that token's log-probability.
///
/// NaN if any logit is NaN or all are −∞ or there are none, +∞ or NaN if any is +∞; otherwise
/// finite. Cost: two passes over the row. The result is a function of the row alone.
pub fn log_sum_exp(logits: &[f32]) -> f32 {
    max_and_log_sum_exp(logits).1
}

/// The largest of the logits, −∞ if there are none, and their [`log_sum_exp`]. NaN may be passed
/// over for the former.
pub(crate) fn max_and_log_sum_exp(logits: &[f32]) -> (f32, f32) {
    Arch::new().dispatch(MaxAndLogSumExp(logits))
}

struct MaxAndLogSumExp<'a>(&'a [f32]);

impl WithSimd for MaxAndLogSumExp<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> (f32, f32) {
        over_lanes(self.0)
    }
}

/// Compiled for the vectors that the processor has; the bits are the same for all.
#[inline(always)]
fn over_lanes(logits: &[f32]) -> (f32, f32) {
    let mut maxima = [f32::NEG_INFINITY; LANES];
    let chunks = logits.chunks_exact(LANES);
    for chunk in chunks.clone() {
        for (max, &logit) in maxima.iter_mut().zip(chunk) {
            // NaN compares false and is caught by the sum below.
            *max = if logit > *max { logit } else { *max };
        }
    }
    let tail = chunks.remainder();
    let max = maxima.iter().chain(tail).fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });

    let mut sums = [0.0_f32; LANES];
    for chunk in chunks {
        for (sum, &logit) in sums.iter_mut().zip(chunk) {
            *sum += exp(logit - max);
        }
    }
    let tail_sum: f32 = tail.iter().map(|&logit| exp(logit - max)).sum();
    let sum: f32 = sums.iter().sum::<f32>() + tail_sum;
    (max, max + sum.ln())
}

#[cfg(test)]
mod tests {
    use super::log_sum_exp;

    fn reference(logits: &[f32]) -> f64 {
        let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|&x| f64::from(x - max).exp()).sum();
        f64::from(max) + sum.ln()
    }

    #[test]
    fn equals_the_definition() {
        for len in [1, 2, 15, 16, 17, 97, 1026] {
            let logits: Vec<f32> =
                (0..len).map(|i| ((i * 7919 % 613) as f32 / 613.0 - 0.4) * 20.0).collect();
            let (got, want) = (f64::from(log_sum_exp(&logits)), reference(&logits));
            assert!((got - want).abs() < 2e-6 * want.abs().max(1.0), "{len}: {got} {want}");
        }
    }

    #[test]
    fn tokens_of_probability_zero_are_legal_and_bad_rows_are_not_finite() {
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY, 3.0]), 3.0);
        assert!(log_sum_exp(&[f32::NEG_INFINITY; 40]).is_nan());
        for len in [3, 40] {
            for bad in [f32::NAN, f32::INFINITY] {
                let mut row = vec![0.5; len];
                row[len / 2] = bad;
                assert!(!log_sum_exp(&row).is_finite(), "{bad} in {len}");
            }
        }
    }
}
