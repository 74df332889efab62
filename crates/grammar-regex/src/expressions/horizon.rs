//! Expressions that agree for a while.

use super::{Exceeded, ExprId, ExprResult, Maker, Node, Repeat};

impl Maker<'_, '_> {
    /// An expression whose derivatives by up to `num_bytes` bytes match the empty lexeme, and match
    /// something, where those of `of` do: counts of repeats that cannot be used up by then are
    /// dropped. It matches whatever `of` does.
    ///
    /// `None` when that is not certain: where parts are intersected, complemented or look around.
    pub fn bounded_equivalent(
        &mut self,
        of: ExprId,
        num_bytes: u32,
    ) -> Result<Option<ExprId>, Exceeded> {
        if !self.facts(of).plain || self.looks_ahead(of) {
            return Ok(None);
        }
        self.without_far_counts(of, num_bytes).map(Some)
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

    fn without_far_counts(&mut self, of: ExprId, num_bytes: u32) -> ExprResult {
        if self.facts(of).greatest_bound <= num_bytes {
            return Ok(of);
        }
        // Chains are long, nesting is bounded: down the chain to what is known, and back.
        let (mut heads, mut rest) = (Vec::new(), of);
        let mut whole = loop {
            if let Some(&known) = self.horizons.get(&(rest, num_bytes)) {
                break known;
            }
            let Node::Concat(head, tail) = *self.node(rest) else {
                break self.part_without_far_counts(rest, num_bytes)?;
            };
            heads.push((rest, head));
            rest = tail;
        };
        self.horizons.insert((rest, num_bytes), whole);
        for (chain, head) in heads.into_iter().rev() {
            let head = self.without_far_counts(head, num_bytes)?;
            whole = self.concat(head, whole)?;
            self.horizons.insert((chain, num_bytes), whole);
        }
        Ok(whole)
    }

    fn part_without_far_counts(&mut self, of: ExprId, num_bytes: u32) -> ExprResult {
        match self.node(of).clone() {
            Node::Or(parts) => {
                let mut kept = Vec::with_capacity(parts.len());
                for &part in &parts {
                    kept.push(self.without_far_counts(part, num_bytes)?);
                }
                self.or(kept)
            }
            Node::Repeat(repeat) => {
                let inner = self.without_far_counts(repeat.inner, num_bytes)?;
                let min = repeat.min.min(num_bytes.saturating_add(1));
                let max = repeat.max.filter(|&max| max <= num_bytes);
                self.repeated(Repeat { inner, min, max, ..repeat })
            }
            // Switches are made of classes and literals: no counts.
            _ => Ok(of),
        }
    }
}
