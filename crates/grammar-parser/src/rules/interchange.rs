//! Interchangeable terminals: those that stand in the same places of the same rules, made one.
//!
//! A choice of thousands of labels in a rule is as many terminals, and lexer, tables and the search
//! for dead ends would treat each by itself, some of them pairwise. To the parser they are one:
//! where one may stand, each may, and what follows is the same.
//!
//! A *place* of a terminal is a rule with a hole. Where the places of two terminals are the same,
//! every rule that mentions some of them is there with each of them in each of its holes: one
//! terminal with the union of their texts has the same sentences. Where terminals compete, theirs
//! is the same rank, they are in the same contexts, and nothing of a higher rank takes a lexeme of
//! theirs, so the same texts win.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use palmette_grammar_regex::expressions::{Exceeded, ExprId, ExpressionLimits, Expressions};

use crate::{
    Budget, Grammar, GrammarBuilder, Interrupted, NonterminalId, Regex, Rule, Symbol, Terminal,
    TerminalId, TerminalKind,
};

/// Fewer interchangeable terminals stay what they are: messages name them, and they cost little.
const MIN_MERGED: usize = 64;

/// Terminals in longer bodies stay what they are.
const MAX_BODY: usize = 64;

/// A rule with a hole where a terminal stands.
type Place = (NonterminalId, Box<[Option<Symbol>]>);

/// Terminals with the same of these are interchangeable: places, by number, and what decides
/// between competing terminals.
type Role = (Vec<u32>, TerminalKind, i32);

/// The grammar with one terminal for each group of interchangeable ones that is large; the others
/// of the group keep their ids and are in no rule.
///
/// Cost: linear in the rules, bodies being short.
///
/// # Errors
/// When the work is interrupted.
pub fn merge_interchangeable(
    grammar: Arc<Grammar>,
    budget: &mut Budget<'_>,
) -> Result<Arc<Grammar>, Interrupted> {
    if grammar.terminals().len() < MIN_MERGED {
        return Ok(grammar);
    }
    let grammar = without_labels(grammar);
    let mut first_of: BTreeMap<TerminalId, TerminalId> = BTreeMap::new();
    let mut merged: HashMap<TerminalId, Terminal> = HashMap::new();
    for group in groups(&grammar, budget)? {
        let first = group[0];
        let texts = group.iter().map(|id| grammar.terminals()[id.index()].regex.clone());
        let texts = texts.flat_map(|regex| match regex {
            Regex::Alternate(options) => options.to_vec(),
            other => vec![other],
        });
        let one = &grammar.terminals()[first.index()];
        let name = format!("{} or {} others", one.name, group.len() - 1);
        merged.insert(first, Terminal { name, regex: Regex::alternate(texts), ..one.clone() });
        first_of.extend(group.iter().map(|&id| (id, first)));
    }
    if merged.is_empty() {
        return Ok(grammar);
    }
    let is_first = |symbol: &Symbol| match symbol {
        Symbol::Terminal(id) => first_of.get(id).is_none_or(|first| first == id),
        Symbol::Nonterminal(_) => true,
    };
    let rules = grammar.rules().iter().filter(|rule| rule.body.iter().all(is_first)).cloned();
    Ok(Arc::new(with_rules(&grammar, rules, |id| merged.remove(&id))))
}

/// A grammar with other rules, and other terminals where there are some.
fn with_rules(
    grammar: &Grammar,
    rules: impl IntoIterator<Item = Rule>,
    mut terminal_of: impl FnMut(TerminalId) -> Option<Terminal>,
) -> Grammar {
    let mut made = GrammarBuilder::new();
    made.slots_of(grammar.slots());
    for (terminal, id) in grammar.terminals().iter().zip(0..) {
        made.terminal(terminal_of(TerminalId(id)).unwrap_or_else(|| terminal.clone()));
    }
    for nonterminal in grammar.nonterminals() {
        made.nonterminal(nonterminal.name.clone(), nonterminal.span);
    }
    rules.into_iter().for_each(|rule| made.rule(rule.head, rule.body));
    grammar.ignored().iter().for_each(|&terminal| made.ignore(terminal));
    if let Some(blocks) = grammar.indentation() {
        made.indentation(blocks.clone());
    }
    if let Some(names) = grammar.distinct_names() {
        made.distinct_names(names.clone());
    }
    made.scopes_of(grammar.scopes(), |terminal| terminal);
    made.token_limits_of(grammar.token_limits(), |terminal| terminal);
    made.build(grammar.start(), grammar.lexing())
}

