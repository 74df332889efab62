//! The emitter from goals to a grammar: one nonterminal a goal, one terminal a way of spelling.

use std::{num::NonZeroU32, rc::Rc, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::{
    argument_styles::{ArgumentStyle, Frame},
    arrays::ArraySet,
    cases::Cases,
    compile::{Compiler, Result},
    error::Kind,
    framing::Framing,
    goals::GoalId,
    json_text::Spelling,
    listed_sets::ListedLimits,
    number_lengths::{has_few_remainders, room},
    number_text,
    numbers::{self, NumberSet},
    objects::ObjectSet,
    options::Digits,
    parameter_names::NamePlace,
    sharing,
    strings::StringSet,
};
use crate::{
    DistinctNames, Grammar, GrammarBuilder, Lexing, NonterminalId, Regex, Rule, SlotId, Symbol,
    Terminal, TerminalId, TerminalKind, TokenLimit,
};

/// Limit on the numbers between two bounds that are listed rather than made an automaton of.
const MAX_LITERALS: u64 = 500;

/// Stand-in for a bracket that another rule writes.
const LEFT_OUT: Symbol = Symbol::Terminal(TerminalId(u32::MAX));

/// A terminal's part in objects whose names are remembered, and in arrays whose items are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum InScope {
    Open,
    Comma,
    Close,
    /// This one.
    OneName(Arc<str>),
    ManyNames,
}

/// The parts that brackets left out have in scopes of distinct names.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) open: Option<InScope>,
    pub(super) close: Option<InScope>,
}

/// Makes the grammar.
pub(super) struct Emitter<'c, 'o> {
    pub(super) compiler: &'c mut Compiler<'o>,
    pub(super) spelling: Spelling,
    /// The frame of the parameters at hand, where an object's members are such.
    pub(super) frame: Option<Frame>,
    /// The values of parameters, and those of items between marks, by goal.
    pub(super) parameter_values: HashMap<(GoalId, bool), NonterminalId>,
    /// The terminals.
    pub(super) builder: GrammarBuilder,
    /// The names of the nonterminals.
    nonterminals: Vec<String>,
    rules: Vec<Rule>,
    /// The values of members that are counted, by goal and symbol.
    pub(super) counted: Vec<(GoalId, Symbol)>,
    /// Goals that no value was found to meet.
    pub(super) impossible: HashSet<GoalId>,
    /// Terminals by expression, and by their role in scopes of distinct names.
    terminals: HashMap<(Regex, Option<InScope>), TerminalId>,
    /// Terminals of members by slot.
    pub(super) member_terminals: HashMap<SlotId, TerminalId>,
    /// Terminals with a limit on their tokens, by their texts.
    limited_terminals: HashMap<Regex, TerminalId>,
    /// Slots of listed texts, by fingerprint.
    pub(super) listed_slots: HashMap<u128, SlotId>,
    /// Limits on the texts that are alternatives of one expression.
    pub(super) listed_limits: ListedLimits,
    distinct_names: DistinctNames,
    /// Within a value whose brackets another rule writes: their parts.
    pub(super) left_out: Option<LeftOut>,
    goals: HashMap<GoalId, NonterminalId>,
    /// Goals that are met in the same cases share a nonterminal.
    values: HashMap<Rc<Cases>, NonterminalId>,
    arrays: HashMap<Rc<ArraySet>, NonterminalId>,
    objects: HashMap<Rc<ObjectSet>, NonterminalId>,
    /// Nonterminals that have no rules yet, the first goals that they are for, and the values.
    open: Vec<(NonterminalId, GoalId, Rc<Cases>)>,
}

