//! Dependence of lexemes on the text before them.

use std::collections::{HashSet, VecDeque};

use super::{Exceeded, ExprId, Maker, Unpicked};

/// Texts before a lexeme, as far as an expression tells them apart, that are looked at.
const MAX_HISTORIES: usize = 256;

/// Pairs of residuals that are compared.
const MAX_PAIRS: usize = 4_096;

impl Maker<'_, '_> {
    /// True when the text before a lexeme may decide what `of` matches.
    ///
    /// A lookbehind at its beginning makes it so. Where the bytes of the lexeme decide all that
    /// lookbehinds ask, as in a string that ends by a quote without a backslash before it, it does
    /// not.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn depends_on_history(&mut self, of: Unpicked) -> Result<bool, Exceeded> {
        if !self.looks_behind(of.expr) {
            return Ok(false);
        }
        let at_start = self.picked(of)?;
        let (mut seen, mut work) = (HashSet::from([of.expr]), VecDeque::from([of]));
        let mut compared = HashSet::new();
        while let Some(from) = work.pop_front() {
            let lexemes = self.picked(from)?;
            if seen.len() > MAX_HISTORIES || !self.go_on_alike(at_start, lexemes, &mut compared)? {
                return Ok(true);
            }
            let classes = self.classes([from.expr]);
            for &byte in classes.representatives() {
                let to = self.forwarded(from, byte)?;
                if seen.insert(to.expr) {
                    work.push_back(to);
                }
            }
        }
        Ok(false)
    }

    /// Lexemes after one more byte of the text before them.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn forwarded(&mut self, of: Unpicked, byte: u8) -> Result<Unpicked, Exceeded> {
        Ok(Unpicked { expr: self.forward(of.expr, byte)?, ..of })
    }

    /// True when two expressions have the same lexemes that are not empty, for sure.
    fn go_on_alike(
        &mut self,
        one: ExprId,
        other: ExprId,
        compared: &mut HashSet<(ExprId, ExprId)>,
    ) -> Result<bool, Exceeded> {
        let mut work = vec![(one, other)];
        while let Some((one, other)) = work.pop() {
            let classes = self.classes([one, other]);
            for &byte in classes.representatives() {
                let pair = (self.derive(one, byte)?, self.derive(other, byte)?);
                if pair.0 == pair.1 || !compared.insert(pair) {
                    continue;
                }
                if self.null(pair.0) != self.null(pair.1) || compared.len() > MAX_PAIRS {
                    return Ok(false);
                }
                work.push(pair);
            }
        }
        Ok(true)
    }
}
