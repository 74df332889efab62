//! Tokens of a vocabulary that begin names of JSON's members.
//!
//! Grammars whose objects tell their names apart try these tokens one by one. They are the same for
//! all grammars over a vocabulary, and take a look at each of its tokens to find.

use palmette_core::{TokenId, Vocabulary, VocabularyTrie};
use palmette_grammar_parser::names::BegunName;

/// The tokens of a vocabulary that begin names.
#[derive(Debug)]
pub struct NameTokens {
    /// The tokens within which a name begins and is read in part.
    pub within: Box<[(TokenId, BegunName)]>,
    /// The nodes of the trie at which one may have begun: after blanks and a quote.
    pub quotes: Box<[usize]>,
}

impl NameTokens {
    pub(crate) fn new(vocabulary: &Vocabulary, trie: &VocabularyTrie) -> Self {
        let texts = vocabulary.texts();
        let within = texts.filter_map(|(token, text)| Some((token, BegunName::within(text)?)));
        Self { within: within.collect(), quotes: quotes(trie) }
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