/// The grammar of the values that are valid for the schema.
pub(super) fn emit(compiler: &mut Compiler<'_>, framing: Framing) -> Result<Grammar> {
    let root = compiler.root();
    let goal = compiler.goal(root)?;
    let mut impossible = HashSet::new();
    loop {
        let mut emitter = Emitter::new(compiler, framing, std::mem::take(&mut impossible));
        let document = emitter.part("document");
        emitter.document(document, goal, framing)?;
        let possible = possible(&emitter.rules, emitter.nonterminals.len());
        if !possible[document.index()] {
            let why = compiler.why_none(root);
            return Err(compiler.source.error(root, Kind::Empty(why)));
        }
        // Members that are counted must be possible: rules that wait for one that is not would
        // leave a text stuck.
        let counted = std::mem::take(&mut emitter.counted);
        let found = counted.into_iter().filter(|(_, value)| !derives(value, &possible));
        let found: HashSet<GoalId> = found.map(|(goal, _)| goal).collect();
        if found.is_empty() {
            emitter.warn_of_impossible(&possible);
            let num_rules = emitter.rules.len();
            emitter.rules.retain(|rule| rule.body.iter().all(|symbol| derives(symbol, &possible)));
            if emitter.rules.len() < num_rules {
                let used = used(&emitter.rules, emitter.nonterminals.len(), document);
                emitter.rules.retain(|rule| used[rule.head.index()]);
            }
            return Ok(emitter.build(document));
        }
        impossible = std::mem::take(&mut emitter.impossible);
        impossible.extend(found);
    }
}

/// The nonterminals that sentences of `start` use.
fn used(rules: &[Rule], num_nonterminals: usize, start: NonterminalId) -> Vec<bool> {
    let mut bodies = vec![Vec::new(); num_nonterminals];
    rules.iter().for_each(|rule| bodies[rule.head.index()].push(&rule.body));
    let mut used = vec![false; num_nonterminals];
    let mut work = vec![start];
    while let Some(head) = work.pop() {
        if std::mem::replace(&mut used[head.index()], true) {
            continue;
        }
        let symbols = bodies[head.index()].iter().flat_map(|body| body.iter());
        work.extend(symbols.filter_map(|symbol| match symbol {
            Symbol::Nonterminal(id) => Some(*id),
            Symbol::Terminal(_) => None,
        }));
    }
    used
}

/// Tells if a symbol derives a sentence; `possible` says which nonterminals do.
fn derives(symbol: &Symbol, possible: &[bool]) -> bool {
    match symbol {
        Symbol::Terminal(_) => true,
        Symbol::Nonterminal(id) => possible[id.index()],
    }
}

/// Nonterminals that derive a sentence.
fn possible(rules: &[Rule], num_nonterminals: usize) -> Vec<bool> {
    // For each rule how many symbols are not known to derive anything, for each nonterminal where
    // it stands.
    let mut missing = Vec::new();
    let mut places = vec![Vec::new(); num_nonterminals];
    let mut known = vec![false; num_nonterminals];
    let mut open = Vec::new();
    for (at, rule) in rules.iter().enumerate() {
        let mut count = 0;
        for symbol in &rule.body {
            if let Symbol::Nonterminal(id) = symbol {
                places[id.index()].push(at);
                count += 1;
            }
        }
        missing.push(count);
        if count == 0 && !std::mem::replace(&mut known[rule.head.index()], true) {
            open.push(rule.head);
        }
    }
    while let Some(found) = open.pop() {
        for &at in &places[found.index()] {
            missing[at] -= 1;
            let head = rules[at].head;
            if missing[at] == 0 && !std::mem::replace(&mut known[head.index()], true) {
                open.push(head);
            }
        }
    }
    known
}

impl<'c, 'o> Emitter<'c, 'o> {
    fn new(compiler: &'c mut Compiler<'o>, framing: Framing, impossible: HashSet<GoalId>) -> Self {
        let (whitespace, escapes) = (compiler.options.whitespace, compiler.options.escapes);
        let listed_limits = ListedLimits::new(compiler.options);
        Self {
            compiler,
            spelling: Spelling::new(whitespace, escapes).within(framing),
            frame: None,
            parameter_values: HashMap::new(),
            builder: GrammarBuilder::new(),
            nonterminals: Vec::new(),
            rules: Vec::new(),
            terminals: HashMap::new(),
            member_terminals: HashMap::new(),
            limited_terminals: HashMap::new(),
            listed_slots: HashMap::new(),
            listed_limits,
            distinct_names: DistinctNames::default(),
            left_out: None,
            counted: Vec::new(),
            impossible,
            goals: HashMap::new(),
            values: HashMap::new(),
            arrays: HashMap::new(),
            objects: HashMap::new(),
            open: Vec::new(),
        }
    }
}

