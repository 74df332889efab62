//! From conditions on values to conditions on codes.

use palmette_mapped::RankSet;

use super::code_set::CodeSet;
use super::plan::{Plan, Step};
use super::unfit::{wrong_kind, wrong_kind_of_column};
use super::within_json::within_json;
use crate::columns::Columns;
use crate::columns::column::Column;
use crate::columns::dictionary::Dictionary;
use crate::columns::lists::Lists;
use crate::filter::{Bound, Condition, Filter, FilterError, Scalar, Test, WHOLE_TEXT, split_path};

/// The rank of an item by its id.
pub(super) type Ids<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// Looks every value of a filter up, once.
pub(super) struct Compiler<'a> {
    pub(super) columns: &'a Columns,
    pub(super) ids: Ids<'a>,
    /// Tells if other items have an attribute that is not among the columns.
    pub(super) is_known: &'a dyn Fn(&str) -> bool,
}

impl<'a> Compiler<'a> {
    pub(super) fn filter(&self, filter: &Filter) -> Result<Plan<'a>, FilterError> {
        let mut must = self.conditions(&filter.must)?;
        let mut must_not = self.conditions(&filter.must_not)?;
        if !filter.exclude.is_empty() {
            must_not.push(self.id_step(&filter.exclude));
        }
        let should = match &filter.should[..] {
            [] => None,
            should => Some(self.conditions(should)?),
        };
        // What costs little goes first: where nothing is left, the rest is not looked at.
        must.sort_by_key(Step::cost);
        must_not.sort_by_key(Step::cost);
        Ok(Plan { must, should, must_not })
    }

    fn conditions(&self, conditions: &[Condition]) -> Result<Vec<Step<'a>>, FilterError> {
        conditions.iter().map(|condition| self.condition(condition)).collect()
    }

    fn condition(&self, condition: &Condition) -> Result<Step<'a>, FilterError> {
        Ok(match condition {
            Condition::Filter(filter) => Step::Plan(self.filter(filter)?),
            Condition::Ids(ids) => self.id_step(ids),
            Condition::AtLeast { count, conditions } => {
                Step::AtLeast { count: *count, steps: self.conditions(conditions)? }
            }
            Condition::Field { path, test } => self.field(path, test)?,
        })
    }

    fn field(&self, path: &str, test: &Test) -> Result<Step<'a>, FilterError> {
        let Some((name, fields)) = split_path(path, |name| self.columns.column(name).is_some())
        else {
            return self.field_elsewhere(path, test);
        };
        let column = self.columns.column(name).ok_or_else(|| self.unknown(path))?;
        let set = match &column.dictionary {
            Dictionary::Json(texts) => {
                let found = within_json(column, texts, &fields, test)?;
                if !fields.is_empty() && !found.is_path && !(self.is_known)(name) {
                    return Err(self.unknown(path));
                }
                found.set
            }
            Dictionary::Keyword(_) | Dictionary::Keywords(_) if fields == [WHOLE_TEXT] => {
                of_column(column, test)?
            }
            _ if !fields.is_empty() => return Err(self.unknown(path)),
            _ => of_column(column, test)?,
        };
        Ok(Step::Codes { codes: &column.codes, set })
    }

    /// The attribute is not one of these items.
    fn field_elsewhere(&self, path: &str, test: &Test) -> Result<Step<'a>, FilterError> {
        let num_ranks = self.columns.num_ranks();
        match split_path(path, |name| (self.is_known)(name)) {
            Some(_) if test.holds("", &[], None) => Ok(Step::Ranks(RankSet::full(num_ranks))),
            Some(_) => Ok(Step::Ranks(RankSet::empty(num_ranks))),
            None => Err(self.unknown(path)),
        }
    }

    fn id_step(&self, ids: &[String]) -> Step<'a> {
        let num_ranks = self.columns.num_ranks();
        // A rank past the last one can only come from damaged data; it has no item either.
        let ranks = ids.iter().filter_map(|id| (self.ids)(id)).filter(|&rank| rank < num_ranks);
        Step::Ranks(RankSet::from_ranks(num_ranks, ranks))
    }

    fn unknown(&self, name: &str) -> FilterError {
        self.columns.unknown_name(name)
    }
}

/// The codes of values of a column of one kind of which a test holds; 0, for no value, too.
fn of_column(column: &Column, test: &Test) -> Result<CodeSet, FilterError> {
    let len = column.dictionary.len() as u32;
    let length = |code: u32| match &column.dictionary {
        _ if code == 0 => 0,
        Dictionary::Keywords(lists) => lists.members(code as usize - 1).len() as u64,
        _ => 1,
    };
    let of_lengths = |is_wanted: &dyn Fn(u64) -> bool| {
        CodeSet::from_ascending((0..=len).filter(|&code| is_wanted(length(code))))
    };
    Ok(match test {
        Test::Any(values) => match_any(column, values)?,
        Test::Except(values) => except(column, values)?,
        Test::Range { lower, upper } => range(column, lower.as_ref(), upper.as_ref())?,
        Test::Exists => match &column.dictionary {
            Dictionary::Keywords(_) => of_lengths(&|length| length > 0),
            _ => CodeSet::run(1, len),
        },
        Test::Empty => of_lengths(&|length| length == 0),
        Test::Count { least, most } => CodeSet::from_ascending(
            (1..=len).filter(|&code| (*least..=*most).contains(&length(code))),
        ),
        Test::Present => CodeSet::run(1, len),
        Test::Nested(_) => return Err(wrong_kind_of_column(column, "nested")),
    })
}

