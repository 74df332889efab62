//! Parts that are all of some lexemes but a few.

use super::{Exceeded, ExprId, Maker, Node};

/// An expression in which a part may be any of some lexemes, but for a few: a name that is none of five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exception {
    /// Expression of what comes before the part.
    pub head: ExprId,
    /// Expression of what the part may be,
    pub of: ExprId,
    /// but none of these.
    pub but: ExprId,
    /// Expression of what comes after it.
    pub rest: ExprId,
    /// The whole without the exception.
    pub without: ExprId,
}

/// The part is looked for behind at most so many others.
const MAX_BEFORE: usize = 4;

impl Maker<'_, '_> {
    /// The exception that the first part has which is an intersection, if it has one and nothing looks around.
    ///
    /// # Errors
    /// When a limit is exceeded.
    pub fn exception(&mut self, of: ExprId) -> Result<Option<Exception>, Exceeded> {
        if !self.is_context_free(of) {
            return Ok(None);
        }
        let (mut before, mut at) = (Vec::new(), of);
        let (parts, rest) = loop {
            let (first, rest) = match *self.node(at) {
                Node::Concat(first, rest) => (first, rest),
                _ => (at, ExprId::EMPTY),
            };
            if let Node::And(parts) = self.node(first) {
                break (parts.clone(), rest);
            }
            if rest == ExprId::EMPTY || before.len() == MAX_BEFORE {
                return Ok(None);
            }
            before.push(first);
            at = rest;
        };
        let (mut of, mut but) = (Vec::new(), Vec::new());
        for &part in &parts {
            match *self.node(part) {
                Node::Not(inner) => but.push(inner),
                _ => of.push(part),
            }
        }
        if but.is_empty() {
            return Ok(None);
        }
        let (of, but) = (self.and(of)?, self.or(but)?);
        let mut without = self.concat(of, rest)?;
        let mut head = ExprId::EMPTY;
        for &part in before.iter().rev() {
            (without, head) = (self.concat(part, without)?, self.concat(part, head)?);
        }
        Ok(Some(Exception { head, of, but, rest, without }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::{ExpressionLimits, Expressions};
    use crate::{Budget, CharClass, Regex};

    #[test]
    fn a_name_that_is_none_of_some_is_a_name() {
        let limits =
            ExpressionLimits { max_expressions: 1000, max_nesting: 100, max_visited: 1000 };
        let mut expressions = Expressions::new(limits).unwrap();
        let name = || Regex::Class(CharClass::new([('a', 'z')])).repeat(0, None);
        let but = || Regex::complement(Regex::alternate(["ab", "c"].map(Regex::literal)));
        let quoted = |inner| Regex::concat([Regex::literal(" \""), inner, Regex::literal("\"")]);
        let mut compile =
            |regex: Regex| expressions.making(&mut Budget::unlimited()).compile(&regex).unwrap();
        let any = compile(quoted(name()));
        let other = compile(quoted(Regex::and([name(), but()])));
        let (head, rest) = (compile(Regex::literal(" \"")), compile(Regex::literal("\"")));
        let exception = |expressions: &mut Expressions, of| {
            expressions.making(&mut Budget::unlimited()).exception(of)
        };
        let found = exception(&mut expressions, other).unwrap().expect("it has one");
        assert_eq!((found.head, found.rest), (head, rest));
        let derived = |expressions: &mut Expressions, of, text: &[u8]| {
            let mut making = Budget::unlimited();
            let mut making = expressions.making(&mut making);
            text.iter().try_fold(of, |of, &byte| making.derive(of, byte)).unwrap()
        };
        // Within UTF-8 or not, both are the same names.
        for text in [" \"ab\"", " \"c\"", " \"d\"", " \"", " \"A"] {
            let [a, b] =
                [found.without, any].map(|of| derived(&mut expressions, of, text.as_bytes()));
            assert_eq!(a == ExprId::NEVER, b == ExprId::NEVER, "{text}");
        }
        assert_eq!(derived(&mut expressions, found.but, b"ab"), ExprId::EMPTY);
        assert_eq!(exception(&mut expressions, any), Ok(None));
    }
}
