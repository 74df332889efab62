//! Byte-pair encoder of SentencePiece: characters are merged, the pair of the highest score first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use palmette_core::TokenId;

use crate::merging::merge;
use crate::tokenize_error::TokenizeError;

/// Pieces by their text, in which a space is a space.
pub(crate) struct ScoredPairs {
    pieces: HashMap<Box<[u8]>, (TokenId, Reverse<i32>)>,
    /// Pieces that are found in the text before anything is merged.
    user_defined: HashSet<Box<[u8]>>,
    /// The lengths of these.
    lengths: BTreeSet<usize>,
    /// Tokens of bytes, for characters that no piece has.
    bytes: HashMap<u8, TokenId>,
    /// A run of spaces would become one.
    removes_extra_spaces: bool,
}

/// A kind of model by which text is not cut here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) by: &'static str,
}

impl ScoredPairs {
    pub(crate) fn new(removes_extra_spaces: bool) -> Self {
        Self {
            pieces: HashMap::new(),
            user_defined: HashSet::new(),
            lengths: BTreeSet::new(),
            bytes: HashMap::new(),
            removes_extra_spaces,
        }
    }

    /// Adds a piece; of pieces with one text the first is meant.
    pub(crate) fn add(&mut self, text: &[u8], token: TokenId, score: f32) {
        self.pieces.entry(text.into()).or_insert((token, Reverse(ordered(score))));
    }

    pub(crate) fn add_user_defined(&mut self, text: &[u8]) {
        self.lengths.insert(text.len());
        self.user_defined.insert(text.into());
    }

    pub(crate) fn add_byte(&mut self, byte: u8, token: TokenId) {
        self.bytes.entry(byte).or_insert(token);
    }

    /// The tokens of a text, read as the middle of one.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
        // `▁` would become a space, as would several spaces.
        let extra = self.removes_extra_spaces.then(|| text.find("  ")).flatten();
        if let Some(at) = text.find('▁').into_iter().chain(extra).min() {
            return Err(TokenizeError::Changed { at });
        }
        let (mut tokens, mut characters) = (vec![], vec![]);
        let mut at = 0;
        while let Some(character) = text[at..].chars().next() {
            let found = self.user_defined_at(&text.as_bytes()[at..]);
            let range = at..at + found.unwrap_or(character.len_utf8());
            at = range.end;
            if found.is_some() {
                self.merge(text, std::mem::take(&mut characters), &mut tokens)?;
                self.push(text, range, &mut tokens)?;
            } else {
                characters.push(range);
            }
        }
        self.merge(text, characters, &mut tokens)?;
        Ok(tokens)
    }

    /// Length of the longest user-defined piece that a text begins with.
    fn user_defined_at(&self, text: &[u8]) -> Option<usize> {
        let mut lengths = self.lengths.range(..=text.len()).rev();
        lengths.find(|&&length| self.user_defined.contains(&text[..length])).copied()
    }

    fn merge(
        &self,
        text: &str,
        characters: Vec<Range<usize>>,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), TokenizeError> {
        let priority = |range| self.pieces.get(&text.as_bytes()[range]).map(|&(_, score)| score);
        for symbol in merge(characters, priority) {
            self.push(text, symbol, tokens)?;
        }
        Ok(())
    }

    /// Adds a symbol's token, or those of its bytes.
    fn push(
        &self,
        text: &str,
        symbol: Range<usize>,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), TokenizeError> {
        let (at, bytes) = (symbol.start, &text.as_bytes()[symbol]);
        match self.pieces.get(bytes) {
            Some(&(token, _)) => tokens.push(token),
            None => {
                for byte in bytes {
                    let token = self.bytes.get(byte).copied();
                    tokens.push(token.ok_or(TokenizeError::NoToken { at })?);
                }
            }
        }
        Ok(())
    }
}

/// A score that is a number, as an integer of the same order.
fn ordered(score: f32) -> i32 {
    // Both zeros are one.
    let bits = (score + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i32::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_keep_their_order() {
        let scores = [f32::NEG_INFINITY, -2.5, -1.0, -f32::MIN_POSITIVE, 0.0, 1e-9, 3.0];
        assert!(scores.map(ordered).is_sorted());
        assert_eq!(ordered(-0.0), ordered(0.0));
    }
}
