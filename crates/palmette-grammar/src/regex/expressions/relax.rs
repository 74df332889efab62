//! The simpler expression that an expression is mostly like.

use super::{ExprId, Expressions, Made, Node, Repeat};

impl Expressions {
    /// The expression without what its parts may not be, and with repeats as often as one likes: names other than five are
    /// names, strings of at most forty characters strings. Parts of what is repeated stay as they are.
    pub(crate) fn relaxed(&mut self, of: ExprId) -> Made {
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

    fn relaxed_part(&mut self, of: ExprId) -> Made {
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
            // As many as are asked for: those are no count that some texts stay far below.
            Node::Repeat(Repeat { inner, min, max: Some(max), reluctant: false }) if min < max => {
                self.repeat(inner, 0, None)
            }
            _ => Ok(of),
        }
    }
}
