//! Sums, products and maxima over rows, in a form that the compiler can vectorise.
//!
//! The order of a floating-point sum is part of its result, so a plain `sum()` stays scalar. These
//! fix another order: sixteen running values, then those sixteen, then the rest.

const LANES: usize = 16;

/// Σ a·b
///
/// # Panics
/// When the lengths differ.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    halved(sums, |a, b| a + b) + rest
}

/// Σ a
#[inline(always)]
pub fn sum(a: &[f32]) -> f32 {
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for a in chunks {
        for lane in 0..LANES {
            sums[lane] += a[lane];
        }
    }
    halved(sums, |a, b| a + b) + rest.iter().sum::<f32>()
}

/// The largest of `a`; −∞ when empty. NaN may be passed over.
#[inline(always)]
pub fn max(a: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let (chunks, rest) = a.as_chunks::<LANES>();
    let mut maxima = [f32::NEG_INFINITY; LANES];
    for a in chunks {
        for lane in 0..LANES {
            maxima[lane] = larger(maxima[lane], a[lane]);
        }
    }
    rest.iter().copied().fold(halved(maxima, larger), larger)
}

/// Halves of the array are joined until one value is left.
#[inline(always)]
fn halved(values: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    // PERF: where the compiler sees what becomes of the lanes, it keeps them two by two in eight
    // vectors, as the last step but two wants them. So it is not shown: a softmax of 512 values
    // takes a tenth less time.
    let mut values = std::hint::black_box(values);
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            values[lane] = join(values[lane], values[lane + width]);
        }
        width /= 2;
    }
    values[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_plain_loops_at_every_length() {
        for len in 0..70 {
            // Small integers: every order of addition is exact.
            let a: Vec<f32> = (0..len).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
            let b: Vec<f32> = (0..len).map(|i| ((i * 5) % 13) as f32 - 6.0).collect();
            assert_eq!(dot(&a, &b), a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>());
            assert_eq!(sum(&a), a.iter().sum::<f32>());
            assert_eq!(max(&a), a.iter().copied().fold(f32::NEG_INFINITY, f32::max));
        }
    }
}
