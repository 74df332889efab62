//! A mask row that many masks are made of.

/// The words of a mask.
#[derive(Debug)]
pub(super) struct MaskRow(Box<[u32]>);

impl MaskRow {
    pub(super) fn new(words: Box<[u32]>) -> Self {
        Self(words)
    }

    pub(super) fn words(&self) -> &[u32] {
        &self.0
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.0)
    }
}
