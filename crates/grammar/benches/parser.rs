//! What do a parser's tables cost to build, and what does a terminal cost to read?
//!
//! ```text
//! cargo bench -p palmette-grammar --bench parser
//! ```
//!
//! Measured: `build/…`, a [`Parser`] from a [`Grammar`]; `shift/…`, one terminal of a sentence;
//! `accepts/…`, one question about one terminal, each terminal of the grammar in turn; `allowed/…`,
//! the set of all that may follow.
//!
//! Data: `json` is the grammar of JSON over its lexemes. `objects` is that grammar, and as many
//! rules more as the argument says, of objects with eight named members of which every other may be
//! left out, each an object of a later rule or any value: what a JSON schema becomes. `ambiguous`
//! is `E → E + E | x`.

use divan::{Bencher, black_box};
use palmette_grammar::{
    Grammar, GrammarBuilder, Lexing, NonterminalId, ParserLimits, Regex, Symbol, Terminal,
    TerminalId, TerminalKind, TerminalSet,
    engine::glr::{Parser, ParserScratch, Stacks},
};

fn main() {
    divan::main();
}

#[divan::bench]
fn build_json(bencher: Bencher<'_, '_>) {
    let grammar = Json::new().build();
    bencher.bench(|| Parser::new(black_box(&grammar), &ParserLimits::default()));
}

#[divan::bench(args = [100, 1_000, 10_000])]
fn build_objects(bencher: Bencher<'_, '_>, num_rules: usize) {
    let grammar = objects(num_rules);
    bencher.bench(|| Parser::new(black_box(&grammar), &ParserLimits::default()));
}

/// One terminal of a sentence of 1,000.
#[divan::bench]
fn shift_json(bencher: Bencher<'_, '_>) {
    let parser = parser(&Json::new().build());
    let sentence = sentence();
    let mut scratch = ParserScratch::new();
    bencher
        .counter(divan::counter::ItemsCount::new(sentence.len()))
        .bench_local(|| read(&parser, black_box(&sentence), &mut scratch));
}

/// One terminal at a place of a sentence of 1,000, after all places in turn.
#[divan::bench]
fn accepts_json(bencher: Bencher<'_, '_>) {
    let parser = parser(&Json::new().build());
    let places = places(&parser);
    let mut scratch = ParserScratch::new();
    let num_terminals = parser.tables().num_terminals();
    bencher.counter(divan::counter::ItemsCount::new(places.len() * num_terminals)).bench_local(
        || {
            let mut count = 0;
            for place in black_box(&places) {
                for terminal in (0..num_terminals as u32).map(TerminalId) {
                    count += u32::from(parser.accepts(place, terminal, &mut scratch) == Ok(true));
                }
            }
            count
        },
    );
}

#[divan::bench]
fn allowed_json(bencher: Bencher<'_, '_>) {
    let parser = parser(&Json::new().build());
    let places = places(&parser);
    let mut scratch = ParserScratch::new();
    let mut allowed = TerminalSet::new(parser.tables().num_terminals());
    bencher.counter(divan::counter::ItemsCount::new(places.len())).bench_local(|| {
        for place in black_box(&places) {
            allowed.clear();
            parser.allowed(place, &mut allowed, &mut scratch).expect("few stacks");
        }
    });
}

/// One terminal of a sentence of as many.
#[divan::bench(args = [11, 101])]
fn shift_ambiguous(bencher: Bencher<'_, '_>, length: usize) {
    let mut builder = GrammarBuilder::new();
    let [x, plus] = ["x", "+"].map(|text| Symbol::Terminal(builder.terminal(literal(text))));
    let sum = builder.nonterminal("sum", None);
    builder.rule(sum, [x]);
    builder.rule(sum, [Symbol::Nonterminal(sum), plus, Symbol::Nonterminal(sum)]);
    let parser = parser(&builder.build(sum, Lexing::Longest));
    let sentence: Vec<_> = (0..length as u32).map(|at| TerminalId(at % 2)).collect();
    let mut scratch = ParserScratch::new();
    bencher
        .counter(divan::counter::ItemsCount::new(length))
        .bench_local(|| read(&parser, black_box(&sentence), &mut scratch));
}

fn parser(grammar: &Grammar) -> Parser {
    Parser::new(grammar, &ParserLimits::default()).expect("small tables")
}

