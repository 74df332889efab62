//! From the values of a growing column to its sorted dictionary and codes in rank order.

use std::cmp::Ordering;

use rayon::prelude::*;
use serde_json::Value;

use super::builder::{ColumnBuilder, TEXT_MARK};
use super::codes::{Codes, GrowingCodes};
use super::column::Column;
use super::dictionary::Dictionary;
use super::fields::FieldCache;
use super::interner::Interner;
use super::kind::ColumnKind;
use super::lists::Lists;
use super::spans::SpansBuilder;
use super::texts::Texts;
use super::timestamp;

/// The frozen column.
pub(super) fn column(column: ColumnBuilder, order: Option<&[u32]>, num_ranks: usize) -> Column {
    let ColumnBuilder { name, declared, kind, clash, spelled_as_floats, values, codes, .. } =
        column;
    let clash = clash.map(|other| (kind, other.kind));
    let kind = declared.unwrap_or(match clash {
        Some(_) => ColumnKind::Json,
        None => kind.column_kind(),
    });
    let row = |rank: usize| order.map_or(rank, |order| order[rank] as usize);
    let (used, num_missing) = used_values(values.len(), &codes, (0..num_ranks).map(row));
    let values = Values { all: values.without_table(), used };
    let (dictionary, places) = values.into_dictionary(kind, spelled_as_floats);

    // PERF: what reads a code at random, for each rank, is as small as can be.
    let codes = Codes::compute(num_ranks, dictionary.len(), |rank| match codes.get(row(rank)) {
        0 => 0,
        code => places[code as usize - 1] + 1,
    });
    let clash = clash.filter(|_| declared.is_none());
    Column { name, dictionary, codes, num_missing, clash, fields: FieldCache::default() }
}

/// The values that a rank has, in ascending order of their numbers, and how many ranks have none.
fn used_values(
    num_values: usize,
    codes: &GrowingCodes,
    rows: impl Iterator<Item = usize>,
) -> (Vec<u32>, u64) {
    let mut is_used = vec![false; num_values];
    let mut num_missing = 0;
    for row in rows {
        match codes.get(row) {
            0 => num_missing += 1,
            code => is_used[code as usize - 1] = true,
        }
    }
    let numbers = (0..num_values as u32).filter(|&number| is_used[number as usize]);
    (numbers.collect(), num_missing)
}

/// Values as the builder writes them.
struct Values {
    all: Interner,
    used: Vec<u32>,
}

impl Values {
    /// The dictionary of a kind that all values have, and the place of each value in it by number.
    fn into_dictionary(self, kind: ColumnKind, spelled_as_floats: bool) -> (Dictionary, Vec<u32>) {
        match kind {
            ColumnKind::Keyword => {
                let (texts, places) = self.sort_texts(|number| &self.all.get(number)[1..]);
                (Dictionary::Keyword(texts), places)
            }
            ColumnKind::Number => {
                let (values, places) = self.sort(number, f64::total_cmp);
                (Dictionary::Number { values: values.into(), spelled_as_floats }, places)
            }
            ColumnKind::Boolean => {
                let (values, places) = self.sort(|spelled| u8::from(spelled == b"true"), u8::cmp);
                (Dictionary::Boolean(values.into()), places)
            }
            ColumnKind::Timestamp => {
                let (values, places) = self.sort(microseconds, i64::cmp);
                (Dictionary::Timestamp(values.into()), places)
            }
            ColumnKind::Keywords => {
                let (lists, places) = self.sort_lists();
                (Dictionary::Keywords(lists), places)
            }
            ColumnKind::Json => {
                let (texts, places) = self.into_json().sort_texts_whole();
                (Dictionary::Json(texts), places)
            }
        }
    }

    /// Distinct keys in ascending order, and the place of each value's key by number.
    fn sort<K: Copy + Send>(
        &self,
        key: impl Fn(&[u8]) -> K,
        compare: impl Fn(&K, &K) -> Ordering + Sync,
    ) -> (Vec<K>, Vec<u32>) {
        let key = |&number: &u32| (key(self.all.get(number as usize)), number);
        let mut keys: Vec<(K, u32)> = self.used.iter().map(key).collect();
        keys.par_sort_unstable_by(|a, b| compare(&a.0, &b.0));
        let mut distinct: Vec<K> = Vec::with_capacity(keys.len());
        let mut places = vec![0; self.all.len()];
        for (key, number) in keys {
            if distinct.last().is_none_or(|last| compare(last, &key).is_ne()) {
                distinct.push(key);
            }
            places[number as usize] = distinct.len() as u32 - 1;
        }
        (distinct, places)
    }

