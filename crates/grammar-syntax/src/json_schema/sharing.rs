//! Nonterminals with the same rules made one.
//!
//! Alternatives that begin alike are written rule by rule, each with nonterminals of its own. A
//! parser that has read what they share would keep a stack for each of them; where equal
//! nonterminals are one, it keeps one stack.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::{NonterminalId, Rule, Symbol};

/// Stand-in for the nonterminal itself in its own rules.
const ITSELF: Symbol = Symbol::Nonterminal(NonterminalId(u32::MAX));

/// Stand-in for the end of a rule's body.
const END: Symbol = Symbol::Nonterminal(NonterminalId(u32::MAX - 1));

/// A nonterminal is looked at again when one that its rules mention was found to be another, but at
/// most so often: what is left apart costs time, no text.
const MAX_LOOKS: u8 = 20;

/// Representative of each nonterminal: itself, another with the same rules, or its only symbol
/// where its only rule has one.
struct Shared {
    stands_for: Vec<Symbol>,
}

/// The rules without those of nonterminals for which others stand; `start` stays. Rules keep their
/// order.
///
/// Two nonterminals are the same when their rules are, once what is known to be the same is taken
/// for one; each may mention itself. What mentions one another in a circle is not compared.
///
/// Cost: in proportion to the symbols of all rules, at most [`MAX_LOOKS`] times.
pub(super) fn shared(rules: Vec<Rule>, num_nonterminals: usize, start: NonterminalId) -> Vec<Rule> {
    let mut users = vec![Vec::new(); num_nonterminals];
    for rule in &rules {
        for symbol in &rule.body {
            if let Symbol::Nonterminal(used) = symbol {
                users[used.index()].push(rule.head);
            }
        }
    }
    let rules_of = RulesOf::new(&rules, num_nonterminals);
    let all = (0..num_nonterminals as u32).map(NonterminalId);
    let mut shared = Shared { stands_for: all.clone().map(Symbol::Nonterminal).collect() };
    let mut by_rules: HashMap<Vec<Symbol>, NonterminalId> = HashMap::new();
    let mut own = OwnRules::default();
    // What is made last mostly is what others are made of.
    let mut work: VecDeque<NonterminalId> = all.rev().filter(|&id| id != start).collect();
    let (mut waits, mut looks) = (vec![true; num_nonterminals], vec![0; num_nonterminals]);
    while let Some(id) = work.pop_front() {
        waits[id.index()] = false;
        if shared.stands_for[id.index()] != Symbol::Nonterminal(id)
            || looks[id.index()] == MAX_LOOKS
        {
            continue;
        }
        looks[id.index()] += 1;
        own.read(&mut shared, rules_of.of(id).iter().map(|&at| &rules[at as usize]), id);
        let same = match own.key() {
            &[only, END] => only,
            key => Symbol::Nonterminal(*by_rules.entry_ref(key).or_insert(id)),
        };
        if same != Symbol::Nonterminal(id) {
            shared.stands_for[id.index()] = same;
            for &user in &users[id.index()] {
                if user != start && !std::mem::replace(&mut waits[user.index()], true) {
                    work.push_back(user);
                }
            }
            if let Symbol::Nonterminal(other) = same {
                let moved = std::mem::take(&mut users[id.index()]);
                users[other.index()].extend(moved);
            }
        }
    }
    let mut kept: Vec<Rule> = Vec::with_capacity(rules.len());
    // The places of rules in `kept`, by their hashes.
    let (mut known, hasher) = (HashTable::new(), DefaultHashBuilder::default());
    for mut rule in rules {
        if shared.stands_for[rule.head.index()] != Symbol::Nonterminal(rule.head) {
            continue;
        }
        rule.body.iter_mut().for_each(|symbol| *symbol = shared.resolve(*symbol));
        let hash = hasher.hash_one(&rule);
        if known.find(hash, |&at: &usize| kept[at] == rule).is_none() {
            known.insert_unique(hash, kept.len(), |&at| hasher.hash_one(&kept[at]));
            kept.push(rule);
        }
    }
    kept
}

/// The places of the rules of every nonterminal, in one array.
///
/// Nonterminal `n` has `places[starts[n]..starts[n + 1]]`, ascending.
struct RulesOf {
    starts: Vec<u32>,
    places: Vec<u32>,
}

impl RulesOf {
    fn new(rules: &[Rule], num_nonterminals: usize) -> Self {
        let mut starts = vec![0; num_nonterminals + 1];
        rules.iter().for_each(|rule| starts[rule.head.index() + 1] += 1);
        for id in 0..num_nonterminals {
            starts[id + 1] += starts[id];
        }
        let (mut next, mut places) = (starts.clone(), vec![0; rules.len()]);
        for (at, rule) in rules.iter().enumerate() {
            let place = &mut next[rule.head.index()];
            places[*place as usize] = at as u32;
            *place += 1;
        }
        Self { starts, places }
    }

