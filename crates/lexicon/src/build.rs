//! Building: texts are taken in any order, sorted on all threads, and laid down in one pass.

use palmette_mapped::prefetch;

use crate::arrays::StringsBuilder;
use crate::lexicon::Lexicon;
use crate::sort::Texts;

/// The most bytes of one text: 64 KiB.
pub const MAX_TEXT_BYTES: usize = 1 << 16;
/// The most texts of one lexicon: ranks, and what lies after the last, are numbers of 32 bits.
pub const MAX_TEXTS: usize = u32::MAX as usize;

/// A text that cannot be in a lexicon, or one too many; the message names the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A text over the limit.
    #[error(
        "text {number}, {start:?} and so on, has {len} bytes, over the limit of {MAX_TEXT_BYTES}; \
         shorten it or leave it out"
    )]
    TooLong {
        /// Number of the text in the order of the texts, from 0.
        number: u64,
        /// Beginning of the text.
        start: String,
        /// Length of the text, in bytes.
        len: usize,
    },
    /// More texts than there are ranks.
    #[error("more than {MAX_TEXTS} texts; divide them among several lexicons")]
    TooMany,
    /// A text that does not ascend where texts have to.
    #[error("text {number} is {text:?} and does not ascend from the one before; sort the texts")]
    Disorder {
        /// Number of the text, from 0.
        number: u64,
        /// The text, shortened.
        text: String,
    },
}

/// A stage of a build, for showing progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildStage {
    /// The texts are being sorted: the larger part.
    Sorting,
    /// The arrays are being written.
    Indexing,
}

/// Texts that become a [`Lexicon`].
///
/// Cost: the texts, 20 bytes each, and the lexicon beside them while it is written; see
/// [`build_peak_bytes`].
#[derive(Debug, Default)]
pub struct LexiconBuilder {
    texts: Texts,
}

/// The most memory that a build takes, in bytes: texts, their order, and the lexicon, which shares
/// no bytes at worst.
pub fn build_peak_bytes(num_texts: u64, text_bytes: u64) -> u64 {
    let taken = text_bytes.saturating_add(num_texts.saturating_mul(8));
    let order = num_texts.saturating_mul(12);
    taken.saturating_add(order).saturating_add(lexicon_bytes_at_most(num_texts, text_bytes))
}

/// The most bytes of a lexicon, in memory and in its file, its tables not counted.
fn lexicon_bytes_at_most(num_texts: u64, text_bytes: u64) -> u64 {
    // A byte and its minima, a line for 28 texts, lists of what is long, and the frame of a file.
    let each = num_texts.saturating_add(num_texts / 60).saturating_add(num_texts / 28 * 64);
    let long = text_bytes / 255 * 12;
    text_bytes.saturating_add(each).saturating_add(long).saturating_add(4096)
}

impl LexiconBuilder {
    /// No texts yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for so many texts with so many bytes in all, so that nothing is copied while they come.
    pub fn with_capacity(num_texts: usize, text_bytes: usize) -> Self {
        let texts =
            Texts { bytes: Vec::with_capacity(text_bytes), ends: Vec::with_capacity(num_texts) };
        Self { texts }
    }

    /// Adds a text. It may have been added before.
    ///
    /// # Errors
    /// When it is longer than [`MAX_TEXT_BYTES`], or there are [`MAX_TEXTS`] already.
    pub fn push(&mut self, text: &[u8]) -> Result<(), BuildError> {
        check_len(self.texts.len(), text)?;
        if self.texts.len() >= MAX_TEXTS {
            return Err(BuildError::TooMany);
        }
        self.texts.bytes.extend_from_slice(text);
        self.texts.ends.push(self.texts.bytes.len() as u64);
        Ok(())
    }

    /// Number of texts added, equal ones counted each.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True if no text was added.
    pub fn is_empty(&self) -> bool {
        self.texts.len() == 0
    }

    /// Sorts the texts; equal ones become one.
    ///
    /// Cost: 0.3 to 1 s of a processor for a million texts, most of it on all threads.
    pub fn finish(self) -> Lexicon {
        self.finish_while(|_| true).expect("nothing calls it off")
    }

    /// [`finish`](Self::finish) that is shown each stage as it begins, and called off by `false`;
    /// it then gives `None`.
    pub fn finish_while(self, goes_on: impl FnMut(BuildStage) -> bool) -> Option<Lexicon> {
        self.finish_visiting(goes_on, |_, _| ())
    }

    /// [`finish`](Self::finish), and the rank of each text in the order in which they were added.
    ///
    /// Cost: 4 bytes a text more.
    pub fn finish_ranked(self) -> (Lexicon, Box<[u32]>) {
        let mut ranks = vec![0; self.len()];
        let lexicon = self.finish_visiting(|_| true, |text, rank| ranks[text as usize] = rank);
        (lexicon.expect("nothing calls it off"), ranks.into())
    }

