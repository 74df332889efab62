//! One field of one frozen catalog: the lexicon of its values, and which of them items have.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use palmette_catalog::{Catalog, ColumnKind, RankSet};
use palmette_catalog_filter::ColumnReader;
use palmette_lexicon::{BuildError, Lexicon, LexiconBuilder, Selection};
use serde_json::Value;

use crate::error::{FieldError, FieldErrorKind};

/// The values of a field of a catalog as a lexicon, and the way from items to their ranks in it.
#[derive(Debug)]
pub(crate) struct FieldIndex {
    lexicon: Arc<Lexicon>,
    ranks: TextRanks,
    /// Values of all items, once asked for.
    all: OnceLock<ItemValues>,
    /// Number of times that each text stands in an item, once asked for.
    counts: OnceLock<Box<[u32]>>,
}

/// Ranks of the texts of an item, by what the catalog has for the item.
#[derive(Debug)]
enum TextRanks {
    /// The rank of each item's id, by the rank of the item.
    Ids(Box<[u32]>),
    /// Values of the column ascend: a value's place is the rank of its text.
    Places,
    /// Values are lists, whose words ascend: a word's place is its rank.
    Words,
    /// Value `v` has the texts `ranks[starts[v]..starts[v + 1]]`: in another order than texts.
    Listed { starts: Box<[u32]>, ranks: Box<[u32]> },
}

/// The values that some items have.
#[derive(Clone, Debug)]
pub(crate) struct ItemValues {
    /// The ranks of the values.
    pub(crate) selection: Selection,
    /// Number of the items that have a value which is no empty text.
    pub(crate) num_items: u64,
}

/// Shorter lists of ranks are kept as such.
const MAX_LIST: u64 = 1024;
/// Number of missing items up to which their values are taken out of those of all items.
const MAX_MISSING: u64 = 1 << 15;

impl FieldIndex {
    /// The index of the ids.
    pub(crate) fn of_ids(catalog: &Catalog) -> Result<Self, FieldError> {
        let mut builder = LexiconBuilder::with_capacity(catalog.num_items() as usize, 0);
        for rank in 0..catalog.num_items() {
            let pushed = builder.push(catalog.id(rank).as_bytes());
            pushed.map_err(|error| unfit("id", catalog.id(rank), &error))?;
        }
        let (lexicon, ranks) = builder.finish_ranked();
        Ok(Self::new(lexicon, TextRanks::Ids(ranks)))
    }

    /// The index of an attribute; `None` where no item has it.
    pub(crate) fn of_attribute(catalog: &Catalog, name: &str) -> Result<Option<Self>, FieldError> {
        let Some(column) = catalog.columns().reader(name) else { return Ok(None) };
        let made = match column.kind() {
            ColumnKind::Keyword => {
                let texts = (1..=column.num_values()).map(|code| column.text(code).unwrap_or(""));
                Lexicon::from_sorted(texts).map(|lexicon| (lexicon, TextRanks::Places))
            }
            ColumnKind::Keywords => {
                Lexicon::from_sorted(column.words()).map(|lexicon| (lexicon, TextRanks::Words))
            }
            ColumnKind::Number | ColumnKind::Boolean | ColumnKind::Timestamp | ColumnKind::Json => {
                return listed(catalog, name, column).map(Some);
            }
        };
        let (lexicon, ranks) = made.map_err(|error| {
            let is_long = |rank: &u64| {
                let value = column.value(column.code(*rank));
                let texts = value.as_ref().and_then(texts_of).unwrap_or_default();
                texts.iter().any(|text| text.len() > palmette_lexicon::MAX_TEXT_BYTES)
            };
            let item = (0..catalog.num_items()).find(is_long);
            unfit(name, item.map_or("", |rank| catalog.id(rank)), &error)
        })?;
        Ok(Some(Self::new(lexicon, ranks)))
    }

    fn new(lexicon: Lexicon, ranks: TextRanks) -> Self {
        Self { lexicon: lexicon.into(), ranks, all: OnceLock::new(), counts: OnceLock::new() }
    }

    pub(crate) fn lexicon(&self) -> &Arc<Lexicon> {
        &self.lexicon
    }

    /// Bytes of memory, the lexicon's tables included.
    pub(crate) fn bytes(&self) -> usize {
        let ranks = match &self.ranks {
            TextRanks::Ids(ranks) => ranks.len(),
            TextRanks::Places | TextRanks::Words => 0,
            TextRanks::Listed { starts, ranks } => starts.len() + ranks.len(),
        };
        let counts = self.counts.get().map_or(0, |counts| counts.len());
        self.lexicon.bytes() + self.lexicon.table_bytes() + (ranks + counts) * size_of::<u32>()
    }

