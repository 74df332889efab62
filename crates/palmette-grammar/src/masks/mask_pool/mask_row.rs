//! Mask row that many masks share.

/// Words of a mask, never changed.
#[derive(Debug)]
pub(in crate::masks) struct MaskRow(Box<[u32]>);

impl MaskRow {
    pub(in crate::masks) fn new(words: Box<[u32]>) -> Self {
        Self(words)
    }

    pub(in crate::masks) fn words(&self) -> &[u32] {
        &self.0
    }

    pub(in crate::masks) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.0)
    }
}
