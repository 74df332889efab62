//! Runs of blanks in a vocabulary's tokens, where they tell how deep a line is.
//!
//! They bound what a token does to blocks by indentation. There are few: tokens with blanks after a
//! line break mostly end there.

use std::collections::BTreeSet;

use palmette_core::Vocabulary;
use palmette_grammar_parser::blocks::Blanks;

/// Runs of blanks before another byte, in all tokens.
#[derive(Debug)]
pub(crate) struct LineBlanks {
    /// After a line break; none of them too.
    pub(crate) after_break: Box<[Blanks]>,
    /// At a token's front; none of them too.
    pub(crate) at_front: Box<[Blanks]>,
    /// Bytes of the longest token.
    pub(crate) longest: u32,
}

impl LineBlanks {
    /// Runs in the tokens of a vocabulary; where a carriage return with a line break is one, no run
    /// ends before it.
    pub(crate) fn new(vocabulary: &Vocabulary, carriage_returns: bool) -> Self {
        let (mut after_break, mut at_front) = (BTreeSet::new(), BTreeSet::new());
        let mut longest = 0;
        for (_, text) in vocabulary.texts() {
            longest = longest.max(text.len());
            let mut run = Some((&mut at_front, Blanks::default()));
            for (at, &byte) in text.iter().enumerate() {
                if carriage_returns && text[at..].starts_with(b"\r\n") {
                    run = None;
                }
                match (byte, &mut run) {
                    (b'\n', _) => run = Some((&mut after_break, Blanks::default())),
                    (b' ', Some((_, blanks))) => blanks.spaces += 1,
                    (b'\t', Some((_, blanks))) => blanks.tabs += 1,
                    (_, begun) => {
                        if let Some((found, blanks)) = begun.take() {
                            found.insert(blanks);
                        }
                    }
                }
            }
        }
        let longest = longest.try_into().unwrap_or(u32::MAX);
        let [after_break, at_front] = [after_break, at_front].map(|runs| {
            let runs = runs.into_iter().chain([Blanks::default()]);
            runs.collect()
        });
        Self { after_break, at_front, longest }
    }
}
