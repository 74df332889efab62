//! Classes of characters as switches over the bytes of UTF-8.

use super::{Arm, ExprId, ExprResult, Maker};
use crate::CharClass;

/// First and last scalar value of each encoded length, and what its lead byte adds to the value's
/// top bits.
const LENGTHS: [(u32, u32, u8); 4] =
    [(0, 0x7F, 0), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x1_0000, 0x10_FFFF, 0xF0)];

/// Bits of the value in a continuation byte.
const BITS: u32 = 6;
const SURROGATES: (u32, u32) = (0xD800, 0xDFFF);

/// Inclusive, sorted, disjoint.
type Ranges = Vec<(u32, u32)>;

impl Maker<'_, '_> {
    /// One character of the class. Equal classes are equal expressions.
    pub(super) fn class(&mut self, class: &CharClass) -> ExprResult {
        if let Some(&known) = self.char_classes.get(class) {
            return Ok(known);
        }
        let made = self.new_class(class)?;
        self.char_classes.insert(class.clone(), made);
        Ok(made)
    }

    fn new_class(&mut self, class: &CharClass) -> ExprResult {
        let mut scalars = Ranges::new();
        for &(low, high) in class.ranges() {
            let (low, high) = (low as u32, high as u32);
            scalars.push((low, high.min(SURROGATES.0 - 1)));
            scalars.push((low.max(SURROGATES.1 + 1), high));
        }
        scalars.retain(|(low, high)| low <= high);
        // A range on one side of the surrogates was pushed once; on both, as two.
        scalars.sort_unstable();
        let mut arms = Vec::new();
        for (continuations, &(first, last, lead)) in LENGTHS.iter().enumerate() {
            let of_length = clip(&scalars, first, last, 0);
            for (digit, then) in self.digits(&of_length, continuations as u32)? {
                arms.push(Arm { low: lead + digit, high: lead + digit, then });
            }
        }
        self.switch(arms)
    }

    /// Arms by leading digit of the values: each leads to the expression for the `continuations`
    /// digits after it.
    fn digits(
        &mut self,
        values: &[(u32, u32)],
        continuations: u32,
    ) -> Result<Vec<(u8, ExprId)>, super::Exceeded> {
        let (Some(&(low, _)), Some(&(_, high))) = (values.first(), values.last()) else {
            return Ok(vec![]);
        };
        let shift = BITS * continuations;
        let mut digits = Vec::new();
        for digit in low >> shift..=high >> shift {
            let from = digit << shift;
            let within = clip(values, from, from + (1 << shift) - 1, from);
            let then = self.continuation(&within, continuations)?;
            digits.push((digit as u8, then));
        }
        Ok(digits)
    }

    /// `continuations` bytes whose digits make one of these values.
    fn continuation(&mut self, values: &[(u32, u32)], continuations: u32) -> ExprResult {
        if values.is_empty() {
            return Ok(ExprId::NEVER);
        }
        if continuations == 0 {
            return Ok(ExprId::EMPTY);
        }
        if values == [(0, (1 << (BITS * continuations)) - 1)] {
            let below = (1 << (BITS * (continuations - 1))) - 1;
            let then = self.continuation(&[(0, below)], continuations - 1)?;
            return self.switch([Arm { low: 0x80, high: 0xBF, then }]);
        }
        let digits = self.digits(values, continuations - 1)?;
        let arm = |(digit, then)| Arm { low: 0x80 + digit, high: 0x80 + digit, then };
        self.switch(digits.into_iter().map(arm))
    }
}

/// The part of `values` within `first..=last`, less `base`.
fn clip(values: &[(u32, u32)], first: u32, last: u32, base: u32) -> Ranges {
    let from = values.partition_point(|&(_, high)| high < first);
    let within = values[from..].iter().take_while(|&&(low, _)| low <= last);
    within.map(|&(low, high)| (low.max(first) - base, high.min(last) - base)).collect()
}