    /// The values of all items of the catalog.
    pub(crate) fn all_values(&self, catalog: &Catalog, name: &str) -> &ItemValues {
        self.all.get_or_init(|| self.gathered(catalog, name, &RankSet::full(catalog.num_items())))
    }

    /// The values that some items of the catalog have.
    ///
    /// Cost: a pass over the items, and one over the values; where few items are missing, a look at
    /// each of these.
    pub(crate) fn values(&self, catalog: &Catalog, name: &str, items: &RankSet) -> ItemValues {
        let num_missing = items.num_ranks() - items.len();
        match num_missing <= MAX_MISSING && num_missing * 2 < items.len() {
            true => self.without(catalog, name, &items.not()),
            false => self.gathered(catalog, name, items),
        }
    }

    /// The values of all items but those that are missing: a text is gone where it stands in the
    /// missing items as often as in all.
    fn without(&self, catalog: &Catalog, name: &str, missing: &RankSet) -> ItemValues {
        let all = self.all_values(catalog, name);
        let first_member = self.first_member();
        let (mut num_items, mut gone) = (all.num_items, HashMap::<u32, u32>::new());
        for item in missing.iter() {
            let mut has_member = false;
            self.for_each_rank(catalog, name, item, |rank| {
                has_member |= rank >= first_member;
                *gone.entry(rank).or_default() += 1;
            });
            // A damaged file may have codes that count nowhere.
            num_items = num_items.saturating_sub(u64::from(has_member));
        }
        let counts = self.counts(catalog, name);
        let mut ranks = rank_set(&all.selection, self.lexicon.len() as u64);
        for (rank, count) in gone {
            if counts.is_none_or(|counts| counts.get(rank as usize) == Some(&count)) {
                ranks.remove(rank.into());
            }
        }
        ItemValues { selection: selection(ranks), num_items }
    }

    /// The values of some items, without those of others, which are given by their ids.
    pub(crate) fn without_ids<'a>(
        &self,
        values: ItemValues,
        catalog: &Catalog,
        ids: impl Iterator<Item = &'a str>,
    ) -> ItemValues {
        let TextRanks::Ids(by_item) = &self.ranks else { return values };
        let mut ranks = rank_set(&values.selection, self.lexicon.len() as u64);
        let before = ranks.len();
        for item in ids.filter_map(|id| catalog.rank_of(id)) {
            ranks.remove(by_item[item as usize].into());
        }
        let num_items = values.num_items.saturating_sub(before - ranks.len());
        ItemValues { selection: selection(ranks), num_items }
    }

    /// Number of times that each text stands in an item; `None` of ids, which each stand in one.
    fn counts(&self, catalog: &Catalog, name: &str) -> Option<&[u32]> {
        if matches!(self.ranks, TextRanks::Ids(_)) {
            return None;
        }
        let counted = || {
            let mut counts = vec![0_u32; self.lexicon.len()];
            for item in 0..catalog.num_items() {
                self.for_each_rank(catalog, name, item, |rank| {
                    if let Some(count) = counts.get_mut(rank as usize) {
                        *count = count.saturating_add(1);
                    }
                });
            }
            counts.into()
        };
        Some(self.counts.get_or_init(counted))
    }

    /// Visits the ranks of the texts of an item, the empty text included.
    #[inline]
    pub(crate) fn for_each_rank(
        &self,
        catalog: &Catalog,
        name: &str,
        item: u64,
        mut visit: impl FnMut(u32),
    ) {
        let column = || catalog.columns().reader(name).expect("an index is of a column");
        match &self.ranks {
            TextRanks::Ids(ranks) => visit(ranks[item as usize]),
            TextRanks::Places => {
                if let Some(value) = column().code(item).checked_sub(1) {
                    visit(value);
                }
            }
            TextRanks::Words => {
                let column = column();
                column.word_places(column.code(item)).iter().for_each(|&word| visit(word));
            }
            TextRanks::Listed { starts, ranks } => {
                let value = column().code(item).checked_sub(1);
                let bounds = value.and_then(|at| starts.get(at as usize..at as usize + 2));
                if let Some(&[from, to]) = bounds {
                    ranks[from as usize..to as usize].iter().for_each(|&rank| visit(rank));
                }
            }
        }
    }

    /// The first rank that is not the empty text's.
    pub(crate) fn first_member(&self) -> u32 {
        u32::from(self.lexicon.rank(b"").is_some())
    }

    /// The values of some items, by a pass over them.
    fn gathered(&self, catalog: &Catalog, name: &str, items: &RankSet) -> ItemValues {
        let len = self.lexicon.len();
        let first_member = self.first_member();
        let is_member = |rank: &u32| *rank >= first_member;
        let mut chosen = Bits::new(len);
        let column = || catalog.columns().reader(name).expect("an index is of a column");
        let num_items = match &self.ranks {
            TextRanks::Ids(ranks) => {
                let mut num_items = 0;
                items.for_each_in(0..items.num_ranks(), |item| {
                    let rank = ranks[item as usize];
                    num_items += u64::from(is_member(&rank));
                    chosen.insert(rank);
                });
                num_items
            }
            TextRanks::Places => {
                let (values, num_items) = column().values_among(items, |code| code > first_member);
                return ItemValues { selection: selection(values), num_items };
            }
            TextRanks::Words => {
                let column = column();
                let has_member = |code| column.word_places(code).iter().any(is_member);
                let (values, num_items) = column.values_among(items, has_member);
                for value in values.iter() {
                    let words = column.word_places(value as u32 + 1).iter();
                    words.for_each(|&word| chosen.insert(word));
                }
                num_items
            }
            TextRanks::Listed { starts, ranks } => {
                let of = |value: u32| {
                    let at = value as usize;
                    &ranks[starts[at] as usize..starts[at + 1] as usize]
                };
                let has_member = |code: u32| of(code - 1).iter().any(is_member);
                let (values, num_items) = column().values_among(items, has_member);
                for value in values.iter() {
                    of(value as u32).iter().for_each(|&rank| chosen.insert(rank));
                }
                num_items
            }
        };
        ItemValues { selection: selection(chosen.finish(len)), num_items }
    }
}

