//! From conditions on values to conditions on codes.

use super::Ids;
use super::code_set::CodeSet;
use super::plan::{Plan, Step};
use crate::columns::codes::Codes;
use crate::columns::column::Column;
use crate::columns::dictionary::Dictionary;
use crate::columns::lists::Lists;
use crate::columns::{ColumnKind, Columns};
use crate::filter::{Bound, Condition, Filter, FilterError, FilterErrorKind, Scalar};
use crate::rank_set::RankSet;
use crate::shown::{nearest, shown, shown_names};

/// Looks every value of a filter up, once.
pub(super) struct Compiler<'a> {
    pub(super) columns: &'a Columns,
    pub(super) ids: Ids<'a>,
    /// Whether an attribute that is not among the columns is one nevertheless, of other items.
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
        if let Condition::Match { column, .. }
        | Condition::Range { column, .. }
        | Condition::Exists { column } = condition
            && self.columns.column(column).is_none()
            && (self.is_known)(column)
        {
            return Ok(Step::Ranks(RankSet::empty(self.columns.num_ranks())));
        }
        Ok(match condition {
            Condition::Filter(filter) => Step::Plan(self.filter(filter)?),
            Condition::Ids(ids) => self.id_step(ids),
            Condition::Exists { column } => {
                let Column { dictionary, codes, .. } = self.column(column)?;
                step(codes, CodeSet::run(1, dictionary.len() as u32))
            }
            Condition::Match { column, values } => {
                let column = self.column(column)?;
                step(&column.codes, match_any(column, values)?)
            }
            Condition::Range { column, lower, upper } => {
                let column = self.column(column)?;
                step(&column.codes, range(column, lower.as_ref(), upper.as_ref())?)
            }
        })
    }

    fn id_step(&self, ids: &[String]) -> Step<'a> {
        let num_ranks = self.columns.num_ranks();
        // A rank past the last one can only come from damaged data; it has no item either.
        let ranks = ids.iter().filter_map(|id| (self.ids)(id)).filter(|&rank| rank < num_ranks);
        Step::Ranks(RankSet::from_ranks(num_ranks, ranks))
    }

    fn column(&self, name: &str) -> Result<&'a Column, FilterError> {
        self.columns.column(name).ok_or_else(|| {
            let names = || self.columns.columns().map(|column| column.name);
            let nearest = nearest(name, names()).map(str::to_owned);
            let (column, columns) = (name.to_owned(), shown_names(names()));
            FilterErrorKind::UnknownColumn { column, nearest, columns }.into()
        })
    }
}

fn step(codes: &Codes, set: CodeSet) -> Step<'_> {
    Step::Codes { codes, set }
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
        Dictionary::Keywords(lists) => {
            let words = find_all(values, |value| match value {
                Scalar::Text(text) => Ok(lists.words().find(text)),
                value => Err(wrong(value)),
            })?;
            lists_with_any(lists, &words)
        }
        Dictionary::Json(_) => return Err(wrong_kind_of_column(column, "match")),
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
    let len = column.dictionary.len();
    // How many values come before the range begins, and before it is over.
    let start = lower.map_or(Ok(0), |bound| num_before(column, bound, !bound.inclusive))?;
    let end = upper.map_or(Ok(len), |bound| num_before(column, bound, bound.inclusive))?;
    Ok(if start < end { CodeSet::run(start as u32 + 1, end as u32) } else { CodeSet::NONE })
}

/// How many values are less than a bound, or equal to it where `or_equal`.
fn num_before(column: &Column, bound: &Bound, or_equal: bool) -> Result<usize, FilterError> {
    let wrong = || wrong_kind(column, "range", &bound.value);
    let comes_before = |order: std::cmp::Ordering| order.is_lt() || or_equal && order.is_eq();
    match (&column.dictionary, &bound.value) {
        (Dictionary::Keyword(texts), Scalar::Text(text)) => {
            Ok(texts.partition_point(|other| comes_before(other.cmp(text.as_bytes()))))
        }
        (Dictionary::Number { values, .. }, Scalar::Number(number)) => {
            Ok(values.partition_point(|other| comes_before(other.total_cmp(&number.get()))))
        }
        (Dictionary::Timestamp(times), value) => {
            let time = value.microseconds().ok_or_else(wrong)?;
            Ok(times.partition_point(|other| comes_before(other.cmp(&time))))
        }
        (Dictionary::Keyword(_) | Dictionary::Number { .. }, _) => Err(wrong()),
        _ => Err(wrong_kind_of_column(column, "range")),
    }
}

/// The value is not one that such a column is compared with.
fn wrong_kind(column: &Column, condition: &str, value: &Scalar) -> FilterError {
    let kind = column.dictionary.kind();
    let way_out = match kind {
        ColumnKind::Keyword => "compare it with text, in quotes",
        ColumnKind::Number => "compare it with a number, without quotes",
        ColumnKind::Boolean => "compare it with true or false, without quotes",
        ColumnKind::Timestamp => {
            "compare it with an RFC 3339 date (2026-11-21) or date and time \
            (2026-11-21T09:30:00Z) or seconds since 1970, within the years 0 to 9999"
        }
        ColumnKind::Keywords => "compare it with one of the texts in its lists",
        ColumnKind::Json => "ask only whether it exists",
    };
    FilterErrorKind::Unfit {
        condition: format!("{condition} with {}", shown(&value.to_json())),
        column: column.name.clone(),
        kind,
        why: String::new(),
        way_out,
    }
    .into()
}

/// Such a column has no such condition.
fn wrong_kind_of_column(column: &Column, condition: &str) -> FilterError {
    let kind = column.dictionary.kind();
    let why = column.clash.map(|(a, b)| format!(" since it holds {a} and {b}"));
    let way_out = match kind {
        ColumnKind::Json => {
            "only exists can be asked of it; give it the same kind of value for all items, text, \
            numbers, true or false, or lists of text"
        }
        _ => "use match",
    };
    FilterErrorKind::Unfit {
        condition: condition.to_owned(),
        column: column.name.clone(),
        kind,
        why: why.unwrap_or_default(),
        way_out,
    }
    .into()
}
