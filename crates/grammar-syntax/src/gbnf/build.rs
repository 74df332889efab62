//! Makes the grammar: what is regular becomes terminals, as large as it goes; the rest rules.

use std::collections::{BTreeMap, HashMap};

use palmette_grammar_regex::parse::restrict::{is_nullable, non_empty};

use super::{
    GbnfError,
    collapse::{Collapsed, Measure, Regular, choice, sequence},
    repeat::Repeats,
    syntax::{Definition, Expression, Kind},
};
use crate::{
    Budget, Grammar, GrammarBuilder, Lexing, NonterminalId, Regex, Span, Symbol, Terminal,
    TerminalId, TerminalKind,
};

pub(super) fn build(
    source: &str,
    rules: &[Definition],
    root: &str,
    budget: &mut Budget<'_>,
) -> Result<Grammar, GbnfError> {
    let index = check_names(source, rules, root)?;
    let root = index[root];
    let mut builder = Builder {
        source,
        rules,
        regular: Regular::find(rules, index.clone(), budget.split_off()),
        index,
        made: GrammarBuilder::new(),
        terminals: HashMap::new(),
        nonterminals: vec![None; rules.len()],
        open: Vec::new(),
        repeats: Repeats::default(),
        own: root,
        num_parts: 0,
    };
    let start = builder.nonterminal(root);
    while let Some(rule) = builder.open.pop() {
        builder.own = rule;
        let head = builder.nonterminal(rule);
        let bodies = builder.bodies(&rules[rule].body);
        bodies.into_iter().for_each(|body| builder.made.rule(head, body));
        if let Some(why) = builder.regular.stopped() {
            return Err(GbnfError::stopped(source, rules[rule].place, why));
        }
    }
    builder.regular.join(budget);
    Ok(builder.made.build(start, Lexing::Any))
}

/// The rules by name.
fn check_names<'a>(
    source: &str,
    rules: &'a [Definition],
    root: &str,
) -> Result<BTreeMap<&'a str, usize>, GbnfError> {
    let error = |(start, end), message| {
        let span = Span::locate(source, start, end);
        Err(GbnfError { span, message, interrupted: None })
    };
    let mut index = BTreeMap::new();
    for (at, rule) in rules.iter().enumerate() {
        if let Some(before) = index.insert(&*rule.name, at) {
            let (start, end) = rules[before].place;
            let first = Span::locate(source, start, end);
            let message = format!(
                "rule `{}` is defined a second time (first at {first}); put both into one with `|`, or rename one",
                rule.name
            );
            return error(rule.place, message);
        }
    }
    if !index.contains_key(root) {
        let names: Vec<_> = rules.iter().take(8).map(|rule| format!("`{}`", rule.name)).collect();
        let more = if rules.len() > names.len() { ", …" } else { "" };
        let message = format!(
            "there is no rule `{root}`, which is the whole text's; define it, or start at another (there are: {}{more})",
            names.join(", ")
        );
        return error((0, 0), message);
    }
    for rule in rules {
        let mut unknown = None;
        rule.body.references(&mut |name, place| {
            if !index.contains_key(name) && unknown.is_none() {
                unknown = Some((name, place));
            }
        });
        if let Some((name, place)) = unknown {
            let way_out = "define it, or put it in `\"` if the text is meant";
            return error(place, format!("there is no rule `{name}`; {way_out}"));
        }
    }
    Ok(index)
}

struct Builder<'a> {
    source: &'a str,
    rules: &'a [Definition],
    regular: Regular<'a>,
    index: BTreeMap<&'a str, usize>,
    made: GrammarBuilder,
    terminals: HashMap<Regex, TerminalId>,
    /// Nonterminals by rule, made when it is mentioned.
    nonterminals: Vec<Option<NonterminalId>>,
    /// Rules that are mentioned and have no bodies yet.
    open: Vec<usize>,
    repeats: Repeats,
    /// The rule whose body is made, after which its parts are named.
    own: usize,
    num_parts: usize,
}