impl Emitter<'_, '_> {
    /// The rules of a text whose value meets `goal`, and of all that they mention.
    fn document(&mut self, head: NonterminalId, goal: GoalId, framing: Framing) -> Result<()> {
        if framing.objects || framing.style != ArgumentStyle::Json {
            self.arguments(head, goal, framing.style)?;
        } else {
            let Some(value) = self.goal(goal)? else { return Ok(()) };
            self.rule(head, vec![value])?;
            if let Some(trailing) = self.spelling.trailing() {
                let trailing = self.pattern("whitespace", trailing, None)?;
                self.rule(head, vec![value, trailing])?;
            }
        }
        while let Some((head, goal, cases)) = self.open.pop() {
            self.compiler.emit_goal(goal);
            self.value(head, &cases)?;
        }
        Ok(())
    }

    /// Warns of schemas for which no value is valid though others are.
    fn warn_of_impossible(&mut self, possible: &[bool]) {
        let (arrays, objects) = (&self.arrays, &self.objects);
        let is_impossible =
            |head: Option<&NonterminalId>| head.is_some_and(|head| !possible[head.index()]);
        self.compiler.warn_of_schemas(|cases| {
            cases.arrays.iter().all(|array| is_impossible(arrays.get(array)))
                && cases.objects.iter().all(|object| is_impossible(objects.get(object)))
        });
    }
    /// The symbol for a goal's values; `None` for [`GoalId::NEVER`].
    pub(super) fn goal(&mut self, goal: GoalId) -> Result<Option<Symbol>> {
        if goal == GoalId::NEVER {
            return Ok(None);
        }
        if let Some(&found) = self.goals.get(&goal) {
            return Ok(Some(Symbol::Nonterminal(found)));
        }
        let cases = self.compiler.value_cases_closed(goal)?;
        let found = self.value_of(goal, cases);
        if let Symbol::Nonterminal(found) = found {
            self.goals.insert(goal, found);
        }
        Ok(Some(found))
    }

    /// The symbol for values that are found for `goal`.
    pub(super) fn value_of(&mut self, goal: GoalId, cases: Rc<Cases>) -> Symbol {
        Symbol::Nonterminal(match self.values.get(&cases) {
            Some(&known) => known,
            None => {
                let fresh = self.part("value");
                self.values.insert(cases.clone(), fresh);
                self.open.push((fresh, goal, cases));
                fresh
            }
        })
    }

    /// The symbol for the value of an object's member.
    pub(super) fn member_value(&mut self, goal: GoalId) -> Result<Option<Symbol>> {
        match self.frame.and_then(|frame| frame.style) {
            Some(style) => self.parameter_value(goal, style, false),
            None => self.goal(goal),
        }
    }

    /// The symbol for an item of an array.
    pub(super) fn item_value(&mut self, goal: GoalId) -> Result<Option<Symbol>> {
        match self.frame.and_then(|frame| frame.style) {
            Some(style) => self.parameter_value(goal, style, true),
            None => self.goal(goal),
        }
    }

    /// A symbol that derives no text.
    pub(super) fn nothing(&mut self) -> Symbol {
        Symbol::Nonterminal(self.part("nothing"))
    }

    /// A new nonterminal, its name numbered.
    pub(super) fn part(&mut self, name: &str) -> NonterminalId {
        let id = NonterminalId(self.nonterminals.len() as u32);
        self.nonterminals.push(format!("{name} {}", id.0));
        id
    }

