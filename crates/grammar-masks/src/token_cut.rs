//! Fewest tokens of a text, by dynamic programming from its end.
//!
//! Texts that are known ahead, such as the shortest way to the end of an answer, are told in as few
//! tokens as there can be. Cost: a step down the trie for each byte of each token that begins at
//! each byte of the text.

use palmette_core::{TokenId, VocabularyTrie};

/// Memory of cuts; what is in it between two calls does not matter.
#[derive(Debug, Default)]
pub struct TokenCut {
    /// Tokens of the rest from each byte on; `u32::MAX` where there is no cut.
    fewest: Vec<u32>,
    /// The first of them, and its bytes.
    first: Vec<(TokenId, u32)>,
}

impl TokenCut {
    /// Cuts a text into the fewest tokens of the trie; gives their number. Of several such cuts it
    /// is the one whose first token is the longest, and so on.
    pub fn cut(&mut self, trie: &VocabularyTrie, text: &[u8]) -> Option<usize> {
        self.fewest.clear();
        self.fewest.resize(text.len() + 1, u32::MAX);
        self.fewest[text.len()] = 0;
        self.first.clear();
        self.first.resize(text.len(), (TokenId(0), 0));
        let children = trie.child_lists();
        for from in (0..text.len()).rev() {
            let (mut node, mut to) = (0, from);
            while let Some(child) = text.get(to).and_then(|&byte| children.child(node, byte)) {
                (node, to) = (child.node(), to + 1);
                let rest = self.fewest[to];
                // Where there are as many, the longer one, which comes later.
                if rest < u32::MAX && rest < self.fewest[from] {
                    let own = trie.tokens_in(trie.own_ranks(node as usize));
                    if let Some(&token) = own.first() {
                        self.fewest[from] = rest + 1;
                        self.first[from] = (token, (to - from) as u32);
                    }
                }
            }
        }
        self.fewest.first().filter(|&&fewest| fewest < u32::MAX).map(|&fewest| fewest as usize)
    }

    /// The tokens of the latest text, where it has a cut.
    pub fn tokens(&self) -> impl Iterator<Item = TokenId> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let &(token, len) = self.first.get(at).filter(|(_, len)| *len > 0)?;
            at += len as usize;
            Some(token)
        })
    }
}

#[cfg(test)]
mod tests {
    use palmette_core::Vocabulary;
    use proptest::prelude::*;

    use super::*;

    /// All cuts of a text, tried one after another.
    fn fewest(tokens: &[String], text: &str) -> Option<usize> {
        if text.is_empty() {
            return Some(0);
        }
        let rests = tokens.iter().filter_map(|token| text.strip_prefix(&**token));
        rests.filter_map(|rest| fewest(tokens, rest)).min().map(|rest| rest + 1)
    }

    proptest! {
        #[test]
        fn cuts_have_the_fewest_tokens(
            tokens in prop::collection::vec("[ab]{1,4}", 1..8),
            text in "[ab]{0,9}",
        ) {
            let texts = tokens.iter().map(|token| Some(token.as_bytes()));
            let vocabulary = Vocabulary::new(texts, []).expect("texts");
            let (trie, mut cut) = (VocabularyTrie::new(&vocabulary), TokenCut::default());
            let found = cut.cut(&trie, text.as_bytes());
            prop_assert_eq!(found, fewest(&tokens, &text));
            if let Some(found) = found {
                let spelled: Vec<&[u8]> = cut.tokens().map(|token| vocabulary.text(token)).collect();
                prop_assert_eq!(spelled.len(), found);
                prop_assert_eq!(spelled.concat(), text.as_bytes());
            }
        }
    }
}
