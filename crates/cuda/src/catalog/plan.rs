//! Forms of a segment's levels on a device, by their bytes.

use std::ops::Range;

/// Form in which a device has the codes of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelForm {
    /// A mask of each possible prefix, and the rank at which each of its extensions begins: the
    /// first levels alone.
    Masked,
    /// A code of each item.
    ByRank,
    /// A code of each prefix and the rank at which it begins; and a bit of each item, set where a
    /// prefix begins, with the set bits before each word.
    ByPrefix,
}

/// A level's form, and where its arrays lie among the bytes of all levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelPlan {
    /// Form of the codes.
    pub form: LevelForm,
    /// Bytes of a stored code: 4 where a level has more than 65,536.
    pub code_bytes: usize,
    /// Codes; masks at masked levels.
    pub(crate) codes: Range<usize>,
    /// Ranks at which prefixes begin.
    pub(crate) starts: Range<usize>,
    /// A bit of each rank at which a prefix begins.
    pub(crate) begin_bits: Range<usize>,
    /// Set bits before each word.
    pub(crate) begin_counts: Range<usize>,
}

impl LevelPlan {
    /// Bytes of the level.
    pub fn bytes(&self) -> usize {
        let arrays = [&self.codes, &self.starts, &self.begin_bits, &self.begin_counts];
        arrays.into_iter().map(ExactSizeIterator::len).sum()
    }
}

/// Tables of a segment before they are made: a form for each level, the smallest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePlan {
    /// Levels, from the first.
    pub levels: Vec<LevelPlan>,
    bytes: usize,
}

/// Alignment of arrays.
const ALIGNMENT: usize = 64;

impl TablePlan {
    /// Plans the levels of `num_items` items, of `codes` each, of which `num_prefixes` distinct
    /// prefixes end at each level. `None` where ranks or addresses do not reach.
    ///
    /// # Panics
    /// When there is not a number of prefixes for each level.
    pub fn new(num_items: u64, codes: &[u32], num_prefixes: &[u64]) -> Option<Self> {
        assert_eq!(codes.len(), num_prefixes.len(), "a number of prefixes for each level");
        // Ranks have 32 bits.
        let items = u32::try_from(num_items).ok()? as usize;
        let (mut levels, mut end) = (Vec::with_capacity(codes.len()), 0_usize);
        // Possible prefixes before the level, while all levels so far are masked.
        let mut keys = Some(1_usize);
        for (&codes, &prefixes) in codes.iter().zip(num_prefixes) {
            let (codes, prefixes) = (codes as usize, usize::try_from(prefixes).ok()?);
            let code_bytes = if codes > 1 << 16 { 4 } else { 2 };
            let words = items.div_ceil(32);
            let arrays = |form| match form {
                LevelForm::Masked => {
                    let masks = keys?.checked_mul(codes.div_ceil(32))?.checked_mul(4)?;
                    let starts = keys?.checked_mul(codes)?.checked_add(1)?;
                    // So have keys.
                    u32::try_from(starts).ok()?;
                    Some([masks, starts.checked_mul(4)?, 0, 0])
                }
                LevelForm::ByRank => Some([items.checked_mul(code_bytes)?, 0, 0, 0]),
                LevelForm::ByPrefix => Some([
                    prefixes.checked_mul(code_bytes)?,
                    (prefixes + 1).checked_mul(4)?,
                    words * 4,
                    (words + 1) * 4,
                ]),
            };
            let forms = [LevelForm::Masked, LevelForm::ByRank, LevelForm::ByPrefix];
            let all = forms.into_iter().filter_map(|form| Some((form, arrays(form)?)));
            let (form, bytes) = all.min_by_key(|(_, bytes)| bytes.iter().sum::<usize>())?;
            let mut take = |bytes: usize| {
                let at = end;
                end = at.checked_add(bytes)?.checked_next_multiple_of(ALIGNMENT)?;
                Some(at..at + bytes)
            };
            levels.push(LevelPlan {
                form,
                code_bytes,
                codes: take(bytes[0])?,
                starts: take(bytes[1])?,
                begin_bits: take(bytes[2])?,
                begin_counts: take(bytes[3])?,
            });
            keys = keys.filter(|_| form == LevelForm::Masked).and_then(|of| of.checked_mul(codes));
        }
        Some(Self { levels, bytes: end })
    }

    /// Bytes of all levels, with what aligns their arrays.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
