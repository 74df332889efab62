//! What is found out for a vocabulary before any grammar asks.

use std::sync::Arc;

use palmette_core::mask;

use super::{MaskAutomaton, VocabularySlices};
use crate::frontends::json_schema;
use crate::recognizer::{Recognizer, RecognizerError, RecognizerScratch};
use crate::{Budget, RecognizerLimits};

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

impl VocabularySlices {
    /// Finds out what masks ask along some texts of a grammar, so that the first visits of other grammars find it known: what
    /// remains of their terminals is often the same. A text is followed as far as it goes.
    ///
    /// Cost: a mask for each byte, the first of each kind some milliseconds.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn prepare<'t>(
        self: &Arc<Self>,
        recognizer: &Recognizer,
        texts: impl IntoIterator<Item = &'t [u8]>,
    ) -> Result<(), RecognizerError> {
        let automaton = MaskAutomaton::new(Arc::clone(self));
        let mut scratch = RecognizerScratch::default();
        let mut row = vec![0; mask::num_words(self.vocabulary().num_tokens())];
        for text in texts {
            let mut position = recognizer.start().cloned();
            let mut bytes = text.iter();
            while let Some(at) = position {
                automaton.fill_mask(recognizer, &at, &mut row)?;
                position = match bytes.next() {
                    Some(&byte) => recognizer.advance(&at, byte, &mut scratch)?,
                    None => None,
                };
            }
        }
        Ok(())
    }

    /// [`prepare`](Self::prepare) for JSON Schemas: strings, free or of up to so many characters, names, numbers, common
    /// formats.
    ///
    /// Cost: less than a tenth of a second for 200 thousand tokens, and some 21 MB.
    pub fn prepare_json(self: &Arc<Self>) {
        for (schema, texts) in JSON {
            self.prepare_schema(schema, texts.iter().map(|text| text.as_bytes()));
        }
        // Counts that no token uses up are all alike.
        let longest = self.trie().max_depth().min(200);
        let text = format!("\"{}\"", "a".repeat(longest + 1));
        let schema = format!(r#"{{"type": "string", "maxLength": {}}}"#, longest + 1);
        self.prepare_schema(&schema, [text.as_bytes()]);
    }

    fn prepare_schema<'t>(
        self: &Arc<Self>,
        schema: &str,
        texts: impl IntoIterator<Item = &'t [u8]>,
    ) {
        let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default())
            .expect("a schema of ours");
        let limits = RecognizerLimits::default();
        let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited())
            .expect("a small grammar");
        self.prepare(&recognizer, texts).expect("a small grammar");
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::Vocabulary;

    use super::*;

    /// Every token of up to two of these characters.
    fn vocabulary() -> Vocabulary {
        let letters: Vec<String> = "{}\"abc1: ,x".chars().map(String::from).collect();
        let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
        let texts: Vec<String> = letters.iter().cloned().chain(pairs).collect();
        Vocabulary::new(texts.iter().map(|text| Some(text.as_bytes())), []).expect("no end")
    }

    /// Texts that come by names, strings that count, patterns and numbers.
    #[test]
    fn nothing_is_left_to_be_found_out_of_pieces_that_were_found_out_ahead() {
        let schema = r#"{"type": "object", "properties": {
            "abc": {"type": "string", "maxLength": 9}, "abx": {"type": "integer"},
            "x": {"type": "string", "pattern": "^(a|bc)+x?$"}}}"#;
        let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default());
        let limits = RecognizerLimits::default();
        let grammar = Arc::new(grammar.expect("a schema"));
        let recognizer =
            Recognizer::new(grammar, &limits, &mut Budget::unlimited()).expect("small");
        let slices = Arc::new(VocabularySlices::new(Arc::new(vocabulary())));
        let automaton = MaskAutomaton::new(Arc::clone(&slices));
        let mut ahead = automaton.pieces_ahead(&recognizer, usize::MAX);
        let mut prepare =
            || automaton.prepare_piece(&recognizer, &mut ahead, &mut Budget::unlimited());
        while prepare().expect("no limit") {}
        let known = slices.pieces().num_analysed();
        assert!(known > 20, "{known}");
        let texts: [&[u8]; 2] = [
            br#"{"abc" : "a1bcx", "abx": 1131, "ac": {"x": [1.5, true]}, "x": "abca"}"#,
            br#"{"x":"bcbcx","abc":"","b":"aaaaaaaaaaaa"}"#,
        ];
        slices.prepare(&recognizer, texts).expect("small");
        assert_eq!(slices.pieces().num_analysed(), known);
    }
}
