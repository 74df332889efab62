//! A branch-free `exp` that compilers vectorise.

/// `e^x` to within 2 units in the last place; 0 below −87.3, +∞ above 88.7, NaN for NaN.
///
/// Range reduction `x = n·ln 2 + r` with `|r| ≤ ln 2 / 2`, a degree-6 polynomial for `e^r` (the
/// Cephes scheme), and n added to the exponent bits of `e^r`. The same bits on every platform,
/// which the standard library does not promise.
///
/// PERF: called in loops over logits, attention scores and gates, where the C library's `expf` is a
/// call per element that stops vectorisation. Per value of a loop over 4096, on one baseline x86-64
/// core (4 lanes): 1.08 ns; 1.26 with 2^n as two factors instead of an addition to the exponent;
/// 1.11 with the upper end as a select; 0.94 without any ends, clamped to where 2^n is one factor.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    const LOG2_E: f32 = std::f32::consts::LOG2_E;
    // ln 2 in two parts, the first with few bits, so that n·LN2_HIGH is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    /// Adding and subtracting 1.5·2²³ rounds to the nearest whole number.
    const ROUND: f32 = 12_582_912.0;
    const LOWEST: f32 = -87.3;
    const HIGHEST: f32 = 88.7;

    // `max`/`min` would turn NaN into a bound; these comparisons keep it.
    let clamped = if x < LOWEST { LOWEST } else { x };
    let clamped = if clamped > HIGHEST { HIGHEST } else { clamped };
    let shifted = clamped * LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * LN2_HIGH - n * LN2_LOW;
    let poly = ((((1.987_569_1e-4 * r + 1.398_2e-3) * r + 8.333_452e-3) * r + 4.166_579_6e-2) * r
        + 1.666_666_5e-1)
        * r
        + 0.5;
    let e_r = poly * r * r + r + 1.0;
    // The low mantissa bits of `shifted` hold n; the shift drops what lies above. The sum stays an
    // ordinary number: at n = 128, r is negative and e^r below 1; at n = −126, e^r is above 1.
    let value = f32::from_bits(e_r.to_bits().wrapping_add(shifted.to_bits() << 23));
    let value = if x < LOWEST { 0.0 } else { value };
    // Adds +∞ above the range, and NaN to NaN, whose bits the addition above may have changed.
    value + if x <= HIGHEST { 0.0 } else { x * f32::MAX }
}

#[cfg(test)]
mod tests {
    use super::exp;

    #[test]
    fn within_two_units_in_the_last_place_of_f64() {
        let mut worst = 0_i64;
        for i in -873_000..=887_000 {
            let x = i as f32 / 10_000.0;
            let want = f64::from(x).exp() as f32;
            let distance = i64::from(exp(x).to_bits()) - i64::from(want.to_bits());
            worst = worst.max(distance.abs());
        }
        assert!(worst <= 2, "{worst} units in the last place");
    }

    #[test]
    fn edges() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-87.31), 0.0);
        assert_eq!(exp(-88.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(88.7).is_finite());
        assert_eq!(exp(88.71), f32::INFINITY);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
    }

    #[test]
    fn not_a_number_stays_so_whatever_its_bits() {
        for payload in [0, 1, 0xab, 0x1ff, 0x3f_ffff] {
            for sign in [0, 1 << 31] {
                assert!(exp(f32::from_bits(sign | 0x7fc0_0000 | payload)).is_nan(), "{payload:x}");
            }
        }
    }
}
