//! Instructions that not every processor has.
#![allow(unsafe_code)]

/// Runs `work` compiled with the instructions that count and find bits, where the processor has them; as it
/// is where it does not. What it returns is the same.
///
/// Only what is inlined into `work` is compiled anew: write it `#[inline(always)] || …`, and mark what it
/// calls and what counts bits so too.
///
/// Cost: asking once whether there are such instructions, a load and a comparison; and a second copy of the
/// code, so it is for loops.
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

#[cfg(test)]
mod tests {
    use super::*;

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
