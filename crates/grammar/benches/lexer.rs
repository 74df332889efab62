//! What does reading a byte cost, and what does it cost the first time?
//!
//! ```text
//! cargo bench -p palmette-grammar --bench lexer
//! ```
//!
//! Measured: [`Lexer::advance`] along a text whose transitions are known, beside a bare loop over a
//! dense table (what an automaton that is built ahead could do); a fresh lexer that reads a string
//! of at most 100,000 characters; making lexers of 10,000 literals in one terminal, and of 1,000
//! keywords beside names.

use divan::{Bencher, black_box, counter::BytesCount};
use palmette_grammar::{
    CharClass, Grammar, GrammarBuilder, LexerLimits, Lexing, Regex, Symbol, Terminal, TerminalKind,
    engine::lexer::Lexer,
};

fn main() {
    divan::main();
}

const LEN: usize = 10_000;

#[divan::bench]
fn known_bytes(bencher: Bencher) {
    let (lexer, text) = (string_lexer(), text());
    read(&lexer, &text);
    bencher.counter(BytesCount::of_slice(&text)).bench(|| read(&lexer, black_box(&text)));
}

#[divan::bench]
fn known_bytes_of_a_dense_table(bencher: Bencher) {
    let table: Vec<[u32; 256]> = (0..100).map(|state| [(state + 1) % 100; 256]).collect();
    let text = text();
    bencher.counter(BytesCount::of_slice(&text)).bench(|| {
        let text: &[u8] = black_box(&text);
        text.iter().fold(0, |state, &byte| table[state as usize][byte as usize])
    });
}

#[divan::bench]
fn first_bytes_of_a_counted_string(bencher: Bencher) {
    let text = text();
    let bencher = bencher.counter(BytesCount::of_slice(&text)).with_inputs(string_lexer);
    bencher.bench_refs(|lexer| read(lexer, black_box(&text)));
}

#[divan::bench]
fn lexer_of_10_000_literals() -> Lexer {
    let words: Vec<String> = (0..10_000).map(|n| format!("value {}", n * 7919)).collect();
    let regex = Regex::alternate(words.iter().map(|word| Regex::literal(word)));
    lexer([("ENUM".into(), regex, TerminalKind::Pattern)], Lexing::Any)
}

#[divan::bench]
fn lexer_of_1_000_keywords_and_names() -> Lexer {
    let keyword = |n: i32| {
        let text = format!("key{}", n * 31);
        let regex = Regex::literal(&text);
        (text, regex, TerminalKind::Literal)
    };
    let letters = CharClass::new([('a', 'z'), ('0', '9')]);
    let name = Regex::Class(letters).repeat(1, None);
    let name = ("NAME".into(), name, TerminalKind::Pattern);
    let lexer = lexer((0..1000).map(keyword).chain([name]), Lexing::Longest);
    for byte in 0..=u8::MAX {
        lexer.advance(lexer.start(), byte).expect("within limits");
    }
    lexer
}

/// `"` and any characters, at most 100,000, and `"`.
fn string_lexer() -> Lexer {
    let quote = || Regex::literal("\"");
    let text = Regex::Class(CharClass::single('"').complement()).repeat(0, Some(100_000));
    let string = Regex::concat([quote(), text, quote()]);
    lexer([("STRING".into(), string, TerminalKind::Pattern)], Lexing::Any)
}

fn text() -> Vec<u8> {
    format!("\"{}", "some text ".repeat(LEN / 10)).into_bytes()
}

fn read(lexer: &Lexer, text: &[u8]) {
    let mut state = lexer.start();
    for &byte in text {
        let to = lexer.advance(state, byte).expect("within limits");
        state = to.expect("the text goes on");
    }
    black_box(state);
}

fn lexer(
    terminals: impl IntoIterator<Item = (String, Regex, TerminalKind)>,
    lexing: Lexing,
) -> Lexer {
    let mut builder = GrammarBuilder::new();
    let start = builder.nonterminal("start", None);
    for (name, regex, kind) in terminals {
        let id = builder.terminal(Terminal { name, regex, priority: 0, kind, span: None });
        builder.rule(start, [Symbol::Terminal(id)]);
    }
    let grammar: Grammar = builder.build(start, lexing);
    Lexer::new(&grammar, &LexerLimits::default()).expect("within limits")
}
