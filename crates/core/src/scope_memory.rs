//! Memory of scopes: what members written so far do to the sets of later ones.

use std::sync::Arc;

use crate::{MemberId, SlotId};

/// A scope of a grammar by its place: a part of texts within which members are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeId(pub u32);

/// The open scopes of a text, with what was written in each; nothing at all mostly.
///
/// Compared and hashed by what it holds: texts that wrote the same members, in whatever order, have
/// the same memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScopeMemory {
    /// Outermost first; `None` where there is none.
    scopes: Option<Arc<[OpenScope]>>,
}

/// A scope that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenScope {
    /// The scope.
    pub scope: ScopeId,
    /// Keys of what was written, ascending: members or items, as the scope tells them apart.
    pub written: Arc<[u64]>,
    /// The members of a record, ascending, each once.
    pub fields: Arc<[(SlotId, MemberId)]>,
}

impl ScopeId {
    /// The id as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ScopeMemory {
    /// True where no scope is open.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.scopes.is_none()
    }

    /// The open scopes, outermost first.
    #[inline]
    pub fn open(&self) -> &[OpenScope] {
        self.scopes.as_deref().unwrap_or_default()
    }

    /// The memory within a scope that begins.
    #[must_use]
    pub fn opened(&self, scope: ScopeId) -> Self {
        let opened = OpenScope { scope, written: Arc::default(), fields: Arc::default() };
        Self { scopes: Some(self.open().iter().cloned().chain([opened]).collect()) }
    }

    /// The memory after the innermost scope.
    #[must_use]
    pub fn closed(&self) -> Self {
        let outer = self.open().split_last().map_or(&[][..], |(_, outer)| outer);
        Self { scopes: (!outer.is_empty()).then(|| outer.into()) }
    }

    /// The memory with one key more in an open scope; `None` where it was written.
    ///
    /// # Panics
    /// When no scope is open at this place.
    #[must_use]
    pub fn with_written(&self, place: usize, key: u64) -> Option<Self> {
        let written = &self.open()[place].written;
        let at = written.binary_search(&key).err()?;
        let written = inserted(written, at, key);
        Some(self.with_scope(place, |scope| scope.written = written))
    }

    /// The memory with one member more of an open record, where it is not known.
    ///
    /// # Panics
    /// When no scope is open at this place.
    #[must_use]
    pub fn with_field(&self, place: usize, field: (SlotId, MemberId)) -> Self {
        let fields = &self.open()[place].fields;
        let Err(at) = fields.binary_search(&field) else { return self.clone() };
        let fields = inserted(fields, at, field);
        self.with_scope(place, |scope| scope.fields = fields)
    }

    fn with_scope(&self, place: usize, change: impl FnOnce(&mut OpenScope)) -> Self {
        let mut scopes: Arc<[OpenScope]> = self.open().into();
        change(&mut Arc::make_mut(&mut scopes)[place]);
        Self { scopes: Some(scopes) }
    }
}

/// An ascending list with one entry more.
fn inserted<T: Copy>(list: &[T], at: usize, entry: T) -> Arc<[T]> {
    let (before, after) = list.split_at(at);
    before.iter().copied().chain([entry]).chain(after.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_depends_on_what_was_written_and_not_on_the_order() {
        let outer = ScopeMemory::default().opened(ScopeId(1)).opened(ScopeId(0));
        let write = |keys: [u64; 3]| {
            keys.iter()
                .fold(outer.clone(), |memory, &key| memory.with_written(1, key).expect("a new key"))
        };
        assert_eq!(write([3, 1, 2]), write([2, 3, 1]));
        assert_eq!(*write([3, 1, 2]).open()[1].written, [1, 2, 3]);
        assert_eq!(write([3, 1, 2]).with_written(1, 3), None);
        assert_eq!(write([3, 1, 2]).closed().closed(), ScopeMemory::default());
        let field = (SlotId(0), MemberId(7));
        let with = outer.with_field(0, field);
        assert_eq!(
            (with.with_field(0, field), &*with.open()[0].fields),
            (with.clone(), &[field][..])
        );
    }
}
