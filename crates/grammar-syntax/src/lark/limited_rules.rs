//! Terminals of rules with limits on tokens, rules within them written as expressions.
//!
//! Tokens are counted of lexemes, so that a rule with a limit is made a terminal. A rule within it
//! gets a terminal of its own beside it, which is an expression of the same texts; between its
//! lexemes there may be what is ignored, as between a rule's. Of a rule that is built of itself, or
//! has other than texts within, there is no such expression: its limit is a warning. O(the
//! grammar) a limited rule; what the expressions come to when written out is bounded where
//! terminals are built.

use std::collections::{BTreeMap, HashMap};

use super::definitions::Definitions;
use super::error::Problems;
use super::syntax::{Definition, Expr, LIMITED, Name, WITHIN};

/// Makes each rule with a limit a terminal that has it; what cannot be one is a warning.
pub(super) fn write_terminals(definitions: &mut Definitions, problems: &mut Problems<'_>) {
    let ignored = ignored(definitions);
    let (mut made, mut within) = (Vec::new(), BTreeMap::new());
    let mut needs_blanks = false;
    let rules = definitions.list.iter().enumerate().filter(|(_, rule)| !rule.is_terminal);
    for (index, rule) in rules.filter(|(_, rule)| rule.max_tokens.is_some()) {
        if problems.spend(definitions.list.len()).is_none() {
            return;
        }
        let reached = match rules_within(definitions, rule) {
            Ok(reached) => reached,
            Err(why) => {
                let message = format!(
                    "the limit on tokens is not enforced: they are counted of rules that are expressions of texts, and {why}"
                );
                problems.warn(&rule.name.range, message);
                continue;
            }
        };
        // One lexeme has nothing between.
        let has_blanks = !reached.is_empty() || !is_one_lexeme(&rule.body);
        let blanks = ignored.as_ref().filter(|_| has_blanks).map(|blanks| &blanks.name);
        needs_blanks |= blanks.is_some();
        made.push((index, terminal(rule, LIMITED, blanks)));
        let reached = reached.into_iter();
        within.extend(
            reached.map(|inner| (inner, terminal(&definitions.list[inner], WITHIN, blanks))),
        );
    }
    for rule in definitions.list.iter_mut().filter(|rule| !rule.is_terminal) {
        rule.max_tokens = None;
    }
    if needs_blanks {
        ignored.into_iter().for_each(|ignored| definitions.add(ignored));
    }
    for (index, terminal) in made {
        definitions.list[index].body = Expr::Terminal(terminal.name.clone());
        definitions.add(terminal);
    }
    for terminal in within.into_values() {
        definitions.add(terminal);
    }
}

/// True for an expression that is one lexeme of a rule, whichever it is.
fn is_one_lexeme(body: &Expr) -> bool {
    match body {
        Expr::Sequence(parts) => parts.len() < 2 && parts.iter().all(is_one_lexeme),
        Expr::Choice(parts) => parts.iter().all(is_one_lexeme),
        Expr::Maybe(inner) => is_one_lexeme(inner),
        Expr::Repeat { inner, max, .. } => *max == Some(1) && is_one_lexeme(inner),
        _ => true,
    }
}

/// A terminal of a rule's texts and limit. No name that is written has the sign.
fn terminal(rule: &Definition, sign: &str, blanks: Option<&Name>) -> Definition {
    let name = Name { text: format!("{}{sign}", rule.name.text), ..rule.name.clone() };
    let terminal = Definition::terminal(name, expression(&rule.body, blanks));
    Definition { max_tokens: rule.max_tokens, ..terminal }
}

/// The rules that an expression of a rule has within; why there is none, where it has none.
fn rules_within(definitions: &Definitions, rule: &Definition) -> Result<Vec<usize>, String> {
    enum State {
        Open,
        Done,
    }
    let own = &*rule.name.text;
    let mut states: HashMap<&str, State> = HashMap::from([(own, State::Open)]);
    let mut reached = Vec::new();
    // Chains may be as long as the grammar: no recursion.
    let mut path = vec![(own, None, mentioned(definitions, rule)?)];
    while let Some((name, index, waiting)) = path.last_mut() {
        let Some(next) = waiting.pop() else {
            states.insert(name, State::Done);
            reached.extend(*index);
            path.pop();
            continue;
        };
        match states.get(next) {
            Some(State::Done) => {}
            Some(State::Open) => return Err(format!("`{next}` is built of itself")),
            None => {
                // A name without a definition is an error of its own.
                let Some((index, inner)) = definitions.get(next) else {
                    return Err(format!("`{next}` is not defined"));
                };
                states.insert(next, State::Open);
                path.push((next, Some(index), mentioned(definitions, inner)?));
            }
        }
    }
    Ok(reached)
}

