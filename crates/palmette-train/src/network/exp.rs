//! An exponential that the compiler can vectorise.

/// Below it the result would be subnormal; the smallest normal number is returned instead.
const LOWEST: f32 = -87.3;
/// Above it the result would overflow; about 2.4e38 is returned instead.
const HIGHEST: f32 = 88.37;
/// 1.5 · 2²³: adding it rounds a small f32 to the nearest integer, left in the low mantissa bits.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has few bits, so that its product with an integer is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// e to the power `x`, within 2e-7 of the exact value, relatively, on [-87.3, 88.37].
///
/// Arguments outside are moved to the nearest end, so nothing overflows and nothing is 0; NaN stays
/// NaN. There is no branch and no table: a loop over a slice becomes vector instructions.
#[inline(always)]
pub fn fast_exp(x: f32) -> f32 {
    // Comparisons rather than `clamp`, whose treatment of NaN costs instructions; these keep NaN.
    let x = if x < LOWEST { LOWEST } else { x };
    let x = if x > HIGHEST { HIGHEST } else { x };
    // x = n · ln 2 + r with |r| ≤ ln 2 / 2, and e^x = 2^n · e^r.
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor's terms up to r⁷: what is left out is below 6e-9 on this interval.
    let tail = 1.0 / 5040.0;
    let tail = tail * r + 1.0 / 720.0;
    let tail = tail * r + 1.0 / 120.0;
    let tail = tail * r + 1.0 / 24.0;
    let tail = tail * r + 1.0 / 6.0;
    let tail = tail * r + 0.5;
    let power = (tail * r * r + r) + 1.0;
    // The low bits of `shifted` hold n; moved to the exponent field they are 2^n, biased by 127.
    let scale = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    power * scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_close_to_the_exact_exponential() {
        let mut worst = 0.0_f64;
        for i in 0..200_000 {
            let x = -87.3 + 175.6 * (i as f32 / 200_000.0);
            let exact = f64::from(x).exp();
            worst = worst.max(((f64::from(fast_exp(x)) - exact) / exact).abs());
        }
        assert!(worst < 2e-7, "relative error {worst:e}");
        assert_eq!(fast_exp(0.0), 1.0);
    }

    #[test]
    fn the_ends_saturate_and_nan_stays() {
        assert!(fast_exp(f32::NEG_INFINITY) < 1.3e-38);
        assert!(fast_exp(-1e30) > 0.0);
        assert!(fast_exp(f32::INFINITY).is_finite());
        assert!(fast_exp(f32::NAN).is_nan());
    }
}
