//! File of the items of a segment that are there.
//!
//! A file of sections (see `palmette-mapped`): first the bits, 64 ranks a word; last a JSON
//! document with the number of ranks and of members.

use std::path::Path;

use palmette_catalog_filter::RankSet;
use palmette_mapped::{Array, Check, Format, SectionsIn, SectionsOut};
use serde::{Deserialize, Serialize};

use crate::error::LiveError;

const FORMAT: Format = Format { magic: *b"PALMLIVE", version: 1 };

#[derive(Serialize, Deserialize)]
struct Description {
    num_ranks: u64,
    num_live: u64,
}

pub(crate) fn write(path: &Path, live: &RankSet) -> Result<(), LiveError> {
    let words: Vec<u64> = (0..live.num_ranks().div_ceil(64)).map(|at| live.word(at)).collect();
    let mut out = SectionsOut::default();
    out.add_array(&Array::from(words));
    let description = Description { num_ranks: live.num_ranks(), num_live: live.len() };
    out.add(serde_json::to_vec(&description).expect("it is plain data").into());
    out.write(path, FORMAT).map_err(|e| LiveError::io(path, e))
}

/// Reads and checks a file, which says how many ranks there are and how many are members.
pub(crate) fn read(path: &Path, num_ranks: u64, num_live: u64) -> Result<RankSet, LiveError> {
    let damaged =
        |problem: String| LiveError::damaged(path, format!("{problem}; restore it from a copy"));
    let sections = SectionsIn::open(path, FORMAT, Check::Whole)
        .map_err(|error| LiveError::of_sections(path, &error))?;
    let parse = || {
        let description = sections.last().ok_or("it has no sections")?;
        let said: Description = serde_json::from_slice(&description).map_err(|e| e.to_string())?;
        if (said.num_ranks, said.num_live) != (num_ranks, num_live) {
            return Err(format!(
                "it is of {} items of which {} are there, the manifest says {num_ranks} and {num_live}",
                said.num_ranks, said.num_live
            ));
        }
        let words = sections.array::<u64>(0, num_ranks.div_ceil(64))?;
        let live = RankSet::from_words(num_ranks, &words).ok_or("it has items past the last")?;
        match live.len() == num_live {
            true => Ok(live),
            false => Err(format!("it has {} items", live.len())),
        }
    };
    parse().map_err(|problem| damaged(format!("is damaged: {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_gone_is_missing_and_not_damaged() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("live-0000000002-4.palmlive");
        assert!(read(&path, 1, 1).expect_err("no file").is_missing_file());
        std::fs::write(&path, "else").expect("a file");
        let error = read(&path, 1, 1).expect_err("no ranks");
        assert!(error.is_damaged() && !error.is_missing_file(), "{error}");
    }
}
