//! Rules with groups, options and repetitions to plain rules: `head → symbols`.
//!
//! A choice inside a rule is multiplied out, `a (b | c)?` to `a b | a c | a`, and a repetition gets
//! a rule that grows to the left: both keep an LR parser from having to decide anything early. Two
//! repetitions of the same expression share one rule.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use super::{
    definitions::Definitions,
    emptiness::Emptiness,
    error::Problems,
    options::LarkLimits,
    syntax::{Definition, Expr, NUMBER, RuleScope},
    terminals::Terminals,
};
use crate::{Grammar, NonterminalId, Regex, Symbol, TerminalId, TerminalKind};

/// A rule with more alternatives than this is not multiplied out further: its other choices get
/// rules of their own.
const MAX_ALTERNATIVES: usize = 512;

/// A repetition of at most this many is written out.
const MAX_WRITTEN_OUT: u32 = 8;

/// Names of template instances longer than this are replaced by a number.
const MAX_NAME: usize = 120;

/// Cost of a symbol that is written, or gone over.
const UNITS_PER_SYMBOL: usize = 8;

/// A nonterminal and what it may be.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) range: Range<usize>,
    pub(super) alternatives: Vec<Vec<Symbol>>,
    /// The grammar that it stands for instead.
    pub(super) embedded: Option<Arc<Grammar>>,
    /// The scope of members that it is.
    pub(super) scope: Option<RuleScope>,
}

/// Makes plain rules; a `None` of its methods means that the reason has been reported.
pub(super) struct Lowering<'d, 'p, 'a> {
    definitions: &'d Definitions,
    pub(super) terminals: Terminals,
    problems: &'p mut Problems<'a>,
    limits: &'d LarkLimits,
    pub(super) drafts: Vec<Draft>,
    /// Nonterminals by place in the definitions.
    rules: HashMap<usize, NonterminalId>,
    instances: HashMap<(usize, Vec<Body>), NonterminalId>,
    /// Instances of templates whose bodies are still to be made.
    waiting: Vec<(NonterminalId, usize, Vec<Body>)>,
    repetitions: HashMap<Body, NonterminalId>,
    choices: HashMap<Vec<Vec<Symbol>>, NonterminalId>,
    counted: HashMap<(Symbol, Count), NonterminalId>,
    /// The rule that is being made.
    current: (String, Range<usize>),
    made_up: usize,
    /// Symbols that may still be written.
    budget: usize,
}

