//! Unions of the tokens that several residuals consume, memoised.

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;

use super::{ResidualId, Residuals};
use crate::mask_pool::MaskRow;

/// By residuals, ascending, the tokens consumed whole by any of them: a row, where they have been asked for more than once.
///
/// PERF: wherever any value may begin, the same strings, numbers and brackets may, after the same blanks: thousands of tokens, most of them
/// of several of these.
#[derive(Debug, Default)]
pub(super) struct Unions(Mutex<HashMap<Box<[ResidualId]>, Asked>>);

/// A row once it was asked for again.
type Asked = Option<Arc<MaskRow>>;

impl Residuals {
    /// The tokens consumed whole by any of some residuals, of which what tokens do to them is known; `None` where that is asked for the first
    /// time.
    pub(super) fn union(&self, residuals: &[ResidualId], num_words: usize) -> Option<Arc<MaskRow>> {
        let mut known = self.unions.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get_mut(residuals) {
            Some(Some(row)) => Some(Arc::clone(row)),
            Some(none) => {
                let mut words = vec![0; num_words];
                let effects =
                    residuals.iter().filter_map(|&residual| self.residual(residual).effect.get());
                effects.for_each(|effect| effect.consumed.insert_into(&mut words));
                let row = Arc::new(MaskRow::new(words.into()));
                self.add_bytes(row.memory_bytes());
                *none = Some(Arc::clone(&row));
                Some(row)
            }
            None => {
                self.add_bytes(size_of_val(residuals) + size_of::<(Box<[ResidualId]>, Asked)>());
                known.insert(residuals.into(), None);
                None
            }
        }
    }
}
