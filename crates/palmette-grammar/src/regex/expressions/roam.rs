//! Texts that are anything for a while.

use super::{Exceeded, ExprId, Expressions, Made, Maker, Node, Repeat};

/// A repetition without bounds and what ends it: the inside of a string and its closing quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Roaming {
    /// Any number of units.
    pub(crate) units: ExprId,
    /// What follows them.
    pub(crate) end: ExprId,
}

impl Expressions {
    /// What the expression is like if it begins with any number of units, which stand again before its end: a string in which a
    /// pattern is found somewhere.
    pub(crate) fn roaming(&self, of: ExprId) -> Option<Roaming> {
        match self.node(of) {
            Node::Or(parts) => parts.iter().find_map(|&part| self.roaming_part(part)),
            _ => self.roaming_part(of),
        }
    }

    fn roaming_part(&self, of: ExprId) -> Option<Roaming> {
        let Node::Concat(units, mut rest) = *self.node(of) else { return None };
        if !self.is_unbounded(units) {
            return None;
        }
        let mut found = None;
        while let Node::Concat(head, tail) = *self.node(rest) {
            rest = tail;
            if head == units {
                found = Some(Roaming { units, end: rest });
            }
        }
        found
    }

    /// The units and the end of an expression that is nothing else.
    pub(crate) fn as_roaming(&self, of: ExprId) -> Option<Roaming> {
        match *self.node(of) {
            Node::Concat(units, end) if self.is_unbounded(units) => Some(Roaming { units, end }),
            _ => None,
        }
    }

    fn is_unbounded(&self, of: ExprId) -> bool {
        matches!(self.node(of), Node::Repeat(Repeat { min: 0, max: None, reluctant: false, .. }))
    }
}

impl Maker<'_, '_> {
    /// The expression of units and their end.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn roaming_expr(&mut self, Roaming { units, end }: Roaming) -> Made {
        self.concat(units, end)
    }

    /// The only byte that a lexeme of `of` can begin with.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn only_first_byte(&mut self, of: ExprId) -> Result<Option<u8>, Exceeded> {
        let mut only = None;
        for byte in 0..=u8::MAX {
            if self.derive(of, byte)? != ExprId::NEVER && only.replace(byte).is_some() {
                return Ok(None);
            }
        }
        Ok(only)
    }

    /// Whether all beginnings of units begin lexemes of `of`, and all lexemes of `of` are units and then the end. It may say no
    /// where that is so.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub(crate) fn roams(&mut self, of: ExprId, like: Roaming) -> Result<bool, Exceeded> {
        Ok(self.begins_freely(of, like)? && self.is_within(of, like)?)
    }

    fn begins_freely(&mut self, of: ExprId, like: Roaming) -> Result<bool, Exceeded> {
        match self.node(of).clone() {
            Node::Or(parts) => {
                for &part in &parts {
                    if self.begins_freely(part, like)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Concat(head, rest) if head == like.units => self.matches_something(rest),
            _ => Ok(false),
        }
    }

    /// Whether all lexemes are units and then the end.
    fn is_within(&mut self, of: ExprId, like: Roaming) -> Result<bool, Exceeded> {
        let mut rest = of;
        loop {
            if rest == like.end {
                return Ok(true);
            }
            match self.node(rest).clone() {
                Node::Concat(head, tail) => {
                    if !self.are_units(head, like.units)? {
                        return Ok(false);
                    }
                    rest = tail;
                }
                Node::Or(parts) => {
                    for &part in &parts {
                        if !self.is_within(part, like)? {
                            return Ok(false);
                        }
                    }
                    return Ok(true);
                }
                _ => return Ok(false),
            }
        }
    }

    /// Whether all lexemes of `of` are any number of units.
    fn are_units(&mut self, of: ExprId, units: ExprId) -> Result<bool, Exceeded> {
        // Chains are long, nesting is bounded.
        let mut of = of;
        while let Node::Concat(head, tail) = *self.node(of) {
            if !self.are_units(head, units)? {
                return Ok(false);
            }
            of = tail;
        }
        if of == units || of == ExprId::EMPTY {
            return Ok(true);
        }
        match self.node(of).clone() {
            Node::Repeat(repeat) => self.are_units(repeat.inner, units),
            Node::Or(parts) => {
                for &part in &parts {
                    if !self.are_units(part, units)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => {
                let other = self.not(units)?;
                let others = self.and([of, other])?;
                Ok(!self.matches_something(others)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regex::expressions::ExpressionLimits;
    use crate::{Budget, CharClass, Regex};

    #[test]
    fn a_pattern_somewhere_in_a_text_roams() {
        let limits =
            ExpressionLimits { max_expressions: 1000, max_nesting: 100, max_visited: 1000 };
        let mut expressions = Expressions::new(limits).unwrap();
        let any = || Regex::Class(CharClass::new([('a', 'z')])).repeat(0, None);
        let mut compile = |parts: &[Regex]| {
            let end = Regex::literal("\"");
            let whole = parts.iter().cloned().chain([end]);
            expressions
                .making(&mut Budget::unlimited())
                .compile(&Regex::concat(whole.collect::<Vec<_>>()))
                .unwrap()
        };
        let plain = compile(&[any()]);
        let somewhere = compile(&[any(), Regex::literal("ab"), any()]);
        let twice = compile(&[any(), Regex::literal("a"), any(), Regex::literal("b"), any()]);
        let at_front = compile(&[Regex::literal("ab"), any()]);
        let other = compile(&[any(), Regex::literal("1"), any()]);

        let like = expressions.as_roaming(plain).unwrap();
        assert_eq!(expressions.roaming(somewhere), Some(like));
        assert_eq!(expressions.roaming(at_front), None);
        assert_eq!(
            expressions.making(&mut Budget::unlimited()).only_first_byte(like.end),
            Ok(Some(b'"'))
        );
        assert_eq!(expressions.making(&mut Budget::unlimited()).roaming_expr(like), Ok(plain));
        for (expr, expected) in
            [(plain, true), (somewhere, true), (twice, true), (at_front, false), (other, false)]
        {
            assert_eq!(
                expressions.making(&mut Budget::unlimited()).roams(expr, like),
                Ok(expected),
                "{expr:?}"
            );
        }
        let begun = expressions.making(&mut Budget::unlimited()).derive(somewhere, b'a').unwrap();
        assert_eq!(expressions.making(&mut Budget::unlimited()).roams(begun, like), Ok(true));
    }
}
