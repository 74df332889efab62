//! Lexemes under a condition, decided by their first bytes where these decide.

use super::{Exceeded, ExprId, Maker};

/// Residual of an expression whose lexemes meet a condition together with what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextBytes {
    /// Every byte: the condition holds once a first byte of a lexeme was read, whichever it is.
    Always,
    /// No byte: no first byte of a lexeme is allowed.
    Never,
    /// The first bytes of this expression.
    By(ExprId),
}

impl Maker<'_, '_> {
    /// Part of an expression without the empty lexeme that meets a condition.
    pub fn next_bytes(&mut self, condition: ExprId, of: ExprId) -> Result<NextBytes, Exceeded> {
        let (mut holds, mut fails) = (true, true);
        let classes = self.classes([condition, of]);
        for &byte in classes.representatives() {
            if self.derive(of, byte)? == ExprId::NEVER {
                continue;
            }
            let after = self.derive(condition, byte)?;
            holds &= after == ExprId::ALL;
            fails &= after == ExprId::NEVER;
        }
        Ok(match (holds, fails) {
            (_, true) => NextBytes::Never,
            (true, _) => NextBytes::Always,
            _ => NextBytes::By(self.given(condition, of)?),
        })
    }
}
