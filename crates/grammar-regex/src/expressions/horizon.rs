//! Expressions that agree for a while.

use super::{Arm, Exceeded, ExprId, ExprResult, Maker, Node, Repeat};

/// Horizon of texts: their greatest length, and the most digits in a row.
///
/// Counts that none of the texts can use up need not be told apart. Tokens are long, and have few
/// digits in a row: of a number the digits that are left matter for the last few alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Horizon {
    bytes: u32,
    digits: u32,
}

impl Horizon {
    /// The horizon of all texts of so many bytes.
    pub fn of_bytes(bytes: u32) -> Self {
        Self { bytes, digits: bytes }
    }

    /// The horizon of texts of up to so many bytes, and of no more digits in a row than these
    /// texts have.
    pub fn of_texts<'t>(bytes: u32, texts: impl IntoIterator<Item = &'t [u8]>) -> Self {
        let run = |text: &'t [u8]| {
            text.split(|byte| !byte.is_ascii_digit()).map(<[u8]>::len).max().unwrap_or(0)
        };
        let longest = texts.into_iter().map(run).max().unwrap_or(0);
        Self { bytes, digits: bytes.min(longest as u32) }
    }
}

impl Maker<'_, '_> {
    /// An expression whose derivatives by texts within the horizon match the empty lexeme, and
    /// match something, where those of `of` do: counts of repeats that cannot be used up by then
    /// are dropped. It matches whatever `of` does.
    ///
    /// `None` when that is not certain: where parts are intersected, complemented or look around.
    pub fn bounded_equivalent(
        &mut self,
        of: ExprId,
        within: Horizon,
    ) -> Result<Option<ExprId>, Exceeded> {
        if !self.facts(of).plain || self.looks_ahead(of) {
            return Ok(None);
        }
        self.without_far_counts(of, within).map(Some)
    }

    /// True when no lexeme of `of` is the beginning of another.
    ///
    /// # Errors
    /// When more expressions would have to be visited than the limit allows.
    pub fn is_prefix_free(&mut self, of: ExprId) -> Result<bool, Exceeded> {
        let more = self.concat(ExprId::ANY_BYTE, ExprId::ALL)?;
        let longer = self.concat(of, more)?;
        let both = self.and([of, longer])?;
        Ok(!self.matches_something(both)?)
    }

    fn without_far_counts(&mut self, of: ExprId, within: Horizon) -> ExprResult {
        if self.facts(of).greatest_bound <= within.digits {
            return Ok(of);
        }
        // Chains are long, nesting is bounded: down the chain to what is known, and back.
        let (mut heads, mut rest) = (Vec::new(), of);
        let mut whole = loop {
            if let Some(&known) = self.horizons.get(&(rest, within)) {
                break known;
            }
            let Node::Concat(head, tail) = *self.node(rest) else {
                break self.part_without_far_counts(rest, within)?;
            };
            heads.push((rest, head));
            rest = tail;
        };
        self.horizons.insert((rest, within), whole);
        for (chain, head) in heads.into_iter().rev() {
            let head = self.without_far_counts(head, within)?;
            whole = self.concat(head, whole)?;
            self.horizons.insert((chain, within), whole);
        }
        Ok(whole)
    }

    fn part_without_far_counts(&mut self, of: ExprId, within: Horizon) -> ExprResult {
        match self.node(of).clone() {
            Node::Or(parts) => {
                let mut kept = Vec::with_capacity(parts.len());
                for &part in &parts {
                    kept.push(self.without_far_counts(part, within)?);
                }
                self.or(kept)
            }
            Node::Repeat(repeat) => {
                let inner = self.without_far_counts(repeat.inner, within)?;
                let most = if self.is_digit(inner) { within.digits } else { within.bytes };
                let min = repeat.min.min(most.saturating_add(1));
                let max = repeat.max.filter(|&max| max <= most);
                self.repeated(Repeat { inner, min, max, ..repeat })
            }
            // Switches are made of classes and literals: no counts.
            _ => Ok(of),
        }
    }

    /// True of a class of digits.
    fn is_digit(&self, of: ExprId) -> bool {
        let is_digit = |arm: &Arm| {
            arm.low.is_ascii_digit() && arm.high.is_ascii_digit() && arm.then == ExprId::EMPTY
        };
        matches!(self.node(of), Node::Switch(arms) if arms.iter().all(is_digit))
    }
}
