//! Tokens that would repeat a name, taken out of the masks of the engines, which know no names.
//!
//! What may follow within a name of one terminal is in the lexer's state already, so a mask of lexer and parser is wrong
//! in two places only: a name that begins within a token, and one of many names that goes on. Such tokens are few; each is
//! tried.

use palmette_core::{TokenId, mask};

use super::GrammarConstraint;
use crate::names::{NameLayer, Names, Repeats};
use crate::recognizer::{Position, RecognizerError, RecognizerScratch};

impl GrammarConstraint {
    /// Clears the bits of tokens that spell a name which was seen; all bits where that fails.
    pub(super) fn deny_repeated_names(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        if !self.recognizer.names().is_active() {
            return Ok(());
        }
        let mut tokens = self.name_tokens().to_vec();
        let (lexer, names) = (self.recognizer.lexer(), self.recognizer.names());
        for branch in position.branches() {
            if !names.has_many(lexer.possible(branch.lexer)) {
                continue;
            }
            self.add_repeating(&branch.names, &mut tokens);
        }
        for token in tokens {
            if !mask::contains(mask, token) {
                continue;
            }
            let text = self.vocabulary().text(token);
            match self.recognizer.advance_all(position, text, scratch) {
                Ok(Some(_)) => {}
                Ok(None) => mask::remove(mask, token),
                Err(error) => {
                    mask.fill(0);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The tokens within which a name may begin.
    fn name_tokens(&self) -> &[TokenId] {
        self.name_tokens.get_or_init(|| {
            let texts = self.vocabulary().texts();
            let begun = texts.filter(|(_, text)| NameLayer::may_begin_name(text));
            begun.map(|(token, _)| token).collect()
        })
    }

    /// Adds the tokens with which a name of many goes on that may become one that was seen: along the vocabulary's trie as
    /// far as that may be.
    fn add_repeating(&self, names: &Names, tokens: &mut Vec<TokenId>) {
        let trie = self.vocabulary.trie();
        let mut work = vec![(0, Vec::new())];
        while let Some((node, bytes)) = work.pop() {
            let ranks = match names.after(&bytes) {
                Repeats::Never => continue,
                Repeats::Already => trie.ranks(node),
                Repeats::Perhaps => {
                    let below = trie.children(node);
                    work.extend(
                        below.map(|child| (child.index, [&bytes[..], &[child.byte]].concat())),
                    );
                    trie.own_ranks(node)
                }
            };
            tokens.extend_from_slice(trie.tokens_in(ranks));
        }
    }
}
