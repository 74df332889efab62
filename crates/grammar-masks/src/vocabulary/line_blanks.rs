//! Runs of blanks in a vocabulary's tokens, where they tell how deep a line is.
//!
//! Bounds of what a token does to blocks by indentation come of them. There are few: tokens with
//! blanks after a line break mostly end there.

use std::collections::BTreeSet;

use palmette_core::Vocabulary;
use palmette_grammar_parser::blocks::Blanks;

/// Bytes with which lines' ends go on after a line break, wherever they can end there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LineEndTail {
    /// Blanks alone.
    #[default]
    Blanks,
    /// Further line breaks too.
    Breaks,
    /// Carriage returns with a line break too.
    Returns,
}

impl LineEndTail {
    /// Policies in their order.
    pub(crate) const ALL: [Self; 3] = [Self::Blanks, Self::Breaks, Self::Returns];

    /// True when all lines' ends go on with what comes next.
    fn goes_on(self, next: &[u8]) -> bool {
        self >= Self::Breaks && next.starts_with(b"\n")
            || self >= Self::Returns && next.starts_with(b"\r\n")
    }
}

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
    /// Runs in the tokens of a vocabulary, but for those before bytes with which lines' ends go on.
    pub(crate) fn new(vocabulary: &Vocabulary, tail: LineEndTail) -> Self {
        let (mut after_break, mut at_front) = (BTreeSet::new(), BTreeSet::new());
        let mut longest = 0;
        for (_, text) in vocabulary.texts() {
            longest = longest.max(text.len());
            let mut run = Some((&mut at_front, Blanks::default()));
            for (at, &byte) in text.iter().enumerate() {
                match (byte, &mut run) {
                    (b' ', Some((_, blanks))) => blanks.spaces += 1,
                    (b'\t', Some((_, blanks))) => blanks.tabs += 1,
                    (_, begun) => {
                        let ended = begun.take();
                        if let Some((found, blanks)) = ended.filter(|_| !tail.goes_on(&text[at..]))
                        {
                            found.insert(blanks);
                        }
                    }
                }
                if byte == b'\n' {
                    run = Some((&mut after_break, Blanks::default()));
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
