//! A grammar as it is written.

use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use super::rule_number::{Condition, Use};
use crate::{Grammar, Regex, ScopeKind, TokenPattern};

/// A name where it stands.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) text: String,
    pub(super) range: Range<usize>,
}

/// One statement.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// `name: …`
    Define(Definition),
    /// `%extend name: …`
    Extend(Definition),
    /// `%override name: …`
    Override(Definition),
    /// `%import library.name -> as_name`, one of them.
    Import { library: Name, name: Name, as_name: Name },
    /// `%ignore …`
    Ignore(Expr, Range<usize>),
    /// `%declare NAME`, one of them.
    Declare(Name),
}

/// Meaning of a name.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: Name,
    pub(super) is_terminal: bool,
    /// Parameters of a template; `_` alone of a [parametric](super::parametric) rule.
    pub(super) parameters: Vec<Name>,
    /// Priority of a terminal; a rule's decides between parses, not between texts.
    pub(super) priority: i32,
    /// The scope of members that a rule is.
    pub(super) scope: Option<RuleScope>,
    /// The most tokens of a terminal's lexeme; of a rule's text until it is [made a
    /// terminal](super::limited_rules).
    pub(super) max_tokens: Option<NonZeroU32>,
    pub(super) body: Expr,
}

/// A scope of members that a rule is, from its first terminal to its last.
#[derive(Clone, Debug)]
pub(super) struct RuleScope {
    /// The name of the set, where it stands.
    pub(super) set: Name,
    pub(super) kind: ScopeKind,
}

/// Ends of the names of terminals that attributes make of rules; no name that is written has one.
const SIGNS: [&str; 3] = [SHORTEST, LIMITED, WITHIN];
pub(super) const SHORTEST: &str = "#LAZY";
pub(super) const LIMITED: &str = "#TOKENS";
/// Sign of terminals of rules within a limited rule.
pub(super) const WITHIN: &str = "#WITHIN";

/// The name of the rule that a terminal was made of; the name itself of another.
pub(super) fn written_name(name: &str) -> &str {
    SIGNS.iter().find_map(|sign| name.strip_suffix(sign)).unwrap_or(name)
}

/// The name of a parametric rule's number.
pub(super) const NUMBER: &str = "_";

impl Definition {
    /// A terminal without attributes.
    pub(super) fn terminal(name: Name, body: Expr) -> Self {
        Self {
            name,
            is_terminal: true,
            parameters: Vec::new(),
            priority: 0,
            scope: None,
            max_tokens: None,
            body,
        }
    }

    /// Tells if it is a rule for each number.
    pub(super) fn is_parametric(&self) -> bool {
        matches!(&*self.parameters, [only] if only.text == NUMBER)
    }
}

/// The right side of a definition. Aliases (`-> name`) name parts of a parse tree and are gone.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Rule(Name),
    Terminal(Name),
    /// `"text"` or `"text"i`; not empty.
    Literal {
        text: String,
        regex: Regex,
        ignore_case: bool,
        range: Range<usize>,
    },
    /// `"a".."z"`
    Characters {
        low: char,
        high: char,
        range: Range<usize>,
    },
    /// `/regex/`, read.
    Regex {
        regex: Regex,
        range: Range<usize>,
    },
    /// `<|name|>`, `<[7]>`
    Tokens {
        tokens: TokenPattern,
        range: Range<usize>,
    },
    /// `%json {…}` and its like, read.
    Embedded {
        grammar: Arc<Grammar>,
        range: Range<usize>,
    },
    /// Stands alone as the body of a terminal that `%declare` names.
    Declared,
    /// `name{arguments}`
    Template {
        name: Name,
        arguments: Vec<Expr>,
    },
    /// `name::…`
    Parametric {
        name: Name,
        number: Use,
    },
    /// `… %if …`
    If {
        inner: Box<Expr>,
        condition: Condition,
        range: Range<usize>,
    },
    Sequence(Vec<Expr>),
    Choice(Vec<Expr>),
    /// `[…]`
    Maybe(Box<Expr>),
    /// `…?`, `…*`, `…+`, `…~n..m`
    Repeat {
        inner: Box<Expr>,
        min: u32,
        max: Option<u32>,
    },
    /// `… & …`
    And(Vec<Expr>, Range<usize>),
    /// `~…`
    Not(Box<Expr>, Range<usize>),
}
