//! Whether a grammar accepts a text.

use std::sync::Arc;

use palmette_grammar::{Budget, Grammar, Recognizer, RecognizerLimits, RecognizerScratch};

/// Reads whole texts.
pub(crate) struct Machine(Recognizer);

impl Machine {
    /// The recognizer of a grammar; the error in words.
    pub(crate) fn new(grammar: &Grammar) -> Result<Self, String> {
        let grammar = Arc::new(grammar.clone());
        Recognizer::new(grammar, &RecognizerLimits::default(), &mut Budget::unlimited())
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Whether `text` is in the language.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        let mut scratch = RecognizerScratch::default();
        let Some(start) = self.0.start() else { return false };
        let end = self.0.advance_all(start, text.as_bytes(), &mut scratch).expect("the limits");
        end.is_some_and(|end| self.0.is_accepting(&end, &mut scratch).expect("the limits"))
    }
}
