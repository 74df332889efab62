//! Substrings of documents as a member set: verbatim quotes.
//!
//! ```
//! use palmette_core::MemberSet;
//! use palmette_lexicon::{
//!     MemberSpelling, SubstringRule, SubstringSet, SubstringUnit, Substrings,
//! };
//!
//! let rule = SubstringRule::from(SubstringUnit::Words);
//! let quotes = Substrings::new(["A cat sat.", "The cat ran."], rule)?;
//! assert!(quotes.find("cat").is_some() && quotes.find("cat ran").is_some());
//! assert!(quotes.find("at").is_none() && quotes.find("cat ").is_none());
//!
//! let ran = quotes.find("cat ran.").expect("the second document says it");
//! let place = quotes.first_place(ran);
//! assert_eq!((place.document, place.span), (1, 4..12));
//!
//! let set = SubstringSet::new(quotes.into(), MemberSpelling::JsonString);
//! let at = b"cat".iter().try_fold(set.start().unwrap(), |at, &byte| set.advance(&at, byte));
//! let closed = set.advance(&at.unwrap(), b'"').expect("a quote may end here");
//! assert!(set.member(&closed).is_some());
//! # Ok::<(), palmette_lexicon::DocumentsError>(())
//! ```

mod build;
mod forks;
mod suffix_array;
mod suffixes;
mod units;

use std::ops::Range;
use std::sync::Arc;

use palmette_core::{
    Budget, Cursor, Interrupted, MemberId, MemberSet, MemberSpelling, SubstringRule, VocabularyTrie,
};
use palmette_mapped::RankSet;

use crate::arrays::{ImplicitTrie, Prefix, SharedLengths};
use crate::members::SpelledMembers;
use crate::selection::EveryRank;
use crate::tables::Tables;
use suffixes::{Ends, Span, SuffixesView};

pub use build::{DEFAULT_DOCUMENT_BYTES, DocumentsError, MAX_DOCUMENT_BYTES, SubstringsBuilder};

/// Substrings of documents that follow a rule, as sorted suffixes.
///
/// It is a [`Lexicon`](crate::Lexicon) of the suffixes at which members begin, each up to the end
/// of its longest member, whose bytes lie in the documents. A member is a prefix of some; it ends
/// where its unit does in at least one of them. Documents do not run into each other.
///
/// Frozen, and shared by all who ask. What a request may write is a [`SubstringSet`] of it.
///
/// Cost: the documents, an eighth of them, and 10 bytes for each place where members begin.
/// Source: suffix arrays with the lengths that neighbours share (Manber and Myers 1993).
#[derive(Debug)]
pub struct Substrings {
    rule: SubstringRule,
    /// Numbers of characters before blocks of the text; empty where they are bytes.
    chars: Box<[u32]>,
    num_members: u64,
    /// Documents, a divider after each.
    text: Box<[u8]>,
    /// First places of the documents.
    documents: Box<[u32]>,
    /// Suffixes by rank.
    spans: Box<[Span]>,
    /// The byte by which each suffix parts from the one before it.
    branches: Box<[u8]>,
    shared: SharedLengths<u32>,
    /// Places of the text after the last of a unit.
    places: RankSet,
    forks: RankSet,
    tables: Tables,
}

/// A place in documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentPlace {
    /// Number of the document, from 0.
    pub document: usize,
    /// Bytes of the document.
    pub span: Range<usize>,
}

impl Substrings {
    /// The substrings of documents, of at most [`DEFAULT_DOCUMENT_BYTES`] together. Documents may
    /// be empty.
    ///
    /// # Errors
    /// When the documents exceed that; see [`SubstringsBuilder`] for other limits.
    pub fn new<T: AsRef<str>>(
        documents: impl IntoIterator<Item = T>,
        rule: SubstringRule,
    ) -> Result<Self, DocumentsError> {
        let mut builder = SubstringsBuilder::new(rule);
        documents.into_iter().try_for_each(|document| builder.push(document.as_ref()))?;
        Ok(builder.finish())
    }

    /// The rule that members follow.
    pub fn rule(&self) -> SubstringRule {
        self.rule
    }

    /// Number of documents.
    pub fn num_documents(&self) -> usize {
        self.documents.len()
    }

    /// A document by its number.
    ///
    /// # Panics
    /// When there is no such document.
    pub fn document(&self, number: usize) -> &str {
        let end = self.documents.get(number + 1).map_or(self.text.len(), |&next| next as usize);
        let text = &self.text[self.documents[number] as usize..end - 1];
        std::str::from_utf8(text).expect("documents are texts")
    }

    /// Number of different members.
    pub fn len(&self) -> u64 {
        self.num_members
    }

    /// True if there is no member.
    pub fn is_empty(&self) -> bool {
        self.num_members == 0
    }

