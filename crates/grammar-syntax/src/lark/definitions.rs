//! Statements to definitions by name, checked: each name is defined once, and what is used is
//! defined.

use std::{collections::HashMap, ops::Range};

use super::{
    error::Problems,
    imports, limited_rules,
    syntax::{Definition, Expr, NUMBER, Name, Statement},
};

/// Statements of a grammar.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Imported ones first, then in the order of the source.
    pub(super) list: Vec<Definition>,
    by_name: HashMap<String, usize>,
    pub(super) ignored: Vec<(Expr, Range<usize>)>,
}

impl Definitions {
    /// Gathers the statements; conflicts and names that nothing defines are added to `problems`.
    pub(super) fn gather(statements: Vec<Statement>, problems: &mut Problems<'_>) -> Self {
        let mut gathered = Self::default();
        let is_import = |statement: &Statement| matches!(statement, Statement::Import { .. });
        let (imports, others): (Vec<_>, Vec<_>) = statements.into_iter().partition(is_import);
        let mut origins: HashMap<String, String> = HashMap::new();
        for statement in imports.into_iter().chain(others) {
            match statement {
                Statement::Import { library, name, as_name } => {
                    let origin = format!("{}.{}", library.text, name.text);
                    if origins.get(&as_name.text) != Some(&origin)
                        && gathered.import(&library, &name, &as_name, problems)
                    {
                        origins.insert(as_name.text, origin);
                    }
                }
                Statement::Define(definition) => gathered.define(definition, problems),
                Statement::Declare(name) => gathered.define(
                    Definition {
                        is_terminal: is_upper(&name.text),
                        ..Definition::terminal(name, Expr::Declared)
                    },
                    problems,
                ),
                Statement::Extend(definition) => gathered.change(definition, true, problems),
                Statement::Override(definition) => gathered.change(definition, false, problems),
                Statement::Ignore(ignored, range) => gathered.ignored.push((ignored, range)),
            }
        }
        gathered.take_sets_for_rules(problems);
        limited_rules::write_terminals(&mut gathered, problems);
        gathered.check(problems);
        gathered
    }

