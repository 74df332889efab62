//! Keys of the latest batches: one that comes again by its key is answered as the first time, and
//! not applied again.
//!
//! A key is in the log's record of its batch, so that both are on disk or neither is. A checkpoint,
//! after which the log begins anew, writes the keys to a file of sections (see `palmette-mapped`):
//! first, for each key, the oldest first, the key, its fingerprint, and the six numbers of what its
//! batch did, spelled as in the log; last a JSON document with the number of keys.
//!
//! Cost: the name and some hundred bytes a key in memory, at most [`MAX_BATCH_KEYS`] of them; a
//! checkpoint copies them where one is new.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use palmette_mapped::{Check, Format, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use crate::error::{Kind, LiveError};
use crate::log_entry::{Input, write_number, write_text};
use crate::update::Applied;

/// Keys of a catalog that are remembered, the latest.
pub const MAX_BATCH_KEYS: usize = 10_000;
/// The longest key, in bytes.
pub const MAX_BATCH_KEY_BYTES: usize = 128;

/// Name of a batch, by which its repetition is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchKey {
    /// The name, chosen by whoever sends the batch: 1 to [`MAX_BATCH_KEY_BYTES`] bytes.
    pub name: String,
    /// Hash of the batch as it was sent: a repetition has the same.
    pub fingerprint: [u8; 32],
}

/// The end of a batch with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedApplied {
    /// Generation and numbers of the first batch with this key.
    pub applied: Applied,
    /// True where that batch came before, and nothing was applied now.
    pub is_repeated: bool,
}

/// The latest keys, each with what its batch did.
#[derive(Clone, Debug, Default)]
pub(crate) struct BatchKeys {
    firsts: HashMap<Arc<str>, First>,
    /// Names in `firsts`, the oldest first.
    order: VecDeque<Arc<str>>,
    /// Keys that came since the catalog was opened.
    num_added: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct First {
    fingerprint: [u8; 32],
    applied: Applied,
}

impl BatchKey {
    pub(crate) fn check(&self) -> Result<(), LiveError> {
        match self.name.len() {
            1..=MAX_BATCH_KEY_BYTES => Ok(()),
            len => Err(Kind::Options(format!(
                "the key of a batch has {len} bytes; it must have 1 to {MAX_BATCH_KEY_BYTES}"
            ))
            .into()),
        }
    }
}

impl BatchKeys {
    /// Outcome of the first batch with this key; `None` where none is remembered.
    ///
    /// # Errors
    /// When that batch had another fingerprint.
    pub(crate) fn first(&self, key: &BatchKey) -> Result<Option<Applied>, LiveError> {
        match self.firsts.get(key.name.as_str()) {
            None => Ok(None),
            Some(first) if first.fingerprint == key.fingerprint => Ok(Some(first.applied)),
            Some(first) => {
                let (name, generation) = (key.name.clone(), first.applied.generation);
                Err(Kind::OtherBatch { name, generation }.into())
            }
        }
    }

    /// Remembers a key that is new, and forgets the oldest where there are too many.
    pub(crate) fn add(&mut self, BatchKey { name, fingerprint }: BatchKey, applied: Applied) {
        if self.order.len() == MAX_BATCH_KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.firsts.remove(&oldest);
        }
        let name: Arc<str> = name.into();
        self.order.push_back(Arc::clone(&name));
        self.firsts.insert(name, First { fingerprint, applied });
        self.num_added += 1;
    }

    /// True where none is known.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A number that is another after each key that was added.
    pub(crate) fn num_added(&self) -> u64 {
        self.num_added
    }
}

const FORMAT: Format = Format { magic: *b"PALMKEYS", version: 1 };

#[derive(Serialize, Deserialize)]
struct Description {
    num_keys: usize,
}

pub(crate) fn write(path: &Path, keys: &BatchKeys) -> Result<(), LiveError> {
    let mut bytes = Vec::new();
    for name in &keys.order {
        let Some(First { fingerprint, applied }) = keys.firsts.get(name) else { continue };
        write_text(name, &mut bytes);
        bytes.extend_from_slice(fingerprint);
        numbers_of(applied).into_iter().for_each(|number| write_number(number, &mut bytes));
    }
    let mut out = SectionsOut::default();
    out.add(bytes.into());
    let description = Description { num_keys: keys.order.len() };
    out.add(serde_json::to_vec(&description).expect("it is plain data").into());
    out.write(path, FORMAT).map_err(|e| LiveError::io(path, e))
}

