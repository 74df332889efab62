//! Arithmetic: steps of the matrix units against the published formula, exponentials and logarithms.

use palmette_cuda::Architecture;
use palmette_cuda_emulator::{exp2, log, step};

use crate::support::{Random, device, to_f64};

/// The formula with integers as wide as needed: everything in units of 2^-400, each part cut to a
/// multiple of the unit that the largest exponent gives.
pub(crate) fn published(sum: f32, a: &[u16], b: &[u16], bits: i32) -> f32 {
    let exponent = |value: f64| ((value.to_bits() >> 52) as i32 & 0x7ff) - 1023;
    // Products of two bf16 are looked at by the sum of their exponents, not by that of the product.
    let parts: Vec<(f64, i32)> = (a.iter().zip(b))
        .map(|(&a, &b)| (to_f64(a), to_f64(b)))
        .map(|(a, b)| (a * b, exponent(a) + exponent(b)))
        .chain([(f64::from(sum), exponent(f64::from(sum)))])
        .filter(|(value, _)| *value != 0.0)
        .collect();
    let Some(most) = parts.iter().map(|(_, exponent)| *exponent).max() else { return 0.0 };
    let unit = 2f64.powi(most - bits);
    // Each is below 2^(bits + 2) units, so the sum of units is exact.
    let total: f64 = parts.iter().map(|(value, _)| (value / unit).trunc()).sum();
    let value = total * unit;
    let rounded = value as f32;
    let is_past = f64::from(rounded).abs() > value.abs();
    if is_past { f32::from_bits(rounded.to_bits() - 1) } else { rounded }
}

#[test]
fn steps_are_the_published_formula() {
    if device(Architecture::Hopper, 1).is_none() {
        return;
    }
    let mut random = Random(1 << 40 | 12345);
    for case in 0..20_000 {
        let spread = 1 + case % 20;
        let mut number = || {
            let exponent = 127 - spread / 2 + random.below(spread);
            ((random.next() % 2) << 15) as u16
                | (exponent as u16) << 7
                | (random.next() % 128) as u16
        };
        let mut a: [u16; 16] = std::array::from_fn(|_| number());
        let b: [u16; 16] = std::array::from_fn(|_| number());
        let sum = f32::from_bits(u32::from(number()) << 16 | 0x1234);
        if case % 7 == 0 {
            a[case % 16] = 0;
        }
        if case % 50 == 0 {
            a = [0, 0x8000][case / 50 % 2..][..1].repeat(16).try_into().unwrap();
        }
        let sum = if case % 150 == 0 { -0.0 } else { sum };
        let hopper = published(sum, &a, &b, 25);
        assert_eq!(step(sum, &a, &b, Architecture::Hopper).to_bits(), hopper.to_bits());
        let ampere = published(published(sum, &a[..8], &b[..8], 24), &a[8..], &b[8..], 24);
        assert_eq!(step(sum, &a, &b, Architecture::Ampere).to_bits(), ampere.to_bits());
    }
}

#[test]
fn exponentials_and_logarithms_are_within_a_unit_in_the_last_place() {
    if device(Architecture::Hopper, 1).is_none() {
        return;
    }
    let ulps = |got: f32, want: f64| {
        let unit = f64::from(f32::from_bits((want as f32).abs().to_bits() + 1))
            - f64::from((want as f32).abs());
        (f64::from(got) - want).abs() / unit
    };
    let mut random = Random(77);
    for _ in 0..100_000 {
        let x = random.uniform() * 125.0;
        assert!(ulps(exp2(x), f64::from(x).exp2()) <= 1.0, "2^{x}");
        let y = f64::from(x).exp2() as f32;
        assert!(ulps(log(y), f64::from(y).ln()) <= 1.0, "ln {y}");
        // About 1, where no large exponent hides the polynomial.
        let y = (f64::from(x) / 125.0).exp2() as f32;
        assert!(ulps(log(y), f64::from(y).ln()) <= 1.0, "ln {y}");
    }
    assert_eq!([exp2(0.0), exp2(-200.0), exp2(f32::NEG_INFINITY), log(1.0)], [1.0, 0.0, 0.0, 0.0]);
    assert!(exp2(f32::NAN).is_nan() && log(f32::NAN).is_nan());
    // A device's NaN.
    assert!(exp2(f32::from_bits(0x7fff_ffff)).is_nan());
}