/// The codes of values that are none of these; of lists, those with an element that is none.
fn except(column: &Column, values: &[Scalar]) -> Result<CodeSet, FilterError> {
    let others = |set: &CodeSet, len: usize| {
        CodeSet::from_ascending((1..=len as u32).filter(|&code| !set.contains(code)))
    };
    match &column.dictionary {
        Dictionary::Keywords(lists) => {
            let words = find_words(column, lists, values)?;
            Ok(lists_with_any(lists, &others(&words, lists.words().len())))
        }
        dictionary => Ok(others(&match_any(column, values)?, dictionary.len())),
    }
}

/// The codes of values that are any of these.
fn match_any(column: &Column, values: &[Scalar]) -> Result<CodeSet, FilterError> {
    let wrong = |value: &Scalar| wrong_kind(column, "match", value);
    Ok(match &column.dictionary {
        Dictionary::Keyword(texts) => find_all(values, |value| match value {
            Scalar::Text(text) => Ok(texts.find(text)),
            value => Err(wrong(value)),
        })?,
        Dictionary::Number { values: numbers, .. } => find_all(values, |value| match value {
            Scalar::Number(number) => {
                Ok(numbers.binary_search_by(|other| other.total_cmp(&number.get())).ok())
            }
            value => Err(wrong(value)),
        })?,
        Dictionary::Boolean(booleans) => find_all(values, |value| match value {
            Scalar::Boolean(value) => Ok(booleans.binary_search(&u8::from(*value)).ok()),
            value => Err(wrong(value)),
        })?,
        Dictionary::Timestamp(times) => find_all(values, |value| {
            let time = value.microseconds().ok_or_else(|| wrong(value))?;
            Ok(times.binary_search(&time).ok())
        })?,
        Dictionary::Keywords(lists) => lists_with_any(lists, &find_words(column, lists, values)?),
        Dictionary::Json(_) => return Err(wrong_kind_of_column(column, "match")),
    })
}

/// The numbers of words, counted from 1.
fn find_words(column: &Column, lists: &Lists, values: &[Scalar]) -> Result<CodeSet, FilterError> {
    find_all(values, |value| match value {
        Scalar::Text(text) => Ok(lists.words().find(text)),
        value => Err(wrong_kind(column, "match", value)),
    })
}

/// The codes, counted from 1, of the places where values are found.
fn find_all(
    values: &[Scalar],
    find: impl Fn(&Scalar) -> Result<Option<usize>, FilterError>,
) -> Result<CodeSet, FilterError> {
    let mut codes = Vec::with_capacity(values.len());
    for value in values {
        codes.extend(find(value)?.map(|at| at as u32 + 1));
    }
    codes.sort_unstable();
    Ok(CodeSet::from_ascending(codes))
}

/// The codes of lists that hold any of the words, which are counted from 1 too.
fn lists_with_any(lists: &Lists, words: &CodeSet) -> CodeSet {
    if words.is_empty() {
        return CodeSet::NONE;
    }
    let holds_any = |list: &usize| {
        lists.members(*list).iter().any(|&word| words.contains(word.saturating_add(1)))
    };
    CodeSet::from_ascending((0..lists.len()).filter(holds_any).map(|list| list as u32 + 1))
}

/// The codes of values within bounds.
fn range(
    column: &Column,
    lower: Option<&Bound>,
    upper: Option<&Bound>,
) -> Result<CodeSet, FilterError> {
    let len = match &column.dictionary {
        Dictionary::Keywords(lists) => lists.words().len(),
        dictionary => dictionary.len(),
    };
    // How many values come before the range begins, and before it is over.
    let start = lower.map_or(Ok(0), |bound| num_before(column, bound, !bound.inclusive))?;
    let end = upper.map_or(Ok(len), |bound| num_before(column, bound, bound.inclusive))?;
    let within =
        if start < end { CodeSet::run(start as u32 + 1, end as u32) } else { CodeSet::NONE };
    Ok(match &column.dictionary {
        Dictionary::Keywords(lists) => lists_with_any(lists, &within),
        _ => within,
    })
}

/// Number of values less than a bound, or equal to it where `or_equal`.
fn num_before(column: &Column, bound: &Bound, or_equal: bool) -> Result<usize, FilterError> {
    let wrong = || wrong_kind(column, "range", &bound.value);
    let comes_before = |order: std::cmp::Ordering| order.is_lt() || or_equal && order.is_eq();
    match (&column.dictionary, &bound.value) {
        (Dictionary::Keyword(texts), Scalar::Text(text)) => {
            Ok(texts.partition_point(|other| comes_before(other.cmp(text.as_bytes()))))
        }
        (Dictionary::Keywords(lists), Scalar::Text(text)) => {
            Ok(lists.words().partition_point(|other| comes_before(other.cmp(text.as_bytes()))))
        }
        (Dictionary::Number { values, .. }, Scalar::Number(number)) => {
            Ok(values.partition_point(|other| comes_before(other.total_cmp(&number.get()))))
        }
        (Dictionary::Timestamp(times), value) => {
            let time = value.microseconds().ok_or_else(wrong)?;
            Ok(times.partition_point(|other| comes_before(other.cmp(&time))))
        }
        (Dictionary::Keyword(_) | Dictionary::Keywords(_) | Dictionary::Number { .. }, _) => {
            Err(wrong())
        }
        _ => Err(wrong_kind_of_column(column, "range")),
    }
}
