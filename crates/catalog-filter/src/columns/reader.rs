//! Random access to one column: codes by rank, values and sort keys by code.

use std::cmp::Ordering;

use palmette_mapped::RankSet;
use serde_json::Value;

use super::codes::{Codes, for_each_width};
use super::column::Column;
use super::dictionary::Dictionary;
use super::{ColumnKind, Columns};

/// One column, looked up once and read by rank.
///
/// A rank has a code, 0 where the item has no such attribute; a code stands for one value of the
/// column's dictionary. Codes mean nothing in another catalog's column; values and sort keys do.
#[derive(Clone, Copy, Debug)]
pub struct ColumnReader<'a> {
    column: &'a Column,
}

/// A value to sort items by. Keys of one kind of column are in the order of its values.
#[derive(Clone, Copy, Debug)]
pub enum SortKey<'a> {
    /// False before true.
    Boolean(bool),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// A number, compared by size.
    Number(f64),
    /// A text, compared by bytes.
    Text(&'a str),
}

impl Columns {
    /// The column of an attribute; `None` where no item has it.
    pub fn reader(&self, name: &str) -> Option<ColumnReader<'_>> {
        self.column(name).map(|column| ColumnReader { column })
    }
}

impl<'a> ColumnReader<'a> {
    /// Kind of its values.
    pub fn kind(&self) -> ColumnKind {
        self.column.dictionary.kind()
    }

    /// The code of a rank; 0 for no value.
    #[inline]
    pub fn code(&self, rank: u64) -> u32 {
        self.column.codes.get(rank)
    }

    /// The value that a code stands for.
    pub fn value(&self, code: u32) -> Option<Value> {
        self.column.dictionary.value(code)
    }

    /// Number of different values: codes of values are 1 to it.
    pub fn num_values(&self) -> u32 {
        self.column.dictionary.len() as u32
    }

    /// The text that a code stands for, in a column of texts. Texts ascend by their codes.
    #[inline]
    pub fn text(&self, code: u32) -> Option<&'a str> {
        let at = (code as usize).checked_sub(1)?;
        match &self.column.dictionary {
            Dictionary::Keyword(texts) if at < texts.len() => Some(texts.get(at)),
            _ => None,
        }
    }

    /// Words of a column of lists, all in ascending order; none of another column.
    pub fn words(&self) -> impl Iterator<Item = &'a str> {
        let words = match &self.column.dictionary {
            Dictionary::Keywords(lists) => Some(lists.words()),
            _ => None,
        };
        words.into_iter().flat_map(|words| (0..words.len()).map(|at| words.get(at)))
    }

    /// The places among [`words`](Self::words) of those in the list that a code stands for.
    #[inline]
    pub fn word_places(&self, code: u32) -> &'a [u32] {
        match (&self.column.dictionary, (code as usize).checked_sub(1)) {
            (Dictionary::Keywords(lists), Some(at)) if at < lists.len() => lists.members(at),
            _ => &[],
        }
    }

    /// The values that the items of some ranks have: the set of their codes less one, and how many
    /// of the ranks have a code of which `counts` is true. Code 0 is none.
    ///
    /// Cost: reads the codes of these ranks once.
    pub fn values_among(
        &self,
        ranks: &RankSet,
        mut counts: impl FnMut(u32) -> bool,
    ) -> (RankSet, u64) {
        let num_values = self.num_values();
        let mut words = vec![0_u64; (num_values as usize).div_ceil(64)];
        let mut num_counted = 0;
        let visit = |code: u32| {
            // Code 0 becomes the largest number there is, and is past the last value.
            let value = code.wrapping_sub(1);
            if value < num_values {
                words[(value / 64) as usize] |= 1 << (value % 64);
                num_counted += u64::from(counts(code));
            }
        };
        for_each_width!(&self.column.codes, codes => visit_codes(codes.as_slice(), ranks, visit));
        let values = RankSet::from_words(num_values.into(), &words);
        (values.expect("no bit is past the last value"), num_counted)
    }

    /// The number that a code stands for, in a column of numbers.
    #[inline]
    pub fn number(&self, code: u32) -> Option<f64> {
        match &self.column.dictionary {
            Dictionary::Number { values, .. } => {
                values.as_slice().get((code as usize).checked_sub(1)?).copied()
            }
            _ => None,
        }
    }

    /// The sort key that a code stands for; `None` in columns of lists and JSON, which have no
    /// order.
    pub fn sort_key(&self, code: u32) -> Option<SortKey<'a>> {
        let at = (code as usize).checked_sub(1)?;
        Some(match &self.column.dictionary {
            Dictionary::Boolean(values) => SortKey::Boolean(*values.as_slice().get(at)? != 0),
            Dictionary::Timestamp(values) => SortKey::Timestamp(*values.as_slice().get(at)?),
            Dictionary::Number { values, .. } => SortKey::Number(*values.as_slice().get(at)?),
            Dictionary::Keyword(texts) if at < texts.len() => SortKey::Text(texts.get(at)),
            _ => return None,
        })
    }
}

