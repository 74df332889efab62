//! The syntax tree of a grammar.

use crate::{CharClass, Grammar, Regex, Slot, TokenPattern};

/// `name ::= body`, with byte ranges of the source.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) place: (usize, usize),
    pub(super) body: Expression,
}

#[derive(Clone, Debug)]
pub(super) struct Expression {
    pub(super) kind: Kind,
    /// Byte range of the source.
    pub(super) place: (usize, usize),
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Literal(String),
    Class(CharClass),
    /// Texts of an expression.
    Pattern(Regex),
    /// Texts of an expression that stays a terminal of its own: none is empty.
    FreeText(Regex),
    /// Texts of a grammar that was made elsewhere.
    Embedded(Box<Grammar>),
    /// Tokens by name or number.
    Tokens(TokenPattern),
    /// Members of a set that a request binds.
    Members(Slot),
    /// A rule, by its name.
    Reference(String),
    Sequence(Vec<Expression>),
    Choice(Vec<Expression>),
    Repeat(Box<Expression>, u32, Option<u32>),
}

impl Expression {
    /// Calls `visit` with every reference and its place, from left to right.
    pub(super) fn references<'a>(&'a self, visit: &mut dyn FnMut(&'a str, (usize, usize))) {
        match &self.kind {
            Kind::Literal(_) | Kind::Class(_) | Kind::Pattern(_) | Kind::FreeText(_) => {}
            Kind::Embedded(_) | Kind::Tokens(_) | Kind::Members(_) => {}
            Kind::Reference(name) => visit(name, self.place),
            Kind::Sequence(parts) | Kind::Choice(parts) => {
                parts.iter().for_each(|part| part.references(visit));
            }
            Kind::Repeat(inner, ..) => inner.references(visit),
        }
    }
}
