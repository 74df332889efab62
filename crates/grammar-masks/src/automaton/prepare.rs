//! Token effects of a vocabulary along sample texts, computed before any request.

use std::sync::Arc;

use palmette_core::mask;
use palmette_grammar_parser::recognizer::{Recognizer, RecognizerError, RecognizerScratch};

use super::{MaskAutomaton, PreparedVocabulary};

impl PreparedVocabulary {
    /// Finds out what masks ask along some texts of a grammar, so that the first visits of other
    /// grammars find it known: what remains of their terminals is often the same. A text is
    /// followed as far as it goes.
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
