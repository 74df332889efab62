//! Derivatives by a byte.

use super::{ExprId, ExprResult, Maker, Node, Repeat};

impl Maker<'_, '_> {
    /// The lexemes that, with `byte` before them, are lexemes of `of`; lookbehinds that have not
    /// begun have then seen the byte.
    ///
    /// Cost: a look-up once it is known for the byte's class.
    pub fn derive(&mut self, of: ExprId, byte: u8) -> ExprResult {
        if of <= ExprId::EMPTY {
            return Ok(ExprId::NEVER);
        }
        self.spend(4)?;
        let (class, num_classes) = self.class_of(of, byte);
        if let Some(known) = self.derivatives.get(of, class) {
            return Ok(known);
        }
        let derived = self.derive_node(of, byte)?;
        self.derivatives.insert(of, class, num_classes, derived);
        Ok(derived)
    }

    /// The class of a byte, and how many there are.
    fn class_of(&self, of: ExprId, byte: u8) -> (usize, usize) {
        let classes = self.partitions.get(self.facts(of).partition);
        (classes.class(byte), classes.representatives().len())
    }

    fn derive_node(&mut self, of: ExprId, byte: u8) -> ExprResult {
        match *self.node(of) {
            Node::Never | Node::Empty | Node::Behind { .. } => Ok(ExprId::NEVER),
            Node::Switch(ref arms) => {
                let at = arms.partition_point(|arm| arm.high < byte);
                let arm = arms.get(at).filter(|arm| arm.low <= byte);
                Ok(arm.map_or(ExprId::NEVER, |arm| arm.then))
            }
            Node::Multiple(of) => match of.after(byte) {
                Some(after) => self.intern(Node::Multiple(after)),
                None => Ok(ExprId::NEVER),
            },
            Node::Concat(a, b) => {
                let begun = self.derive(a, byte)?;
                let rest = self.forward(b, byte)?;
                let begun = self.concat(begun, rest)?;
                let skipped = self.derive_given(self.null(a), b, byte)?;
                self.or([begun, skipped])
            }
            Node::Or(ref parts) | Node::Ordered(ref parts) => {
                let parts = parts.clone();
                let derived = self.derive_all(&parts, byte)?;
                self.or(derived)
            }
            Node::And(ref parts) => {
                let parts = parts.clone();
                let mut derived = Vec::with_capacity(parts.len());
                for &part in &parts {
                    derived.push(self.derive(part, byte)?);
                    if derived.last() == Some(&ExprId::NEVER) {
                        return Ok(ExprId::NEVER);
                    }
                }
                self.and(derived)
            }
            Node::Not(inner) => {
                let derived = self.derive(inner, byte)?;
                self.not(derived)
            }
            Node::Unordered(inner) => {
                let derived = self.derive(inner, byte)?;
                self.unordered(derived)
            }
            Node::Whole(inner) => {
                let derived = self.derive(inner, byte)?;
                self.whole(derived)
            }
            Node::Repeat(repeat) => self.derive_repeat(repeat, byte),
            Node::Given { condition, inner } => {
                let condition = self.derive(condition, byte)?;
                let inner = self.derive(inner, byte)?;
                self.given(condition, inner)
            }
            Node::First(ref items) => {
                let items = items.clone();
                self.derive_first(&items, byte)
            }
            Node::Grows(inner) => {
                let derived = self.derive(inner, byte)?;
                let on = self.grows(derived)?;
                self.or([on, self.null(derived)])
            }
            Node::Longer(inner) => {
                let derived = self.derive(inner, byte)?;
                self.longer(derived)
            }
        }
    }

    /// The derivatives of all.
    fn derive_all(&mut self, parts: &[ExprId], byte: u8) -> Result<Vec<ExprId>, super::Exceeded> {
        parts.iter().map(|&part| self.derive(part, byte)).collect()
    }

