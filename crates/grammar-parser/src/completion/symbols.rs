//! Least texts of terminals and nonterminals: Knuth's generalisation of Dijkstra's algorithm.
//!
//! A nonterminal's least text is the least of its rules' (D. E. Knuth, "A Generalization of
//! Dijkstra's Algorithm", 1977): the order of texts is one in which a concatenation is never before
//! its parts, so the least text that is known and not yet settled is final.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock};

use palmette_core::Binding;

use super::lexemes::{rest_of_lexeme, rest_of_member};
use super::text::order;
use crate::lr::{ItemId, RuleId, RuleTable};
use crate::names::NameLayer;
use crate::recognizer::{Recognizer, RecognizerError};
use crate::{Budget, NonterminalId, Regex, Symbol, TerminalId, TerminalKind, TerminalSet};

/// A least text; symbols of empty languages have none.
pub(super) type Least = Option<Arc<[u8]>>;

/// The least texts of a grammar's symbols.
#[derive(Debug)]
pub(super) struct SymbolTexts {
    terminals: Box<[Least]>,
    nonterminals: Box<[Least]>,
    /// Least texts of what follows dots, by item, where no name was seen.
    rests: Box<[OnceLock<Least>]>,
    /// True for nonterminals with a name in the scope that they stand in.
    has_names: Box<[bool]>,
    /// Scopes that a nonterminal begins, less those that it ends.
    opened: Box<[isize]>,
    /// True where none of these lexemes asks anything of what follows it.
    pub(super) is_free: bool,
}

/// Bytes of all texts together, at most.
const MAX_BYTES: u64 = 1 << 26;

/// A nonterminal with a text of it, in the order of texts.
pub(super) struct Candidate {
    pub(super) text: Arc<[u8]>,
    pub(super) head: usize,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.text, &other.text).then(self.head.cmp(&other.head))
    }
}

impl SymbolTexts {
    /// Scopes that nonterminals begin, less those that they end.
    pub(super) fn opened(&self) -> &[isize] {
        &self.opened
    }

    /// True for a nonterminal whose text depends on the names that its scope has seen.
    pub(super) fn depends_on_names(&self, id: NonterminalId) -> bool {
        self.has_names[id.index()]
    }

    /// The least texts of a grammar whose slots have the sets of `binding`.
    ///
    /// # Errors
    /// When a limit of the lexer is exceeded, or texts are too long.
    pub(super) fn new(
        recognizer: &Recognizer,
        binding: Option<&Binding>,
    ) -> Result<Self, RecognizerError> {
        let rules = recognizer.parser().tables().rules();
        let mut budget = Budget::new(MAX_BYTES);
        let mut terminals = vec![None; rules.num_terminals()];
        let mut is_free = true;
        let bodies = rules.ids().flat_map(|rule| rules.body(rule));
        let mut used: Vec<TerminalId> = bodies.filter_map(terminal_of).collect();
        used.sort_unstable();
        used.dedup();
        for terminal in used {
            let (text, free) = text_of_terminal(recognizer, terminal, binding)?;
            budget.spend(text.as_ref().map_or(0, |text| text.len() as u64))?;
            is_free &= free;
            terminals[terminal.index()] = text;
        }
        let terminals: Box<[Least]> = terminals.into();
        let nonterminals = least_of_nonterminals(rules, &terminals, &mut budget)?;
        let rests = (0..rules.num_items()).map(|_| OnceLock::new()).collect();
        let opened = opened_scopes(recognizer.names(), rules);
        let has_names = names_in_scope(recognizer.names(), rules, &opened);
        Ok(Self { terminals, nonterminals, rests, has_names, opened, is_free })
    }

    /// The least text of what follows an item's dot, where no name was seen.
    pub(super) fn rest(&self, rules: &RuleTable, item: ItemId) -> Option<&Arc<[u8]>> {
        let known = &self.rests[item.index()];
        let make = || {
            let mut text = Vec::new();
            for symbol in rules.body(rules.rule_of(item)).skip(rules.dot(item)) {
                text.extend_from_slice(self.of(symbol)?);
            }
            Some(text.into())
        };
        known.get_or_init(make).as_ref()
    }

    /// The least text of a symbol where no name was seen.
    pub(super) fn of(&self, symbol: Symbol) -> Option<&Arc<[u8]>> {
        match symbol {
            Symbol::Terminal(id) => self.terminals[id.index()].as_ref(),
            Symbol::Nonterminal(id) => self.nonterminals[id.index()].as_ref(),
        }
    }
}

/// Nonterminals with a name in their own scope, by rules that are gone through until none is new.
fn names_in_scope(names: &NameLayer, rules: &RuleTable, opened: &[isize]) -> Box<[bool]> {
    let mut has_names = vec![false; rules.num_nonterminals()];
    if !names.is_active() {
        return has_names.into();
    }
    let mut users = vec![Vec::new(); rules.num_nonterminals()];
    let mut work = Vec::new();
    for rule in rules.ids() {
        let head = rules.head(rule);
        let symbols = depths(names, opened, rules.body(rule));
        for (symbol, _) in symbols.filter(|(_, depth)| *depth == 0) {
            match symbol {
                Symbol::Terminal(id) if names.name(id).is_some() => work.push(head),
                Symbol::Terminal(_) => {}
                Symbol::Nonterminal(id) => users[id.index()].push(head),
            }
        }
    }
    while let Some(found) = work.pop() {
        if !std::mem::replace(&mut has_names[found.index()], true) {
            work.extend(&users[found.index()]);
        }
    }
    has_names.into()
}

