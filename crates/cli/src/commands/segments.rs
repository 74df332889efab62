//! `palmette eval --segment-by`: metrics of parts of the questions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::ensure;
use palmette_catalog_live::CatalogView;
use palmette_recommend_eval::{Answered, Question, RankingMetrics};
use serde_json::{Value, json};

use super::eval::metrics_document;
use crate::output::{grouped, table, visible};

/// The word for parts by how many items a history has.
const HISTORY_LENGTH: &str = "history-length";

/// Limit on parts by the values of an attribute. The questions of rarer values are one part
/// together.
const MOST: usize = 40;

/// Numbers of more values than these are put in quarters.
const MOST_NUMBERS: usize = 10;

/// A part of the questions.
pub(crate) struct Segment {
    name: String,
    metrics: RankingMetrics,
}

/// Metrics of the parts of the questions: by the length of their history, or by an attribute of the
/// item that is asked for. A question is in each part that its item has a value of.
pub(crate) fn segments(
    by: &str,
    view: &CatalogView,
    questions: &[Question<'_>],
    answers: &[Answered],
    max_k: usize,
) -> anyhow::Result<Vec<Segment>> {
    let names: Vec<Vec<(usize, String)>> = match by {
        HISTORY_LENGTH => {
            questions.iter().map(|question| vec![by_length(question.history.len())]).collect()
        }
        attribute => by_attribute(attribute, view, questions)?,
    };
    let mut parts: BTreeMap<(usize, &str), RankingMetrics> = BTreeMap::new();
    for (names, answer) in names.iter().zip(answers) {
        for (order, name) in names {
            let none = || RankingMetrics::new(max_k);
            parts.entry((*order, name)).or_insert_with(none).add(answer.place);
        }
    }
    let parts = parts.into_iter();
    Ok(parts.map(|((_, name), metrics)| Segment { name: name.to_owned(), metrics }).collect())
}

/// Name of a part, after its place among the others.
fn by_length(items: usize) -> (usize, String) {
    const UP_TO: [usize; 6] = [0, 2, 5, 10, 20, 50];
    let place = UP_TO.partition_point(|&most| most < items);
    let name = match (place.checked_sub(1).map(|before| UP_TO[before] + 1), UP_TO.get(place)) {
        (None, _) => "no items".to_owned(),
        (Some(from), Some(to)) => format!("{from} to {to} items"),
        (Some(from), None) => format!("{from} items or more"),
    };
    (place, name)
}

fn by_attribute(
    attribute: &str,
    view: &CatalogView,
    questions: &[Question<'_>],
) -> anyhow::Result<Vec<Vec<(usize, String)>>> {
    let mut columns = BTreeSet::new();
    let values: Vec<Vec<Value>> = questions
        .iter()
        .map(|question| {
            let (catalog, rank) = view.place(question.target);
            columns.extend(catalog.columns().columns().map(|column| column.name));
            match catalog.attributes(rank).remove(attribute) {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(list)) => list,
                Some(value) => vec![value],
            }
        })
        .collect();
    ensure!(
        columns.contains(attribute),
        "--segment-by {attribute}: items have no such attribute; they have {}, and there is {HISTORY_LENGTH}",
        columns.into_iter().collect::<Vec<_>>().join(", ")
    );
    let names = match quarters(&values) {
        Some(bounds) => values.iter().map(|values| in_quarter(values, &bounds)).collect(),
        None => by_value(&values),
    };
    Ok(names)
}

/// The least, three in between and the greatest of numbers, where there are too many to name each.
fn quarters(values: &[Vec<Value>]) -> Option<[f64; 5]> {
    let numbers: Option<Vec<f64>> = values.iter().flatten().map(Value::as_f64).collect();
    let mut numbers = numbers?;
    numbers.sort_by(f64::total_cmp);
    let mut distinct = numbers.clone();
    distinct.dedup();
    if distinct.len() <= MOST_NUMBERS {
        return None;
    }
    let last = numbers.len() - 1;
    Some([0, 1, 2, 3, 4].map(|quarter| numbers[last * quarter / 4]))
}

fn in_quarter(values: &[Value], bounds: &[f64; 5]) -> Vec<(usize, String)> {
    let Some(number) = values.first().and_then(Value::as_f64) else { return vec![without()] };
    let place = bounds[1..4].partition_point(|&most| most < number);
    let (from, to) = (bounds[place], bounds[place + 1]);
    let name = match place {
        0 => format!("{from} to {to}"),
        _ => format!("above {from}, to {to}"),
    };
    vec![(place, name)]
}

fn without() -> (usize, String) {
    (usize::MAX, "without".to_owned())
}

/// Groups questions by value, the most frequent first.
fn by_value(values: &[Vec<Value>]) -> Vec<Vec<(usize, String)>> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut counts: HashMap<String, usize> = HashMap::new();
    for value in values.iter().flatten() {
        *counts.entry(text(value)).or_insert(0) += 1;
    }
    let mut names: Vec<(usize, String)> = counts.into_iter().map(|(name, n)| (n, name)).collect();
    names.sort_by(|(n, a), (m, b)| m.cmp(n).then_with(|| a.cmp(b)));
    let rare = names.len().saturating_sub(MOST);
    let order: HashMap<&str, usize> =
        names.iter().take(MOST).enumerate().map(|(at, (_, name))| (name.as_str(), at)).collect();
    let part = |value: &Value| {
        let name = text(value);
        match order.get(name.as_str()) {
            Some(&at) => (at, name),
            None => (MOST, format!("{} other values", grouped(rare as u64))),
        }
    };
    let parts = |values: &Vec<Value>| {
        let mut parts: Vec<(usize, String)> = values.iter().map(part).collect();
        // A value, or the others, may be there twice.
        parts.sort();
        parts.dedup();
        if parts.is_empty() { vec![without()] } else { parts }
    };
    values.iter().map(parts).collect()
}

