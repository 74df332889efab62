//! Sets of bytes.

/// A set of bytes: byte `b` is bit `b % 64` of word `b / 64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ByteSet([u64; 4]);

impl ByteSet {
    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// True when there is no byte.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// True when the byte is in.
    #[inline]
    pub fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    /// Adds a byte.
    #[inline]
    pub fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte / 64)] |= 1 << (byte % 64);
    }

    /// Adds bytes.
    pub fn insert_all(&mut self, bytes: impl Iterator<Item = u8>) {
        bytes.for_each(|byte| self.insert(byte));
    }

    /// Adds those of another set; tells whether one was not in.
    pub fn unite(&mut self, other: &Self) -> bool {
        let mut is_new = false;
        for (own, other) in self.0.iter_mut().zip(other.0) {
            is_new |= other & !*own != 0;
            *own |= other;
        }
        is_new
    }

    /// True when some byte is in both.
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).any(|(own, other)| own & other != 0)
    }

    /// Bytes of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(|&byte| self.contains(byte))
    }
}

impl FromIterator<u8> for ByteSet {
    fn from_iter<I: IntoIterator<Item = u8>>(bytes: I) -> Self {
        let mut set = Self::default();
        set.insert_all(bytes.into_iter());
        set
    }
}
