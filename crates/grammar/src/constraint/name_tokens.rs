//! Tokens of a vocabulary that begin names, and a memory of those that would repeat one.

use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use palmette_core::{TokenId, VocabularyTrie};
use palmette_grammar_masks::PreparedVocabulary;
use palmette_grammar_parser::names::BegunName;
use palmette_grammar_parser::recognizer::Position;

/// The tokens of a vocabulary that begin names.
#[derive(Debug)]
pub(super) struct NameTokens {
    /// The tokens within which a name begins and is read in part.
    pub(super) within: Box<[(TokenId, BegunName)]>,
    /// The nodes of the trie at which one may have begun: after blanks and a quote.
    pub(super) quotes: Box<[usize]>,
}

impl NameTokens {
    pub(super) fn new(vocabulary: &PreparedVocabulary) -> Self {
        let texts = vocabulary.vocabulary().texts();
        let within = texts.filter_map(|(token, text)| Some((token, BegunName::within(text)?)));
        Self { within: within.collect(), quotes: quotes(vocabulary.trie()) }
    }
}

/// At most so many positions are remembered; then the memory begins anew.
const MAX_KNOWN: usize = 1 << 12;

/// About what an entry of the memory takes, with the position that it keeps alive.
const KNOWN_BYTES: usize = 256;

/// A thread's memory of the tokens that spell a name which was seen, by position.
#[derive(Debug, Default)]
pub(super) struct DeniedNames {
    /// Tells the constraint and its clones from others.
    of: Option<Arc<OnceLock<NameTokens>>>,
    known: HashMap<Position, Arc<[TokenId]>>,
}

impl DeniedNames {
    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.known.len() * KNOWN_BYTES
    }

    /// Forgets all that is of another constraint, or too much.
    pub(super) fn turn_to(&mut self, of: &Arc<OnceLock<NameTokens>>) {
        let same = self.of.as_ref().is_some_and(|known| Arc::ptr_eq(known, of));
        if !same || self.known.len() >= MAX_KNOWN {
            *self = Self { of: Some(Arc::clone(of)), known: HashMap::new() };
        }
    }

    pub(super) fn get(&self, position: &Position) -> Option<&Arc<[TokenId]>> {
        self.known.get(position)
    }

    pub(super) fn insert(&mut self, position: Position, tokens: Arc<[TokenId]>) {
        self.known.insert(position, tokens);
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
