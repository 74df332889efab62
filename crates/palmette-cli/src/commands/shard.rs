//! Shards: parts of a file of histories that processes answer apart from one another.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use palmette_eval::{BadRecord, EachRecord, HistoryRecord, Progress};

/// One of `of` parts of a file, numbered from 0. Each history is in one of them.
///
/// Rows of a table are cut into runs that differ by one row at most. What is only known once it has been read, lines and users
/// whose events are gathered, is dealt out: history `j` is in part `j mod of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    index: u64,
    of: u64,
}

/// More parts than any cluster runs, and five digits.
const MOST: u64 = 99_999;

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, of)| {
            Some(Self { index: index.parse().ok()?, of: of.parse().ok()? })
        });
        match parsed {
            None => Err(format!("{text:?} is no shard; write 3/16 for the fourth of 16")),
            Some(Self { of, .. }) if !(1..=MOST).contains(&of) => {
                Err(format!("{text:?}: there are from 1 to {MOST} shards"))
            }
            Some(Self { index, of }) if index >= of => {
                Err(format!("{text:?}: {of} shards are numbered from 0 to {}", of - 1))
            }
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
    #[cfg_attr(not(any(feature = "tables", test)), expect(dead_code, reason = "tables have rows"))]
    pub(crate) fn rows(self, of: u64) -> Range<u64> {
        // `index ≤ self.of`, so no place is above `of`.
        let place = |index: u64| (u128::from(of) * u128::from(index) / u128::from(self.of)) as u64;
        place(self.index)..place(self.index + 1)
    }

    /// Hands on the histories of this part only.
    pub(crate) fn deal(
        self,
        each: &mut EachRecord<'_>,
    ) -> impl FnMut(Result<HistoryRecord, BadRecord>, Progress) -> ControlFlow<()> {
        let mut number = 0;
        move |record, progress| {
            let is_own = number % self.of == self.index;
            number += 1;
            if is_own { each(record, progress) } else { ControlFlow::Continue(()) }
        }
    }

    /// The file of this part's answers, beside those of the others: `recs-00003-of-00016.parquet`.
    pub(crate) fn file(self, out: &Path) -> PathBuf {
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
            (Err(message), Err(word)) => assert!(message.contains(word), "{message}"),
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
        let mut dealt = Vec::new();
        for index in 0..3 {
            let mut own = Vec::new();
            let each = &mut |record: Result<HistoryRecord, BadRecord>, _: Progress| {
                own.push(record.unwrap().user.unwrap());
                ControlFlow::Continue(())
            };
            let mut deal = Shard { index, of: 3 }.deal(each);
            for user in 0..7 {
                let user = Some(user.to_string());
                let record = HistoryRecord { user, items: Vec::new(), target: None };
                assert!(deal(Ok(record), Progress::default()).is_continue());
            }
            drop(deal);
            dealt.push(own.join(" "));
        }
        assert_eq!(dealt, ["0 3 6", "1 4", "2 5"]);
    }

    #[test]
    fn files_of_shards() {
        let shard = Shard { index: 3, of: 16 };
        let file = |out: &str| shard.file(Path::new(out)).display().to_string();
        assert_eq!(file("a/recs.parquet"), "a/recs-00003-of-00016.parquet");
        assert_eq!(file("recs.v2.jsonl"), "recs.v2-00003-of-00016.jsonl");
    }
}
