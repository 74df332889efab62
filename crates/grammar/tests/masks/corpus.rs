//! The corpus of grammars in `testdata`, by every engine: texts, masks, and masks of a file that
//! was opened again.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::engine::glr::ParserScratch;
use palmette_grammar::frontends::gbnf::GbnfOptions;
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, Whitespace};
use palmette_grammar::frontends::lark::LarkOptions;
use palmette_grammar::frontends::regex::RegexOptions;
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarSource, Lexing, PreparedVocabulary,
    Recognizer, RecognizerLimits, SavedGrammar,
};
use palmette_mask_store::{MaskStore, Steps};
use serde::Deserialize;

#[derive(Deserialize)]
struct Corpus {
    tokens: Tokens,
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Tokens {
    letters: String,
    longer: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    syntax: String,
    grammar: String,
    start: Option<String>,
    lexing: Option<String>,
    whitespace: Option<String>,
    accept: Vec<String>,
    reject: Vec<String>,
    #[serde(default)]
    masks: Vec<Allowed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    prefix: String,
    next: Vec<String>,
    end: bool,
}

impl Case {
    fn source(&self) -> GrammarSource {
        let text = self.grammar.clone();
        match &*self.syntax {
            "regex" => GrammarSource::Regex { text, options: RegexOptions::default() },
            "gbnf" => GrammarSource::Gbnf { text, options: GbnfOptions::default() },
            "json-schema" => {
                let whitespace = match self.whitespace.as_deref() {
                    None => Whitespace::Bounded,
                    Some("compact") => Whitespace::Compact,
                    Some(other) => panic!("whitespace {other:?}"),
                };
                let options = JsonSchemaOptions { whitespace, ..Default::default() };
                GrammarSource::JsonSchema { text, options }
            }
            "lark" => {
                let mut options = match &self.start {
                    Some(start) => LarkOptions::from_rule(start),
                    None => LarkOptions::default(),
                };
                options.lexing = self.lexing.as_deref().map(|lexing| match lexing {
                    "any" => Lexing::Any,
                    "contextual" => Lexing::Contextual,
                    "longest" => Lexing::Longest,
                    other => panic!("lexing {other:?}"),
                });
                GrammarSource::Lark { text, options }
            }
            other => panic!("syntax {other:?}"),
        }
    }
}

/// All engines over a grammar, with their names.
fn engines(
    (recognizer, source): (&Arc<Recognizer>, &GrammarSource),
    vocabulary: &Arc<PreparedVocabulary>,
) -> Vec<(&'static str, GrammarConstraint)> {
    let (limits, all) = (RecognizerLimits::default(), || Arc::clone(vocabulary));
    let chosen = GrammarConstraint::new(Arc::clone(recognizer), all());
    let bytes = chosen.to_bytes(source).expect("its own source");
    let saved = SavedGrammar::from_bytes(bytes.into()).expect("sound");
    let reopened = saved.compile(vocabulary, &limits, &mut Budget::unlimited()).expect("the same");
    vec![
        ("the one that is chosen", chosen.clone()),
        ("the one of a file", reopened.constraint),
        ("the definition", GrammarConstraint::by_walking(Arc::clone(recognizer), all())),
    ]
}

#[test]
fn every_engine_gives_what_the_corpus_says() {
    let source = include_str!("../../../../testdata/grammars.toml");
    let corpus: Corpus = toml::from_str(source).expect("the format that its head tells");
    let letters = corpus.tokens.letters.chars().map(String::from);
    let tokens: Vec<String> = letters.chain(corpus.tokens.longer).collect();
    let end = TokenId(tokens.len() as u32);
    let texts = tokens.iter().map(Some).chain([None]);
    let vocabulary = Vocabulary::new(texts, [end]).expect("each has a text");
    let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
    assert!(corpus.case.len() > 150, "only {} cases", corpus.case.len());
    let mut num_masks = 0;
    for case in &corpus.case {
        let limits = RecognizerLimits::default();
        let source = case.source();
        let (grammar, _) = source.parse().expect("it");
        let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        let recognizer = Arc::new(recognizer.expect("a small grammar"));
        let store = MaskStore::new(Arc::clone(&recognizer), &vocabulary, Steps::ALL).ok();
        for (engine, constraint) in engines((&recognizer, &source), &vocabulary) {
            let at = |text: &str| format!("{}, {engine}, {text:?}", case.name);
            let mut scratch = GrammarScratch::default();
            let texts = case.accept.iter().map(|text| (text, true));
            for (text, accepted) in texts.chain(case.reject.iter().map(|text| (text, false))) {
                let mut state = constraint.start();
                let read = constraint.commit_bytes(&mut state, text.as_bytes(), &mut scratch);
                let accepts =
                    read.is_ok() && constraint.is_accepting(&state, &mut scratch).expect("small");
                assert_eq!(accepts, accepted, "{}", at(text));
            }
            for Allowed { prefix, next, end: may_end } in &case.masks {
                let mut state = constraint.start();
                constraint
                    .commit_bytes(&mut state, prefix.as_bytes(), &mut scratch)
                    .unwrap_or_else(|why| panic!("{}: {why}", at(prefix)));
                let mut row = vec![!0; mask::num_words(constraint.num_tokens())];
                constraint.fill_mask(&state, &mut scratch, &mut row).expect("small");
                if let Some((store, position)) = store.as_ref().zip(state.position()) {
                    let mut stored = vec![!0; row.len()];
                    let scratch = &mut ParserScratch::default();
                    store.fill_mask(position, scratch, &mut stored).expect("small");
                    if *may_end {
                        mask::insert(&mut stored, end);
                    }
                    assert_eq!(stored, row, "the store: {}", at(prefix));
                }
                let is_text = |token: &TokenId| *token != end;
                let mut allowed: Vec<&str> =
                    mask::iter(&row).filter(is_text).map(|token| &*tokens[token.index()]).collect();
                let mut expected: Vec<&str> = next.iter().map(|text| &**text).collect();
                allowed.sort_unstable();
                expected.sort_unstable();
                assert_eq!(allowed, expected, "{}", at(prefix));
                assert_eq!(mask::contains(&row, end), *may_end, "the end: {}", at(prefix));
                num_masks += 1;
            }
        }
    }
    assert!(num_masks > 60, "only {num_masks} masks were compared");
}