    /// Distinct texts in ascending order, and the place of each value's text by number.
    fn sort_texts<'a>(&self, text: impl Fn(usize) -> &'a [u8] + Sync) -> (Texts, Vec<u32>) {
        let text = |number: u32| text(number as usize);
        // PERF: the first bytes stand beside the number, so that few comparisons go to the texts.
        let key = |&number: &u32| (first_bytes(text(number)), number);
        let mut keys: Vec<(u64, u32)> = self.used.par_iter().map(key).collect();
        keys.par_sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| text(a.1).cmp(text(b.1))));
        let mut places = vec![0; self.all.len()];
        for (place, &(_, number)) in keys.iter().enumerate() {
            places[number as usize] = place as u32;
        }
        (Texts::from_sorted(keys.iter().map(|&(_, number)| text(number))), places)
    }

    fn sort_texts_whole(&self) -> (Texts, Vec<u32>) {
        self.sort_texts(|number| self.all.get(number))
    }

    fn sort_lists(&self) -> (Lists, Vec<u32>) {
        // The words of every list by number, first numbered as they come.
        let (mut words, mut members) = (Interner::default(), Vec::new());
        let mut spans = SpansBuilder::default();
        for &number in &self.used {
            let list: Vec<String> = parse(self.all.get(number as usize));
            members.extend(list.iter().map(|word| words.intern(word.as_bytes())));
            spans.push(list.len());
        }
        let used = (0..words.len() as u32).collect();
        let words = Values { all: words.without_table(), used };
        let (words, places) = words.sort_texts_whole();
        members.iter_mut().for_each(|word| *word = places[*word as usize]);

        let mut lists: Vec<u32> = (0..self.used.len() as u32).collect();
        let list = |index: u32| &members[spans.get(index as usize)];
        lists.par_sort_unstable_by(|&a, &b| list(a).cmp(list(b)));
        let mut places = vec![0; self.all.len()];
        let (mut sorted_members, mut sorted_spans) =
            (Vec::with_capacity(members.len()), SpansBuilder::default());
        for (place, &index) in lists.iter().enumerate() {
            places[self.used[index as usize] as usize] = place as u32;
            sorted_members.extend_from_slice(list(index));
            sorted_spans.push(list(index).len());
        }
        let lists = Lists { words, members: sorted_members.into(), spans: sorted_spans.build() };
        (lists, places)
    }

    /// Converts the values to JSON, for columns whose values are of several kinds.
    fn into_json(self) -> Self {
        let mut json = Interner::default();
        for number in 0..self.all.len() {
            let spelled = self.all.get(number);
            match spelled.split_first() {
                Some((&TEXT_MARK, text)) => {
                    let text = Value::from(std::str::from_utf8(text).expect("it was text"));
                    json.push(text.to_string().as_bytes());
                }
                _ => json.push(spelled),
            }
        }
        Self { all: json, used: self.used }
    }
}

/// The first eight bytes, ordered as the texts are, zeros after a shorter one.
fn first_bytes(text: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = text.len().min(8);
    bytes[..len].copy_from_slice(&text[..len]);
    u64::from_be_bytes(bytes)
}

fn number(spelled: &[u8]) -> f64 {
    let text = std::str::from_utf8(spelled).expect("JSON is UTF-8");
    // Zero has two signs that JSON can tell apart and filters cannot.
    text.parse::<f64>().expect("JSON numbers are Rust's") + 0.0
}

fn microseconds(spelled: &[u8]) -> i64 {
    let time = match spelled.split_first() {
        Some((&TEXT_MARK, text)) => std::str::from_utf8(text).ok().and_then(timestamp::from_text),
        _ => timestamp::from_json(&parse(spelled)),
    };
    time.expect("it was checked when it was pushed")
}

fn parse<T: serde::de::DeserializeOwned>(json: &[u8]) -> T {
    serde_json::from_slice(json).expect("it was written as JSON")
}
