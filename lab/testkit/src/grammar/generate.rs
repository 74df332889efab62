//! Random grammars and vocabularies.

use palmette_grammar_parser::{
    CharClass, Grammar, GrammarBuilder, Lexing, NonterminalId, Regex, Symbol, Terminal, TerminalId,
    TerminalKind,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Grammars of one to four nonterminals and two to four terminals, `a`, `b`, `c`, `d`.
///
/// Rules are short and random, so most grammars are ambiguous, many have empty rules, cycles, every
/// kind of left recursion, and nonterminals that derive nothing or are not used.
pub fn abstract_grammar() -> impl Strategy<Value = Grammar> {
    (1..5_u32, 2..5_u32).prop_flat_map(|(num_nonterminals, num_terminals)| {
        let letters = (b'a'..).take(num_terminals as usize);
        let terminals: Vec<_> =
            letters.map(|of| literal((of as char).encode_utf8(&mut [0; 4]))).collect();
        rules(num_nonterminals, num_terminals, 1..10)
            .prop_map(move |rules| build(&terminals, num_nonterminals, rules, &[], Lexing::Any))
    })
}

/// The letters of the terminals of [`text_grammar`]: the last takes two bytes.
pub const ALPHABET: [char; 3] = ['a', 'b', 'é'];

/// Grammars of one to three nonterminals and two to four terminals that are regular expressions
/// over [`ALPHABET`], with priorities, some of them ignored, with every lexing. Rules as in
/// [`abstract_grammar`].
pub fn text_grammar() -> impl Strategy<Value = Grammar> {
    text_grammar_of(&[Lexing::Any, Lexing::Longest, Lexing::Contextual])
}

/// [`text_grammar`] with one of these lexings.
pub fn text_grammar_of(lexings: &'static [Lexing]) -> impl Strategy<Value = Grammar> {
    (1..4_u32, vec(terminal(), 2..5)).prop_flat_map(move |(num_nonterminals, terminals)| {
        let num_terminals = terminals.len() as u32;
        let ignored = prop_oneof![
            2 => Just(Vec::new()),
            1 => (0..num_terminals).prop_map(|id| vec![TerminalId(id)]),
        ];
        let lexing = prop::sample::select(lexings);
        let rules = rules(num_nonterminals, num_terminals, 1..7);
        (rules, ignored, lexing).prop_map(move |(rules, ignored, lexing)| {
            build(&terminals, num_nonterminals, rules, &ignored, lexing)
        })
    })
}

/// The grammar as the oracle sees it: its terminals match texts over the alphabet only, and not the
/// empty one, which front ends split off.
pub fn over_alphabet(grammar: &Grammar) -> Grammar {
    let mut builder = GrammarBuilder::new();
    for terminal in grammar.terminals() {
        let letters = Regex::Class(CharClass::new(ALPHABET.map(|letter| (letter, letter))));
        let regex = Regex::and([terminal.regex.clone(), letters.repeat(1, None)]);
        builder.terminal(Terminal { regex, ..terminal.clone() });
    }
    for nonterminal in grammar.nonterminals() {
        builder.nonterminal(nonterminal.name.clone(), nonterminal.span);
    }
    for rule in grammar.rules() {
        builder.rule(rule.head, rule.body.clone());
    }
    grammar.ignored().iter().for_each(|&ignored| builder.ignore(ignored));
    builder.build(grammar.start(), grammar.lexing())
}

/// Strategy for vocabularies of at most twelve tokens, cut from texts over [`ALPHABET`]. Tokens
/// have one to four bytes and may begin or end within a character; some are equal.
pub fn vocabulary() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let letters = vec(prop::sample::select(&ALPHABET[..]), 1..5);
    let token = (letters, 0..2_usize, 1..5_usize).prop_map(|(letters, skipped, length)| {
        let bytes = letters.into_iter().collect::<String>().into_bytes();
        let skipped = skipped.min(bytes.len() - 1);
        bytes[skipped..].iter().copied().take(length).collect()
    });
    vec(token, 1..13)
}