/// The grammar with terminals for rules that are only names of them, `k7: "label 7"`, where there
/// are many: then these can be merged.
fn without_labels(grammar: Arc<Grammar>) -> Arc<Grammar> {
    let mut only: Vec<Option<TerminalId>> = vec![None; grammar.nonterminals().len()];
    let mut num_rules = vec![0_usize; grammar.nonterminals().len()];
    for rule in grammar.rules() {
        num_rules[rule.head.index()] += 1;
        if let [Symbol::Terminal(id)] = rule.body[..]
            && rule.head != grammar.start()
        {
            only[rule.head.index()] = Some(id);
        }
    }
    let label = |id: NonterminalId| only[id.index()].filter(|_| num_rules[id.index()] == 1);
    let all = (0..grammar.nonterminals().len() as u32).map(NonterminalId);
    if all.filter(|&id| label(id).is_some()).count() < MIN_MERGED {
        return grammar;
    }
    let written = |symbol: Symbol| match symbol {
        Symbol::Nonterminal(id) => label(id).map_or(symbol, Symbol::Terminal),
        terminal => terminal,
    };
    let rules = grammar.rules().iter().filter(|rule| label(rule.head).is_none());
    let rules = rules.map(|rule| Rule {
        head: rule.head,
        body: rule.body.iter().map(|&symbol| written(symbol)).collect(),
    });
    Arc::new(with_rules(&grammar, rules.collect::<Vec<_>>(), |_| None))
}

/// The large groups of interchangeable terminals.
fn groups(grammar: &Grammar, budget: &mut Budget<'_>) -> Result<Vec<Vec<TerminalId>>, Interrupted> {
    let mut numbers: HashMap<Place, u32> = HashMap::new();
    let mut places: Vec<Vec<u32>> = vec![Vec::new(); grammar.terminals().len()];
    let mut stays = has_other_roles(grammar, budget)?;
    for rule in grammar.rules() {
        budget.spend(1 + rule.body.len() as u64)?;
        for (at, symbol) in rule.body.iter().enumerate() {
            let Symbol::Terminal(id) = *symbol else { continue };
            if rule.body.len() > MAX_BODY {
                stays[id.index()] = true;
            }
            if stays[id.index()] {
                continue;
            }
            let others = rule.body.iter().enumerate();
            let body = others.map(|(other, &symbol)| (other != at).then_some(symbol)).collect();
            budget.spend(rule.body.len() as u64)?;
            let next = numbers.len() as u32;
            places[id.index()].push(*numbers.entry((rule.head, body)).or_insert(next));
        }
    }
    let mut groups: HashMap<Role, Vec<TerminalId>> = HashMap::new();
    for (terminal, id) in grammar.terminals().iter().zip(0..) {
        let id = TerminalId(id);
        let mut of = std::mem::take(&mut places[id.index()]);
        if !stays[id.index()] && !of.is_empty() {
            of.sort_unstable();
            of.dedup();
            groups.entry((of, terminal.kind, terminal.priority)).or_default().push(id);
        }
    }
    let mut large: Vec<_> =
        groups.into_values().filter(|group| group.len() >= MIN_MERGED).collect();
    large.sort_unstable();
    Ok(large)
}

/// Terminals that are more than a set of texts in rules, or of whose texts another may take one by
/// its rank.
fn has_other_roles(grammar: &Grammar, budget: &mut Budget<'_>) -> Result<Vec<bool>, Interrupted> {
    let mut has = Vec::with_capacity(grammar.terminals().len());
    let mut higher = Higher::default();
    for of in grammar.terminals() {
        let is_loser = grammar.lexing().competes()
            && of.kind != TerminalKind::Free
            && higher.may_take(of, grammar, budget)?;
        has.push(is_loser || !of.kind.has_text() || !is_set(&of.regex));
    }
    let mut mark = |id: &TerminalId| has[id.index()] = true;
    grammar.ignored().iter().for_each(&mut mark);
    if let Some(blocks) = grammar.indentation() {
        [blocks.newline, blocks.indent, blocks.dedent].iter().for_each(&mut mark);
        blocks.open.iter().chain(&blocks.close).for_each(&mut mark);
    }
    if let Some(names) = grammar.distinct_names() {
        names.open.iter().chain(&names.between).chain(&names.close).for_each(&mut mark);
        names.many.iter().chain(names.one.iter().map(|(id, _)| id)).for_each(&mut mark);
    }
    grammar.scopes().iter().flat_map(|scope| [&scope.open, &scope.close]).for_each(&mut mark);
    grammar.token_limits().iter().for_each(|limit| mark(&limit.terminal));
    Ok(has)
}