/// The index of a column whose values are in another order than their texts.
fn listed(
    catalog: &Catalog,
    name: &str,
    column: ColumnReader<'_>,
) -> Result<FieldIndex, FieldError> {
    let item_of = |code: u32| {
        let item = (0..catalog.num_items()).find(|&rank| column.code(rank) == code);
        item.map_or("", |rank| catalog.id(rank))
    };
    let mut builder = LexiconBuilder::new();
    let mut starts = vec![0];
    for code in 1..=column.num_values() {
        let value = column.value(code).unwrap_or(Value::Null);
        let texts = texts_of(&value).ok_or_else(|| FieldErrorKind::Value {
            field: name.to_owned(),
            value: shown(&value),
            item: item_of(code).to_owned(),
        })?;
        for text in texts {
            builder.push(text.as_bytes()).map_err(|error| unfit(name, item_of(code), &error))?;
        }
        starts.push(builder.len() as u32);
    }
    let (lexicon, ranks) = builder.finish_ranked();
    Ok(FieldIndex::new(lexicon, TextRanks::Listed { starts: starts.into(), ranks }))
}

/// The texts of a value; `None` of one that has none.
fn texts_of(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Number(_) | Value::Bool(_) => Some(vec![value.to_string()]),
        Value::Array(values) => {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
        }
        Value::Object(_) => None,
    }
}

fn unfit(field: &str, item: &str, error: &BuildError) -> FieldError {
    let (field, item) = (field.to_owned(), item.chars().take(60).collect());
    FieldErrorKind::Index { field, item, problem: error.to_string() }.into()
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A set of ranks in the form that suits its size.
pub(crate) fn selection(ranks: RankSet) -> Selection {
    if ranks.is_full() {
        Selection::All
    } else if ranks.len() <= MAX_LIST {
        Selection::List(ranks.iter().map(|rank| rank as u32).collect())
    } else {
        Selection::Ranks(ranks.into())
    }
}

/// A selection as a set of ranks.
fn rank_set(selection: &Selection, num_ranks: u64) -> RankSet {
    match selection {
        Selection::All => RankSet::full(num_ranks),
        Selection::Ranks(ranks) => RankSet::clone(ranks),
        Selection::List(list) => RankSet::from_ranks(num_ranks, list.iter().map(|&r| r.into())),
    }
}

/// Bits that are set in any order.
struct Bits(Vec<u64>);

impl Bits {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    /// Sets a bit; nothing past the last, which only a damaged file asks for.
    fn insert(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut(bit as usize / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    fn finish(self, len: usize) -> RankSet {
        let Self(mut words) = self;
        if let Some(last) = words.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last &= (1 << (len % 64)) - 1;
        }
        RankSet::from_words(len as u64, &words).expect("as many words, and none past the last")
    }
}