    /// Takes a name that stands for the members of a set, `SKU: %catalog {…}`, for the rule that it
    /// is: no regular expression is known of them.
    fn take_sets_for_rules(&mut self, problems: &mut Problems<'_>) {
        for definition in self.list.iter_mut().filter(|definition| definition.is_terminal) {
            let Expr::Embedded { grammar, range } = &definition.body else { continue };
            if grammar.open_slots().is_empty() || grammar.terminals().len() != 1 {
                continue;
            }
            if definition.priority != 0 {
                let message = "members of a set compete with nothing: leave the priority out";
                problems.add(range, message);
            }
            definition.is_terminal = false;
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<(usize, &Definition)> {
        let &index = self.by_name.get(name)?;
        Some((index, &self.list[index]))
    }

    /// Adds a definition of a name that no source can have.
    pub(super) fn add(&mut self, definition: Definition) {
        self.by_name.insert(definition.name.text.clone(), self.list.len());
        self.list.push(definition);
    }

    fn define(&mut self, definition: Definition, problems: &mut Problems<'_>) {
        let Name { text, range } = definition.name.clone();
        if text.starts_with("__") {
            problems.add(
                &range,
                format!("names that begin with two underscores are made up here: rename `{text}`"),
            );
        } else if let Some((_, first)) = self.get(&text) {
            let first = problems.source.span(&first.name.range);
            problems.add(
                &range,
                format!(
                    "`{text}` is defined twice, first at {first}: remove one, join them by `|`, or say %extend or \
                     %override"
                ),
            );
        } else {
            self.add(definition);
        }
    }

    /// `%extend` or `%override`.
    fn change(&mut self, new: Definition, extend: bool, problems: &mut Problems<'_>) {
        let Name { text, range } = &new.name;
        let Some(&index) = self.by_name.get(text) else {
            problems.add(
                range,
                format!("there is no `{text}` above to change: define it as `{text}: …`"),
            );
            return;
        };
        let old = &mut self.list[index];
        let names = |names: &[Name]| names.iter().map(|name| name.text.clone()).collect::<Vec<_>>();
        if !extend {
            *old = new;
        } else if names(&old.parameters) != names(&new.parameters) {
            problems.add(range, format!("`{text}` has other parameters where it is defined"));
        } else if new.max_tokens.is_some() {
            let message =
                format!("`{text}` has its limit on tokens where it is defined: write it there");
            problems.add(range, message);
        } else if matches!(old.body, Expr::Declared) {
            problems.add(range, format!("`{text}` is only declared: there is nothing to extend"));
        } else {
            let before = std::mem::replace(&mut old.body, Expr::Declared);
            old.body = match before {
                // Flat, so that extending often nests nothing.
                Expr::Choice(mut options) => {
                    options.push(new.body);
                    Expr::Choice(options)
                }
                other => Expr::Choice(vec![other, new.body]),
            };
        }
    }

    fn import(
        &mut self,
        library: &Name,
        name: &Name,
        as_name: &Name,
        problems: &mut Problems<'_>,
    ) -> bool {
        let Some(known) = imports::library(&library.text) else {
            let message = if library.text.is_empty() {
                "%import is written `%import common.NAME`: which library?".to_owned()
            } else {
                format!(
                    "there is no library `{}`, only `common` and `unicode`: copy the definitions that you need into this grammar",
                    library.text
                )
            };
            problems.add(&library.range, message);
            return false;
        };
        let Some(regex) = imports::definition(known, &name.text) else {
            let names = imports::names(known);
            let message = format!("`{}` has no `{}`; it has {names}", library.text, name.text);
            problems.add(&name.range, message);
            return false;
        };
        if !is_upper(&as_name.text) {
            problems
                .add(&as_name.range, "a terminal can only be imported under an UPPER_CASE name");
            return false;
        }
        let body = Expr::Regex { regex, range: name.range.clone() };
        self.define(Definition::terminal(as_name.clone(), body), problems);
        true
    }

    fn check(&self, problems: &mut Problems<'_>) {
        for definition in &self.list {
            for (at, parameter) in definition.parameters.iter().enumerate() {
                if self.get(&parameter.text).is_some() {
                    let message =
                        format!("parameter `{}` has the name of a rule: rename it", parameter.text);
                    problems.add(&parameter.range, message);
                }
                if definition.parameters[..at].iter().any(|other| other.text == parameter.text) {
                    let message = format!("there are two parameters `{}`", parameter.text);
                    problems.add(&parameter.range, message);
                }
            }
            self.check_expr(
                &definition.body,
                definition.is_terminal,
                &definition.parameters,
                problems,
            );
        }
        for (ignored, _) in &self.ignored {
            self.check_expr(ignored, true, &[], problems);
        }
    }

    fn check_expr(
        &self,
        expr: &Expr,
        in_terminal: bool,
        parameters: &[Name],
        problems: &mut Problems<'_>,
    ) {
        match expr {
            Expr::Rule(name) | Expr::Template { name, .. } | Expr::Parametric { name, .. }
                if in_terminal => problems.add(
                &name.range,
                format!("`{}` is a rule: a terminal is built of texts, regular expressions and terminals", name.text),
            ),
            Expr::Terminal(name)
                if in_terminal && self.get(&name.text).is_some_and(|(_, found)| !found.is_terminal) => problems.add(
                &name.range,
                format!(
                    "`{}` stands for members of a set, which are no part of a terminal: put it into a rule",
                    name.text
                ),
            ),
            Expr::Rule(name) if parameters.iter().any(|known| known.text == name.text) => {}
            Expr::Rule(name) | Expr::Terminal(name) => match self.get(&name.text) {
                None => {
                    // The hint is a search.
                    let hint = if problems.is_full() { String::new() } else { self.similar(&name.text) };
                    let message = format!("`{}` is used but not defined{hint}", name.text);
                    problems.add(&name.range, message);
                }
                Some((_, found)) if found.is_parametric() => {
                    let message = format!("`{0}` is a rule for each number: give it one, `{0}::0`", name.text);
                    problems.add(&name.range, message);
                }
                Some((_, found)) if !found.parameters.is_empty() => {
                    let message = format!("`{0}` is a template: give it its arguments, `{0}{{…}}`", name.text);
                    problems.add(&name.range, message);
                }
                Some(_) => {}
            },
            Expr::Template { name, arguments } => {
                match self.get(&name.text) {
                    Some((_, found)) if found.parameters.len() == arguments.len() => {}
                    Some((_, found)) => {
                        let (expected, given) = (found.parameters.len(), arguments.len());
                        let message = format!("`{}` takes {expected} arguments, not {given}", name.text);
                        problems.add(&name.range, message);
                    }
                    None if parameters.iter().any(|known| known.text == name.text) => problems.add(
                        &name.range,
                        format!("`{}` is a parameter: a template cannot be passed to a template", name.text),
                    ),
                    None => problems.add(&name.range, format!("template `{}` is used but not defined", name.text)),
                }
                for argument in arguments {
                    self.check_expr(argument, false, parameters, problems);
                }
            }
            Expr::Parametric { name, number } => {
                match self.get(&name.text) {
                    Some((_, found)) if found.is_parametric() => {}
                    Some(_) => problems.add(
                        &name.range,
                        format!("`{0}` has no number: define it as `{0}::_: …`, or leave out the `::…`", name.text),
                    ),
                    None => problems.add(&name.range, format!("`{}` is used but not defined", name.text)),
                }
                if number.value.is_relative() && !has_number(parameters) {
                    problems.add(&number.range, OWN_NUMBER);
                }
            }
            Expr::If { range, .. } if in_terminal || !has_number(parameters) => {
                problems.add(range, OWN_NUMBER);
            }
            Expr::If { inner, .. } => self.check_expr(inner, in_terminal, parameters, problems),
            Expr::And(_, range) | Expr::Not(_, range) if !in_terminal => problems.add(
                range,
                "`&` and `~` hold for terminals only: give this a terminal of its own, `NAME: …`",
            ),
            Expr::Sequence(parts) | Expr::Choice(parts) | Expr::And(parts, _) => {
                for part in parts {
                    self.check_expr(part, in_terminal, parameters, problems);
                }
            }
            Expr::Maybe(inner) | Expr::Repeat { inner, .. } | Expr::Not(inner, _) => {
                self.check_expr(inner, in_terminal, parameters, problems);
            }
            Expr::Tokens { range, .. } if in_terminal => problems.add(
                range,
                "a token by name or number has no text, so it is no part of a terminal: put it into a rule",
            ),
            Expr::Embedded { range, .. } if in_terminal => problems.add(
                range,
                "a grammar has rules, so it is no part of a terminal: put it into a rule",
            ),
            Expr::Embedded { .. }
            | Expr::Literal { .. }
            | Expr::Characters { .. }
            | Expr::Regex { .. }
            | Expr::Tokens { .. }
            | Expr::Declared => {}
        }
    }

    /// A hint: a name that differs in case or underscores, or the import that would define it.
    fn similar(&self, name: &str) -> String {
        let plain = |name: &str| name.replace('_', "").to_lowercase();
        if imports::library("common").is_some_and(|all| imports::definition(all, name).is_some()) {
            return format!(": say `%import common.{name}`");
        }
        let wanted = plain(name);
        match self.list.iter().find(|known| plain(&known.name.text) == wanted) {
            Some(known) => format!("; there is `{}`", known.name.text),
            None => String::new(),
        }
    }
}

const OWN_NUMBER: &str = "this is about the number of the rule that it stands in, which has none: define the rule as `name::_: …`, or write a \
                          number";

fn has_number(parameters: &[Name]) -> bool {
    parameters.iter().any(|parameter| parameter.text == NUMBER)
}

fn is_upper(name: &str) -> bool {
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}
