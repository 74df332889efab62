//! Values that other crates derive from a catalog and keep with it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by their types, one of each, shared by all clones of a catalog.
#[derive(Clone, Default)]
pub(crate) struct Derived(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl Derived {
    /// The value of a type, which is a default one at first.
    pub(crate) fn get<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::<T>::default());
        Arc::clone(value).downcast().expect("values have the types that they are under")
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Derived").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn there_is_one_value_of_a_type() {
        let derived = Derived::default();
        derived.clone().get::<AtomicU32>().store(3, Ordering::Relaxed);
        assert_eq!(derived.get::<AtomicU32>().load(Ordering::Relaxed), 3);
        assert_eq!(*derived.get::<u32>(), 0);
    }
}
