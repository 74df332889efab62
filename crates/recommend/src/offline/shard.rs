//! Shards: parts of a file of histories that processes answer apart from one another.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// One of `of` parts of a file, numbered from 0. Each history is in one of them.
///
/// Rows of a table are cut into [runs](Self::rows) that differ by one row at most. What is only
/// known once it has been read, lines and users whose events are gathered, is [dealt
/// out](Self::has).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    of: u64,
}

/// More parts than any cluster runs, and five digits.
const MOST: u64 = 99_999;

/// Text that names no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Text that is not two numbers.
    #[error("{text:?} is no shard; write 3/16 for the fourth of 16")]
    Syntax {
        /// The text.
        text: String,
    },
    /// There are no shards, or too many.
    #[error("{text:?}: there are from 1 to {MOST} shards")]
    Number {
        /// The text.
        text: String,
    },
    /// The index is that of none of them.
    #[error("{text:?}: {of} shards are numbered from 0 to {}", of - 1)]
    Index {
        /// The text.
        text: String,
        /// Shards in all.
        of: u64,
    },
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parsed = text.split_once('/').and_then(|(index, of)| {
            Some(Self { index: index.parse().ok()?, of: of.parse().ok()? })
        });
        let text = || text.to_owned();
        match parsed {
            None => Err(ShardError::Syntax { text: text() }),
            Some(Self { of, .. }) if !(1..=MOST).contains(&of) => {
                Err(ShardError::Number { text: text() })
            }
            Some(Self { index, of }) if index >= of => Err(ShardError::Index { text: text(), of }),
            Some(shard) => Ok(shard),
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl Shard {
    /// Rows of this part, of a table of `of` rows.
    pub fn rows(self, of: u64) -> Range<u64> {
        // `index ≤ self.of`, so no place is above `of`.
        let place = |index: u64| (u128::from(of) * u128::from(index) / u128::from(self.of)) as u64;
        place(self.index)..place(self.index + 1)
    }

    /// True where the history of this number, from 0, is in this part: history `j` is in part `j
    /// mod of`.
    pub fn has(self, number: u64) -> bool {
        number % self.of == self.index
    }

    /// The file of this part's answers, beside those of the others: `recs-00003-of-00016.parquet`.
    pub fn file(self, out: &Path) -> PathBuf {
        let mut name = out.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{:05}-of-{:05}", self.index, self.of));
        if let Some(extension) = out.extension() {
            name.push(".");
            name.push(extension);
        }
        out.with_file_name(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(u64, u64), &str>) {
        match (text.parse::<Shard>(), expected) {
            (Ok(shard), Ok(expected)) => {
                assert_eq!((shard.index, shard.of), expected);
                assert_eq!(shard.to_string(), text);
            }
            (Err(error), Err(word)) => assert!(error.to_string().contains(word), "{error}"),
            (got, want) => panic!("{got:?} where {want:?} was expected"),
        }
    }

    #[test]
    fn shards_are_numbered_from_0() {
        check("0/1", Ok((0, 1)));
        check("15/16", Ok((15, 16)));
        check("16/16", Err("numbered from 0 to 15"));
        check("0/0", Err("from 1 to 99999"));
        check("0/100000", Err("from 1 to 99999"));
        for none in ["", "3", "/", "a/3", "-1/3", "1/2/3", "99999999999999999999/3"] {
            check(none, Err("write 3/16"));
        }
    }

    #[test]
    fn each_row_is_in_one_shard() {
        for (rows, of) in [(0, 3), (2, 3), (10, 3), (12, 3), (u64::MAX, 7), (5, 99_999)] {
            let shards: Vec<_> = (0..of).map(|index| Shard { index, of }.rows(rows)).collect();
            assert_eq!((shards[0].start, shards.last().unwrap().end), (0, rows));
            assert!(shards.windows(2).all(|pair| pair[0].end == pair[1].start));
            let sizes = shards.iter().map(|rows| rows.end - rows.start);
            assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1, "{shards:?}");
        }
    }

    #[test]
    fn histories_are_dealt_out() {
        let own = |index| {
            let shard = Shard { index, of: 3 };
            (0..7).filter(|&number| shard.has(number)).collect::<Vec<_>>()
        };
        assert_eq!([own(0), own(1), own(2)], [vec![0, 3, 6], vec![1, 4], vec![2, 5]]);
    }

    #[test]
    fn files_of_shards() {
        let shard = Shard { index: 3, of: 16 };
        let file = |out: &str| shard.file(Path::new(out)).display().to_string();
        assert_eq!(file("a/recs.parquet"), "a/recs-00003-of-00016.parquet");
        assert_eq!(file("recs.v2.jsonl"), "recs.v2-00003-of-00016.jsonl");
    }
}
