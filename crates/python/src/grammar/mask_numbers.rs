//! Numbers of masks for `palmette.cuda`: each distinct mask is copied to a device once, and a
//! sequence sends the number of its own.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use palmette_core::{Constraint, mask};
use palmette_grammar::{GrammarConstraint, GrammarState, MaskId, MaskRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::matcher::{Matcher, with_scratch};
use crate::buffers::new_array;
use crate::errors::{self, limit_exceeded};
use crate::process;

/// Numbers of distinct masks, for a copy of them elsewhere: equal masks have one number, whichever
/// grammars they are of.
///
/// Where there is room for no more, all are dropped and numbers are given out again from 0.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct MaskNumbers {
    num_words: usize,
    capacity: usize,
    table: Mutex<NumberTable>,
}

#[derive(Debug, Default)]
struct NumberTable {
    generation: u64,
    by_mask: HashMap<DistinctMask, u32>,
    /// Numbers of masks of dictionaries of grammars, by the place of the grammar, which is no
    /// other's while it is held weakly.
    by_id: HashMap<(usize, MaskId), u32>,
    grammars: HashMap<usize, Weak<GrammarConstraint>>,
}

/// A mask, equal to others with the same bits: words of zero at the end are none.
#[derive(Clone, Debug)]
struct DistinctMask(MaskRef);

impl DistinctMask {
    fn words(&self) -> &[u32] {
        let words = self.0.words();
        let end = words.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1);
        &words[..end]
    }
}

impl PartialEq for DistinctMask {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}

impl Eq for DistinctMask {}

impl Hash for DistinctMask {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().hash(state);
    }
}

impl NumberTable {
    /// The numbers of some masks, and the masks that have a new one, in order. None where there is
    /// no room for all.
    fn numbers(
        &mut self,
        masks: &[Option<(Arc<GrammarConstraint>, MaskRef)>],
        capacity: usize,
    ) -> Option<(Vec<i32>, Vec<MaskRef>)> {
        let mut new = Vec::new();
        let number = |mask: &Option<(Arc<GrammarConstraint>, MaskRef)>| match mask {
            None => Some(-1),
            Some((grammar, mask)) => {
                self.number(grammar, mask, capacity, &mut new).map(u32::cast_signed)
            }
        };
        let numbers = masks.iter().map(number).collect::<Option<Vec<_>>>()?;
        Some((numbers, new))
    }

    fn number(
        &mut self,
        grammar: &Arc<GrammarConstraint>,
        mask: &MaskRef,
        capacity: usize,
        new: &mut Vec<MaskRef>,
    ) -> Option<u32> {
        let place = Arc::as_ptr(grammar).addr();
        let key = mask.id().map(|id| (place, id));
        if let Some(&number) = key.and_then(|key| self.by_id.get(&key)) {
            return Some(number);
        }
        let distinct = DistinctMask(mask.clone());
        let number = match self.by_mask.get(&distinct) {
            Some(&number) => number,
            None if self.by_mask.len() == capacity => return None,
            None => {
                let number = self.by_mask.len() as u32;
                self.by_mask.insert(distinct, number);
                new.push(mask.clone());
                number
            }
        };
        if let Some(key) = key.filter(|_| self.by_id.len() < capacity * IDS_A_MASK) {
            self.grammars.entry(place).or_insert_with(|| Arc::downgrade(grammar));
            self.by_id.insert(key, number);
        }
        Some(number)
    }

    fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }
}

/// Ids of grammars that are kept for a mask, at most: of grammars that have many in common.
const IDS_A_MASK: usize = 8;

#[pymethods]
impl MaskNumbers {
    #[new]
    fn new(num_words: usize, capacity: usize) -> PyResult<Self> {
        if num_words == 0 || !(1..=1 << 29).contains(&capacity) {
            return Err(PyValueError::new_err(format!(
                "{capacity} masks of {num_words} words; give 1 or more of both, and at most 2^29 masks"
            )));
        }
        Ok(Self { num_words, capacity, table: Mutex::default() })
    }

    /// Numbers of the masks of some sequences, -1 for None; then the first number and the words of
    /// the masks that are new: int32 `[new, words]`, for the copy.
    fn of<'py>(
        &self,
        py: Python<'py>,
        matchers: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyAny>, usize, Bound<'py, PyAny>)> {
        let sequences = self.sequences(matchers)?;
        let masks = process::detach(py, || {
            let mask = |(row, sequence): (usize, Option<Sequence>)| {
                let Some((grammar, state)) = sequence else { return Ok(None) };
                let mask = with_scratch(|scratch| grammar.mask(&state, scratch));
                mask.map(|mask| Some((grammar, mask))).map_err(|error| (row, error))
            };
            sequences.into_iter().enumerate().map(mask).collect::<Result<Vec<_>, _>>()
        });
        let masks = masks.map_err(|(row, error)| errors::of_row(py, row, &error.into()))?;
        let mut table = self.locked(py);
        let mut first = table.by_mask.len();
        let mut numbered = table.numbers(&masks, self.capacity);
        if numbered.is_none() {
            table.clear();
            first = 0;
            numbered = table.numbers(&masks, self.capacity);
        }
        let Some((numbers, new)) = numbered else {
            // Nothing of what was noted is in the copy.
            table.clear();
            let message = format!(
                "the sequences have more than {} distinct masks, for which there is room; \
                 make the dictionary with a larger capacity",
                self.capacity
            );
            return Err(limit_exceeded(py, Some("capacity"), message));
        };
        drop(table);
        let mut words = vec![0_i32; new.len() * self.num_words];
        for (mask, to) in new.iter().zip(words.chunks_exact_mut(self.num_words)) {
            to.iter_mut().zip(mask.words()).for_each(|(to, &word)| *to = word.cast_signed());
        }
        let words = new_array(py, &words)?.call_method1("reshape", (new.len(), self.num_words))?;
        Ok((new_array(py, &numbers)?, first, words))
    }

    /// Drops all masks.
    fn clear(&self, py: Python<'_>) {
        self.locked(py).clear();
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.locked(py).by_mask.len()
    }

    /// Number of times that all masks were dropped: numbers given out before mean nothing.
    #[getter]
    fn generation(&self, py: Python<'_>) -> u64 {
        self.locked(py).generation
    }
}

/// A grammar and a position in a text.
type Sequence = (Arc<GrammarConstraint>, GrammarState);

impl MaskNumbers {
    fn locked(&self, py: Python<'_>) -> MutexGuard<'_, NumberTable> {
        self.table.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Positions of matchers, whose masks are no wider than those here.
    fn sequences(&self, matchers: &Bound<'_, PyAny>) -> PyResult<Vec<Option<Sequence>>> {
        let mut sequences = Vec::new();
        for (row, matcher) in matchers.try_iter()?.enumerate() {
            let matcher = matcher?;
            if matcher.is_none() {
                sequences.push(None);
                continue;
            }
            let Ok(matcher) = matcher.cast::<Matcher>() else {
                return Err(PyTypeError::new_err(format!(
                    "matcher {row} is a {}; give a Matcher, or None for a row without a grammar",
                    matcher.get_type().name()?
                )));
            };
            let grammar = Arc::clone(matcher.get().constraint());
            let (tokens, words) = (grammar.num_tokens(), self.num_words);
            let needed = mask::num_words(tokens);
            if needed > words {
                return Err(PyValueError::new_err(format!(
                    "row {row}: a mask over {tokens} tokens takes {needed} words, and those here have {words}; \
                     make the dictionary for as many tokens"
                )));
            }
            sequences.push(Some((grammar, matcher.get().state(matcher.py()))));
        }
        Ok(sequences)
    }
}