    /// The derivative of `of`, given that the text to be derived meets `condition`.
    fn derive_given(&mut self, condition: ExprId, of: ExprId, byte: u8) -> ExprResult {
        if condition == ExprId::NEVER {
            return Ok(ExprId::NEVER);
        }
        let condition = self.derive_condition(condition, byte)?;
        let derived = self.derive(of, byte)?;
        self.given(condition, derived)
    }

    fn derive_condition(&mut self, condition: ExprId, byte: u8) -> ExprResult {
        if condition == ExprId::ALL { Ok(condition) } else { self.derive(condition, byte) }
    }

    fn derive_repeat(&mut self, repeat: Repeat, byte: u8) -> ExprResult {
        let begun = self.derive(repeat.inner, byte)?;
        let inner = self.forward(repeat.inner, byte)?;
        let max = repeat.max.map(|max| max - 1);
        let rest = Repeat { inner, min: repeat.min.saturating_sub(1), max, ..repeat };
        let once = self.rest_after(begun, rest)?;
        // Repetitions may be empty here if the condition allows: then as many as are asked for are
        // done with.
        let empty = self.null(repeat.inner);
        if rest.min == 0 || empty == ExprId::NEVER {
            return Ok(once);
        }
        let done = self.rest_after(begun, Repeat { min: 0, ..rest })?;
        let condition = self.derive_condition(empty, byte)?;
        let done = self.given(condition, done)?;
        self.or([once, done])
    }

    fn rest_after(&mut self, begun: ExprId, rest: Repeat) -> ExprResult {
        let rest = self.repeated(rest)?;
        self.concat(begun, rest)
    }

    /// `of`, which has not begun, after `byte`: its lookbehinds have seen it.
    pub(super) fn forward(&mut self, of: ExprId, byte: u8) -> ExprResult {
        if !self.facts(of).behind {
            return Ok(of);
        }
        let (class, num_classes) = self.class_of(of, byte);
        if let Some(known) = self.forwards.get(of, class) {
            return Ok(known);
        }
        let forwarded = self.forward_node(of, byte)?;
        self.forwards.insert(of, class, num_classes, forwarded);
        Ok(forwarded)
    }

    fn forward_node(&mut self, of: ExprId, byte: u8) -> ExprResult {
        match self.node(of).clone() {
            Node::Concat(a, b) => {
                let (a, b) = (self.forward(a, byte)?, self.forward(b, byte)?);
                self.concat(a, b)
            }
            Node::Or(parts) => {
                let parts = self.forward_all(&parts, byte)?;
                self.or(parts)
            }
            Node::Ordered(parts) => {
                let parts = self.forward_all(&parts, byte)?;
                self.ordered(parts)
            }
            Node::And(parts) => {
                let parts = self.forward_all(&parts, byte)?;
                self.and(parts)
            }
            Node::Not(inner) => {
                let inner = self.forward(inner, byte)?;
                self.not(inner)
            }
            Node::Unordered(inner) => {
                let inner = self.forward(inner, byte)?;
                self.unordered(inner)
            }
            Node::Repeat(repeat) => {
                let inner = self.forward(repeat.inner, byte)?;
                self.repeated(Repeat { inner, ..repeat })
            }
            Node::Behind { history, negated } => {
                let history = self.derive(history, byte)?;
                self.behind(history, negated)
            }
            Node::Given { condition, inner } => {
                let (condition, inner) =
                    (self.forward(condition, byte)?, self.forward(inner, byte)?);
                self.given(condition, inner)
            }
            // These are made of what has begun, and a lookbehind within what has begun is not here.
            Node::Never
            | Node::Empty
            | Node::Switch(_)
            | Node::Multiple(_)
            | Node::First(_)
            | Node::Whole(_)
            | Node::Grows(_)
            | Node::Longer(_) => Ok(of),
        }
    }

    fn forward_all(&mut self, parts: &[ExprId], byte: u8) -> Result<Vec<ExprId>, super::Exceeded> {
        parts.iter().map(|&part| self.forward(part, byte)).collect()
    }
}