    /// The grammar of the rules so far, in which equal nonterminals are one.
    fn build(&mut self, start: NonterminalId) -> Grammar {
        let num_nonterminals = self.nonterminals.len();
        let rules = sharing::shared(std::mem::take(&mut self.rules), num_nonterminals, start);
        let mut builder = std::mem::take(&mut self.builder);
        let mut ids: Vec<Option<NonterminalId>> = vec![None; num_nonterminals];
        let names = &self.nonterminals;
        let mut id_of = |builder: &mut GrammarBuilder, old: NonterminalId| {
            *ids[old.index()]
                .get_or_insert_with(|| builder.nonterminal(names[old.index()].clone(), None))
        };
        let start = id_of(&mut builder, start);
        for Rule { head, body } in rules {
            let head = id_of(&mut builder, head);
            let body: Vec<Symbol> = body
                .into_iter()
                .map(|symbol| match symbol {
                    Symbol::Nonterminal(id) => Symbol::Nonterminal(id_of(&mut builder, id)),
                    terminal => terminal,
                })
                .collect();
            builder.rule(head, body);
        }
        let names = std::mem::take(&mut self.distinct_names);
        if !names.open.is_empty() {
            builder.distinct_names(names);
        }
        builder.build(start, Lexing::Any)
    }

    pub(super) fn rule(&mut self, head: NonterminalId, mut body: Vec<Symbol>) -> Result<()> {
        if self.left_out.is_some() {
            body.retain(|symbol| *symbol != LEFT_OUT);
        }
        self.compiler.tick(16 + body.len())?;
        let max = self.compiler.options.limits.max_rules;
        if self.rules.len() >= max {
            let at = self.compiler.root();
            return Err(self.compiler.over(at, "max_rules", max, ": the grammar is larger".into()));
        }
        self.rules.push(Rule { head, body });
        Ok(())
    }

    /// A token of JSON: `core` after whitespace.
    pub(super) fn token(&mut self, name: &str, core: Regex) -> Result<Symbol> {
        let regex = self.spelling.token(core);
        self.pattern(name, regex, None)
    }

    /// A token of JSON of so many tokens of a vocabulary at most.
    pub(super) fn limited_token(
        &mut self,
        name: &str,
        core: Regex,
        tokens: NonZeroU32,
    ) -> Result<Symbol> {
        let regex = self.spelling.token(core);
        self.limited_pattern(name, regex, tokens)
    }

    /// A terminal of so many tokens of a vocabulary at most.
    pub(super) fn limited_pattern(
        &mut self,
        name: &str,
        regex: Regex,
        tokens: NonZeroU32,
    ) -> Result<Symbol> {
        self.compiler.tick(size(&regex))?;
        if let Some(&found) = self.limited_terminals.get(&regex) {
            return Ok(Symbol::Terminal(found));
        }
        let terminal = self.fresh_pattern(name, regex.clone(), None);
        self.builder.token_limit(TokenLimit { terminal, tokens });
        self.limited_terminals.insert(regex, terminal);
        Ok(Symbol::Terminal(terminal))
    }

    pub(super) fn comma(&mut self) -> Result<Symbol> {
        self.comma_of(None)
    }

    /// A comma of an object whose names are remembered, or another.
    pub(super) fn comma_of(&mut self, scope: Option<InScope>) -> Result<Symbol> {
        if let Some(frame) = self.frame {
            return Ok(frame.comma);
        }
        let regex = self.spelling.comma();
        self.pattern(",", regex, scope)
    }

    pub(super) fn punctuation(&mut self, text: &str) -> Result<Symbol> {
        if let Some(frame) = self.frame.filter(|_| matches!(text, "[" | "]")) {
            return Ok(frame.empty);
        }
        if self.left_out.is_some() && matches!(text, "[" | "]") {
            return Ok(LEFT_OUT);
        }
        self.token(text, Regex::literal(text))
    }

