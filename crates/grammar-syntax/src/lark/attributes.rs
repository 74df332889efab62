//! Attributes of rules, `name[lazy]: …`, as llguidance writes them.
//!
//! `lazy` makes a rule a terminal whose lexemes are those of which no beginning is one; `suffix=…`
//! does so for the rule and what comes after it. `distinct=shop` makes a rule a scope in which no
//! item of the set `shop` comes twice, `record=shop` one in which all members of the set are of one
//! item; such a rule begins and ends with a terminal. `max_tokens=…` makes a rule a
//! [terminal](super::limited_rules), a lexeme of which has so many tokens at most. `capture` and
//! `temperature` are about what is done with a text, and change nothing about which texts there
//! are: they are read, and a warning. Nor does `stop=""`.

use std::num::NonZeroU32;

use super::parse::Parser;
use super::syntax::{Definition, Expr, Name, RuleScope, SHORTEST, Statement};
use super::tokens::Kind;
use crate::catalog_references::check_name;
use crate::{CharClass, Regex, ScopeKind};

/// Demands of a rule's attributes on its body.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    lazy: bool,
    suffix: Option<Expr>,
    scope: Option<RuleScope>,
    max_tokens: Option<u32>,
}

impl Parser<'_, '_> {
    /// `[name, name=value, …]`, if that is next.
    pub(super) fn attributes(&mut self) -> Option<Attributes> {
        let mut attributes = Attributes::default();
        if !self.take(Kind::Mark('[')) {
            return Some(attributes);
        }
        while !self.take(Kind::Mark(']')) {
            self.attribute(&mut attributes)?;
            if !self.take(Kind::Mark(',')) {
                self.expect(']', "to close the attributes")?;
                break;
            }
        }
        Some(attributes)
    }

    fn attribute(&mut self, attributes: &mut Attributes) -> Option<()> {
        if !self.is_name() {
            return self.unexpected("an attribute is a name, or `name=value`");
        }
        let name = self.name()?;
        let value = match self.take(Kind::Mark('=')) {
            true => Some(self.next()),
            false => None,
        };
        let text = value.as_ref().map(|word| self.text(&word.range).to_owned());
        match (&*name.text, text.as_deref()) {
            ("temperature", Some(_)) => {
                // With digits after a point.
                if self.take(Kind::Mark('.')) {
                    self.next();
                }
                let message =
                    "`temperature` has no effect: a text is drawn at its request's temperature";
                self.problems.warn(&name.range, message);
            }
            ("capture" | "stop_capture", _) => {
                let message = format!(
                    "`{}` has no effect: an answer is its whole text, in which the rule's part is found by its grammar",
                    name.text
                );
                self.problems.warn(&name.range, message);
            }
            ("stop", Some("\"\"")) => {}
            ("lazy", None) => attributes.lazy = true,
            ("max_tokens", count) => {
                let range = value.as_ref().map_or(&name.range, |word| &word.range);
                let is_whole = !matches!(self.peek().kind, Kind::Mark('.') | Kind::RuleName);
                let count = count.filter(|_| is_whole).and_then(|count| count.parse().ok());
                let Some(count) = count else {
                    let rule = "max_tokens is a whole number below 2^32: `max_tokens=100`";
                    self.problems.add(range, rule);
                    return None;
                };
                if attributes.max_tokens.is_some() {
                    self.problems.add(range, "max_tokens is given twice: a rule has one limit");
                    return None;
                }
                attributes.max_tokens = Some(count);
            }
            ("distinct" | "record", Some(set)) => {
                let range = value.map_or(name.range.clone(), |word| word.range);
                if let Err(reason) = check_name(set, "a set") {
                    self.problems.add(&range, reason);
                    return None;
                }
                if attributes.scope.is_some() {
                    self.problems.add(
                        &name.range,
                        "a rule is one scope of members: `distinct` or `record`, once",
                    );
                    return None;
                }
                let kind = match &*name.text {
                    "record" => ScopeKind::Record,
                    _ => ScopeKind::Distinct { at_most: None },
                };
                attributes.scope =
                    Some(RuleScope { set: Name { text: set.to_owned(), range }, kind });
            }
            ("suffix", Some(_)) => {
                // The value is an atom, to be read again as one.
                self.back();
                attributes.suffix = Some(self.atom()?);
            }
            _ => {
                let message = format!(
                    "there is no attribute `{}` here; there are lazy, suffix=TERMINAL, distinct=SET, record=SET, capture, \
                     temperature, max_tokens and stop=\"\"; for what ends a text write `suffix=…`",
                    name.text
                );
                self.problems.add(&name.range, message);
                return None;
            }
        }
        Some(())
    }

    /// A definition with what its attributes ask of it: a scope, or a terminal of its own for its
    /// body.
    pub(super) fn with_attributes(
        &mut self,
        mut rule: Definition,
        Attributes { lazy, suffix, scope, max_tokens }: Attributes,
    ) -> Definition {
        rule.scope = scope;
        let limit = match max_tokens.map(NonZeroU32::new) {
            // No token, no text.
            Some(None) => {
                rule.body = Expr::Sequence(Vec::new());
                return rule;
            }
            limit => limit.flatten(),
        };
        match lazy || suffix.is_some() {
            true => rule.body = self.shortest_terminal(&rule.name, (rule.body, suffix), limit),
            false => rule.max_tokens = limit,
        }
        rule
    }

    /// Defines a terminal whose lexemes are the texts of a body, and of what comes after it, of
    /// which no beginning is one.
    fn shortest_terminal(
        &mut self,
        rule: &Name,
        (body, suffix): (Expr, Option<Expr>),
        max_tokens: Option<NonZeroU32>,
    ) -> Expr {
        let range = rule.range.clone();
        let whole = Expr::Sequence(std::iter::once(body).chain(suffix).collect());
        let any = Regex::Class(CharClass::any()).repeat(1, None);
        let more = Expr::Regex { regex: any, range: range.clone() };
        let longer = Expr::Not(Box::new(Expr::Sequence(vec![whole.clone(), more])), range.clone());
        // No name that is written has this sign.
        let name = Name { text: format!("{}{SHORTEST}", rule.text), range: range.clone() };
        let body = Expr::And(vec![whole, longer], range);
        let terminal = Definition { max_tokens, ..Definition::terminal(name.clone(), body) };
        self.statements.push(Statement::Define(terminal));
        Expr::Terminal(name)
    }
}
