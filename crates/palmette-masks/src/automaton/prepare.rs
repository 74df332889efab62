//! Token effects of a vocabulary along sample texts, computed before any request.

use std::sync::Arc;

use palmette_core::mask;
use palmette_parser::recognizer::{Recognizer, RecognizerError, RecognizerScratch};

use super::{MaskAutomaton, PreparedVocabulary};

impl PreparedVocabulary {
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
}

#[cfg(test)]
mod tests {
    use palmette_core::Vocabulary;

    use super::*;
    use palmette_parser::RecognizerLimits;

    use crate::Budget;
    use palmette_frontends::json_schema;

    /// Every token of up to two of these characters.
    fn vocabulary() -> Vocabulary {
        let letters: Vec<String> = "{}\"abc1: ,x".chars().map(String::from).collect();
        let pairs = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}")));
        let texts: Vec<String> = letters.iter().cloned().chain(pairs).collect();
        Vocabulary::new(texts.iter().map(|text| Some(text.as_bytes())), []).expect("no end")
    }

    /// Texts that come by names, strings that count, patterns and numbers.
    #[test]
    fn nothing_is_left_to_be_found_out_of_residuals_that_were_found_out_ahead() {
        let schema = r#"{"type": "object", "properties": {
            "abc": {"type": "string", "maxLength": 9}, "abx": {"type": "integer"},
            "x": {"type": "string", "pattern": "^(a|bc)+x?$"}}}"#;
        let grammar = json_schema::parse(schema, &json_schema::JsonSchemaOptions::default());
        let limits = RecognizerLimits::default();
        let grammar = Arc::new(grammar.expect("a schema"));
        let recognizer =
            Recognizer::new(grammar, &limits, &mut Budget::unlimited()).expect("small");
        let slices = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary())));
        let automaton = MaskAutomaton::new(Arc::clone(&slices));
        let mut ahead = automaton.residuals_ahead(&recognizer, usize::MAX);
        let mut prepare =
            || automaton.prepare_residual(&recognizer, &mut ahead, &mut Budget::unlimited());
        while prepare().expect("no limit") {}
        let known = slices.residuals().num_effects();
        assert!(known > 20, "{known}");
        let texts: [&[u8]; 2] = [
            br#"{"abc" : "a1bcx", "abx": 1131, "ac": {"x": [1.5, true]}, "x": "abca"}"#,
            br#"{"x":"bcbcx","abc":"","b":"aaaaaaaaaaaa"}"#,
        ];
        slices.prepare(&recognizer, texts).expect("small");
        assert_eq!(slices.residuals().num_effects(), known);
    }
}
