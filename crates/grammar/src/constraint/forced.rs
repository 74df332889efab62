//! Tokens ahead of a position: those that must follow, and those of a draft that can.

use palmette_core::{CommitError, Constraint, NUMBER_MARK, TokenId, mask};
use palmette_grammar_parser::recognizer::{Position, RecognizerError};

use super::{GrammarConstraint, GrammarScratch, GrammarState};

impl GrammarConstraint {
    /// The bytes that must follow, whatever the text becomes: as many as there is only one way on
    /// and the text cannot end. Stops at `limit` bytes.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn forced_bytes(
        &self,
        state: &GrammarState,
        limit: usize,
        scratch: &mut GrammarScratch,
    ) -> Result<Vec<u8>, RecognizerError> {
        let mut forced = Vec::new();
        let mut at = state.position().filter(|_| !state.ended()).cloned();
        while let Some(position) = at.take().filter(|_| forced.len() < limit) {
            let before = forced.len();
            self.recognizer.forced_by_member(&position, &mut forced);
            // Tokens by number are no text.
            if forced.get(before) == Some(&NUMBER_MARK) {
                forced.truncate(before);
                break;
            }
            forced.truncate(limit);
            if forced.len() > before {
                let bytes = &forced[before..];
                at = self.recognizer.advance_all(&position, bytes, &mut scratch.recognizer)?;
            } else if let Some((byte, next)) = self.only_byte(&position, scratch)? {
                forced.push(byte);
                at = Some(next);
            }
        }
        Ok(forced)
    }

    /// Length of the longest prefix of these draft tokens that can be committed: what speculative
    /// decoding may keep. Nothing is committed.
    ///
    /// # Errors
    /// When one of them is not in the vocabulary, or a limit of the grammar is exceeded.
    pub fn accepted_prefix(
        &self,
        state: &GrammarState,
        draft: &[TokenId],
        scratch: &mut GrammarScratch,
    ) -> Result<usize, CommitError<RecognizerError>> {
        let mut ahead = state.clone();
        for (place, &token) in draft.iter().enumerate() {
            match self.commit(&mut ahead, token, scratch) {
                Ok(()) => {}
                Err(CommitError::NotAllowed { .. }) => return Ok(place),
                Err(error) => return Err(error),
            }
        }
        Ok(draft.len())
    }

    /// The tokens that must follow, whatever the text becomes: a token is forced where the mask has
    /// one bit, then the next one after it, and so on. Stops at `limit` tokens, and after an end
    /// token. They can be committed one after another, and nothing else can be.
    ///
    /// These are fewer than the tokens that a tokenizer would make of the [forced
    /// bytes](Self::forced_bytes). Where the bytes `"name"` must follow, tokens such as `"`, `"n`
    /// and `"name` may all begin them; a tokenizer picks one, but which one depends on bytes that
    /// come after the forced ones, and another choice than the model's own changes what it says
    /// next. Only a single allowed token leaves no choice, to any tokenizer.
    ///
    /// Cost: a mask for each token and one more.
    ///
    /// # Errors
    /// When a limit of the grammar is exceeded.
    pub fn forced_tokens(
        &self,
        state: &GrammarState,
        limit: usize,
        scratch: &mut GrammarScratch,
    ) -> Result<Vec<TokenId>, RecognizerError> {
        let mut forced = Vec::new();
        let mut at = state.clone();
        let mut allowed = std::mem::take(&mut scratch.mask);
        allowed.resize(mask::num_words(self.num_tokens()), 0);
        let mut run = || {
            while forced.len() < limit {
                self.fill_mask(&at, scratch, &mut allowed)?;
                let mut tokens = mask::iter(&allowed);
                let (Some(only), None) = (tokens.next(), tokens.next()) else { break };
                let Some((position, ended)) = self.after(&at, only, &mut scratch.recognizer)?
                else {
                    break;
                };
                forced.push(only);
                at.push(position, ended);
            }
            Ok(())
        };
        let result = run();
        scratch.mask = allowed;
        result.map(|()| forced)
    }

    /// The only byte of text that can follow, and where it leads; `None` where a token by name or
    /// number can, too.
    fn only_byte(
        &self,
        position: &Position,
        scratch: &mut GrammarScratch,
    ) -> Result<Option<(u8, Position)>, RecognizerError> {
        let scratch = &mut scratch.recognizer;
        if self.recognizer.is_accepting(position, scratch)? {
            return Ok(None);
        }
        let mut only = None;
        for byte in 0..=u8::MAX {
            if let Some(next) = self.recognizer.advance(position, byte, scratch)? {
                if only.is_some() {
                    return Ok(None);
                }
                only = Some((byte, next));
            }
        }
        Ok(only.filter(|&(byte, _)| byte != NUMBER_MARK))
    }
}
