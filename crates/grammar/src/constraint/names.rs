//! Tokens that would repeat a name, taken out of the masks of the engines, which know no names.
//!
//! Within a name of one terminal, the lexer's state has all that may follow, so a mask of lexer and
//! parser is wrong in three places only: a name that begins within a token, one that begins with
//! it, and one of many names that goes on. Such tokens are few; each is tried.

use std::sync::Arc;

use palmette_core::{TokenId, mask};
use palmette_grammar_masks::vocabulary::NameTokens;
use palmette_grammar_parser::names::{Names, Repeats};
use palmette_grammar_parser::recognizer::{Position, RecognizerError, RecognizerScratch};

use super::{GrammarConstraint, GrammarScratch};

impl GrammarConstraint {
    /// Clears the bits of tokens that spell a name which was seen; all bits where that fails.
    pub(super) fn deny_repeated_names(
        &self,
        position: &Position,
        scratch: &mut GrammarScratch,
        mask: &mut [u32],
    ) -> Result<(), RecognizerError> {
        match self.repeated_names(position, scratch) {
            Ok(tokens) => tokens.iter().for_each(|&token| mask::remove(mask, token)),
            Err(error) => {
                mask.fill(0);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The tokens that are not allowed since they spell a name which was seen, and others that are
    /// not allowed.
    pub(super) fn repeated_names(
        &self,
        position: &Position,
        scratch: &mut GrammarScratch,
    ) -> Result<Arc<[TokenId]>, RecognizerError> {
        if !self.recognizer.names().is_active() {
            return Ok(Arc::default());
        }
        scratch.denied_names.turn_to(&self.recognizer, &self.vocabulary);
        if let Some(known) = scratch.denied_names.get(position) {
            return Ok(Arc::clone(known));
        }
        let found: Arc<[TokenId]> = self.find_repeated(position, &mut scratch.recognizer)?.into();
        scratch.denied_names.insert(position.clone(), Arc::clone(&found));
        Ok(found)
    }

    fn find_repeated(
        &self,
        position: &Position,
        scratch: &mut RecognizerScratch,
    ) -> Result<Vec<TokenId>, RecognizerError> {
        let names = self.vocabulary.name_tokens();
        let mut tokens = Vec::new();
        let (lexer, layer) = (self.recognizer.lexer(), self.recognizer.names());
        for branch in position.branches() {
            // A name that ends within the token may be the one that begins after it.
            let possible = lexer.viable_terminals(branch.lexer);
            let any = layer.is_before_name(lexer.matched(branch.lexer)?);
            let begun = names.within.iter().filter(|(_, begun)| {
                any || branch.names.may_repeat(begun)
                    || layer.may_become(&branch.names, possible, begun)
            });
            tokens.extend(begun.map(|(token, _)| *token));
        }
        self.add_repeating(position, names, scratch, &mut tokens)?;
        let mut denied = Vec::new();
        for token in tokens {
            let text = self.vocabulary().text(token);
            if self.recognizer.advance_all(position, text, scratch)?.is_none() {
                denied.push(token);
            }
        }
        Ok(denied)
    }

    /// Adds the tokens with which a name begins or goes on that may become one that was seen: along
    /// the vocabulary's trie, while that may be.
    fn add_repeating(
        &self,
        position: &Position,
        known: &NameTokens,
        scratch: &mut RecognizerScratch,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), RecognizerError> {
        let (lexer, layer) = (self.recognizer.lexer(), self.recognizer.names());
        for branch in position.branches().iter().filter(|branch| branch.names.is_any_seen()) {
            let begins = match branch.names.in_progress() {
                Some(begun) => !begun,
                None => {
                    layer.is_between(lexer.matched(branch.lexer)?)
                        && self
                            .recognizer
                            .begins_any(branch, scratch, |all| layer.has_names(all))?
                }
            };
            if begins {
                let quotes = known.quotes.iter().map(|&node| (node, vec![b'"']));
                self.follow(&branch.names, quotes.collect(), tokens);
            } else if branch.names.in_progress().is_some() {
                self.follow(&branch.names, vec![(0, Vec::new())], tokens);
            }
        }
        Ok(())
    }

    /// Adds the tokens at and below these nodes, each with the bytes of a name that lead to it.
    fn follow(&self, names: &Names, mut work: Vec<(usize, Vec<u8>)>, tokens: &mut Vec<TokenId>) {
        let trie = self.vocabulary.trie();
        while let Some((node, bytes)) = work.pop() {
            let ranks = match names.repeats(&bytes) {
                Repeats::Never => continue,
                Repeats::Already => trie.ranks(node),
                Repeats::Perhaps(next) => {
                    let below = next.into_iter().filter_map(|byte| {
                        let child = trie.child(node, byte)?;
                        Some((child, [&bytes[..], &[byte]].concat()))
                    });
                    work.extend(below);
                    trie.own_ranks(node)
                }
            };
            tokens.extend_from_slice(trie.tokens_in(ranks));
        }
    }
}