/// An expression over symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Body {
    Symbol(Symbol),
    Sequence(Vec<Body>),
    Choice(Vec<Body>),
    /// The empty text for which `[…]` leaves a gap in a parse tree.
    Gap,
    /// The argument of a parametric rule.
    Number(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Count {
    Exactly(u32),
    AtMost(u32),
}

type Parameters<'e> = HashMap<&'e str, Body>;

impl<'d, 'p, 'a> Lowering<'d, 'p, 'a> {
    pub(super) fn new(
        definitions: &'d Definitions,
        terminals: Terminals,
        limits: &'d LarkLimits,
        problems: &'p mut Problems<'a>,
    ) -> Self {
        Self {
            definitions,
            terminals,
            problems,
            limits,
            drafts: Vec::new(),
            rules: HashMap::new(),
            instances: HashMap::new(),
            waiting: Vec::new(),
            repetitions: HashMap::new(),
            choices: HashMap::new(),
            counted: HashMap::new(),
            current: (String::new(), 0..0),
            made_up: 0,
            budget: limits.rule_symbols,
        }
    }

    /// Makes every rule that is no template, and the instances of templates that they use.
    pub(super) fn all(&mut self) -> Option<()> {
        let plain =
            |definition: &&Definition| !definition.is_terminal && definition.parameters.is_empty();
        let definitions = self.definitions.list.iter().enumerate();
        let rules: Vec<_> = definitions.filter(|(_, definition)| plain(definition)).collect();
        for &(index, definition) in &rules {
            let name = &definition.name;
            let id = self.nonterminal(name.text.clone(), name.range.clone());
            self.rules.insert(index, id);
        }
        for &(index, definition) in &rules {
            self.rule(self.rules[&index], definition, &HashMap::new())?;
        }
        let mut done = 0;
        while let Some((id, template, arguments)) = self.waiting.get(done).cloned() {
            done += 1;
            let definition = &self.definitions.list[template];
            let names = definition.parameters.iter().map(|name| &*name.text);
            self.rule(id, definition, &names.zip(arguments).collect())?;
        }
        Some(())
    }

    /// The nonterminal of a rule by its place in the definitions.
    pub(super) fn rule_id(&self, index: usize) -> Option<NonterminalId> {
        self.rules.get(&index).copied()
    }

    fn rule(
        &mut self,
        id: NonterminalId,
        definition: &'d Definition,
        parameters: &Parameters<'_>,
    ) -> Option<()> {
        self.current = (self.drafts[id.index()].name.clone(), definition.name.range.clone());
        if matches!(definition.body, Expr::Declared) {
            // Without a rule it matches nothing; the author meant it to come from elsewhere.
            let message = format!("rule `{}` is only declared: define it", definition.name.text);
            self.problems.add(&definition.name.range, message);
            return None;
        }
        let body = self.body(&definition.body, parameters)?;
        self.drafts[id.index()].alternatives = self.alternatives(&body)?;
        self.drafts[id.index()].scope = definition.scope.clone();
        Some(())
    }

    fn body(&mut self, expr: &Expr, parameters: &Parameters<'_>) -> Option<Body> {
        self.problems.spend(UNITS_PER_SYMBOL)?;
        match expr {
            Expr::Rule(name) => match parameters.get(&*name.text) {
                Some(argument) => Some(argument.clone()),
                None => {
                    let (index, _) = self.definitions.get(&name.text)?;
                    Some(Body::Symbol(Symbol::Nonterminal(self.rules[&index])))
                }
            },
            Expr::Terminal(name) => {
                let (index, definition) = self.definitions.get(&name.text)?;
                match definition.is_terminal {
                    true => self.terminal(self.terminals.named(&name.text)?, &name.range),
                    false => Some(Body::Symbol(Symbol::Nonterminal(self.rules[&index]))),
                }
            }
            Expr::Literal { range, .. }
            | Expr::Regex { range, .. }
            | Expr::Characters { range, .. }
            | Expr::Tokens { range, .. } => {
                let index = self.terminals.anonymous(expr, self.problems)?;
                self.terminal(index, range)
            }
            Expr::Embedded { grammar, range } => {
                self.made_up += 1;
                let name = format!("{}#{}", self.current.0, self.made_up);
                let id = self.nonterminal(name, range.clone());
                self.drafts[id.index()].embedded = Some(Arc::clone(grammar));
                Some(Body::Symbol(Symbol::Nonterminal(id)))
            }
            Expr::Template { name, arguments } => {
                let arguments = arguments.iter().map(|argument| self.body(argument, parameters));
                let arguments = arguments.collect::<Option<Vec<_>>>()?;
                let (index, _) = self.definitions.get(&name.text)?;
                self.instance(index, arguments, &name.range)
            }
            Expr::Parametric { name, number } => {
                let (index, _) = self.definitions.get(&name.text)?;
                let number = Body::Number(number.value.of(own_number(parameters)));
                self.instance(index, vec![number], &name.range)
            }
            Expr::If { inner, condition, .. } => match condition.holds(own_number(parameters)) {
                true => self.body(inner, parameters),
                false => Some(Body::Choice(Vec::new())),
            },
            Expr::Sequence(parts) => {
                let parts = parts.iter().map(|part| self.body(part, parameters));
                Some(Body::Sequence(parts.collect::<Option<_>>()?))
            }
            Expr::Choice(options) => {
                let options = options.iter().map(|option| self.body(option, parameters));
                Some(Body::Choice(options.collect::<Option<_>>()?))
            }
            Expr::Maybe(inner) => {
                let inner = self.body(inner, parameters)?;
                Some(Body::Choice(vec![inner, Body::Gap]))
            }
            Expr::Repeat { inner, min, max } => {
                let inner = self.body(inner, parameters)?;
                self.repeat(inner, *min, *max)
            }
            // Reported by `Definitions::gather`.
            Expr::And(..) | Expr::Not(..) | Expr::Declared => None,
        }
    }

    /// A terminal in a rule: with the empty text beside it where it matches that as well.
    fn terminal(&mut self, index: usize, range: &Range<usize>) -> Option<Body> {
        let draft = &self.terminals.drafts[index];
        let symbol = Body::Symbol(Symbol::Terminal(TerminalId(index as u32)));
        let has_text = draft.kind == TerminalKind::Declared || draft.regex != Regex::Never;
        match draft.emptiness {
            Emptiness::Never => Some(symbol),
            Emptiness::Always if has_text => {
                Some(Body::Choice(vec![symbol, Body::Sequence(Vec::new())]))
            }
            Emptiness::Always => Some(Body::Sequence(Vec::new())),
            Emptiness::Sometimes => {
                let message = format!(
                    "terminal `{}` matches the empty text where what is beside it allows that: make it match at least \
                     one character, or join it with the terminal beside it",
                    draft.name
                );
                self.problems.add(range, message);
                None
            }
        }
    }

    fn instance(
        &mut self,
        template: usize,
        arguments: Vec<Body>,
        range: &Range<usize>,
    ) -> Option<Body> {
        let key = (template, arguments);
        if let Some(&known) = self.instances.get(&key) {
            return Some(Body::Symbol(Symbol::Nonterminal(known)));
        }
        let name = &self.definitions.list[template].name.text;
        if self.instances.len() >= self.limits.template_instances {
            let message = format!(
                "template `{name}` makes more than {} instances (limit `template_instances`): does it use itself \
                 with ever new arguments?",
                self.limits.template_instances
            );
            self.problems.add(range, message);
            return None;
        }
        let arguments: Vec<_> = key.1.iter().map(|argument| self.body_name(argument)).collect();
        let mut name = match &*key.1 {
            [Body::Number(number)] => format!("{name}::{number:#x}"),
            _ => format!("{name}{{{}}}", arguments.join(",")),
        };
        if name.len() > MAX_NAME {
            name = format!(
                "{}{{#{}}}",
                self.definitions.list[template].name.text,
                self.instances.len()
            );
        }
        let id = self.nonterminal(name, range.clone());
        self.waiting.push((id, template, key.1.clone()));
        self.instances.insert(key, id);
        Some(Body::Symbol(Symbol::Nonterminal(id)))
    }

    /// Name of a template's argument.
    fn body_name(&self, body: &Body) -> &str {
        match body {
            Body::Symbol(Symbol::Terminal(id)) => &self.terminals.drafts[id.index()].name,
            Body::Symbol(Symbol::Nonterminal(id)) => &self.drafts[id.index()].name,
            Body::Sequence(parts) | Body::Choice(parts) => {
                parts.first().map_or("", |part| self.body_name(part))
            }
            Body::Gap | Body::Number(_) => "",
        }
    }

    /// `inner~min..max`
    fn repeat(&mut self, inner: Body, min: u32, max: Option<u32>) -> Option<Body> {
        let empty = Body::Sequence(Vec::new());
        match (min, max) {
            (_, Some(0)) => return Some(empty),
            (0, Some(1)) => return Some(Body::Choice(vec![inner, empty])),
            (0, None) => {
                let (repetition, _) = self.repetition(inner, "star")?;
                return Some(Body::Choice(vec![repetition, empty]));
            }
            (1, None) => {
                let (repetition, may_be_empty) = self.repetition(inner, "plus")?;
                return Some(if may_be_empty {
                    Body::Choice(vec![repetition, empty])
                } else {
                    repetition
                });
            }
            _ => {}
        }
        let (item, may_be_empty) = self.item(&inner)?;
        let Some(item) = item else { return Some(empty) };
        let min = if may_be_empty { 0 } else { min };
        let Some(max) = max else {
            let (repetition, _) = self.repetition(Body::Symbol(item), "star")?;
            let more = Body::Choice(vec![repetition, empty]);
            return Some(Body::Sequence(vec![self.exactly(item, min), more]));
        };
        if max <= MAX_WRITTEN_OUT {
            let times = |times: u32| Body::Sequence(vec![Body::Symbol(item); times as usize]);
            return Some(Body::Choice((min..=max).map(times).collect()));
        }
        Some(Body::Sequence(vec![self.exactly(item, min), self.at_most(item, max - min)]))
    }

    /// Once or more often, by a rule; and whether once may be the empty text, which that rule
    /// leaves out.
    fn repetition(&mut self, inner: Body, how: &str) -> Option<(Body, bool)> {
        let mut once = self.alternatives(&inner)?;
        let before = once.len();
        once.retain(|alternative| !alternative.is_empty());
        let may_be_empty = once.len() < before;
        if once.is_empty() {
            return Some((Body::Sequence(Vec::new()), may_be_empty));
        }
        if let Some(&known) = self.repetitions.get(&inner) {
            return Some((Body::Symbol(Symbol::Nonterminal(known)), may_be_empty));
        }
        let id = self.made_up(how);
        let symbol = Symbol::Nonterminal(id);
        self.spend(once.iter().map(|alternative| alternative.len() + 1).sum())?;
        let more = once.iter().map(|alternative| [&[symbol], &alternative[..]].concat());
        let more: Vec<_> = more.collect();
        self.drafts[id.index()].alternatives = once.into_iter().chain(more).collect();
        self.repetitions.insert(inner, id);
        Some((Body::Symbol(symbol), may_be_empty))
    }

    /// One symbol for an expression (none: it has only the empty text), and whether the empty text
    /// is left out there.
    fn item(&mut self, inner: &Body) -> Option<(Option<Symbol>, bool)> {
        let mut alternatives = self.alternatives(inner)?;
        let before = alternatives.len();
        alternatives.retain(|alternative| !alternative.is_empty());
        let may_be_empty = alternatives.len() < before;
        let symbol = match &alternatives[..] {
            [] => None,
            [only] if only.len() == 1 => Some(only[0]),
            _ => Some(Symbol::Nonterminal(self.choice(alternatives)?)),
        };
        Some((symbol, may_be_empty))
    }

    /// `item` so many times. Takes fours of fours of fours …: the logarithm of `count` in rules,
    /// and the same fours as [`Self::at_most`], so that a parser need not know beforehand which of
    /// the two it reads.
    fn exactly(&mut self, item: Symbol, count: u32) -> Body {
        if count < 4 {
            return Body::Sequence(vec![Body::Symbol(item); count as usize]);
        }
        let key = (item, Count::Exactly(count));
        if let Some(&known) = self.counted.get(&key) {
            return Body::Symbol(Symbol::Nonterminal(known));
        }
        let quarter = self.quarter(item, count);
        let mut symbols = quarter.repeat(4);
        symbols.extend((0..count % 4).map(|_| item));
        let id = self.made_up(&format!("{count}_times"));
        self.drafts[id.index()].alternatives = vec![symbols];
        self.counted.insert(key, id);
        Body::Symbol(Symbol::Nonterminal(id))
    }

    /// `item` up to so many times.
    fn at_most(&mut self, item: Symbol, count: u32) -> Body {
        // Of 0 to `count`, there are `numbers`: those below four quarters, by how many are full,
        // and the few above.
        let Some(numbers) = count.checked_add(1).filter(|&numbers| numbers >= 8) else {
            // One more than can be counted: one of them first.
            if count == u32::MAX {
                let rest = self.at_most(item, count - 1);
                let empty = Body::Sequence(Vec::new());
                return Body::Choice(vec![Body::Sequence(vec![Body::Symbol(item), rest]), empty]);
            }
            let times = |times: u32| Body::Sequence(vec![Body::Symbol(item); times as usize]);
            return Body::Choice((0..=count).map(times).collect());
        };
        let key = (item, Count::AtMost(count));
        if let Some(&known) = self.counted.get(&key) {
            return Body::Symbol(Symbol::Nonterminal(known));
        }
        let quarter = self.quarter(item, numbers);
        let below = self.at_most(item, numbers / 4 - 1);
        let below = match below {
            Body::Symbol(symbol) => vec![vec![symbol]],
            _ => (0..numbers / 4).map(|times| vec![item; times as usize]).collect(),
        };
        let mut alternatives: Vec<Vec<Symbol>> = Vec::new();
        for full in 0..4 {
            for part in &below {
                alternatives.push([&quarter.repeat(full), &part[..]].concat());
            }
        }
        for above in 0..numbers % 4 {
            alternatives.push([&quarter.repeat(4)[..], &vec![item; above as usize]].concat());
        }
        let id = self.made_up(&format!("up_to_{count}"));
        self.drafts[id.index()].alternatives = alternatives;
        self.counted.insert(key, id);
        Body::Symbol(Symbol::Nonterminal(id))
    }

    /// A quarter of `count`, rounded down, as symbols.
    fn quarter(&mut self, item: Symbol, count: u32) -> Vec<Symbol> {
        match self.exactly(item, count / 4) {
            Body::Symbol(symbol) => vec![symbol],
            _ => vec![item; (count / 4) as usize],
        }
    }

    /// The alternatives that an expression is, each once.
    fn alternatives(&mut self, body: &Body) -> Option<Vec<Vec<Symbol>>> {
        let alternatives = match body {
            Body::Symbol(symbol) => vec![vec![*symbol]],
            Body::Gap => vec![Vec::new()],
            // An argument of nothing but parametric rules, which use it for conditions and numbers.
            Body::Number(_) => Vec::new(),
            Body::Choice(options) => {
                let mut all = Vec::new();
                for option in options {
                    all.extend(self.alternatives(option)?);
                }
                all
            }
            Body::Sequence(parts) => {
                let mut sequences = vec![Vec::new()];
                for part in parts {
                    let mut options = self.alternatives(part)?;
                    if options.len() > 1 && sequences.len() * options.len() > MAX_ALTERNATIVES {
                        options = vec![vec![Symbol::Nonterminal(self.choice(options)?)]];
                    }
                    if let [only] = &options[..] {
                        self.spend(only.len() * sequences.len())?;
                        sequences.iter_mut().for_each(|sequence| sequence.extend(only));
                        continue;
                    }
                    let lengths = |lists: &[Vec<Symbol>]| lists.iter().map(Vec::len).sum::<usize>();
                    let written =
                        lengths(&sequences) * options.len() + lengths(&options) * sequences.len();
                    self.spend(written + sequences.len() * options.len())?;
                    let longer = |sequence: &Vec<Symbol>| {
                        let append = |option: &Vec<Symbol>| [&sequence[..], option].concat();
                        options.iter().map(append).collect::<Vec<_>>()
                    };
                    sequences = sequences.iter().flat_map(longer).collect();
                }
                sequences
            }
        };
        self.spend(alternatives.len())?;
        let mut seen = HashSet::with_capacity(alternatives.len());
        Some(
            alternatives
                .into_iter()
                .filter(|alternative| seen.insert(alternative.clone()))
                .collect(),
        )
    }

    /// A rule of its own for a choice.
    fn choice(&mut self, alternatives: Vec<Vec<Symbol>>) -> Option<NonterminalId> {
        if let Some(&known) = self.choices.get(&alternatives) {
            return Some(known);
        }
        self.spend(alternatives.iter().map(Vec::len).sum())?;
        let id = self.made_up("choice");
        self.drafts[id.index()].alternatives = alternatives.clone();
        self.choices.insert(alternatives, id);
        Some(id)
    }

    /// A nonterminal for a part of the current rule.
    fn made_up(&mut self, what: &str) -> NonterminalId {
        let name = format!("__{}_{what}_{}", self.current.0, self.made_up);
        self.made_up += 1;
        self.nonterminal(name, self.current.1.clone())
    }

    fn nonterminal(&mut self, name: String, range: Range<usize>) -> NonterminalId {
        let (embedded, scope) = (None, None);
        self.drafts.push(Draft { name, range, alternatives: Vec::new(), embedded, scope });
        NonterminalId((self.drafts.len() - 1) as u32)
    }

    fn spend(&mut self, symbols: usize) -> Option<()> {
        let Some(left) = self.budget.checked_sub(symbols) else {
            let message = format!(
                "in this rule, written out without groups and options, the grammar passes {} symbols (limit \
                 `rule_symbols`): give groups that repeat rules of their own, or raise it",
                self.limits.rule_symbols
            );
            self.problems.add(&self.current.1.clone(), message);
            return None;
        };
        self.budget = left;
        self.problems.spend(UNITS_PER_SYMBOL * symbols)
    }
}

/// The number of the parametric rule that is being made.
fn own_number(parameters: &Parameters<'_>) -> u64 {
    match parameters.get(NUMBER) {
        Some(Body::Number(number)) => *number,
        _ => 0,
    }
}
