//! Mask row that many masks share.

/// Words of a mask, never changed.
#[derive(Debug)]
pub(crate) struct MaskRow(Box<[u32]>);

impl MaskRow {
    pub(crate) fn new(words: Box<[u32]>) -> Self {
        Self(words)
    }

    pub(crate) fn words(&self) -> &[u32] {
        &self.0
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.0)
    }
}