/// Reads and checks a file.
pub(crate) fn read(path: &Path) -> Result<BatchKeys, LiveError> {
    let damaged = |problem: String| {
        let problem = format!("is damaged: {problem}; restore it from a copy");
        LiveError::damaged(path, problem)
    };
    let sections = SectionsIn::open(path, FORMAT, Check::Whole).map_err(|error| {
        let known = LiveError::of_sections(path, &error);
        if known.is_missing_file() { known } else { damaged(error.to_string()) }
    })?;
    let parse = || {
        let description = sections.last().ok_or("it has no sections")?;
        let Description { num_keys } =
            serde_json::from_slice(&description).map_err(|e| e.to_string())?;
        if num_keys > MAX_BATCH_KEYS {
            return Err(format!("it says to have {num_keys} keys; {MAX_BATCH_KEYS} are kept"));
        }
        let bytes = sections.section(0)?;
        let mut input = Input(&bytes);
        let mut keys = BatchKeys::default();
        for place in 0..num_keys {
            let mut entry = || Some((input.batch_key()?, applied_of(&mut input)?));
            let (key, applied) = entry().ok_or_else(|| format!("key {place} is cut off"))?;
            if keys.firsts.contains_key(key.name.as_str()) {
                return Err(format!("key {place}, {:?}, is there before", key.name));
            }
            keys.add(key, applied);
        }
        if !input.0.is_empty() {
            return Err(format!("{} bytes follow the last key", input.0.len()));
        }
        keys.num_added = 0;
        Ok(keys)
    };
    parse().map_err(damaged)
}

fn numbers_of(applied: &Applied) -> [u64; 6] {
    let &Applied { generation, upserted, patched, unchanged, deleted, unknown_deletes } = applied;
    [generation, upserted, patched, unchanged, deleted, unknown_deletes]
}

fn applied_of(input: &mut Input<'_>) -> Option<Applied> {
    let mut next = || input.number();
    Some(Applied {
        generation: next()?,
        upserted: next()?,
        patched: next()?,
        unchanged: next()?,
        deleted: next()?,
        unknown_deletes: next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, print: u8) -> BatchKey {
        BatchKey { name: name.to_owned(), fingerprint: [print; 32] }
    }

    fn applied(generation: u64) -> Applied {
        Applied { generation, upserted: generation % 7, deleted: 1 << 40, ..Applied::default() }
    }

    #[test]
    fn the_latest_keys_are_remembered_and_come_back_from_a_file() {
        let mut keys = BatchKeys::default();
        for generation in 0..MAX_BATCH_KEYS as u64 + 5 {
            keys.add(key(&format!("k{generation}"), 1), applied(generation));
        }
        assert_eq!((keys.order.len(), keys.firsts.len()), (MAX_BATCH_KEYS, MAX_BATCH_KEYS));
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("keys");
        write(&path, &keys).expect("room");
        let again = read(&path).expect("sound");
        assert_eq!((&again.firsts, &again.order), (&keys.firsts, &keys.order));
        let first = |name: &str, print| again.first(&key(name, print)).map_err(|e| e.to_string());
        assert_eq!(first("k4", 1), Ok(None));
        assert_eq!(first("k5", 1), Ok(Some(applied(5))));
        let error = first("k5", 2).expect_err("another batch");
        assert!(error.contains("\"k5\"") && error.contains("generation 5"), "{error}");
    }

    #[test]
    fn damage_anywhere_is_an_error_that_names_the_file() {
        let mut keys = BatchKeys::default();
        for generation in 0..3 {
            keys.add(key(&format!("key {generation}"), generation as u8), applied(generation));
        }
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("keys-5.palmkeys");
        write(&path, &keys).expect("room");
        let bytes = std::fs::read(&path).expect("it was written");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("room");
            read(&path).err().map(|e| e.to_string())
        };
        assert_eq!(refused(&bytes), None);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x11;
            for damaged in [&flipped, &bytes[..at].to_vec()] {
                let error = refused(damaged).unwrap_or_else(|| panic!("byte {at} is not missed"));
                assert!(error.contains("keys-5.palmkeys"), "{error}");
            }
        }
    }

    #[test]
    fn a_name_has_a_length() {
        assert!(key("x", 0).check().is_ok() && key(&"x".repeat(128), 0).check().is_ok());
        assert!(key("", 0).check().is_err() && key(&"x".repeat(129), 0).check().is_err());
    }
}