    /// The member of a text; `None` where that is no substring by the rule.
    pub fn find(&self, text: &str) -> Option<MemberId> {
        let view = self.view();
        let at = view.descend(view.root()?, text.as_bytes())?;
        (at.depth > 0 && view.ends_at(at)).then(|| view.member(at))
    }

    /// The text of a member.
    ///
    /// # Panics
    /// When there is no such member.
    pub fn text(&self, member: MemberId) -> &str {
        let at = self.prefix(member);
        std::str::from_utf8(&self.view().bytes(at.lo)[..at.depth]).expect("members are texts")
    }

    /// The place where a member occurs first: in the first document that has it, as early as it
    /// does there.
    ///
    /// Cost: a look at each occurrence.
    ///
    /// # Panics
    /// When there is no such member.
    pub fn first_place(&self, member: MemberId) -> DocumentPlace {
        let (at, view) = (self.prefix(member), self.view());
        let has_it = |span: &&Span| view.ends.is_end(**span, at.depth);
        let starts = self.spans[at.lo..at.hi].iter().filter(has_it).map(|span| span.start);
        let start = starts.min().expect("a member ends in one of its suffixes");
        let document = self.documents.partition_point(|&first| first <= start) - 1;
        let start = (start - self.documents[document]) as usize;
        DocumentPlace { document, span: start..start + at.depth }
    }

    /// Bytes of memory, without the tables.
    pub fn bytes(&self) -> usize {
        let text = self.text.len() + size_of_val(&*self.chars) + size_of_val(&*self.documents);
        let lists = text + size_of_val(&*self.spans);
        let bits = self.places.bytes() + self.forks.bytes();
        lists + self.branches.len() + self.shared.bytes() + bits
    }

    /// Bytes of the tables kept at the moment: at most half of [`bytes`](Self::bytes), or 1 MiB.
    pub fn table_bytes(&self) -> usize {
        self.tables.bytes()
    }

    /// The suffixes that begin with a member.
    fn prefix(&self, member: MemberId) -> Prefix {
        let (view, len) = (self.view(), self.spans.len());
        let (lo, depth) = (member.0 as u32 as usize, (member.0 >> 32) as usize);
        assert!(lo < len && depth > 0, "member {} of other documents", member.0);
        Prefix { lo, hi: view.next_child(lo, len, depth - 1), depth }
    }

    #[inline]
    fn view(&self) -> SuffixesView<'_> {
        let (text, places, chars) = (&*self.text, &self.places, &*self.chars);
        SuffixesView {
            spans: &self.spans,
            branches: &self.branches,
            shared: self.shared.view(),
            ends: Ends { text, places, min: self.rule.min() as usize, chars },
            forks: &self.forks,
            unit: self.rule.unit(),
        }
    }
}

/// The substrings of documents in a spelling: a set of texts that a grammar may have for a part.
///
/// A member's number is that of its first suffix and its length; the same text has the same.
#[derive(Clone, Debug)]
pub struct SubstringSet {
    substrings: Arc<Substrings>,
    spelling: MemberSpelling,
}

impl SubstringSet {
    /// The substrings, each written so.
    pub fn new(substrings: Arc<Substrings>, spelling: MemberSpelling) -> Self {
        Self { substrings, spelling }
    }

    /// The substrings, which say where a member occurs.
    pub fn substrings(&self) -> &Arc<Substrings> {
        &self.substrings
    }

    fn spelled(&self) -> SpelledMembers<'_, SuffixesView<'_>, EveryRank> {
        let Self { substrings, spelling } = self;
        let (strings, tables) = (substrings.view(), &substrings.tables);
        SpelledMembers { strings, chosen: EveryRank, spelling: *spelling, tables }
    }
}

impl MemberSet for SubstringSet {
    fn start(&self) -> Option<Cursor> {
        self.spelled().start()
    }

    fn advance(&self, at: &Cursor, byte: u8) -> Option<Cursor> {
        self.spelled().advance(at, byte)
    }

    fn member(&self, at: &Cursor) -> Option<MemberId> {
        self.spelled().member(at)
    }

    fn effect(
        &self,
        at: &Cursor,
        trie: &VocabularyTrie,
        node: u32,
        mask: &mut [u32],
        ends: &mut Vec<(u32, MemberId)>,
        budget: &mut Budget<'_>,
    ) -> Result<(), Interrupted> {
        self.spelled().effect(at, (trie, node), mask, ends, budget)
    }

    fn forced(&self, at: &Cursor, bytes: &mut Vec<u8>) {
        self.spelled().forced(at, bytes);
    }

    fn text(&self, member: MemberId, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self.substrings.text(member).as_bytes());
    }

    fn len(&self) -> u64 {
        self.substrings.len()
    }
}
