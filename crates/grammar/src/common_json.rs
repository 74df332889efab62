//! Common JSON Schemas, whose residuals most schemas share: token effects computed for a vocabulary
//! before any request.

use std::sync::Arc;

use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_syntax::json_schema;

use crate::{Budget, Recognizer, RecognizerLimits};

/// Schemas with texts of them, between which is much of what other schemas ask.
const JSON: [(&str, &[&str]); 9] = [
    ("true", &[r#"{"a": [1, -2.5e3, "b\n\u00e9é", true, false, null], "c": {}}"#]),
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "number"}, "d": {"type": "boolean"}}}"#,
        &[r#"{"a": "b", "b": 12, "c": 1.5, "d": true, "e": 1}"#],
    ),
    (
        r#"{"type": "array", "items": {"type": "string", "minLength": 1}}"#,
        &[r#"["a", "b\n\u00e9", "cd"]"#],
    ),
    (
        r#"{"type": "string", "format": "date-time"}"#,
        &[r#""2024-02-29T23:59:59.123Z""#, r#""2024-02-29T23:59:59+01:30""#],
    ),
    (r#"{"type": "string", "format": "date"}"#, &[r#""2024-02-29""#]),
    (r#"{"type": "string", "format": "uuid"}"#, &[r#""123e4567-e89b-12d3-a456-426614174000""#]),
    (r#"{"type": "string", "format": "email"}"#, &[r#""ab.c@de-f.org""#]),
    (r#"{"type": "string", "format": "uri"}"#, &[r##""https://ab.org:80/cd/e.html?f=g&h=%20#i""##]),
    (r#"{"type": "string", "format": "ipv4"}"#, &[r#""127.0.0.1""#]),
];

/// [`prepare`](PreparedVocabulary::prepare) for JSON Schemas: strings, free or of up to so many characters, names, numbers, common
/// formats.
///
/// Cost: less than a tenth of a second for 200 thousand tokens, and some 21 MB.
pub fn prepare_json(vocabulary: &Arc<PreparedVocabulary>) {
    // They would be found for the first schema whose names are not all listed.
    vocabulary.name_tokens();
    for (schema, texts) in JSON {
        prepare_schema(vocabulary, schema, texts.iter().map(|text| text.as_bytes()));
    }
    // Counts that no token uses up are all alike.
    let longest = vocabulary.trie().max_depth().min(200);
    let text = format!("\"{}\"", "a".repeat(longest + 1));
    let schema = format!(r#"{{"type": "string", "maxLength": {}}}"#, longest + 1);
    prepare_schema(vocabulary, &schema, [text.as_bytes()]);
}

fn prepare_schema<'t>(
    vocabulary: &Arc<PreparedVocabulary>,
    schema: &str,
    texts: impl IntoIterator<Item = &'t [u8]>,
) {
    let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default())
        .expect("a schema of ours");
    let limits = RecognizerLimits::default();
    let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited())
        .expect("a small grammar");
    vocabulary.prepare(&recognizer, texts).expect("a small grammar");
}
