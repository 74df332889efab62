//! Golden bits of every case, as the tests of kernels have them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::golden::{CASES, line, section};
use crate::{Check, SEED, support};

const GOLDEN: &str = include_str!("../../kernels/golden.toml");

pub(crate) fn check(check: &Check) -> Result<(), String> {
    let header = section(check.architecture);
    let lines = GOLDEN.lines().skip_while(|line| *line != header).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with('[')).collect();
    let (mut equal, mut of_hopper) = (0, 0);
    for cases in CASES {
        // Cases compare with references of their own, and end by a panic where they differ.
        let results = catch_unwind(AssertUnwindSafe(|| cases(&check.device)));
        let results = results.map_err(|_| "a case differs from its reference: see above")?;
        for (case, bytes) in results {
            if !lines.contains(&&*line(&case, &bytes)) {
                return Err(first_difference(check, cases, &case, &bytes));
            }
            equal += 1;
            of_hopper += usize::from(case.starts_with("hopper"));
        }
    }
    println!("golden    {equal} of {equal} equal, {of_hopper} of them by Hopper's kernels");
    Ok(())
}

/// The first word that the emulation has otherwise.
fn first_difference(
    check: &Check,
    cases: crate::golden::Cases,
    case: &str,
    bytes: &[u8],
) -> String {
    let Some(emulated) = support::device(check.architecture, SEED) else {
        return format!("{case} has other bits than the emulation, which is not built in");
    };
    let emulated = cases(&emulated).into_iter().find(|(name, _)| name == case);
    let words = |bytes: &[u8]| -> Vec<u32> {
        let words = bytes.chunks_exact(4);
        words.map(|word| word.try_into().map_or(0, u32::from_le_bytes)).collect()
    };
    let (got, want) = (words(bytes), words(&emulated.unwrap_or_default().1));
    let pairs = got.iter().zip(&want);
    let differing = pairs.clone().filter(|(got, want)| got != want).count();
    match pairs.enumerate().find(|(_, (got, want))| got != want) {
        Some((at, (word, emulated))) => format!(
            "{case}: {differing} of {} words differ; the first is {at}: {word:08x} ({}), emulated \
             {emulated:08x} ({})",
            want.len(),
            f32::from_bits(*word),
            f32::from_bits(*emulated)
        ),
        None => format!("{case}: equal to the emulation, and not to kernels/golden.toml"),
    }
}
