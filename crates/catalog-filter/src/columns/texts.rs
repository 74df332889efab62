//! Many texts in one.

use palmette_mapped::{Array, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use super::spans::{Spans, SpansBuilder, SpansMeta};

/// Distinct texts in the order of their bytes. 4 bytes a text besides its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Texts {
    text: Array<u8>,
    spans: Spans,
}

impl Texts {
    /// The texts, which come in ascending order.
    pub(crate) fn from_sorted<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut text, mut spans) = (Vec::new(), SpansBuilder::default());
        for bytes in texts {
            text.extend_from_slice(bytes);
            spans.push(bytes.len());
        }
        Self { text: text.into(), spans: spans.build() }
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The bytes of a text; none when there is no such text.
    #[inline]
    pub(crate) fn bytes_of(&self, index: usize) -> &[u8] {
        self.text.as_slice().get(self.spans.get(index)).unwrap_or_default()
    }

    /// A text; the empty one when there is none or it is damaged.
    pub(crate) fn get(&self, index: usize) -> &str {
        std::str::from_utf8(self.bytes_of(index)).unwrap_or_default()
    }

    /// Number of leading texts for which `before` holds; it must hold for none after.
    pub(crate) fn partition_point(&self, before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if before(self.bytes_of(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The place of a text.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let at = self.partition_point(|bytes| bytes < text.as_bytes());
        (at < self.len() && self.bytes_of(at) == text.as_bytes()).then_some(at)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + self.spans.bytes()
    }

    pub(crate) fn save(&self, out: &mut SectionsOut) -> TextsMeta {
        let text = out.add_array(&self.text);
        TextsMeta { num_bytes: self.text.len() as u64, text, spans: self.spans.save(out) }
    }

    pub(crate) fn load(meta: &TextsMeta, sections: &SectionsIn) -> Result<Self, String> {
        let text = sections.array(meta.text, meta.num_bytes)?;
        Ok(Self { text, spans: Spans::load(&meta.spans, sections)? })
    }

    /// Fails unless these are UTF-8 and strictly ascend.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.spans.check(self.text.len())?;
        let sound = |i| std::str::from_utf8(self.bytes_of(i)).is_ok();
        if !(0..self.len()).all(sound) {
            return Err("a text that is no UTF-8".to_owned());
        }
        if !(1..self.len()).all(|i| self.bytes_of(i - 1) < self.bytes_of(i)) {
            return Err("texts that do not ascend".to_owned());
        }
        Ok(())
    }
}

/// Serialised place of [`Texts`] in a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TextsMeta {
    num_bytes: u64,
    text: u32,
    pub(crate) spans: SpansMeta,
}
