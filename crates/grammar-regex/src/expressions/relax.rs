//! The simpler expression that an expression is mostly like.

use super::{Arm, ExprId, ExprResult, Maker, Node, Repeat};

impl Maker<'_, '_> {
    /// The expression without what its parts may not be, and with repeats as often as one likes:
    /// names other than five are names, strings of at most forty characters strings. Parts of what
    /// is repeated stay as they are.
    pub fn relaxed(&mut self, of: ExprId) -> ExprResult {
        // Chains are long, nesting is bounded: down the chain to what is known, and back.
        let (mut heads, mut rest) = (Vec::new(), of);
        let mut whole = loop {
            if let Some(&known) = self.relaxations.get(&rest) {
                break known;
            }
            let Node::Concat(head, tail) = *self.node(rest) else {
                break self.relaxed_part(rest)?;
            };
            heads.push((rest, head));
            rest = tail;
        };
        self.relaxations.insert(rest, whole);
        for (chain, head) in heads.into_iter().rev() {
            let head = self.relaxed(head)?;
            whole = self.concat(head, whole)?;
            self.relaxations.insert(chain, whole);
        }
        Ok(whole)
    }

    /// Any text, which never ends: what comes last is no byte of a text.
    pub fn endless_text(&mut self) -> ExprResult {
        let end = self.switch([Arm { low: 0xFF, high: 0xFF, then: ExprId::EMPTY }])?;
        self.concat(self.utf8, end)
    }

    fn relaxed_part(&mut self, of: ExprId) -> ExprResult {
        match self.node(of).clone() {
            Node::Or(parts) => {
                let mut relaxed = Vec::with_capacity(parts.len());
                for &part in &parts {
                    relaxed.push(self.relaxed(part)?);
                }
                self.or(relaxed)
            }
            Node::And(parts) => {
                let mut relaxed = Vec::with_capacity(parts.len());
                for &part in &parts {
                    if !matches!(self.node(part), Node::Not(_)) {
                        relaxed.push(self.relaxed(part)?);
                    }
                }
                if relaxed.is_empty() { Ok(of) } else { self.and(relaxed) }
            }
            Node::Repeat(Repeat { inner, max: Some(_), reluctant: false, .. }) => {
                self.repeat(inner, 0, None)
            }
            _ => Ok(of),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expressions::{ExpressionLimits, Expressions};
    use crate::{Budget, CharClass, Regex};

    #[test]
    fn counts_and_complements_are_forgotten() {
        let limits =
            ExpressionLimits { max_expressions: 1000, max_nesting: 100, max_visited: 1000 };
        let mut expressions = Expressions::new(limits).unwrap();
        let letter = || Regex::Class(CharClass::new([('a', 'z')]));
        let quoted = |inner: Regex| Regex::concat([inner, Regex::literal("\"")]);
        let mut compile =
            |regex: Regex| expressions.making(&mut Budget::unlimited()).compile(&regex).unwrap();
        let any = compile(quoted(letter().repeat(0, None)));
        let few = compile(quoted(letter().repeat(2, Some(9))));
        let exactly = compile(quoted(letter().repeat(4, Some(4))));
        let others = Regex::complement(Regex::alternate(["ab", "c"].map(Regex::literal)));
        let named = compile(quoted(Regex::and([letter().repeat(0, None), others])));
        assert_eq!(expressions.making(&mut Budget::unlimited()).relaxed(few), Ok(any));
        let relaxed = expressions.making(&mut Budget::unlimited()).relaxed(named).unwrap();
        assert_ne!(relaxed, named);
        assert_eq!(
            expressions.making(&mut Budget::unlimited()).derive(relaxed, b'x'),
            expressions.making(&mut Budget::unlimited()).derive(named, b'x')
        );
        assert_eq!(expressions.making(&mut Budget::unlimited()).relaxed(relaxed), Ok(relaxed));
        assert_eq!(expressions.making(&mut Budget::unlimited()).relaxed(any), Ok(any));
        assert_eq!(expressions.making(&mut Budget::unlimited()).relaxed(exactly), Ok(any));
    }
}
