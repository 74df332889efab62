//! A frozen slice, whoever owns its memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use bytes::Bytes;
use memmap2::MmapMut;

/// Elements of an [`Array`]: numbers without padding, for which every bit pattern is valid.
pub trait Pod: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Pod for T {}

/// A frozen slice of numbers. Cloning shares the memory.
///
/// Cost: getting at the slice checks alignment and length, so hot loops get it once.
#[derive(Clone)]
pub struct Array<T> {
    /// Aligned for `T` and a whole number of them: every constructor sees to it.
    bytes: Bytes,
    of: PhantomData<T>,
}

impl<T: Pod> Array<T> {
    /// Takes `bytes` as they are, little-endian. They are copied only where they are not aligned.
    /// `None` when they are no whole number of `T`.
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        if !bytes.len().is_multiple_of(size_of::<T>()) {
            return None;
        }
        match bytemuck::try_cast_slice::<u8, T>(&bytes) {
            Ok(_) => Some(Self { bytes, of: PhantomData }),
            Err(_) => Some(bytemuck::pod_collect_to_vec::<u8, T>(&bytes).into()),
        }
    }

    /// The slice.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes)
    }

    /// The memory of the slice.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl<T: Pod> From<Vec<T>> for Array<T> {
    fn from(values: Vec<T>) -> Self {
        struct Owner<T>(Vec<T>);
        impl<T: Pod> AsRef<[u8]> for Owner<T> {
            fn as_ref(&self) -> &[u8] {
                bytemuck::cast_slice(&self.0)
            }
        }
        let paged = paged_copy(bytemuck::cast_slice(&values));
        let bytes = paged.unwrap_or_else(|| Bytes::from_owner(Owner(values)));
        Self { bytes, of: PhantomData }
    }
}

impl<T: Pod> Default for Array<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Pod + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Pod + Eq> Eq for Array<T> {}

impl<T: Pod + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

/// A copy that begins with a page, in large pages where there are enough bytes for one: rows of
/// masks then lie in whole cache lines, and reading here and there does not wait for page tables
/// too (140 reads at random from 512 MB, cold, took 6.3 us instead of 11.3). `None` for small
/// arrays, and where the system has no such memory to give.
fn paged_copy(bytes: &[u8]) -> Option<Bytes> {
    const MIN_BYTES: usize = 64 << 10;
    if bytes.len() < MIN_BYTES {
        return None;
    }
    let mut map = MmapMut::map_anon(bytes.len()).ok()?;
    // Where large pages are switched off the copy is in small ones.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    map.copy_from_slice(bytes);
    Some(Bytes::from_owner(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_vec_of_any_type_is_an_empty_array() {
        assert!(Array::<u64>::from(Vec::new()).is_empty());
        assert!(Array::<u64>::from_bytes(Bytes::new()).expect("no numbers").is_empty());
    }

    #[test]
    fn bytes_that_are_not_aligned_are_copied() {
        let bytes = Bytes::from((0..40_u8).collect::<Vec<u8>>());
        for start in 0..8 {
            let array = Array::<u64>::from_bytes(bytes.slice(start..start + 16)).expect("16 bytes");
            let first = u64::from_le_bytes(bytes[start..start + 8].try_into().expect("8 bytes"));
            assert_eq!((array.len(), array[0]), (2, first));
        }
        assert_eq!(Array::<u64>::from_bytes(bytes.slice(0..15)), None);
    }
}