/// Regular expressions over [`ALPHABET`] of every kind but lookarounds and reluctant ones, a few
/// nodes large.
pub fn regex() -> impl Strategy<Value = Regex> {
    let letter = || prop::sample::select(&ALPHABET[..]);
    let leaf = prop_oneof![
        4 => vec(letter(), 1..3).prop_map(|text| Regex::literal(&text.iter().collect::<String>())),
        2 => vec(letter(), 1..3).prop_map(|of| Regex::Class(CharClass::new(of.iter().map(|&c| (c, c))))),
        1 => letter().prop_map(|not| Regex::Class(CharClass::single(not).complement())),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 2..4).prop_map(Regex::concat),
            3 => vec(inner.clone(), 2..4).prop_map(Regex::alternate),
            3 => (inner.clone(), 0..3_u32, prop::option::of(0..2_u32))
                .prop_map(|(inner, min, more)| inner.repeat(min, more.map(|more| min + more))),
            1 => vec(inner.clone(), 2..3).prop_map(Regex::and),
            1 => inner.prop_map(Regex::complement),
        ]
    })
}

fn terminal() -> impl Strategy<Value = Terminal> {
    let text = vec(prop::sample::select(&ALPHABET[..]), 1..3)
        .prop_map(|text| literal(&text.into_iter().collect::<String>()));
    let kind = prop_oneof![4 => Just(TerminalKind::Pattern), 1 => Just(TerminalKind::Free)];
    let pattern = (regex(), -1..2_i32, kind).prop_map(|(regex, priority, kind)| Terminal {
        name: format!("{regex:?}"),
        regex,
        priority,
        kind,
        span: None,
    });
    prop_oneof![1 => text, 2 => pattern]
}

type Rules = Vec<(u32, Vec<Symbol>)>;

fn rules(
    num_nonterminals: u32,
    num_terminals: u32,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = Rules> {
    let symbol = prop_oneof![
        (0..num_terminals).prop_map(|id| Symbol::Terminal(TerminalId(id))),
        (0..num_nonterminals).prop_map(|id| Symbol::Nonterminal(NonterminalId(id))),
    ];
    vec((0..num_nonterminals, vec(symbol, 0..4)), count)
}

fn build(
    terminals: &[Terminal],
    num_nonterminals: u32,
    rules: Rules,
    ignored: &[TerminalId],
    lexing: Lexing,
) -> Grammar {
    let mut builder = GrammarBuilder::new();
    for terminal in terminals {
        builder.terminal(terminal.clone());
    }
    for id in 0..num_nonterminals {
        builder.nonterminal(format!("N{id}"), None);
    }
    for (head, body) in rules {
        builder.rule(NonterminalId(head), body);
    }
    ignored.iter().for_each(|&terminal| builder.ignore(terminal));
    builder.build(NonterminalId(0), lexing)
}

/// A grammar in a line: rules `A -> x A y | z ;` separated by `;`, the first head being the start.
/// Words that are nowhere a head are terminals, numbered in the order of their first mention, each
/// matching itself.
///
/// # Panics
/// When a rule has no `->`.
pub fn grammar_of(rules: &str) -> Grammar {
    let rules = rules.split(';').map(str::trim).filter(|rule| !rule.is_empty());
    let rules: Vec<(&str, &str)> = rules
        .map(|rule| rule.split_once("->").unwrap_or_else(|| panic!("{rule:?} has no `->`")))
        .map(|(head, bodies)| (head.trim(), bodies))
        .collect();
    let mut builder = GrammarBuilder::new();
    let mut heads: Vec<&str> = Vec::new();
    for &(head, _) in &rules {
        if !heads.contains(&head) {
            heads.push(head);
            builder.nonterminal(head, None);
        }
    }
    let mut terminals: Vec<&str> = Vec::new();
    for (head, bodies) in &rules {
        let head = NonterminalId(heads.iter().position(|known| known == head).unwrap_or(0) as u32);
        for body in bodies.split('|') {
            let mut symbols = Vec::new();
            for word in body.split_whitespace() {
                if let Some(at) = heads.iter().position(|known| *known == word) {
                    symbols.push(Symbol::Nonterminal(NonterminalId(at as u32)));
                    continue;
                }
                let at = terminals.iter().position(|known| *known == word).unwrap_or_else(|| {
                    terminals.push(word);
                    builder.terminal(literal(word));
                    terminals.len() - 1
                });
                symbols.push(Symbol::Terminal(TerminalId(at as u32)));
            }
            builder.rule(head, symbols);
        }
    }
    builder.build(NonterminalId(0), Lexing::Any)
}

fn literal(text: &str) -> Terminal {
    Terminal {
        name: format!("{text:?}"),
        regex: Regex::literal(text),
        priority: 0,
        kind: TerminalKind::Literal,
        span: None,
    }
}
