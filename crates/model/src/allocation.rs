//! Allocation of what a plan counts: sums that cannot overflow unseen, and arrays of zeros.

use bytemuck::Zeroable;

/// The product, multiplied from the left; `None` when that overflows on the way.
pub(crate) fn product(factors: &[usize]) -> Option<usize> {
    factors.iter().try_fold(1_usize, |product, &factor| product.checked_mul(factor))
}

pub(crate) fn sum(parts: &[usize]) -> Option<usize> {
    parts.iter().try_fold(0_usize, |sum, &part| sum.checked_add(part))
}

/// `len` zeros; `None` where there is not the memory for them.
///
/// PERF: pages come from the system zeroed and are not written here, so that what a plan has beyond
/// a request's use costs nothing. Reserving and filling a `Vec` instead: a plan of 8192 beams of
/// which 2048 were used took 176 ms from `Session::new` to the second pass, not 121.
pub(crate) fn zeroed<T: Zeroable>(len: usize) -> Option<Vec<T>> {
    bytemuck::try_zeroed_vec(len).ok()
}
