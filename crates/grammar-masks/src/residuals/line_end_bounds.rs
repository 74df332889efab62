//! Lines' ends within what is left of tokens, as bounds of what they ask of blocks.
//!
//! Blocks matter at a place only as far as some token can end a line there: mostly none can, and
//! the place is the same whatever blocks are open.

use std::convert::Infallible;

use palmette_core::VocabularyTrie;
use palmette_core::vocabulary_trie::Visit;
use palmette_grammar_regex::ByteSet;

use super::suffix_trie::{SuffixId, SuffixTries};
use crate::vocabulary::LineEndTail;

/// Lines' ends in what is left of tokens at a place: bounds of what they ask of blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineEndBounds {
    /// Largest number of brackets that are closed before one begins.
    pub(super) num_closed: u32,
    /// True where one may end after a line break, so that depths matter.
    pub(super) may_end: bool,
}

/// Bytes that bound where lines' ends are in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LineEndBytes {
    /// First bytes of lines' ends.
    pub(super) first: ByteSet,
    /// First bytes of brackets that close.
    pub(super) close: ByteSet,
    /// Bytes with which all lines' ends go on after a line break, beside blanks.
    pub(super) tail: LineEndTail,
}

/// Knowledge of a line on the way along a token.
#[derive(Clone, Copy)]
enum Along {
    /// No line break was read.
    OneLine,
    /// After a line break.
    Broken,
    /// After a carriage return that a line break should follow.
    Returned,
}

impl LineEndBounds {
    /// Looks at all that is left of tokens at a place; `None` where no line's end may begin in it.
    pub(super) fn find(
        suffixes: &SuffixTries,
        trie: &VocabularyTrie,
        place: SuffixId,
        bytes: &LineEndBytes,
    ) -> Option<Self> {
        let (mut found, mut path) = (None::<Self>, Vec::new());
        for (member, _) in suffixes.node(place).members() {
            let below = member..trie.end(member);
            let looked =
                trie.walk(below, (0, Along::OneLine), &mut path, |node, &(closed, along)| {
                    if bytes.first.contains(node.byte) {
                        let found = found.get_or_insert_default();
                        found.num_closed = found.num_closed.max(closed);
                    }
                    let (along, may_end) = match (along, node.byte) {
                        (Along::OneLine | Along::Returned, b'\n') => (Along::Broken, false),
                        (Along::OneLine, _) => (Along::OneLine, false),
                        (Along::Broken, b'\n') => (Along::Broken, bytes.tail < LineEndTail::Breaks),
                        (Along::Broken, b' ' | b'\t') => (Along::Broken, false),
                        (Along::Broken, b'\r') if bytes.tail == LineEndTail::Returns => {
                            // A token may end there, and then a lexeme that begins with it too.
                            (Along::Returned, !trie.own_ranks(node.index).is_empty())
                        }
                        (Along::Broken | Along::Returned, _) => (Along::Broken, true),
                    };
                    if may_end {
                        found.get_or_insert_default().may_end = true;
                    }
                    let closed = closed + u32::from(bytes.close.contains(node.byte));
                    Ok::<_, Infallible>(Visit::Below((closed, along)))
                });
            match looked {
                Ok(_) => {}
                Err(never) => match never {},
            }
        }
        found
    }
}