    /// Builds the lexicon; `visit` is given each text's number and its rank.
    fn finish_visiting(
        self,
        mut goes_on: impl FnMut(BuildStage) -> bool,
        mut visit: impl FnMut(u32, u32),
    ) -> Option<Lexicon> {
        // PERF: a text's place, and then its bytes, are asked for some texts ahead.
        const AHEAD: usize = 16;
        if !goes_on(BuildStage::Sorting) {
            return None;
        }
        let texts = self.texts;
        let order = texts.sorted();
        if !goes_on(BuildStage::Indexing) {
            return None;
        }
        let mut writer = Writer::with_capacity(order.len(), texts.bytes.len() / 2);
        for (at, entry) in order.iter().enumerate() {
            if let Some(ahead) = order.get(at + 2 * AHEAD) {
                prefetch(&texts.ends, ahead.text() as usize);
            }
            if let Some(ahead) = order.get(at + AHEAD) {
                let start = (ahead.text() as usize).checked_sub(1).map_or(0, |at| texts.ends[at]);
                prefetch(&texts.bytes, start as usize);
            }
            writer.push_unless_equal(texts.get(entry.text()));
            visit(entry.text(), writer.strings.len() as u32 - 1);
        }
        Some(writer.finish())
    }
}

impl Lexicon {
    /// The lexicon of texts in any order; equal ones become one.
    ///
    /// # Errors
    /// When a text is longer than [`MAX_TEXT_BYTES`], or there are more than [`MAX_TEXTS`].
    pub fn from_texts<T: AsRef<[u8]>>(
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Self, BuildError> {
        let mut builder = LexiconBuilder::new();
        texts.into_iter().try_for_each(|text| builder.push(text.as_ref()))?;
        Ok(builder.finish())
    }

    /// The lexicon of texts that ascend strictly: the rank of a text is its number. Nothing is
    /// sorted or kept beside.
    ///
    /// # Errors
    /// As [`from_texts`](Self::from_texts), and when a text does not ascend from the one before.
    pub fn from_sorted<T: AsRef<[u8]>>(
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Self, BuildError> {
        let mut writer = Writer::with_capacity(0, 0);
        for text in texts {
            let (text, number) = (text.as_ref(), writer.strings.len());
            check_len(number, text)?;
            if number >= MAX_TEXTS {
                return Err(BuildError::TooMany);
            }
            if number > 0 && text <= writer.last.as_slice() {
                return Err(BuildError::Disorder { number: number as u64, text: shown(text) });
            }
            writer.push_unless_equal(text);
        }
        Ok(writer.finish())
    }
}

/// Ascending texts on their way into the arrays.
#[derive(Debug)]
struct Writer {
    strings: StringsBuilder,
    last: Vec<u8>,
    text_bytes: u64,
    first_not_utf8: Option<u32>,
}

impl Writer {
    fn with_capacity(num_texts: usize, rest_bytes: usize) -> Self {
        Self {
            strings: StringsBuilder::with_capacity(num_texts, rest_bytes),
            last: Vec::new(),
            text_bytes: 0,
            first_not_utf8: None,
        }
    }

    /// Adds a text that is not smaller than the last one, unless it equals that.
    fn push_unless_equal(&mut self, text: &[u8]) {
        let shared = shared_bytes(&self.last, text);
        let rank = self.strings.len();
        if shared == text.len() && rank > 0 {
            return;
        }
        if self.first_not_utf8.is_none() && std::str::from_utf8(text).is_err() {
            self.first_not_utf8 = Some(rank as u32);
        }
        self.strings.push(text, shared);
        self.text_bytes += text.len() as u64;
        self.last.truncate(shared);
        self.last.extend_from_slice(&text[shared..]);
    }

    fn finish(self) -> Lexicon {
        Lexicon::from_parts(self.strings.finish(), self.text_bytes, self.first_not_utf8)
    }
}

fn check_len(number: usize, text: &[u8]) -> Result<(), BuildError> {
    if text.len() > MAX_TEXT_BYTES {
        let (number, len) = (number as u64, text.len());
        return Err(BuildError::TooLong { number, start: shown(text), len });
    }
    Ok(())
}

/// The first bytes of a text for a message.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned()
}

/// Bytes that two texts begin with alike. PERF: eight at a time.
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let ((words_a, _), (words_b, _)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut shared = 0;
    for (&a, &b) in words_a.iter().zip(words_b) {
        let differs = u64::from_le_bytes(a) ^ u64::from_le_bytes(b);
        if differs != 0 {
            return shared + differs.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    shared + a[shared..].iter().zip(&b[shared..]).take_while(|(a, b)| a == b).count()
}