    /// A brace of an object whose names are remembered, or not.
    pub(super) fn brace(&mut self, text: &str, scope: Option<InScope>) -> Result<Symbol> {
        if let Some(frame) = self.frame {
            return Ok(frame.empty);
        }
        if let Some(left_out) = &mut self.left_out {
            let is_open = matches!(text, "[" | "{");
            *if is_open { &mut left_out.open } else { &mut left_out.close } = scope;
            return Ok(LEFT_OUT);
        }
        let regex = self.spelling.token(Regex::literal(text));
        self.pattern(text, regex, scope)
    }

    /// A bracket that stands nowhere else, whose part in a scope of distinct names this is.
    pub(super) fn own_bracket(&mut self, text: &str, scope: Option<InScope>) -> Result<TerminalId> {
        let regex = self.spelling.token(Regex::literal(text));
        self.compiler.tick(size(&regex))?;
        Ok(self.fresh_pattern(text, regex, scope.as_ref()))
    }

    /// A member's name and the colon.
    ///
    /// # Errors
    /// When one that the schema lists cannot be written where names have no quotes.
    pub(super) fn name(&mut self, names: &StringSet, scope: Option<InScope>) -> Result<Symbol> {
        if let Some(frame) = self.frame {
            return self.parameter_name(names, frame);
        }
        let spelled = match self.spelling.notation().bare_names {
            false => self.spelling.quoted(&names.regex()),
            true => {
                self.check_names(names, NamePlace::Bare)?;
                match NamePlace::bare_names(names) {
                    None => return Ok(self.nothing()),
                    Some(spelled) => spelled,
                }
            }
        };
        let regex = self.spelling.name(spelled);
        let name = match names {
            StringSet::OneOf(names) if names.len() == 1 => {
                names.first().map(|it| format!("{it:?}:"))
            }
            _ => None,
        };
        self.pattern(name.as_deref().unwrap_or("name:"), regex, scope)
    }

    /// A string that is an item of an array whose items are remembered.
    pub(super) fn item(&mut self, texts: &Regex, scope: InScope) -> Result<Symbol> {
        let regex = self.spelling.token(self.spelling.quoted(texts));
        self.pattern("item", regex, Some(scope))
    }

    pub(super) fn pattern(
        &mut self,
        name: &str,
        regex: Regex,
        scope: Option<InScope>,
    ) -> Result<Symbol> {
        self.compiler.tick(size(&regex))?;
        let key = (regex, scope);
        if let Some(&found) = self.terminals.get(&key) {
            return Ok(Symbol::Terminal(found));
        }
        let fresh = self.fresh_pattern(name, key.0.clone(), key.1.as_ref());
        self.terminals.insert(key, fresh);
        Ok(Symbol::Terminal(fresh))
    }

    fn fresh_pattern(&mut self, name: &str, regex: Regex, scope: Option<&InScope>) -> TerminalId {
        let kind = TerminalKind::Pattern;
        let terminal = Terminal { name: name.into(), regex, priority: 0, kind, span: None };
        let fresh = self.builder.terminal(terminal);
        let names = &mut self.distinct_names;
        match scope {
            None => {}
            Some(InScope::Open) => names.open.push(fresh),
            Some(InScope::Comma) => names.between.push(fresh),
            Some(InScope::Close) => names.close.push(fresh),
            Some(InScope::OneName(name)) => names.one.push((fresh, name.to_string())),
            Some(InScope::ManyNames) => names.many.push(fresh),
        }
        fresh
    }

