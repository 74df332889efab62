//! Instructions that not every processor has.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// Runs `work` compiled with the instructions that count and find bits, where the processor has
/// them; as it is where it does not. What it returns is the same.
///
/// Only what is inlined into `work` is compiled anew: write it `#[inline(always)] || …`, and mark
/// what it calls and what counts bits so too.
///
/// Cost: asking once whether there are such instructions, a load and a comparison; and a second
/// copy of the code, so it is for loops.
#[inline(always)]
pub fn with_bit_instructions<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has the four features that the function is compiled for.
        return unsafe { compiled_for_bits(work) };
    }
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
fn compiled_for_bits<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// The bit of the one numbered `index` from 0 in `word`, which has more ones than that.
///
/// PERF: one instruction that few programs use, where it takes a few cycles: with it the third code
/// of `palmette-catalog-live`'s bench `segments`, on an AMD EPYC (Zen 5), over one segment went
/// from 12.3 us to 11.4. Within [`with_bit_instructions`] it is not a call.
#[inline(always)]
pub fn nth_one(word: u64, index: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if *DEPOSITS_FAST {
        // SAFETY: the processor has the feature that the function is compiled for.
        return unsafe { deposited(word, index) };
    }
    nth_one_by_halves(word, index)
}

/// True if an instruction deposits bits in a few cycles. Processors of AMD before Zen 3, which have
/// `sse4a` and not `vaes`, take a few for each bit of the word.
#[cfg(target_arch = "x86_64")]
static DEPOSITS_FAST: LazyLock<bool> = LazyLock::new(|| {
    let is_slow = is_x86_feature_detected!("sse4a") && !is_x86_feature_detected!("vaes");
    is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("bmi1") && !is_slow
});

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi1,bmi2")]
fn deposited(word: u64, index: u32) -> u32 {
    std::arch::x86_64::_pdep_u64(1_u64.wrapping_shl(index), word).trailing_zeros()
}

#[inline(always)]
fn nth_one_by_halves(word: u64, index: u32) -> u32 {
    let (mut bit, mut left) = (0, index);
    for half in [32, 16, 8, 4, 2, 1] {
        let ones = (word >> bit & ((1 << half) - 1)).count_ones();
        let is_past = ones <= left;
        bit += if is_past { half } else { 0 };
        left -= if is_past { ones } else { 0 };
    }
    bit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_nth_one_has_as_many_before_it(word in 1_u64.., index: prop::sample::Index) {
            let index = index.index(word.count_ones() as usize) as u32;
            let mut ones = (0..64).filter(|bit| word >> bit & 1 == 1);
            let expected = ones.nth(index as usize);
            prop_assert_eq!(Some(nth_one(word, index)), expected);
            prop_assert_eq!(Some(nth_one_by_halves(word, index)), expected);
        }
    }

    #[test]
    fn work_gives_what_it_gives_without() {
        let words = [0, 1, u64::MAX, 0x8000_0000_0000_0001];
        let bits = |word: u64| (word.count_ones(), word.trailing_zeros(), word.leading_zeros());
        let expected = [(0, 64, 64), (1, 0, 63), (64, 0, 0), (2, 0, 0)];
        assert_eq!(
            with_bit_instructions(
                #[inline(always)]
                || words.map(bits)
            ),
            expected
        );
        assert_eq!(words.map(bits), expected);
    }
}
