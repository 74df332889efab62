//! Sets of codes.

/// The codes of the values that a condition wants; 0, which stands for no value, only where that
/// is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CodeSet {
    /// First and last of runs of codes, ascending; at most [`MAX_RUNS`](Self::MAX_RUNS).
    Runs(Vec<(u32, u32)>),
    /// A bit a code.
    Bits(Vec<u64>),
}

impl CodeSet {
    /// Limit of runs to compare codes with; larger sets look a bit up.
    ///
    /// PERF: over 20 million u8 codes a run costs 1 to 2 ms and looking bits up 12 ms, on one
    /// thread (`cargo bench -p palmette-catalog-filter`, `u8` and `u8_any_of_12`).
    const MAX_RUNS: usize = 8;

    /// The set without codes.
    pub(super) const NONE: Self = Self::Runs(Vec::new());

    /// The codes from `first` to `last`; none where `first > last`.
    pub(super) fn run(first: u32, last: u32) -> Self {
        Self::Runs(if first <= last { vec![(first, last)] } else { Vec::new() })
    }

    /// These codes, which ascend; they may repeat.
    pub(super) fn from_ascending(codes: impl IntoIterator<Item = u32>) -> Self {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for code in codes {
            match runs.last_mut() {
                Some((_, last)) if code <= last.saturating_add(1) => *last = code,
                _ => runs.push((code, code)),
            }
        }
        if runs.len() <= Self::MAX_RUNS {
            return Self::Runs(runs);
        }
        let num_codes = runs.last().map_or(0, |&(_, last)| last as usize + 1);
        let mut bits = vec![0; num_codes.div_ceil(64)];
        for code in runs.into_iter().flat_map(|(first, last)| first..=last) {
            bits[code as usize / 64] |= 1 << (code % 64);
        }
        Self::Bits(bits)
    }

    #[inline]
    pub(super) fn contains(&self, code: u32) -> bool {
        match self {
            Self::Runs(runs) => runs.iter().any(|&(first, last)| first <= code && code <= last),
            Self::Bits(bits) => {
                bits.get(code as usize / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Runs(runs) if runs.is_empty())
    }

    /// Rough cost of a scan for each byte of codes, by which conditions are ordered.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Runs(runs) => runs.len(),
            Self::Bits(_) => Self::MAX_RUNS,
        }
    }
}
