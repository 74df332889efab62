//! Building: documents are taken one by one, their suffixes sorted, and those kept that begin a
//! member.

use std::ops::Range;

use palmette_core::{SubstringRule, SubstringUnit};
use palmette_mapped::RankSet;

use super::Substrings;
use super::forks::Forks;
use super::suffix_array::{DIVIDER, shared_by_place, suffix_array};
use super::suffixes::{Ends, Span, chars_before_blocks, is_inner};
use super::units::Edges;
use crate::arrays::{SharedLengths, SharedLengthsBuilder};
use crate::tables::Tables;

/// The most bytes of documents together where no other limit is set: 4 MiB.
pub const DEFAULT_DOCUMENT_BYTES: usize = 4 << 20;
/// The most bytes of documents together that a limit may allow.
pub const MAX_DOCUMENT_BYTES: usize = i32::MAX as usize;

/// Documents of which no substrings are made; the message names the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// Documents over the limit.
    #[error(
        "the documents have more than {limit} bytes together, one more counted for each, with \
         document {number}; leave some out, or raise the limit, at most to {MAX_DOCUMENT_BYTES}"
    )]
    TooLarge {
        /// Number of the document that exceeds the limit, from 0.
        number: usize,
        /// Bytes that the documents may have together.
        limit: usize,
    },
}

/// Documents that become [`Substrings`].
///
/// Cost: the documents; while they are indexed, up to 45 bytes a byte of them.
#[derive(Clone, Debug)]
pub struct SubstringsBuilder {
    rule: SubstringRule,
    max_bytes: usize,
    /// Documents, a divider after each.
    text: Vec<u8>,
    /// First places of the documents.
    documents: Vec<u32>,
}

impl SubstringsBuilder {
    /// No documents yet.
    pub fn new(rule: SubstringRule) -> Self {
        let max_bytes = DEFAULT_DOCUMENT_BYTES;
        Self { rule, max_bytes, text: Vec::new(), documents: Vec::new() }
    }

    /// Sets the most bytes of the documents together, one more counted for each document;
    /// [`MAX_DOCUMENT_BYTES`] where it is larger.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes.min(MAX_DOCUMENT_BYTES);
        self
    }

    /// Adds a document. It may be empty, or equal another.
    ///
    /// # Errors
    /// When the documents exceed the limit.
    pub fn push(&mut self, document: &str) -> Result<(), DocumentsError> {
        if document.len() >= self.max_bytes.saturating_sub(self.text.len()) {
            let (number, limit) = (self.documents.len(), self.max_bytes);
            return Err(DocumentsError::TooLarge { number, limit });
        }
        self.documents.push(self.text.len() as u32);
        self.text.extend_from_slice(document.as_bytes());
        self.text.push(DIVIDER);
        Ok(())
    }

    /// Sorts the suffixes of the documents.
    ///
    /// Cost: O(n log n) in the documents' bytes, whatever they say.
    pub fn finish(self) -> Substrings {
        let Self { rule, text, documents, .. } = self;
        let is_ascii = text.iter().all(|&byte| byte.is_ascii() || byte == DIVIDER);
        let mut edges = Edges::new(text.len() + 1);
        let chars = if is_ascii { Box::default() } else { chars_before_blocks(&text) };
        let mut lengths = Lengths::new(text.len());
        for (at, &start) in documents.iter().enumerate() {
            let end = documents.get(at + 1).map_or(text.len(), |&next| next as usize) - 1;
            let start = start as usize;
            let document = std::str::from_utf8(&text[start..end]).expect("it was added as text");
            edges.add(document, start, rule.unit());
            lengths.set(&text, start..end, &edges, rule);
        }
        let places = RankSet::from_words(64 * edges.ends.len() as u64, &edges.ends);
        let places = places.expect("as many places as bits");
        let (spans, shared) = ordered(&text, &lengths.longest);
        let ends = Ends { text: &text, places: &places, min: rule.min() as usize, chars: &chars };
        let forks = match rule.unit() {
            // Characters end wherever they are, whatever follows.
            SubstringUnit::Chars => Forks::none(spans.len()),
            _ => Forks::new(ends, &spans, shared.view()),
        };
        let least = |start: usize| lengths.least[start];
        let num_members = forks.num_members(least, &edges, &spans, shared.view());
        let branch = |(rank, span): (usize, &Span)| span.of(&text)[shared.view().get(rank)];
        let branches: Box<[u8]> = spans.iter().enumerate().map(branch).collect();
        let mut made = Substrings {
            rule,
            chars,
            num_members,
            text: text.into(),
            documents: documents.into(),
            spans: spans.into(),
            branches,
            shared,
            places,
            forks: forks.into_ranks(),
            tables: Tables::default(),
        };
        // PERF: twice the share of a lexicon. A document of a megabyte by characters makes tables
        // again and again within less.
        made.tables = Tables::new(2 * made.bytes());
        made
    }
}

