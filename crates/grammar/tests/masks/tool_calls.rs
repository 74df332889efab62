//! Conversations with tool calls, token by token: every mask is the definition's, and allows the
//! next token.
//!
//! Over the encodings that are built in, and over each `tokenizer.json` that PALMETTE_TOKENIZERS
//! names as `format=path`, separated by commas, such as
//! `hermes=qwen3/tokenizer.json,llama3=llama3/tokenizer.json`.

use std::collections::HashMap;
use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::structural_tag::{StructuralTagOptions, ToolFormat, parse_tools};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer, RecognizerLimits,
};

const REQUEST: &str = r#"{"tools": [
  {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "required": ["city", "days"],
    "properties": {"city": {"type": "string", "minLength": 2}, "days": {"type": "integer", "minimum": 1, "maximum": 14},
      "unit": {"enum": ["celsius", "fahrenheit"]}}, "additionalProperties": false}}},
  {"type": "function", "function": {"name": "remind", "parameters": {"type": "object", "required": ["at"],
    "properties": {"at": {"type": "string", "format": "date-time"}, "tags": {"items": {"type": "string"}}}}}}]}"#;

const WEATHER: &str = r#"{"city": "Zürich", "days": 3, "unit": "celsius"}"#;
const REMIND: &str = r#"{"at": "2026-11-25T08:30:00Z", "tags": ["rain", "umbrella ☂"]}"#;

/// What a model answers: words, and calls of both tools where its format lets several follow.
fn answers(format: &str) -> Vec<String> {
    let thought = "<think>\nThe user wants to know about tomorrow.\n</think>\n\n";
    let hermes = |name: &str, arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    match format {
        "hermes" => vec![
            format!(
                "{thought}Let me look. {}\n{}",
                hermes("weather", WEATHER),
                hermes("remind", REMIND)
            ),
            "There is nothing to look up: 2 < 3.".to_owned(),
        ],
        "llama3" => vec![
            format!("{{\"name\": \"weather\", \"parameters\": {WEATHER}}}"),
            "I do not need a tool for that.".to_owned(),
        ],
        "mistral" => vec![format!("[TOOL_CALLS]weather[ARGS]{WEATHER}")],
        "harmony" => vec![
            format!(
                "<|channel|>analysis<|message|>They want the weather.<|end|><|start|>assistant<|channel|>commentary \
                 to=functions.weather <|constrain|>json<|message|>{WEATHER}"
            ),
            "<|channel|>final<|message|>It will rain.".to_owned(),
        ],
        "qwen_xml" => vec![
            format!(
                "{thought}<tool_call>\n<function=weather>\n<parameter=city>\nZürich \"West\"\n</parameter>\n<parameter=days>\n3\n\
                 </parameter>\n</function>\n</tool_call>"
            ),
            "There is nothing to look up: 2 < 3.".to_owned(),
        ],
        "kimi_k3" => vec![
            "<|open|>response<|sep|>Let me look.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"weather\" \
             index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>Zürich \"West\"<|close|>argument<|sep|><|open|>argument \
             key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>"
                .to_owned(),
        ],
        "gemma4" => vec![
            "<|tool_call>call:remind{at:<|\"|>2026-11-25T08:30:00Z<|\"|>,tags:[<|\"|>rain<|\"|>,<|\"|>\"☂\"<|\"|>]}<tool_call|>"
                .to_owned(),
        ],
        "llama4" => vec![
            "One moment. <|python_start|>[weather(city=\"Zürich\", days=3), remind(at=\"2026-11-25T08:30:00Z\", tags=[])]\
             <|python_end|>"
                .to_owned(),
        ],
        _ => panic!("no answers are known in {format}"),
    }
}

/// A text as special tokens, where their names stand, and the longest tokens that fit between.
fn tokens(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let by_text: HashMap<&[u8], TokenId> =
        vocabulary.texts().map(|(token, text)| (text, token)).collect();
    let (mut rest, mut found) = (text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let special = vocabulary.names().filter(|(name, _)| rest.starts_with(name.as_bytes()));
        let special = special.max_by_key(|(name, _)| name.len());
        let text = || {
            (1..=rest.len().min(40)).rev().find_map(|len| Some((*by_text.get(&rest[..len])?, len)))
        };
        let special = special.map(|(name, token)| (token, name.len()));
        let (token, len) = special.or_else(text).expect("every byte is a token");
        found.push(token);
        rest = &rest[len..];
    }
    found
}

fn check(vocabulary: &Arc<Vocabulary>, format: &str) {
    let slices = Arc::new(PreparedVocabulary::new(Arc::clone(vocabulary)));
    let texts = ToolFormat::named(format).expect(format);
    let grammar = parse_tools(REQUEST, texts, &StructuralTagOptions::default());
    let grammar = grammar.expect("a request");
    let grammar = grammar.with_tokens_of(vocabulary).expect("its tokens");
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    let recognizer = Arc::new(recognizer.expect("a recognizer"));
    let constraint = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&slices));
    let walked = GrammarConstraint::by_walking(recognizer, slices);
    let num_words = mask::num_words(constraint.num_tokens());
    let (mut row, mut expected) = (vec![0; num_words], vec![0; num_words]);
    let mut scratch = GrammarScratch::default();
    for answer in answers(format) {
        let mut state = constraint.start();
        for (step, token) in
            tokens(vocabulary, &answer).into_iter().map(Some).chain([None]).enumerate()
        {
            constraint.fill_mask(&state, &mut scratch, &mut row).expect("within limits");
            walked.fill_mask(&state, &mut scratch, &mut expected).expect("within limits");
            assert!(row == expected, "{format}: the mask before token {step} of {answer:?}");
            match token {
                Some(token) => {
                    constraint.commit(&mut state, token, &mut scratch).unwrap_or_else(|error| {
                        panic!("{format}: token {step} of {answer:?}: {error}")
                    });
                }
                None => {
                    assert!(constraint.is_accepting(&state, &mut scratch).unwrap(), "{answer:?}")
                }
            }
        }
    }
}

#[test]
fn conversations_with_encodings() {
    for (name, format) in [
        ("o200k_harmony", "harmony"),
        ("o200k_base", "hermes"),
        ("o200k_base", "llama3"),
        ("o200k_base", "qwen_xml"),
        ("o200k_base", "kimi_k3"),
        ("o200k_base", "gemma4"),
        ("o200k_base", "llama4"),
    ] {
        let loaded = palmette_vocabulary::load(name).expect("it is built in");
        check(&loaded.vocabulary, format);
    }
}

#[test]
fn conversations_with_tokenizers() {
    let Ok(given) = std::env::var("PALMETTE_TOKENIZERS") else {
        eprintln!(
            "SKIPPED: conversations_with_tokenizers: PALMETTE_TOKENIZERS names no tokenizer.json"
        );
        return;
    };
    for (format, path) in given.split(',').filter_map(|given| given.split_once('=')) {
        let loaded = palmette_vocabulary::load(path).unwrap_or_else(|error| panic!("{error}"));
        check(&loaded.vocabulary, format);
    }
}
