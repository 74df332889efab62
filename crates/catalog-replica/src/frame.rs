//! Frames: entries that were added to a log together, in one object.
//!
//! Little-endian, without padding:
//!
//! | bytes | |
//! |---|---|
//! | 8 | `PALMLOG1` |
//! | 16 | identity of the catalog's log, the same in each of its frames and bases |
//! | 16 | id of the attempt, drawn anew for each: a frame is its writer's own by it, where the answer to its making was lost |
//! | 8 | generation that the first entry makes; 0 in the frame that begins a log, which has one empty entry |
//! | 8 | hash (XXH3, 64 bits) of the frame before, 0 in the first: a frame that is whole and of another history is told |
//! | 4 | number of entries |
//! | | each entry: its length (u32) and its bytes |
//! | 4 | CRC-32 of everything before |

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::identity::Identity;

const MAGIC: [u8; 8] = *b"PALMLOG1";
const HEAD_BYTES: usize = 8 + 16 + 16 + 8 + 8 + 4;

/// Entries of a frame, at most: what a reader looks back for the frame that has a generation.
pub(crate) const MAX_ENTRIES: usize = 256;

/// Entries that follow one another, with their place in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) identity: Identity,
    pub(crate) attempt: Identity,
    /// The generation that the first entry makes.
    pub(crate) first: u64,
    /// Hash of the frame before.
    pub(crate) previous: u64,
    pub(crate) entries: Vec<Bytes>,
}

/// Hash of a frame's bytes, by which the next one names it.
pub(crate) fn hash(frame: &[u8]) -> u64 {
    xxh3_64(frame)
}

impl Frame {
    /// The generation after the last entry's.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    pub(crate) fn write(&self) -> Bytes {
        let mut out = Vec::with_capacity(
            HEAD_BYTES + self.entries.iter().map(|entry| 4 + entry.len()).sum::<usize>() + 4,
        );
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.identity.0);
        out.extend_from_slice(&self.attempt.0);
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.previous.to_le_bytes());
        out.extend_from_slice(&(self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            out.extend_from_slice(&(entry.len() as u32).to_le_bytes());
            out.extend_from_slice(entry);
        }
        let sum = crc32fast::hash(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out.into()
    }

    /// Reads a frame that fills `bytes`; says what is wrong where it is none.
    pub(crate) fn read(bytes: &Bytes) -> Result<Self, String> {
        if !bytes.starts_with(&MAGIC) {
            let version = bytes.starts_with(&MAGIC[..7]).then(|| bytes.get(7)).flatten();
            return Err(match version {
                Some(&version) if version.is_ascii_graphic() => format!(
                    "it has version {:?}; this program reads {:?}: use a newer program",
                    char::from(version),
                    char::from(MAGIC[7])
                ),
                _ => "it is no frame of a log, or damaged at its beginning".to_owned(),
            });
        }
        let end = bytes.len().checked_sub(4).filter(|&end| end >= HEAD_BYTES);
        let end = end.ok_or("it is cut off")?;
        let said = u32::from_le_bytes(bytes[end..].try_into().map_err(|_| "it is cut off")?);
        if crc32fast::hash(&bytes[..end]) != said {
            return Err("its checksum is another: it is damaged or cut off".to_owned());
        }
        let mut input = Input { bytes, at: 8 };
        let (identity, attempt) = (Identity(input.take()?), Identity(input.take()?));
        let (first, previous) = (input.number()?, input.number()?);
        let num_entries = u32::from_le_bytes(input.take()?);
        let is_far = first > u64::MAX - MAX_ENTRIES as u64;
        if !(1..=MAX_ENTRIES as u32).contains(&num_entries) || is_far {
            return Err(format!("it has {num_entries} entries from generation {first} on"));
        }
        let mut entries = Vec::with_capacity(num_entries as usize);
        for _ in 0..num_entries {
            let len = u32::from_le_bytes(input.take()?) as usize;
            let entry = input.at.checked_add(len).filter(|&to| to <= end);
            let to = entry.ok_or("an entry of it is longer than the frame")?;
            entries.push(bytes.slice(input.at..to));
            input.at = to;
        }
        if input.at != end {
            return Err(format!("{} bytes follow its last entry", end - input.at));
        }
        Ok(Self { identity, attempt, first, previous, entries })
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>());
        self.at += N;
        taken.copied().ok_or_else(|| "it is cut off".to_owned())
    }

    fn number(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = Frame> {
        let entry = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
        (any::<[u8; 16]>(), 1..u64::MAX / 2, any::<u64>(), prop::collection::vec(entry, 1..5))
            .prop_map(|(id, first, previous, entries)| Frame {
                identity: Identity(id),
                attempt: Identity(id.map(|byte| !byte)),
                first,
                previous,
                entries,
            })
    }

    proptest! {
        #[test]
        fn gives_back_what_went_in(frame in frames()) {
            prop_assert_eq!(Frame::read(&frame.write()), Ok(frame));
        }

        #[test]
        fn any_change_is_noticed(frame in frames(), at: prop::sample::Index, flip in 1_u8..) {
            let bytes = frame.write();
            let mut changed = bytes.to_vec();
            let place = at.index(changed.len());
            changed[place] ^= flip;
            prop_assert!(Frame::read(&changed.into()).is_err());
            prop_assert!(Frame::read(&bytes.slice(..place)).is_err());
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut with_magic = MAGIC.to_vec();
            with_magic.extend(&bytes);
            let sum = crc32fast::hash(&with_magic);
            with_magic.extend(sum.to_le_bytes());
            _ = Frame::read(&bytes.into());
            _ = Frame::read(&with_magic.into());
        }
    }
}