fn read(parser: &Parser, sentence: &[TerminalId], scratch: &mut ParserScratch) -> Stacks {
    sentence.iter().fold(parser.start(), |stacks, &terminal| {
        let next = parser.shift(&stacks, terminal, scratch).expect("few stacks");
        next.expect("a sentence")
    })
}

/// The position before each terminal of [`sentence`].
fn places(parser: &Parser) -> Vec<Stacks> {
    let mut scratch = ParserScratch::new();
    let mut places = vec![parser.start()];
    for terminal in sentence() {
        let next = parser.shift(&places[places.len() - 1], terminal, &mut scratch);
        places.push(next.expect("few stacks").expect("a sentence"));
    }
    places
}

/// An array of objects with a string, a number and nested arrays, in terminals of [`Json`].
fn sentence() -> Vec<TerminalId> {
    let [open, close, comma, colon, from, to, string, number] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(TerminalId);
    let object = [
        open, string, colon, number, comma, string, colon, from, number, comma, from, string, to,
        to, close,
    ];
    let mut sentence = vec![from];
    while sentence.len() < 1_000 {
        sentence.extend(object);
        sentence.push(comma);
    }
    sentence.extend([string, to]);
    sentence
}

/// The grammar of JSON over its lexemes, to be added to.
struct Json {
    builder: GrammarBuilder,
    value: NonterminalId,
    symbols: [Symbol; 6],
}

impl Json {
    fn new() -> Self {
        let mut builder = GrammarBuilder::new();
        let symbols = ["{", "}", ",", ":", "[", "]"]
            .map(|text| Symbol::Terminal(builder.terminal(literal(text))));
        let [open, close, comma, colon, from, to] = symbols;
        let scalars = ["string", "number", "true", "false", "null"];
        let scalars = scalars.map(|text| Symbol::Terminal(builder.terminal(literal(text))));
        let names = ["value", "object", "array", "members", "elements"];
        let [value, object, array, members, elements] =
            names.map(|name| builder.nonterminal(name, None));
        let of = Symbol::Nonterminal;
        for scalar in scalars {
            builder.rule(value, [scalar]);
        }
        builder.rule(value, [of(object)]);
        builder.rule(value, [of(array)]);
        builder.rule(object, [open, close]);
        builder.rule(object, [open, of(members), close]);
        builder.rule(members, [scalars[0], colon, of(value)]);
        builder.rule(members, [of(members), comma, scalars[0], colon, of(value)]);
        builder.rule(array, [from, to]);
        builder.rule(array, [from, of(elements), to]);
        builder.rule(elements, [of(value)]);
        builder.rule(elements, [of(elements), comma, of(value)]);
        Self { builder, value, symbols }
    }

    fn build(self) -> Grammar {
        self.builder.build(self.value, Lexing::Longest)
    }
}

/// Objects with named members; see the top of this file.
fn objects(num_rules: usize) -> Grammar {
    const MEMBERS: usize = 8;
    let Json { mut builder, value, symbols: [open, close, comma, colon, ..] } = Json::new();
    let of = Symbol::Nonterminal;
    let mut added = 0;
    let mut waiting = std::collections::VecDeque::new();
    let start = builder.nonterminal("object 0", None);
    waiting.push_back(start);
    while let Some(object) = waiting.pop_front() {
        // `rest k` is what may follow the first k members.
        let rest: Vec<_> =
            (0..=MEMBERS).map(|at| builder.nonterminal(format!("rest {at}"), None)).collect();
        builder.rule(object, [open, of(rest[0]), close]);
        builder.rule(rest[MEMBERS], []);
        for at in 0..MEMBERS {
            let key = builder.terminal(literal(&format!("key {}", (added + at) % 500)));
            let member = if at % 3 == 0 && added + waiting.len() * 15 < num_rules {
                let member = builder.nonterminal(format!("object {added} {at}"), None);
                waiting.push_back(member);
                member
            } else {
                value
            };
            let this = [Symbol::Terminal(key), colon, of(member), of(rest[at + 1])];
            let body: Vec<_> = if at == 0 { this.into() } else { [&[comma], &this[..]].concat() };
            builder.rule(rest[at], body);
            if at % 2 == 1 {
                builder.rule(rest[at], [of(rest[at + 1])]);
            }
        }
        added += 2 + MEMBERS + MEMBERS / 2;
    }
    builder.build(start, Lexing::Longest)
}

fn literal(text: &str) -> Terminal {
    Terminal {
        name: text.to_owned(),
        regex: Regex::literal(text),
        priority: 0,
        kind: TerminalKind::Literal,
        span: None,
    }
}
