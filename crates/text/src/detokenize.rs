//! Tokens to text: whole characters, streamed.

use std::collections::BTreeMap;
use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary};

use crate::stops::StopStrings;

/// Turns tokens into text as they come.
///
/// A token's bytes may be a part of a character. Text is released in whole characters, and held
/// back as long as a character is incomplete or a stop string may have begun. Bytes that are no
/// UTF-8 become `U+FFFD`, as [`String::from_utf8_lossy`] has it.
///
/// Special tokens have no text; those [shown](Self::showing) are their names.
#[derive(Clone, Debug)]
pub struct Detokenizer {
    vocabulary: Arc<Vocabulary>,
    shown: Arc<BTreeMap<TokenId, String>>,
    stops: StopStrings,
    /// Bytes of an incomplete character.
    partial: Vec<u8>,
}

/// Text that a token released, and the stop string that ended the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasedText {
    /// The next characters.
    pub text: String,
    /// The stop string that came after them.
    pub stop: Option<String>,
}

impl Detokenizer {
    /// The text of tokens up to the first of some stop strings.
    pub fn new(vocabulary: Arc<Vocabulary>, stops: Vec<String>) -> Self {
        let (shown, stops) = (Arc::default(), StopStrings::new(stops));
        Self { vocabulary, shown, stops, partial: Vec::new() }
    }

    /// Shows special tokens as text, each as it is given here.
    #[must_use]
    pub fn showing(self, shown: Arc<BTreeMap<TokenId, String>>) -> Self {
        Self { shown, ..self }
    }

    /// Names of special tokens that are text.
    pub(crate) fn shown(&self) -> &BTreeMap<TokenId, String> {
        &self.shown
    }

    /// Adds a token. One that is not in the vocabulary has no text.
    pub fn push(&mut self, token: TokenId) -> ReleasedText {
        let shown = self.shown.get(&token).map(String::as_bytes);
        let known = token.index() < self.vocabulary.num_tokens();
        let text = if known { self.vocabulary.text(token) } else { &[] };
        let released = self.stops.push(shown.unwrap_or(text));
        let text = match released.stop {
            None => self.whole_characters(&released.bytes),
            Some(_) => self.last_characters(&released.bytes),
        };
        ReleasedText { text, stop: released.stop }
    }

    /// The text that was held back: there are no more tokens. A character that is cut off becomes
    /// `U+FFFD`.
    pub fn finish(&mut self) -> String {
        let rest = self.stops.finish();
        self.last_characters(&rest)
    }

    fn last_characters(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        String::from_utf8_lossy(&all).into_owned()
    }

    /// Characters that are complete; the bytes of one that is not stay.
    fn whole_characters(&mut self, bytes: &[u8]) -> String {
        self.partial.extend_from_slice(bytes);
        let incomplete = match self.partial.utf8_chunks().last() {
            // What ends the bytes is a beginning of a character, or it could never be one.
            Some(chunk) if may_go_on(chunk.invalid()) => chunk.invalid().len(),
            _ => 0,
        };
        let rest = self.partial.split_off(self.partial.len() - incomplete);
        let whole = std::mem::replace(&mut self.partial, rest);
        String::from_utf8_lossy(&whole).into_owned()
    }
}

/// True of the first bytes of a character that more bytes complete.
fn may_go_on(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A vocabulary of all bytes, then a special token.
    fn bytes() -> Arc<Vocabulary> {
        let tokens = (0..=255_u8).map(|byte| Some(vec![byte])).chain([None]);
        Arc::new(Vocabulary::new(tokens, []).unwrap())
    }

    fn push_all(detokenizer: &mut Detokenizer, bytes: &[u8]) -> Vec<String> {
        bytes.iter().map(|&byte| detokenizer.push(TokenId(byte.into())).text).collect()
    }

    #[test]
    fn characters_come_whole() {
        let mut detokenizer = Detokenizer::new(bytes(), vec![]);
        let text = push_all(&mut detokenizer, "aé😀".as_bytes());
        assert_eq!(text, ["a", "", "é", "", "", "", "😀"]);
        // A beginning that another character follows never becomes one.
        assert_eq!(push_all(&mut detokenizer, b"\xF0\x9Fx\xFF"), ["", "", "\u{FFFD}x", "\u{FFFD}"]);
        assert_eq!(push_all(&mut detokenizer, b"\xE2\x82"), ["", ""]);
        assert_eq!(detokenizer.finish(), "\u{FFFD}");
    }

    #[test]
    fn stop_strings_cut_and_special_tokens_are_shown_where_asked() {
        let mut detokenizer = Detokenizer::new(bytes(), vec!["é!".to_owned()]);
        assert_eq!(push_all(&mut detokenizer, "xé?é".as_bytes()).concat(), "xé?");
        let last = detokenizer.push(TokenId(u32::from(b'!')));
        assert_eq!((last.text.as_str(), last.stop.as_deref()), ("", Some("é!")));
        let mut hidden = Detokenizer::new(bytes(), vec![]);
        assert_eq!(hidden.push(TokenId(256)).text + &hidden.push(TokenId(9999)).text, "");
        let names = Arc::new(BTreeMap::from([(TokenId(256), "<call>".to_owned())]));
        let mut shown = Detokenizer::new(bytes(), vec!["<call>x".to_owned()]).showing(names);
        assert_eq!(shown.push(TokenId(256)).text, "");
        assert_eq!(shown.push(TokenId(u32::from(b'y'))).text, "<call>y");
    }

    proptest! {
        #[test]
        fn pieces_together_are_the_lossy_text(
            text in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xE2), Just(0x82), Just(0xAC), Just(b'a')], 0..30),
        ) {
            let mut detokenizer = Detokenizer::new(bytes(), vec![]);
            let mut got = push_all(&mut detokenizer, &text).concat();
            got += &detokenizer.finish();
            prop_assert_eq!(got, String::from_utf8_lossy(&text).into_owned());
        }
    }
}