pub(crate) fn segments_document(by: &str, segments: &[Segment], ks: &[usize]) -> Value {
    let part = |segment: &Segment| {
        json!({
            "segment": segment.name,
            "users": segment.metrics.questions(),
            "metrics": metrics_document(ks, &segment.metrics),
        })
    };
    json!({"by": by, "segments": segments.iter().map(part).collect::<Vec<_>>()})
}

pub(crate) fn segments_text(by: &str, segments: &[Segment], ks: &[usize]) -> String {
    let mut headings = vec![visible(by), " users".to_owned()];
    for k in ks {
        headings.extend([format!(" HR@{k}"), format!(" NDCG@{k}")]);
    }
    let row = |segment: &Segment| {
        let numbers = ks.iter().flat_map(|&k| {
            let at = segment.metrics.at(k);
            [format!("{:.4}", at.hit_rate), format!("{:.4}", at.ndcg)]
        });
        let users = grouped(segment.metrics.questions() as u64);
        [segment.name.clone(), users].into_iter().chain(numbers).collect()
    };
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    table(&headings, &segments.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_histories() {
        for (items, name) in [
            (0, "no items"),
            (1, "1 to 2 items"),
            (2, "1 to 2 items"),
            (3, "3 to 5 items"),
            (50, "21 to 50 items"),
            (51, "51 items or more"),
            (9999, "51 items or more"),
        ] {
            assert_eq!(by_length(items).1, name);
        }
    }

    fn names(parts: &[Vec<(usize, String)>]) -> Vec<Vec<&str>> {
        parts.iter().map(|of| of.iter().map(|(_, name)| name.as_str()).collect()).collect()
    }

    #[test]
    fn values_and_what_is_rare() {
        let values =
            [vec![json!("a"), json!("b")], vec![json!("b"), json!("b")], vec![], vec![json!(true)]];
        let parts = by_value(&values);
        assert_eq!(names(&parts), [vec!["b", "a"], vec!["b"], vec!["without"], vec!["true"]]);
        let many: Vec<Vec<Value>> =
            (0..MOST + 3).map(|n| vec![json!(format!("v{n:03}"))]).collect();
        let parts = by_value(&many);
        assert_eq!(names(&parts)[MOST - 1], ["v039"]);
        assert_eq!(names(&parts)[MOST], ["3 other values"]);
    }

    #[test]
    fn numbers_in_quarters() {
        let values: Vec<Vec<Value>> = (1..=100).map(|n| vec![json!(n)]).collect();
        let bounds = quarters(&values).unwrap();
        let counts = values.iter().fold([0; 4], |mut counts, value| {
            counts[in_quarter(value, &bounds)[0].0] += 1;
            counts
        });
        assert_eq!(counts, [25, 25, 25, 25]);
        assert_eq!(in_quarter(&[json!(1)], &bounds)[0].1, "1 to 25");
        assert_eq!(in_quarter(&[json!(26)], &bounds)[0].1, "above 25, to 50");
        assert_eq!(in_quarter(&[], &bounds), [without()]);
        assert_eq!(quarters(&values[..10]), None, "few are named");
        assert_eq!(quarters(&[vec![json!("a")]]), None);
    }
}