/// Scopes that the texts of nonterminals begin, less those that they end: an object may begin in
/// one rule and end in another.
fn opened_scopes(names: &NameLayer, rules: &RuleTable) -> Box<[isize]> {
    let mut opened = vec![None; rules.num_nonterminals()];
    let mut grew = names.is_active();
    while std::mem::replace(&mut grew, false) {
        for rule in rules.ids() {
            let head = rules.head(rule).index();
            let of = |symbol| match symbol {
                Symbol::Terminal(_) => Some(opens(names, &[], symbol)),
                Symbol::Nonterminal(id) => opened[id.index()],
            };
            if opened[head].is_none()
                && let Some(sum) = rules.body(rule).map(of).sum::<Option<isize>>()
            {
                opened[head] = Some(sum);
                grew = true;
            }
        }
    }
    opened.into_iter().map(Option::unwrap_or_default).collect()
}

/// Scopes that a symbol begins, less those that it ends.
pub(super) fn opens(names: &NameLayer, opened: &[isize], symbol: Symbol) -> isize {
    match symbol {
        Symbol::Terminal(id) => isize::from(names.opens(id)) - isize::from(names.closes(id)),
        Symbol::Nonterminal(id) => opened[id.index()],
    }
}

/// The symbols of a body, each with the scopes that the body has begun before it and not ended;
/// less than none where it has ended others.
pub(super) fn depths(
    names: &NameLayer,
    opened: &[isize],
    body: impl Iterator<Item = Symbol>,
) -> impl Iterator<Item = (Symbol, isize)> {
    let mut depth = 0;
    body.map(move |symbol| {
        let before = depth;
        depth += opens(names, opened, symbol);
        (symbol, before)
    })
}

fn terminal_of(symbol: Symbol) -> Option<TerminalId> {
    match symbol {
        Symbol::Terminal(id) => Some(id),
        Symbol::Nonterminal(_) => None,
    }
}

/// The least text of a terminal, and whether it asks nothing of what follows.
fn text_of_terminal(
    recognizer: &Recognizer,
    terminal: TerminalId,
    binding: Option<&Binding>,
) -> Result<(Least, bool), RecognizerError> {
    let (grammar, lexer) = (recognizer.grammar(), recognizer.lexer());
    let plan = &grammar.terminals()[terminal.index()];
    match (plan.kind, &plan.regex) {
        // No text stands for a mark.
        (TerminalKind::Declared, _) => Ok((Some(Arc::default()), false)),
        (TerminalKind::Member(slot), _) => {
            let set = binding.map(|binding| binding.set(slot));
            let text = set.and_then(|set| rest_of_member(set, &set.start()?));
            Ok((text, true))
        }
        (_, Regex::Literal(text)) if !grammar.lexing().competes() => {
            Ok((Some(text.as_bytes().into()), true))
        }
        _ => {
            let mut only = TerminalSet::new(grammar.terminals().len());
            only.insert(terminal);
            let alone = lexer.restricted_to(lexer.start(), &only)?;
            let rest = rest_of_lexeme(lexer, alone, terminal)?;
            let is_free = rest.as_ref().is_none_or(|rest| rest.is_free);
            Ok((rest.map(|rest| rest.bytes), is_free))
        }
    }
}

fn least_of_nonterminals(
    rules: &RuleTable,
    terminals: &[Least],
    budget: &mut Budget<'_>,
) -> Result<Box<[Least]>, RecognizerError> {
    let mut settled: Vec<Least> = vec![None; rules.num_nonterminals()];
    // Nonterminals of each rule that are not settled, and the rules that each nonterminal is in.
    let mut open = vec![0_u32; rules.num_rules()];
    let mut users = vec![Vec::new(); rules.num_nonterminals()];
    let mut heap = BinaryHeap::new();
    let text = |rule: RuleId, settled: &[Least]| {
        let mut text = Vec::new();
        for symbol in rules.body(rule) {
            text.extend_from_slice(match symbol {
                Symbol::Terminal(id) => terminals[id.index()].as_ref()?,
                Symbol::Nonterminal(id) => settled[id.index()].as_ref()?,
            });
        }
        Some(Arc::<[u8]>::from(text))
    };
    for rule in rules.ids() {
        for symbol in rules.body(rule) {
            if let Symbol::Nonterminal(id) = symbol {
                open[rule.index()] += 1;
                users[id.index()].push(rule);
            }
        }
        if open[rule.index()] == 0
            && let Some(text) = text(rule, &settled)
        {
            heap.push(Reverse(Candidate { text, head: rules.head(rule).index() }));
        }
    }
    while let Some(Reverse(Candidate { text: least, head })) = heap.pop() {
        if settled[head].is_some() {
            continue;
        }
        settled[head] = Some(least);
        for &rule in &users[head] {
            open[rule.index()] -= 1;
            let of = rules.head(rule).index();
            if open[rule.index()] == 0
                && settled[of].is_none()
                && let Some(text) = text(rule, &settled)
            {
                budget.spend(1 + text.len() as u64)?;
                heap.push(Reverse(Candidate { text, head: of }));
            }
        }
    }
    Ok(settled.into())
}