/// Priority, then literals before patterns.
type Rank = (i32, bool);

/// Texts of the terminals above a rank, by rank; `None` where they pass a limit.
#[derive(Default)]
struct Higher(HashMap<Rank, Option<(Expressions, ExprId)>>);

impl Higher {
    /// True when a text of a terminal may be one of a terminal of a higher rank.
    fn may_take(
        &mut self,
        of: &Terminal,
        grammar: &Grammar,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Interrupted> {
        let rank = |of: &Terminal| (of.priority, of.kind == TerminalKind::Literal);
        let own = rank(of);
        let competes = |other: &&Terminal| {
            other.kind.has_text() && other.kind != TerminalKind::Free && rank(other) > own
        };
        let rivals = || grammar.terminals().iter().filter(competes);
        let known = self.0.entry(own).or_insert_with(|| {
            let all = Regex::alternate(rivals().map(|rival| rival.regex.clone()));
            let mut expressions = Expressions::new(LIMITS).ok()?;
            let all = expressions.making(budget).compile(&all).ok()?;
            Some((expressions, all))
        });
        let Some((expressions, all)) = known else { return Ok(true) };
        if *all == ExprId::NEVER {
            return Ok(false);
        }
        let Regex::Literal(text) = &of.regex else { return Ok(true) };
        let mut left = *all;
        for byte in text.bytes() {
            left = match expressions.making(budget).derive(left, byte) {
                Ok(left) => left,
                Err(Exceeded::Interrupted(why)) => return Err(why),
                Err(_) => return Ok(true),
            };
        }
        Ok(expressions.null(left) != ExprId::NEVER)
    }
}

/// Limits on the look at higher ranks.
const LIMITS: ExpressionLimits =
    ExpressionLimits { max_expressions: 200_000, max_nesting: 1_000, max_visited: 1_000 };

/// True when an expression is a set of texts that a union with others leaves as it is: no tokens,
/// and nothing that depends on order or on what stands beside.
fn is_set(regex: &Regex) -> bool {
    match regex {
        Regex::Never | Regex::Empty | Regex::Literal(_) | Regex::Class(_) => true,
        Regex::Multiple(_) => true,
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().all(is_set)
        }
        Regex::Repeat { inner, reluctant, .. } => !reluctant && is_set(inner),
        Regex::Not(inner) => is_set(inner),
        Regex::Whole(_) => true,
        Regex::Look { .. } | Regex::Tokens(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lexing, Recognizer, RecognizerLimits, RecognizerScratch};

    /// Labels in a list and before a number; `apart`: each label stands in a rule of its own
    /// besides, which nothing reaches.
    fn labels(number: usize, lexing: Lexing, apart: bool) -> Grammar {
        let mut made = GrammarBuilder::new();
        let mut terminal = |name: String, regex, priority, kind| {
            made.terminal(Terminal { name, regex, priority, kind, span: None })
        };
        let label = |at: usize| format!("k{at}");
        let labels: Vec<Symbol> = (0..number)
            .map(|at| terminal(label(at), Regex::literal(&label(at)), 0, TerminalKind::Literal))
            .map(Symbol::Terminal)
            .collect();
        let comma = terminal(",".into(), Regex::literal(","), 0, TerminalKind::Literal);
        let digits = Regex::Class(crate::CharClass::new([('0', '9')])).repeat(1, None);
        let eleven = Regex::alternate([digits, Regex::literal("k11")]);
        let digits = terminal("N".into(), eleven, 1, TerminalKind::Pattern);
        let [start, list, unreached] =
            ["start", "list", "unreached"].map(|name| made.nonterminal(name, None));
        let of = Symbol::Nonterminal;
        made.rule(start, [of(list)]);
        for (at, &label) in labels.iter().enumerate() {
            made.rule(list, [label]);
            made.rule(list, [of(list), Symbol::Terminal(comma), label]);
            made.rule(start, [of(list), Symbol::Terminal(digits), label]);
            if apart {
                made.rule(unreached, vec![label; at + 1]);
            }
        }
        made.build(start, lexing)
    }

    fn is_in(recognizer: &Recognizer, text: &str) -> bool {
        let (mut scratch, mut at) = (RecognizerScratch::default(), recognizer.start().cloned());
        for byte in text.bytes() {
            let Some(before) = &at else { return false };
            at = recognizer.advance(before, byte, &mut scratch).expect("within limits");
        }
        at.is_some_and(|at| recognizer.is_accepting(&at, &mut scratch).expect("within limits"))
    }

    #[test]
    fn labels_made_one_have_the_same_texts() {
        let labels_in = |grammar: &Grammar| {
            let used = crate::rules::used_terminals(grammar);
            used.iter().filter(|id| grammar.terminals()[id.index()].name.starts_with('k')).count()
        };
        for lexing in [Lexing::Any, Lexing::Contextual, Lexing::Longest] {
            let recognizers = [false, true].map(|apart| {
                let grammar = Arc::new(labels(80, lexing, apart));
                let limits = RecognizerLimits::default();
                Recognizer::new(grammar, &limits, &mut Budget::unlimited()).expect("a recognizer")
            });
            // That of which a terminal of a higher rank takes the text stays apart.
            let kept = if lexing == Lexing::Any { 1 } else { 2 };
            assert_eq!(labels_in(recognizers[0].grammar()), kept, "{lexing:?}");
            assert_eq!(labels_in(recognizers[1].grammar()), 80, "{lexing:?}");
            for text in [
                "k1",
                "k79",
                "k80",
                "k",
                "k1,k1",
                "k1,k",
                "k1,k79,k8",
                "k1,",
                ",k1",
                "k117k3",
                "k11",
                "k11,k11",
                "k1k11k2",
                "k1 k2",
                "k1,k11",
                "k11k11k11",
                "k7k12",
                "",
            ] {
                let [merged, apart] =
                    [&recognizers[0], &recognizers[1]].map(|one| is_in(one, text));
                assert_eq!(merged, apart, "{text:?}, {lexing:?}");
            }
        }
    }

    /// The grammar of a list of labels, each of which is a rule's name for a terminal.
    fn named_labels(number: usize, lexing: Lexing) -> Grammar {
        let plain = labels(number, lexing, false);
        let mut made = GrammarBuilder::new();
        plain.terminals().iter().for_each(|terminal| _ = made.terminal(terminal.clone()));
        for nonterminal in plain.nonterminals() {
            made.nonterminal(nonterminal.name.clone(), None);
        }
        let names: Vec<NonterminalId> =
            (0..number).map(|at| made.nonterminal(format!("name{at}"), None)).collect();
        let named = |symbol: Symbol| match symbol {
            Symbol::Terminal(id) if id.index() < number => Symbol::Nonterminal(names[id.index()]),
            other => other,
        };
        for rule in plain.rules() {
            made.rule(rule.head, rule.body.iter().map(|&symbol| named(symbol)).collect::<Vec<_>>());
        }
        for (&name, at) in names.iter().zip(0..) {
            made.rule(name, [Symbol::Terminal(TerminalId(at))]);
        }
        made.build(plain.start(), lexing)
    }

    #[test]
    fn names_of_labels_are_the_labels() {
        for lexing in [Lexing::Any, Lexing::Contextual, Lexing::Longest] {
            let unlimited = || Budget::unlimited();
            let merge = |grammar| merge_interchangeable(Arc::new(grammar), &mut unlimited());
            let plain = merge(labels(80, lexing, false)).expect("no limit");
            let named = merge(named_labels(80, lexing)).expect("no limit");
            assert_eq!(plain.rules(), named.rules(), "{lexing:?}");
            assert_eq!(plain.terminals(), named.terminals(), "{lexing:?}");
            let few = Arc::new(named_labels(20, lexing));
            let same = merge_interchangeable(Arc::clone(&few), &mut unlimited());
            assert_eq!(same.expect("no limit"), few);
        }
    }

    #[test]
    fn few_labels_stay_apart() {
        let grammar = Arc::new(labels(20, Lexing::Contextual, false));
        let same = merge_interchangeable(Arc::clone(&grammar), &mut Budget::unlimited());
        assert_eq!(same.expect("no limit"), grammar);
    }
}