impl Builder<'_> {
    /// The bodies of a nonterminal for `expression`.
    fn bodies(&mut self, expression: &Expression) -> Vec<Vec<Symbol>> {
        if let Some(regular) = self.regular.expression(expression) {
            return self.regular_bodies(&regular, self.name_of(expression.place), expression.place);
        }
        let Kind::Choice(options) = &expression.kind else {
            return vec![self.symbols(expression)];
        };
        let mut bodies = Vec::new();
        // Neighbours that are regular become one terminal.
        for (regular, run) in self.runs(options, choice) {
            match regular {
                Some(regular) => {
                    let name = self.name_of(whole(run));
                    bodies.extend(self.regular_bodies(&regular, name, whole(run)));
                }
                None => bodies.extend(run.iter().flat_map(|option| self.bodies(option))),
            }
        }
        bodies
    }

    fn regular_bodies(
        &mut self,
        regular: &Collapsed,
        name: String,
        place: (usize, usize),
    ) -> Vec<Vec<Symbol>> {
        let (regex, size) = (&regular.regex, regular.size());
        let mut bodies = Vec::new();
        if self.regular.spend(size).is_none() {
            return bodies;
        }
        if is_nullable(regex) {
            bodies.push(Vec::new());
        }
        match non_empty(regex) {
            Regex::Never => {}
            regex => bodies.push(vec![Symbol::Terminal(self.terminal(regex, name, place))]),
        }
        bodies
    }

    /// One body for `expression`, which is not regular.
    fn symbols(&mut self, expression: &Expression) -> Vec<Symbol> {
        match &expression.kind {
            // These are regular, unless the budget is used up: then what is made is thrown away.
            Kind::Literal(_) | Kind::Class(_) | Kind::Pattern(_) => Vec::new(),
            Kind::FreeText(regex) => {
                let name = "free text".to_owned();
                vec![Symbol::Terminal(self.terminal(regex.clone(), name, expression.place))]
            }
            Kind::Embedded(grammar) => {
                let start = self.made.embed(grammar);
                vec![Symbol::Nonterminal(start.expect("literals and rules of them"))]
            }
            Kind::Tokens(tokens) => {
                let (name, regex) = (self.name_of(expression.place), Regex::Tokens(tokens.clone()));
                vec![Symbol::Terminal(self.terminal(regex, name, expression.place))]
            }
            Kind::Members(slot) => {
                let slot = self.made.slot(slot.clone());
                vec![Symbol::Terminal(self.made.member_terminal(slot, None))]
            }
            Kind::Reference(name) => {
                vec![Symbol::Nonterminal(self.nonterminal(self.index[&**name]))]
            }
            Kind::Choice(_) => {
                let bodies = self.bodies(expression);
                self.one_of(bodies, expression.place)
            }
            Kind::Repeat(inner, min, max) => {
                let what = match &self.symbols_or_regular(inner)[..] {
                    &[only] => only,
                    several => self.part(vec![several.to_vec()], inner.place),
                };
                let (own, num_parts) = (self.rules[self.own].name.clone(), &mut self.num_parts);
                self.repeats.symbols(&mut self.made, what, *min, *max, &mut || {
                    *num_parts += 1;
                    format!("{own}#{num_parts}")
                })
            }
            Kind::Sequence(parts) => {
                let parts = flatten(parts);
                let mut symbols = Vec::new();
                for (regular, run) in self.runs(&parts, sequence) {
                    match regular {
                        Some(regular) => {
                            let name = self.name_of(whole(run));
                            let bodies = self.regular_bodies(&regular, name, whole(run));
                            symbols.extend(self.one_of(bodies, whole(run)));
                        }
                        None => symbols.extend(run.iter().flat_map(|part| self.symbols(part))),
                    }
                }
                symbols
            }
        }
    }

    fn symbols_or_regular(&mut self, expression: &Expression) -> Vec<Symbol> {
        // What is too large to be one expression may have parts that are not.
        match self.regular.expression(expression) {
            Some(_) => {
                let bodies = self.bodies(expression);
                self.one_of(bodies, expression.place)
            }
            None => self.symbols(expression),
        }
    }

    /// Stretches of regular expressions, put together by `join` as far as they are not too large,
    /// and the others one by one.
    fn runs<'e, E: std::borrow::Borrow<Expression>>(
        &self,
        parts: &'e [E],
        join: fn(&[Collapsed]) -> Option<Collapsed>,
    ) -> Vec<(Option<Collapsed>, &'e [E])> {
        let mut runs: Vec<(Vec<Collapsed>, &[E])> = Vec::new();
        let mut measure = Measure::default();
        for at in 0..parts.len() {
            let part = parts[at..=at].iter();
            let regular: Vec<_> =
                part.filter_map(|part| self.regular.expression(part.borrow())).collect();
            let goes_on =
                !regular.is_empty() && runs.last().is_some_and(|(run, _)| !run.is_empty());
            let together = regular.iter().fold(measure, Measure::with);
            if goes_on && together.is_small() {
                let (run, there) = runs.last_mut().expect("a run that goes on");
                *there = &parts[at - run.len()..=at];
                run.extend(regular);
                measure = together;
            } else {
                measure = regular.iter().fold(Measure::default(), Measure::with);
                runs.push((regular, &parts[at..=at]));
            }
        }
        let joined = |(run, there): (Vec<Collapsed>, _)| match run.len() {
            0 => (None, there),
            1 => (run.into_iter().next(), there),
            _ => (join(&run), there),
        };
        runs.into_iter().map(joined).collect()
    }

    /// The symbols of what has these bodies.
    fn one_of(&mut self, mut bodies: Vec<Vec<Symbol>>, place: (usize, usize)) -> Vec<Symbol> {
        match bodies.len() {
            1 => bodies.remove(0),
            _ => vec![self.part(bodies, place)],
        }
    }

    fn part(&mut self, bodies: Vec<Vec<Symbol>>, (start, end): (usize, usize)) -> Symbol {
        self.num_parts += 1;
        let name = format!("{}#{}", self.rules[self.own].name, self.num_parts);
        let span = Span::locate(self.source, start, end);
        let head = self.made.nonterminal(name, Some(span));
        bodies.into_iter().for_each(|body| self.made.rule(head, body));
        Symbol::Nonterminal(head)
    }

    fn nonterminal(&mut self, rule: usize) -> NonterminalId {
        if let Some(known) = self.nonterminals[rule] {
            return known;
        }
        let Definition { name, place: (start, end), .. } = &self.rules[rule];
        let span = Span::locate(self.source, *start, *end);
        let new = self.made.nonterminal(name.clone(), Some(span));
        self.nonterminals[rule] = Some(new);
        self.open.push(rule);
        new
    }

    fn terminal(&mut self, regex: Regex, name: String, (start, end): (usize, usize)) -> TerminalId {
        if let Some(&known) = self.terminals.get(&regex) {
            return known;
        }
        let (name, kind) = match &regex {
            Regex::Literal(text) => (format!("{text:?}"), TerminalKind::Literal),
            _ => (name, TerminalKind::Pattern),
        };
        let span = Some(Span::locate(self.source, start, end));
        let terminal = Terminal { name, regex: regex.clone(), priority: 0, kind, span };
        let id = self.made.terminal(terminal);
        self.terminals.insert(regex, id);
        id
    }

    /// The source there, its blanks one each.
    fn name_of(&self, (start, end): (usize, usize)) -> String {
        self.source[start..end].split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The span from the first part to the last.
fn whole<E: std::borrow::Borrow<Expression>>(parts: &[E]) -> (usize, usize) {
    let first = parts.first().map_or(0, |part| part.borrow().place.0);
    (first, parts.last().map_or(first, |part| part.borrow().place.1))
}

/// The parts of sequences within sequences.
fn flatten(parts: &[Expression]) -> Vec<&Expression> {
    let inner = |part| match part {
        &Expression { kind: Kind::Sequence(ref parts), .. } => flatten(parts),
        other => vec![other],
    };
    parts.iter().flat_map(inner).collect()
}