/// The rules that a rule mentions; what it is or has that no expression has, where there is such.
fn mentioned<'d>(
    definitions: &'d Definitions,
    rule: &'d Definition,
) -> Result<Vec<&'d str>, String> {
    let name = &rule.name.text;
    if rule.scope.is_some() {
        return Err(format!("`{name}` is a scope of members"));
    }
    let (mut names, mut waiting) = (Vec::new(), vec![&rule.body]);
    while let Some(expr) = waiting.pop() {
        match expr {
            Expr::Rule(inner) if rule.parameters.iter().any(|own| own.text == inner.text) => {
                return Err(format!("`{name}` is a template"));
            }
            Expr::Rule(inner) => names.push(&*inner.text),
            // A name in capitals may stand for members of a set, or for a line's end by
            // indentation.
            Expr::Terminal(inner) => match definitions.get(&inner.text) {
                Some((_, found)) if !found.is_terminal => names.push(&*inner.text),
                Some((_, found)) if matches!(found.body, Expr::Declared) => {
                    return Err(format!("`{}` is only declared", inner.text));
                }
                _ => {}
            },
            Expr::Template { name: inner, .. } => {
                return Err(format!("`{}` is a template", inner.text));
            }
            Expr::Parametric { name: inner, .. } => {
                return Err(format!("`{}` is a rule for each number", inner.text));
            }
            Expr::If { .. } => return Err(format!("`{name}` is a rule for each number")),
            Expr::Tokens { tokens, .. } => {
                return Err(format!("`{name}` has the token {tokens} within"));
            }
            Expr::Embedded { .. } => return Err(format!("`{name}` has a grammar within")),
            Expr::Declared => return Err(format!("`{name}` is only declared")),
            Expr::Sequence(parts) | Expr::Choice(parts) | Expr::And(parts, _) => {
                waiting.extend(parts);
            }
            Expr::Maybe(inner) | Expr::Repeat { inner, .. } | Expr::Not(inner, _) => {
                waiting.push(inner);
            }
            Expr::Literal { .. } | Expr::Characters { .. } | Expr::Regex { .. } => {}
        }
    }
    Ok(names)
}

/// A terminal of what may stand between lexemes; none where nothing is ignored.
fn ignored(definitions: &Definitions) -> Option<Definition> {
    let (_, range) = definitions.ignored.first()?;
    let each = definitions.ignored.iter().map(|(expr, _)| expr.clone()).collect();
    let any = Expr::Repeat { inner: Box::new(Expr::Choice(each)), min: 0, max: None };
    let name = Name { text: format!("%ignore{WITHIN}"), range: range.clone() };
    Some(Definition::terminal(name, any))
}

/// A rule's body over terminals: rules within by their terminals, and blanks after each lexeme.
fn expression(body: &Expr, blanks: Option<&Name>) -> Expr {
    let all = |parts: &[Expr]| parts.iter().map(|part| expression(part, blanks)).collect();
    let one = |inner: &Expr| Box::new(expression(inner, blanks));
    match body {
        Expr::Rule(name) => {
            let text = format!("{}{WITHIN}", name.text);
            Expr::Terminal(Name { text, range: name.range.clone() })
        }
        Expr::Sequence(parts) => Expr::Sequence(all(parts)),
        Expr::Choice(parts) => Expr::Choice(all(parts)),
        Expr::And(parts, range) => Expr::And(all(parts), range.clone()),
        Expr::Maybe(inner) => Expr::Maybe(one(inner)),
        Expr::Not(inner, range) => Expr::Not(one(inner), range.clone()),
        Expr::Repeat { inner, min, max } => {
            Expr::Repeat { inner: one(inner), min: *min, max: *max }
        }
        lexeme => match blanks {
            Some(blanks) => Expr::Sequence(vec![lexeme.clone(), Expr::Terminal(blanks.clone())]),
            None => lexeme.clone(),
        },
    }
}