/// Lengths in bytes of the members that begin at each place of a text.
#[derive(Debug)]
struct Lengths {
    /// Length of the longest; 0 where none begins.
    longest: Vec<u32>,
    /// Length of the fewest characters.
    least: Vec<u32>,
}

impl Lengths {
    fn new(len: usize) -> Self {
        Self { longest: vec![0; len], least: vec![0; len] }
    }

    /// Sets the lengths at the places of a document.
    fn set(&mut self, text: &[u8], document: Range<usize>, edges: &Edges, rule: SubstringRule) {
        let (min, max) = (rule.min() as usize, rule.max().map_or(usize::MAX, |max| max as usize));
        // The places so many characters on, or the end of the document.
        let (mut low, mut high) = (Lookahead::at(document.start), Lookahead::at(document.start));
        let mut last_end = document.start;
        for at in document.clone() {
            if is_inner(text[at]) {
                continue;
            }
            while low.chars < min && low.place < document.end {
                low.step(text);
            }
            while high.chars < max && high.place < document.end {
                high.step(text);
                if edges.is_end(high.place) {
                    last_end = high.place;
                }
            }
            if edges.is_begin(at) && low.chars == min && last_end >= low.place {
                self.longest[at] = (last_end - at) as u32;
                self.least[at] = (low.place - at) as u32;
            }
            (low.chars, high.chars) = (low.chars - 1, high.chars - 1);
        }
    }
}

/// A place some characters ahead of another.
#[derive(Clone, Copy, Debug)]
struct Lookahead {
    place: usize,
    chars: usize,
}

impl Lookahead {
    fn at(place: usize) -> Self {
        Self { place, chars: 0 }
    }

    fn step(&mut self, text: &[u8]) {
        self.place += 1;
        // A divider follows the last character.
        while is_inner(text[self.place]) {
            self.place += 1;
        }
        self.chars += 1;
    }
}

/// The suffixes that begin members, each up to its longest member, distinct and in order, with the
/// bytes that each shares with the one before. Of equal ones the first is kept.
fn ordered(text: &[u8], longest: &[u32]) -> (Vec<Span>, SharedLengths<u32>) {
    let order = suffix_array(text);
    let shared = shared_by_place(text, &order);
    // Whole suffixes that begin members, and what they share.
    let (mut whole, mut shared_whole) = (Vec::new(), Vec::new());
    let mut least = u32::MAX;
    for start in order {
        least = least.min(shared[start as usize]);
        let len = longest[start as usize];
        if len > 0 {
            whole.push(Span { start, len });
            shared_whole.push(least);
            least = u32::MAX;
        }
    }
    drop(shared);
    let mut keys = keys(&whole, &shared_whole);
    keys.sort_unstable();
    keys.dedup_by_key(|key| (key.first, key.len));
    let mut lengths = SharedLengthsBuilder::default();
    let mut before: Option<Key> = None;
    let mut spans = Vec::with_capacity(keys.len());
    for key in keys {
        let shared = before.map_or(0, |before| {
            let between = &shared_whole[before.first as usize + 1..=key.first as usize];
            before.len.min(key.len).min(between.iter().copied().min().unwrap_or(u32::MAX))
        });
        lengths.push(shared as usize);
        spans.push(Span { start: key.start, len: key.len });
        before = Some(key);
    }
    (spans, lengths.finish())
}

/// A beginning of a suffix as it is sorted: by the first of the suffixes that begin so, then by
/// length. Of two that are beginnings of the same suffix, the shorter is smaller; of others, that
/// whose first suffix is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    first: u32,
    len: u32,
    start: u32,
}

/// The keys of beginnings of suffixes that are in order.
fn keys(whole: &[Span], shared: &[u32]) -> Vec<Key> {
    // Ranks by which what is shared grows: a beginning goes back to the last that shares less.
    let mut open: Vec<(u32, u32)> = Vec::new();
    let key = |(rank, (span, &shared)): (u32, (&Span, &u32))| {
        while open.last().is_some_and(|&(_, other)| other >= shared) {
            open.pop();
        }
        open.push((rank, shared));
        let first = open.partition_point(|&(_, shared)| shared < span.len);
        let first = open[first.saturating_sub(1)].0;
        Key { first, len: span.len, start: span.start }
    };
    (0..).zip(whole.iter().zip(shared)).map(key).collect()
}
