//! Shortest completions against breadth-first search over bytes.

use std::collections::HashSet;
use std::sync::Arc;

use palmette_grammar_parser::completion::{CompletionScratch, Completions};
use palmette_grammar_parser::{
    Budget, Grammar, Position, Recognizer, RecognizerLimits, RecognizerScratch,
};
use palmette_grammar_syntax::lark::{LarkOptions, parse};
use palmette_testkit::grammar::generate::{over_alphabet, text_grammar};
use proptest::prelude::*;

/// A recognizer with its completions and what a thread lends them.
struct CompletionCase {
    recognizer: Arc<Recognizer>,
    completions: Completions,
    scratch: CompletionScratch,
    reading: RecognizerScratch,
}

impl CompletionCase {
    fn new(grammar: Grammar) -> Option<Self> {
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).ok()?;
        let recognizer = Arc::new(made);
        let completions = Completions::new(Arc::clone(&recognizer), None);
        let (scratch, reading) = Default::default();
        Some(Self { recognizer, completions, scratch, reading })
    }

    fn lark(source: &str) -> Self {
        let grammar =
            parse(source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        Self::new(grammar).expect("a small grammar")
    }

    fn after(&mut self, position: &Position, bytes: &[u8]) -> Option<Position> {
        self.recognizer.advance_all(position, bytes, &mut self.reading).unwrap()
    }

    fn shortest(&mut self, position: &Position) -> Option<Vec<u8>> {
        let budget = &mut Budget::unlimited();
        let Self { completions, scratch, reading, .. } = self;
        completions.shortest(position, scratch, reading, budget).unwrap()
    }

    fn shortest_after(&mut self, text: &str) -> Option<String> {
        let start = self.recognizer.start().expect("a language").clone();
        let position = self.after(&start, text.as_bytes()).expect("a beginning of a text");
        self.shortest(&position).map(|bytes| String::from_utf8(bytes).expect("characters"))
    }

    /// The least completion by definition: all texts, the shorter first, each position once;
    /// `None` where there are more than `max` positions.
    // Only whether a position is accepting is found out later, which is no part of its hash.
    #[allow(clippy::mutable_key_type)]
    fn by_definition(&mut self, from: &Position, bytes: &[u8], max: usize) -> Option<Vec<u8>> {
        let mut texts = vec![(from.clone(), Vec::new())];
        let mut seen = HashSet::from([from.clone()]);
        while !texts.is_empty() && seen.len() <= max {
            let mut longer = Vec::new();
            for (position, text) in &texts {
                if self.recognizer.is_accepting(position, &mut self.reading).unwrap() {
                    return Some(text.clone());
                }
                for &byte in bytes {
                    if let Some(next) = self.after(position, &[byte])
                        && seen.insert(next.clone())
                    {
                        longer.push((next, [&text[..], &[byte]].concat()));
                    }
                }
            }
            texts = longer;
        }
        None
    }
}

/// The bytes of the alphabet of random grammars by their ranks.
const BYTES: [u8; 4] = [b'a', b'b', 0xA9, 0xC3];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// With every lexing: the completion of each position of a random text is the least by
    /// definition, and so is what is left of it after each of its bytes.
    #[test]
    fn completions_are_the_least(grammar in text_grammar(), steps in prop::collection::vec(0..4_usize, 0..8)) {
        let Some(mut asked) = CompletionCase::new(over_alphabet(&grammar)) else { return Ok(()) };
        let Some(mut at) = asked.recognizer.start().cloned() else { return Ok(()) };
        let mut steps = steps.into_iter();
        loop {
            if let Some(least) = asked.by_definition(&at, &BYTES, 2_000) {
                prop_assert_eq!(asked.shortest(&at), Some(least.clone()), "{:?}", grammar);
                let mut on = at.clone();
                for (place, &byte) in least.iter().enumerate() {
                    on = asked.after(&on, &[byte]).expect("its own completion");
                    prop_assert_eq!(asked.shortest(&on), Some(least[place + 1..].to_vec()));
                }
            }
            let Some(step) = steps.next() else { break };
            let next = (0..4).find_map(|more| asked.after(&at, &[BYTES[(step + more) % 4]]));
            let Some(next) = next else { break };
            at = next;
        }
    }
}

#[test]
fn the_least_text_closes_what_is_open() {
    let mut json = CompletionCase::lark(
        r#"
        start: value
        value: object | list | STRING | NUMBER
        object: "{" [pair ("," pair)*] "}"
        pair: STRING ":" value
        list: "[" [value ("," value)*] "]"
        STRING: /"[^"]*"/
        NUMBER: /-?[0-9]+/
        "#,
    );
    for (text, rest) in [
        ("", "0"),
        ("-", "0"),
        ("12", ""),
        ("{\"a", "\":0}"),
        ("{\"a\":[[{", "}]]}"),
        ("[\"", "\"]"),
        ("[{},", "0]"),
    ] {
        assert_eq!(json.shortest_after(text).as_deref(), Some(rest), "after {text}");
    }
    let depth = 50_000;
    assert_eq!(json.shortest_after(&"[".repeat(depth)), Some("]".repeat(depth)));
}

#[test]
fn lexemes_that_compete_are_kept_apart() {
    let mut words = CompletionCase::lark(
        r#"
        start: "let" NAME "=" NAME "in" NAME
        NAME: /[a-z]+/
        %ignore " "
        "#,
    );
    // A keyword is read where a name cannot be; a name and `in` without a space are one name.
    assert_eq!(words.shortest_after("").as_deref(), Some("leta=a ina"));
    assert_eq!(words.shortest_after("let b=c").as_deref(), Some(" ina"));
}

#[test]
fn blocks_are_closed_at_the_end() {
    let mut blocks = CompletionCase::lark(
        r#"
        start: statement+
        statement: "if" NAME ":" _NL _INDENT statement+ _DEDENT | NAME _NL
        NAME: /[a-z]+/
        _NL: /(\n[ ]*)+/
        %ignore " "
        %declare _INDENT _DEDENT
        "#,
    );
    // A block is at least a blank deeper than the line before it, whose own block ends with it.
    assert_eq!(blocks.shortest_after("").as_deref(), Some("a\n"));
    assert_eq!(blocks.shortest_after("if a:").as_deref(), Some("\n a\n"));
    assert_eq!(blocks.shortest_after("if a:\n  if b:\n   ").as_deref(), Some("a\n"));
}