fn visit_codes<T: Copy + Into<u32>>(codes: &[T], ranks: &RankSet, mut visit: impl FnMut(u32)) {
    let end = ranks.num_ranks().min(codes.len() as u64);
    ranks.for_each_in(0..end, |rank| visit(codes[rank as usize].into()));
}

impl SortKey<'_> {
    /// Place among the kinds, so that keys of any two kinds have an order.
    fn kind(&self) -> u8 {
        match self {
            Self::Boolean(_) => 0,
            Self::Timestamp(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

impl Ord for SortKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for SortKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for SortKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for SortKey<'_> {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ColumnsBuilder;

    #[test]
    fn codes_values_and_keys_of_every_kind() {
        let mut builder = ColumnsBuilder::new();
        builder.declare("added", ColumnKind::Timestamp).unwrap();
        for row in [
            json!({"brand": "b", "price": 2, "new": true, "added": "2026-01-01", "tags": ["x"]}),
            json!({"brand": "a", "price": 1.5, "new": false, "added": "2026-01-01T00:00:00.5Z"}),
            json!({}),
        ] {
            builder.push_row(row.as_object().unwrap()).unwrap();
        }
        let columns = builder.finish(None, |_, _| ());
        for name in ["brand", "price", "new", "added"] {
            let reader = columns.reader(name).unwrap();
            let keys = [0, 1, 2].map(|rank| reader.sort_key(reader.code(rank)));
            assert!(keys[0].is_some() && keys[1].is_some() && keys[2].is_none(), "{name}");
            // Only `added` is larger in the second row.
            assert_eq!(keys[0].cmp(&keys[1]) == Ordering::Less, name == "added", "{name}");
            for rank in 0..3 {
                assert_eq!(reader.value(reader.code(rank)), columns.get(rank, name), "{name}");
            }
        }
        let price = columns.reader("price").unwrap();
        assert_eq!(
            [0, 1, 2].map(|rank| price.number(price.code(rank))),
            [Some(2.0), Some(1.5), None]
        );
        let brand = columns.reader("brand").unwrap();
        assert_eq!([0, 1, 2].map(|code| brand.text(code)), [None, Some("a"), Some("b")]);
        let tags = columns.reader("tags").unwrap();
        assert_eq!((tags.words().collect::<Vec<_>>(), tags.word_places(1)), (vec!["x"], &[0][..]));
        assert_eq!((tags.word_places(0).len(), price.num_values(), tags.num_values()), (0, 2, 1));
        assert_eq!((tags.kind(), tags.sort_key(tags.code(0))), (ColumnKind::Keywords, None));
        assert!(columns.reader("colour").is_none());
    }

    #[test]
    fn values_among_ranks_are_those_of_their_codes() {
        let mut builder = ColumnsBuilder::new();
        for row in 0..1000_u64 {
            let row =
                if row % 7 == 0 { json!({}) } else { json!({"brand": format!("b{}", row % 90)}) };
            builder.push_row(row.as_object().unwrap()).unwrap();
        }
        let columns = builder.finish(None, |_, _| ());
        let brand = columns.reader("brand").unwrap();
        for every in [1, 13, 500, 2000] {
            let ranks =
                RankSet::from_ranks(1000, (0..1000).filter(|rank| rank % every == every / 2));
            let codes: Vec<u32> =
                ranks.iter().map(|rank| brand.code(rank)).filter(|&code| code > 0).collect();
            let (values, num_counted) = brand.values_among(&ranks, |code| code % 2 == 0);
            let expected = codes.iter().map(|&code| u64::from(code) - 1);
            assert_eq!(values, RankSet::from_ranks(brand.num_values().into(), expected));
            assert_eq!(num_counted, codes.iter().filter(|&code| code % 2 == 0).count() as u64);
        }
    }
}