    fn value(&mut self, head: NonterminalId, cases: &Cases) -> Result<()> {
        let [null, truth, falsity] = self.spelling.notation().words;
        for (there, word) in [(cases.null, null), (cases.truth, truth), (cases.falsity, falsity)] {
            if there {
                let word = self.punctuation(word)?;
                self.rule(head, vec![word])?;
            }
        }
        self.strings(head, &cases.strings)?;
        self.compiler.no_outsiders(cases)?;
        if !self.spelling.notation().quote.is_empty() {
            let reason = "names a set of strings as JSON writes them, and this format has marks of its own around strings; use another";
            self.compiler.no_members(cases, reason)?;
        }
        for member in &cases.members {
            let slot = self.compiler.catalog_slots.slot(member.slot).clone();
            let span = slot.span;
            let slot = self.builder.slot(slot);
            self.slot_member(head, slot, span)?;
        }
        self.numbers(head, &cases.numbers)?;
        for array in &cases.arrays {
            let symbol = match self.arrays.get(array) {
                Some(&found) => found,
                None => {
                    let fresh = self.part("array");
                    self.arrays.insert(array.clone(), fresh);
                    self.array(fresh, array)?;
                    fresh
                }
            };
            self.rule(head, vec![Symbol::Nonterminal(symbol)])?;
        }
        for object in &cases.objects {
            let symbol = match self.objects.get(object) {
                Some(&found) => found,
                None => {
                    let fresh = self.part("object");
                    self.objects.insert(object.clone(), fresh);
                    self.object(fresh, object)?;
                    fresh
                }
            };
            self.rule(head, vec![Symbol::Nonterminal(symbol)])?;
        }
        Ok(())
    }

    fn numbers(&mut self, head: NonterminalId, sets: &[NumberSet]) -> Result<()> {
        let is_bounded = self.compiler.options.digits == Digits::Bounded;
        if sets.contains(&NumberSet::any()) {
            let number = match is_bounded {
                true => room(sets).numbers(),
                false => number_text::any_number(),
            };
            let number = self.token("number", number)?;
            return self.rule(head, vec![number]);
        }
        let fractions = self.compiler.options.integer_fractions;
        let (mut options, mut counted, mut short) = (Vec::new(), Vec::new(), Vec::new());
        for set in sets {
            // Numbers that a schema lists may be spelled with an exponent; those between bounds are
            // spelled as integers are.
            let listed = matches!(set, NumberSet::OneOf(_));
            let simple = match set {
                NumberSet::All(conditions) => numbers::simplified(conditions, MAX_LITERALS),
                NumberSet::OneOf(_) => Some(set.clone()),
            };
            let fractions = fractions || !(listed || set.is_of_integers());
            match &simple {
                None => continue,
                Some(NumberSet::OneOf(numbers)) => {
                    options
                        .extend(numbers.iter().map(|n| number_text::literal(n, fractions, listed)));
                }
                Some(simple @ NumberSet::All(conditions))
                    if is_bounded
                        && (!has_few_remainders(simple)
                            || number_text::is_between_bounds(conditions)) =>
                {
                    counted.push(number_text::numbers(conditions, fractions, Some(room([set]))));
                    match number_text::large_integers(conditions).filter(|_| fractions) {
                        None => continue,
                        Some(large) => options.push(large),
                    }
                }
                Some(NumberSet::All(conditions)) => {
                    if fractions {
                        options.extend(number_text::large_integers(conditions));
                    }
                    options.push(number_text::numbers(conditions, fractions, None));
                }
            }
            short.push(set);
        }
        let mut regex = Regex::alternate(options);
        if is_bounded && regex != Regex::Never {
            regex = Regex::and([regex, room(short).numbers()]);
        }
        let regex = Regex::alternate([regex].into_iter().chain(counted));
        if regex != Regex::Never {
            let number = self.token("number", regex)?;
            self.rule(head, vec![number])?;
        }
        Ok(())
    }
}

/// About how many nodes and texts a tree has.
fn size(regex: &Regex) -> usize {
    match regex {
        Regex::Never | Regex::Empty | Regex::Multiple(_) => 1,
        Regex::Tokens(tokens) => 1 + tokens.parts.len(),
        Regex::Literal(text) => 1 + text.len() / 8,
        Regex::Class(class) => 1 + class.ranges().len(),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            1 + parts.iter().map(size).sum::<usize>()
        }
        Regex::Repeat { inner, .. }
        | Regex::Not(inner)
        | Regex::Whole(inner)
        | Regex::Look { inner, .. } => 1 + size(inner),
    }
}
