//! Tokens that would repeat a name, taken out of the masks of the engines, which know no names.
//!
//! What may follow within a name of one terminal is in the lexer's state already, so a mask of lexer and parser is wrong
//! in three places only: a name that begins within a token, one that begins with it, and one of many names that goes on. Such
//! tokens are few; each is tried.

use palmette_core::{TokenId, mask};

use super::GrammarConstraint;
use crate::names::{NameLayer, Names, Repeats};
use crate::recognizer::{Position, RecognizerError, RecognizerScratch};
use crate::vocabulary::VocabularyTrie;

/// What a vocabulary has to begin names with.
#[derive(Debug)]
pub(super) struct NameTokens {
    /// The tokens within which a name may begin.
    within: Box<[TokenId]>,
    /// The nodes of the trie at which one may have begun: after blanks and a quote.
    quotes: Box<[usize]>,
}

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
        let mut tokens = self.name_tokens().within.to_vec();
        self.add_repeating(position, scratch, &mut tokens)?;
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

    fn name_tokens(&self) -> &NameTokens {
        self.name_tokens.get_or_init(|| {
            let texts = self.vocabulary().texts();
            let begun = texts.filter(|(_, text)| NameLayer::may_begin_name(text));
            NameTokens {
                within: begun.map(|(token, _)| token).collect(),
                quotes: quotes(self.vocabulary.trie()),
            }
        })
    }

    /// Adds the tokens with which a name begins or goes on that may become one that was seen: along the vocabulary's trie
    /// as far as that may be.
    fn add_repeating(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), RecognizerError> {
        let (lexer, layer) = (self.recognizer.lexer(), self.recognizer.names());
        for branch in position.branches().iter().filter(|branch| branch.names.is_any_seen()) {
            let mut work = Vec::new();
            if branch.names.is_within_one() {
                work.push((0, Vec::new()));
            } else if layer.has_names(lexer.possible(branch.lexer))
                || self.recognizer.begins_any(branch, scratch, |all| layer.has_names(all))?
            {
                work.extend(self.name_tokens().quotes.iter().map(|&node| (node, vec![b'"'])));
            }
            self.follow(&branch.names, work, tokens);
        }
        Ok(())
    }

    /// Adds the tokens at and below these nodes, each with the bytes of a name that lead to it.
    fn follow(&self, names: &Names, mut work: Vec<(usize, Vec<u8>)>, tokens: &mut Vec<TokenId>) {
        let (trie, layer) = (self.vocabulary.trie(), self.recognizer.names());
        while let Some((node, bytes)) = work.pop() {
            let ranks = match layer.repeats(names, &bytes) {
                Repeats::Never => continue,
                Repeats::Already => trie.ranks(node),
                Repeats::Perhaps => {
                    work.extend(trie.children(node).map(|child| {
                        let bytes = [&bytes[..], &[child.byte]].concat();
                        (child.index, bytes)
                    }));
                    trie.own_ranks(node)
                }
            };
            tokens.extend_from_slice(trie.tokens_in(ranks));
        }
    }
}

/// The nodes of the vocabulary's trie that are reached by blanks and a quote.
fn quotes(trie: &VocabularyTrie) -> Box<[usize]> {
    let mut work = vec![0];
    let mut quotes = Vec::new();
    while let Some(node) = work.pop() {
        for child in trie.children(node) {
            match child.byte {
                b'"' => quotes.push(child.index),
                blank if blank.is_ascii_whitespace() => work.push(child.index),
                _ => {}
            }
        }
    }
    quotes.into()
}