    fn of(&self, id: NonterminalId) -> &[u32] {
        let [from, to] = [id.index(), id.index() + 1].map(|at| self.starts[at] as usize);
        &self.places[from..to]
    }
}

/// The bodies of one nonterminal's rules, sorted, each once: what it is compared by.
///
/// The buffers are those of the nonterminal before, so that one that is compared allocates nothing.
#[derive(Default)]
struct OwnRules {
    symbols: Vec<Symbol>,
    /// The bodies' places in `symbols`.
    bodies: Vec<Range<usize>>,
    /// Bodies in their order, [`END`] after each.
    key: Vec<Symbol>,
}

impl OwnRules {
    fn read<'r>(
        &mut self,
        shared: &mut Shared,
        rules: impl Iterator<Item = &'r Rule>,
        head: NonterminalId,
    ) {
        let Self { symbols, bodies, key } = self;
        symbols.clear();
        bodies.clear();
        key.clear();
        let itself = |symbol| if symbol == Symbol::Nonterminal(head) { ITSELF } else { symbol };
        for rule in rules {
            let from = symbols.len();
            symbols.extend(rule.body.iter().map(|&symbol| itself(shared.resolve(symbol))));
            match symbols[from..] == [ITSELF] {
                true => symbols.truncate(from),
                false => bodies.push(from..symbols.len()),
            }
        }
        bodies.sort_unstable_by(|one, other| symbols[one.clone()].cmp(&symbols[other.clone()]));
        bodies.dedup_by(|one, other| symbols[one.clone()] == symbols[other.clone()]);
        for body in bodies {
            key.extend_from_slice(&symbols[body.clone()]);
            key.push(END);
        }
    }

    fn key(&self) -> &[Symbol] {
        &self.key
    }
}

impl Shared {
    /// Representative of a symbol in the end. Circles cannot be: what stands for another stands for
    /// itself then.
    fn resolve(&mut self, symbol: Symbol) -> Symbol {
        let mut last = symbol;
        while let Symbol::Nonterminal(id) = last
            && self.stands_for[id.index()] != last
        {
            last = self.stands_for[id.index()];
        }
        let mut at = symbol;
        while let Symbol::Nonterminal(id) = at
            && at != last
        {
            at = std::mem::replace(&mut self.stands_for[id.index()], last);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TerminalId;

    /// Rules as `a: b x | x` a line, `.` for nothing: small letters up to `m` are nonterminals,
    /// others terminals; `a` is the start.
    fn rules(text: &str) -> Vec<Rule> {
        let symbol = |letter: &str| match letter.as_bytes()[0] {
            letter @ b'a'..=b'm' => Symbol::Nonterminal(NonterminalId((letter - b'a').into())),
            letter => Symbol::Terminal(TerminalId(letter.into())),
        };
        let mut all = Vec::new();
        for line in text.lines() {
            let (head, bodies) = line.trim().split_once(": ").expect("a head");
            let Symbol::Nonterminal(head) = symbol(head) else { panic!("{head}") };
            for body in bodies.split(" | ") {
                let body = body.split(' ').filter(|part| *part != ".").map(symbol).collect();
                all.push(Rule { head, body });
            }
        }
        all
    }

    #[track_caller]
    fn check(before: &str, after: &str) {
        assert_eq!(shared(rules(before), 13, NonterminalId(0)), rules(after));
    }

    #[test]
    fn equal_rules_are_one_from_the_bottom_up() {
        check(
            "a: b z | c\nb: d y\nc: e y\nd: x x | .\ne: . | x x",
            "a: c z | c\nc: e y\ne: . | x x",
        );
    }

    #[test]
    fn one_symbol_stands_for_itself() {
        check("a: b c\nb: c\nc: d\nd: x", "a: x x");
        check("a: b\nb: c\nc: b", "a: m");
    }

    #[test]
    fn lists_that_begin_alike_are_one_as_far_as_they_do() {
        check(
            "a: d z | g z\nb: x y | b y\nc: b v\nd: c\ne: x y | e y\nf: e w\ng: f",
            "a: c z | f z\nc: e v\ne: x y | e y\nf: e w",
        );
    }

    #[test]
    fn nothing_else_is_one() {
        for rules_apart in ["a: b | c\nb: x c | x\nc: x b | y", "a: a x | b\nb: x b | y y", "a: x"]
        {
            check(rules_apart, rules_apart);
        }
    }
}
