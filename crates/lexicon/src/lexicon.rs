//! The lexicon: strings by rank, ranks by string, prefixes as ranges of ranks.

use std::ops::Range;

use crate::arrays::{ImplicitTrie, Strings, StringsView};
use crate::tables::Tables;

/// Sorted distinct byte strings. A string is its *rank*, a prefix is a *range of ranks*.
///
/// Frozen, and shared by all who ask. What a request may write is a
/// [`LexiconSet`](crate::LexiconSet) of it; the tokens by which prefixes of many strings go on are
/// kept here for all of them, in [tables](Self::table_bytes).
///
/// Cost: 3.3 bytes a string, and the bytes that it does not share with the one before it, without
/// the first of them.
///
/// ```
/// use palmette_lexicon::Lexicon;
///
/// let lexicon = Lexicon::from_texts(["tent", "lamp", "tea", "lamp"])?;
/// assert_eq!(lexicon.len(), 3);
/// assert_eq!(lexicon.rank(b"tea"), Some(1));
/// assert_eq!(lexicon.range(b"te"), 1..3);
/// assert_eq!(lexicon.text(2), b"tent");
/// # Ok::<(), palmette_lexicon::BuildError>(())
/// ```
#[derive(Debug, Default)]
pub struct Lexicon {
    strings: Strings,
    text_bytes: u64,
    first_not_utf8: Option<u32>,
    tables: Tables,
}

impl Lexicon {
    pub(crate) fn from_parts(
        strings: Strings,
        text_bytes: u64,
        first_not_utf8: Option<u32>,
    ) -> Self {
        let tables = Tables::new(strings.bytes());
        Self { strings, text_bytes, first_not_utf8, tables }
    }

    /// Number of strings; ranks are below it.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// True if there is no string.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all strings together.
    pub fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    /// The first string that is no UTF-8, where there is one: such strings cannot be written in
    /// JSON.
    pub fn first_not_utf8(&self) -> Option<usize> {
        self.first_not_utf8.map(|rank| rank as usize)
    }

    /// The string of a rank.
    ///
    /// Cost: a hop for each place where strings before it part from it, some microseconds among
    /// millions.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn text(&self, rank: usize) -> Vec<u8> {
        let mut text = Vec::new();
        self.append_text(rank, &mut text);
        text
    }

    /// Adds the bytes of the string of a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn append_text(&self, rank: usize, bytes: &mut Vec<u8>) {
        assert!(rank < self.len(), "rank {rank} of {}", self.len());
        let view = self.strings.view();
        if let Some(root) = view.root().filter(|root| root.lo <= rank) {
            view.append_from(root.lo, rank, 0, bytes);
        }
    }

    /// The rank of a string.
    pub fn rank(&self, text: &[u8]) -> Option<usize> {
        let view = self.strings.view();
        if text.is_empty() {
            return view.has_empty().then_some(0);
        }
        let at = view.descend(view.root()?, text)?;
        view.ends_at(at).then_some(at.lo)
    }

    /// The ranks of the strings that begin with `prefix`: an empty range where there is none.
    pub fn range(&self, prefix: &[u8]) -> Range<usize> {
        if prefix.is_empty() {
            return 0..self.len();
        }
        let view = self.strings.view();
        match view.root().and_then(|root| view.descend(root, prefix)) {
            Some(at) => at.lo..at.hi,
            None => 0..0,
        }
    }

    /// All strings in ascending order.
    ///
    /// Cost: each byte that is not shared is copied once.
    pub fn for_each(&self, mut visit: impl FnMut(usize, &[u8])) {
        let view = self.strings.view();
        let mut text = Vec::new();
        for rank in 0..self.len() {
            if rank > 0 || !view.has_empty() {
                let shared = view.shared(rank);
                text.truncate(shared);
                text.extend(view.tail(rank, shared).bytes());
            }
            visit(rank, &text);
        }
    }

    /// Bytes of memory or of the file's sections, without the tables.
    pub fn bytes(&self) -> usize {
        self.strings.bytes()
    }

    /// Bytes of the tables kept at the moment: at most a quarter of [`bytes`](Self::bytes), or 1
    /// MiB.
    pub fn table_bytes(&self) -> usize {
        self.tables.bytes()
    }

    pub(crate) fn strings(&self) -> &Strings {
        &self.strings
    }

    #[inline]
    pub(crate) fn view(&self) -> StringsView<'_> {
        self.strings.view()
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }
}

/// Equal strings; tables, which follow from them, are not compared.
impl PartialEq for Lexicon {
    fn eq(&self, other: &Self) -> bool {
        self.strings == other.strings
    }
}

impl Eq for Lexicon {}
