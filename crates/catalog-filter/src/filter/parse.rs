//! Filters from JSON, in any of their spellings.

use serde_json::{Map, Value};

use super::error::Kind;
use super::{
    Bound, Condition, Filter, FilterError, MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES, Number, Scalar,
    Test,
};
use crate::columns::kind::{id_text, is_large_integer, whole_number};
use crate::message_values::shown;
use crate::unique_keys::parse_unique;

const FILTER: &str = "a filter is an object with any of must, should, must_not and exclude";
const CONDITION: &str = "a condition is an object with one of match, range, ids, exists, is_empty \
    and nested, one by key, or a filter with must, should or must_not";
const COLUMN: &str = "it takes an object with the name of one attribute; several attributes are \
    several conditions";
const VALUE: &str = "an attribute is compared with text, a number, or true or false; one that is \
    missing is found by must_not and exists";
const INTEGER: &str = "integers outside ±2^53 are never compared, since they would lose digits";
const VALUES: &str = "it takes a list of values";
const BOUNDS: &str = "a range is an object with gt or gte, and lt or lte, or one of them";
const COUNTS: &str = "values_count takes an object with any of gt, gte, lt and lte, whole numbers";
const BESIDE_KEY: &str = "beside key there is one of match, range, values_count and is_empty";
const VALUE_OR_ANY: &str = "match takes an object with one of value, any and except";
const NAME: &str = "it takes the name of an attribute";
const IDS: &str = "ids are a list of texts or integers";
const MIN_SHOULD: &str = "min_should takes an object with conditions, a list, and min_count, a whole \
    number";
const MIN_MATCH: &str = "minimum_should_match takes a whole number, or a percentage such as \"75%\"; \
    below zero, so many may fail";
const NESTED: &str = "nested takes an object with key and filter, or path and query";
const NESTED_PATH: &str = "within nested, names begin with its path";

/// The keys of a filter.
const FILTER_KEYS: [&str; 6] = ["must", "filter", "should", "must_not", "min_should", "exclude"];
/// Conditions that are a filter in another's spelling.
const QUERIES: [&str; 5] = ["bool", "query", "constant_score", "match_all", "match_none"];
/// Parameters of conditions that only rank or name what matches.
const NO_CONDITIONS: [&str; 3] = ["boost", "_name", "score_mode"];

/// Conditions that other engines offer and filters here do not, with the way out.
fn not_offered(key: &str) -> Option<&'static str> {
    Some(match key {
        _ if key.starts_with("geo_") => {
            "geographic conditions are not offered; give ranges of the coordinates, as in \
            {\"range\": {\"geo.lat\": {\"gte\": 52.3, \"lte\": 52.7}}}"
        }
        "text"
        | "text_any"
        | "phrase"
        | "match_phrase"
        | "match_phrase_prefix"
        | "multi_match"
        | "match_bool_prefix"
        | "query_string"
        | "simple_query_string"
        | "fuzzy"
        | "intervals"
        | "more_like_this"
        | "wildcard"
        | "regexp"
        | "operator"
        | "fuzziness"
        | "analyzer"
        | "case_insensitive" => {
            "text is compared whole and not searched; give match the whole text or a list of them, or \
            keep the words that are asked for as a list of text"
        }
        "prefix" => {
            "prefixes are not offered; give a range of text, as in \
            {\"range\": {\"brand\": {\"gte\": \"Ac\", \"lt\": \"Ad\"}}}"
        }
        "is_null" => {
            "null is kept as a missing attribute; ask {\"is_empty\": {\"key\": \"brand\"}}, which holds \
            of both and of []"
        }
        "minimum_should_match" => {
            "minimum_should_match stands beside should within bool; elsewhere write \
            {\"min_should\": {\"conditions\": […], \"min_count\": 2}}"
        }
        "from" | "to" | "include_lower" | "include_upper" => "write gt or gte, and lt or lte",
        "format" | "time_zone" => {
            "give times as RFC 3339, such as 2026-11-21T09:30:00+02:00, or seconds since 1970"
        }
        "script" | "has_vector" | "knn" | "has_child" | "has_parent" | "percolate"
        | "function_score" | "dis_max" | "rank_feature" => {
            "such conditions are not offered; keep their result as an attribute, and match that"
        }
        _ => return None,
    })
}

impl Filter {
    /// Reads a filter from JSON text.
    ///
    /// # Errors
    /// When it is no JSON, or no filter: names the place. Filters nest 16 deep and
    /// hold 1024 conditions and 65,536 values and ids at most.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let value = parse_unique(text).map_err(|error| Kind::NoJson(error.to_string()))?;
        Self::from_value(&value)
    }

    /// Reads a filter from JSON.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn from_value(value: &Value) -> Result<Self, FilterError> {
        let Value::Object(object) = value else {
            return Err(unexpected("the filter", value, FILTER).into());
        };
        let mut parser = Parser::default();
        // A condition alone is a filter too, as engines take queries.
        let is_condition = given(object).any(|(key, _)| key == "key")
            || sole(given(object)).is_some_and(|(key, _)| is_condition(key));
        if !is_condition {
            return Ok(parser.filter(object, "")?);
        }
        Ok(match parser.condition(value, "")? {
            Condition::Filter(filter) => *filter,
            condition => Filter { must: vec![condition], ..Filter::default() },
        })
    }
}

/// True of keys that begin a condition, of ours or another engine's.
fn is_condition(key: &str) -> bool {
    ["match", "term", "terms", "range", "ids", "has_id", "exists", "is_empty", "nested"]
        .contains(&key)
        || QUERIES.contains(&key)
        || not_offered(key).is_some()
}

#[derive(Default)]
struct Parser {
    num_conditions: usize,
    num_values: usize,
    depth: usize,
}

impl Parser {
    /// `path`: where the filter stands, empty for the outermost.
    fn filter(&mut self, object: &Map<String, Value>, path: &str) -> Result<Filter, Kind> {
        self.deeper(path)?;
        let mut filter = Filter::default();
        for (key, value) in given(object) {
            let path = join(path, key);
            match &key[..] {
                "must" | "filter" => filter.must.extend(self.conditions(value, &path)?),
                "should" => filter.should = self.conditions(value, &path)?,
                "must_not" => filter.must_not = self.conditions(value, &path)?,
                "min_should" => filter.must.push(self.min_should(value, &path)?),
                "exclude" => filter.exclude = self.ids(value, &path)?,
                key => return Err(unexpected(&path, value, not_offered(key).unwrap_or(FILTER))),
            }
        }
        filter.must = in_order(filter.must);
        self.depth -= 1;
        Ok(filter)
    }

    fn deeper(&mut self, path: &str) -> Result<(), Kind> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err(Kind::TooDeep { path: path.to_owned() }),
            false => Ok(()),
        }
    }

    /// A filter, or one condition as a filter.
    fn any_filter(&mut self, value: &Value, path: &str) -> Result<Filter, Kind> {
        self.deeper(path)?;
        let filter = match self.condition(value, path)? {
            Condition::Filter(filter) => *filter,
            condition => Filter { must: vec![condition], ..Filter::default() },
        };
        self.depth -= 1;
        Ok(filter)
    }

    /// Elasticsearch's queries that hold others.
    fn query(&mut self, key: &str, value: &Value, path: &str) -> Result<Filter, Kind> {
        let object = || value.as_object().ok_or_else(|| unexpected(path, value, FILTER));
        match key {
            "bool" => self.bool(object()?, path),
            "query" => self.any_filter(value, path),
            "constant_score" => {
                let filter = only(object()?, "filter", path)?;
                self.any_filter(filter, &join(path, "filter"))
            }
            "match_all" => object().map(|_| Filter::default()),
            _ => object()
                .map(|_| Filter { must: vec![Condition::Ids(Vec::new())], ..Filter::default() }),
        }
    }

    fn bool(&mut self, object: &Map<String, Value>, path: &str) -> Result<Filter, Kind> {
        self.deeper(path)?;
        let (mut filter, mut should, mut min_match) = (Filter::default(), Vec::new(), None);
        for (key, value) in given(object) {
            let path = join(path, key);
            match &key[..] {
                "must" | "filter" => filter.must.extend(self.conditions(value, &path)?),
                "should" => should = self.condition_list(value, &path)?,
                "must_not" => filter.must_not = self.conditions(value, &path)?,
                "minimum_should_match" => min_match = Some((value, path)),
                key if NO_CONDITIONS.contains(&key) => {}
                key => return Err(unexpected(&path, value, not_offered(key).unwrap_or(FILTER))),
            }
        }
        let is_empty = should.is_empty() && filter == Filter::default();
        match min_match {
            Some((value, path)) => match minimum(value, should.len(), &path)? {
                0 => {}
                // Without clauses all match, however many should.
                _ if is_empty => {}
                count => filter.must.push(at_least(count, should)),
            },
            // Beside other conditions these only rank.
            None if filter.must.is_empty() => filter.should = in_order(should),
            None => {}
        }
        filter.must = in_order(filter.must);
        self.depth -= 1;
        Ok(filter)
    }

    /// Qdrant's.
    fn min_should(&mut self, value: &Value, path: &str) -> Result<Condition, Kind> {
        let wrong = || unexpected(path, value, MIN_SHOULD);
        let object = value.as_object().filter(|of| given(of).count() == 2).ok_or_else(wrong)?;
        let count = object.get("min_count").and_then(count_of).ok_or_else(wrong)?;
        let conditions =
            object.get("conditions").filter(|list| list.is_array()).ok_or_else(wrong)?;
        self.deeper(path)?;
        let conditions = self.condition_list(conditions, &join(path, "conditions"))?;
        self.depth -= 1;
        Ok(at_least(usize::try_from(count).unwrap_or(usize::MAX), conditions))
    }

    fn nested(&mut self, value: &Value, path: &str) -> Result<Condition, Kind> {
        let wrong = || unexpected(path, value, NESTED);
        let object = value.as_object().ok_or_else(wrong)?;
        if conditions_of(object).count() != 2 {
            return Err(wrong());
        }
        let get = |key: &str| object.get(key).filter(|value| !value.is_null()).ok_or_else(wrong);
        let is_qdrant = get("key").is_ok();
        let (name, filter) = match is_qdrant {
            true => (get("key")?, "filter"),
            false => (get("path")?, "query"),
        };
        let name = column_name(name, path)?;
        let mut inner = self.any_filter(get(filter)?, &join(path, filter))?;
        if !is_qdrant {
            within(&mut inner, &format!("{name}."), path)?;
        }
        let name = name.strip_suffix("[]").map(str::to_owned).unwrap_or(name);
        Ok(Condition::Field { path: name, test: Test::Nested(Box::new(inner)) })
    }

    fn conditions(&mut self, value: &Value, path: &str) -> Result<Vec<Condition>, Kind> {
        Ok(in_order(self.condition_list(value, path)?))
    }

    /// Conditions as they come, each as often as it stands there.
    fn condition_list(&mut self, value: &Value, path: &str) -> Result<Vec<Condition>, Kind> {
        match value {
            Value::Null => Ok(Vec::new()),
            Value::Array(values) => {
                let one = |(i, value)| self.condition(value, &format!("{path}[{i}]"));
                values.iter().enumerate().map(one).collect()
            }
            value => Ok(vec![self.condition(value, path)?]),
        }
    }

    fn condition(&mut self, value: &Value, path: &str) -> Result<Condition, Kind> {
        self.num_conditions += 1;
        if self.num_conditions > MAX_CONDITIONS {
            return Err(Kind::TooManyConditions { path: path.to_owned() });
        }
        let Value::Object(object) = value else { return Err(unexpected(path, value, CONDITION)) };
        if let Some((key, value)) = sole(given(object))
            && key == "min_should"
        {
            return self.min_should(value, &join(path, key));
        }
        if object.keys().all(|key| FILTER_KEYS.contains(&&key[..])) {
            return Ok(Condition::Filter(Box::new(self.filter(object, path)?)));
        }
        if object.contains_key("key") {
            return self.condition_with_key(object, path);
        }
        let Some((key, value)) = sole(given(object)) else {
            return Err(unexpected(path, value, CONDITION));
        };
        self.condition_by(key, value, &join(path, key))
    }

    fn condition_by(&mut self, key: &str, value: &Value, path: &str) -> Result<Condition, Kind> {
        let (name, test) = match key {
            "match" => {
                let (name, value, path) = one_column(value, path)?;
                (name, self.match_test(value, &path)?)
            }
            "term" => {
                let (name, value, path) = one_column(value, path)?;
                (name, self.term(value, &path)?)
            }
            "terms" => {
                let (name, value, path) = one_column(value, path)?;
                (name, Test::Any(self.scalars(value, &path)?))
            }
            "range" => {
                let (name, value, path) = one_column(value, path)?;
                (name, self.range(value, &path)?)
            }
            "exists" => {
                let name = match value.as_object() {
                    Some(object) => only(object, "field", path)?,
                    None => value,
                };
                (column_name(name, path)?, Test::Exists)
            }
            "is_empty" => {
                let name = match value.as_object() {
                    Some(object) => only(object, "key", path)?,
                    None => value,
                };
                (column_name(name, path)?, Test::Empty)
            }
            "ids" => {
                let ids = match value.as_object() {
                    Some(object) => {
                        self.ids(only(object, "values", path)?, &join(path, "values"))?
                    }
                    None => self.ids(value, path)?,
                };
                return Ok(Condition::Ids(ids));
            }
            "has_id" => return Ok(Condition::Ids(self.ids(value, path)?)),
            "nested" => return self.nested(value, path),
            key if QUERIES.contains(&key) => {
                return Ok(Condition::Filter(Box::new(self.query(key, value, path)?)));
            }
            key => return Err(unexpected(path, value, not_offered(key).unwrap_or(CONDITION))),
        };
        Ok(Condition::Field { path: name, test })
    }

    /// Qdrant's spelling, with the attribute in `key`; what is null there is not given.
    fn condition_with_key(
        &mut self,
        object: &Map<String, Value>,
        path: &str,
    ) -> Result<Condition, Kind> {
        let name = column_name(&object["key"], &join(path, "key"))?;
        let others = given(object).filter(|(key, _)| *key != "key");
        let Some((key, value)) = sole(others) else {
            return Err(unexpected(path, &Value::Object(object.clone()), BESIDE_KEY));
        };
        let path = join(path, key);
        let test = match &key[..] {
            "range" => self.range(value, &path)?,
            "values_count" => counts(value, &path)?,
            "is_empty" => match value.as_bool() {
                Some(true) => Test::Empty,
                Some(false) => {
                    let is_empty = Condition::Field { path: name, test: Test::Empty };
                    let must_not = Filter { must_not: vec![is_empty], ..Filter::default() };
                    return Ok(Condition::Filter(Box::new(must_not)));
                }
                None => return Err(unexpected(&path, value, "is_empty takes true or false")),
            },
            "match" if value.is_object() => self.match_test(value, &path)?,
            "match" => return Err(unexpected(&path, value, VALUE_OR_ANY)),
            key => return Err(unexpected(&path, value, not_offered(key).unwrap_or(BESIDE_KEY))),
        };
        Ok(Condition::Field { path: name, test })
    }

    /// One value, any of a list, or an object that says which.
    fn match_test(&mut self, value: &Value, path: &str) -> Result<Test, Kind> {
        let Value::Object(object) = value else {
            return Ok(Test::Any(match value {
                Value::Array(_) => self.scalars(value, path)?,
                value => vec![self.scalar(value, path)?],
            }));
        };
        let wrong = || {
            let way_out = object.keys().find_map(|key| not_offered(key));
            unexpected(path, value, way_out.unwrap_or(VALUE_OR_ANY))
        };
        let (key, inner) = sole(conditions_of(object)).ok_or_else(wrong)?;
        let path = join(path, key);
        match &key[..] {
            "value" | "query" => Ok(Test::Any(vec![self.scalar(inner, &path)?])),
            "any" => Ok(Test::Any(self.scalars(inner, &path)?)),
            "except" => Ok(Test::Except(self.scalars(inner, &path)?)),
            _ => Err(wrong()),
        }
    }

    fn term(&mut self, value: &Value, path: &str) -> Result<Test, Kind> {
        let Value::Object(object) = value else {
            return Ok(Test::Any(vec![self.scalar(value, path)?]));
        };
        let wrong = || {
            let way_out = object.keys().find_map(|key| not_offered(key));
            unexpected(
                path,
                value,
                way_out.unwrap_or("term takes a value, or an object with value"),
            )
        };
        let (_, inner) =
            sole(conditions_of(object)).filter(|(key, _)| *key == "value").ok_or_else(wrong)?;
        Ok(Test::Any(vec![self.scalar(inner, &join(path, "value"))?]))
    }

    fn range(&mut self, value: &Value, path: &str) -> Result<Test, Kind> {
        let bounds = value.as_object().ok_or_else(|| unexpected(path, value, BOUNDS))?;
        let (mut lower, mut upper) = (None, None);
        for (key, bound) in conditions_of(bounds) {
            let path = join(path, key);
            let (end, inclusive) = match &key[..] {
                "gt" => (&mut lower, false),
                "gte" => (&mut lower, true),
                "lt" => (&mut upper, false),
                "lte" => (&mut upper, true),
                key => return Err(unexpected(&path, bound, not_offered(key).unwrap_or(BOUNDS))),
            };
            let value = self.scalar(bound, &path)?;
            if end.replace(Bound { value, inclusive }).is_some() {
                return Err(unexpected(&path, bound, BOUNDS));
            }
        }
        if lower.is_none() && upper.is_none() {
            return Err(unexpected(path, value, BOUNDS));
        }
        Ok(Test::Range { lower, upper })
    }

    fn scalars(&mut self, value: &Value, path: &str) -> Result<Vec<Scalar>, Kind> {
        let values = value.as_array().ok_or_else(|| unexpected(path, value, VALUES))?;
        let scalars = values.iter().map(|value| self.scalar(value, path));
        Ok(in_order(scalars.collect::<Result<_, _>>()?))
    }

    fn scalar(&mut self, value: &Value, path: &str) -> Result<Scalar, Kind> {
        self.count_value(path)?;
        match value {
            Value::String(text) => Ok(Scalar::Text(text.clone())),
            Value::Bool(value) => Ok(Scalar::Boolean(*value)),
            Value::Number(number) if is_large_integer(number) => {
                Err(unexpected(path, value, INTEGER))
            }
            Value::Number(number) => number
                .as_f64()
                .and_then(Number::new)
                .map(Scalar::Number)
                .ok_or_else(|| unexpected(path, value, VALUE)),
            _ => Err(unexpected(path, value, VALUE)),
        }
    }

    fn ids(&mut self, value: &Value, path: &str) -> Result<Vec<String>, Kind> {
        let values = value.as_array().ok_or_else(|| unexpected(path, value, IDS))?;
        let id = |value: &Value| {
            self.count_value(path)?;
            id_text(value).ok_or_else(|| unexpected(path, value, IDS))
        };
        Ok(in_order(values.iter().map(id).collect::<Result<_, _>>()?))
    }

    fn count_value(&mut self, path: &str) -> Result<(), Kind> {
        self.num_values += 1;
        if self.num_values > MAX_VALUES {
            return Err(Kind::TooManyValues { path: path.to_owned() });
        }
        Ok(())
    }
}

/// The members of an object that are given: null is as if it were not there.
fn given(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    object.iter().filter(|(_, value)| !value.is_null())
}

/// A number of things.
fn count_of(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| whole_number(value)?.try_into().ok())
}

/// The parameters of a condition that decide what matches.
fn conditions_of(object: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    given(object).filter(|(key, _)| !NO_CONDITIONS.contains(&&key[..]))
}

fn at_least(count: usize, mut conditions: Vec<Condition>) -> Condition {
    conditions.sort_unstable();
    Condition::AtLeast { count, conditions }
}

/// Number of `num` conditions that must hold, as Elasticsearch counts: what is negative may fail,
/// and percentages are rounded down.
fn minimum(value: &Value, num: usize, path: &str) -> Result<usize, Kind> {
    let wrong = || unexpected(path, value, MIN_MATCH);
    let of_text = |text: &str| match text.strip_suffix('%') {
        Some(share) => {
            let share: i64 = share.parse().ok().filter(|share| (-100..=100).contains(share))?;
            Some(num as i64 * share / 100)
        }
        None => text.parse().ok(),
    };
    let count: Option<i64> = whole_number(value).or_else(|| value.as_str().and_then(of_text));
    let count = count.ok_or_else(wrong)?;
    let is_negative = count < 0 || value.as_str().is_some_and(|text| text.starts_with('-'));
    let count = if is_negative { (num as i64).saturating_add(count).max(0) } else { count };
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// The bounds of a number of elements.
fn counts(value: &Value, path: &str) -> Result<Test, Kind> {
    let wrong = || unexpected(path, value, COUNTS);
    let bounds = value.as_object().filter(|bounds| !bounds.is_empty()).ok_or_else(wrong)?;
    let (mut least, mut most) = (0, u64::MAX);
    for (key, bound) in given(bounds) {
        let bound = count_of(bound).ok_or_else(wrong)?;
        match &key[..] {
            "gt" => least = least.max(bound.saturating_add(1)),
            "gte" => least = least.max(bound),
            // Nothing is below zero: no count lies between 1 and 0.
            "lt" if bound == 0 => (least, most) = (1, 0),
            "lt" => most = most.min(bound - 1),
            "lte" => most = most.min(bound),
            _ => return Err(wrong()),
        }
    }
    Ok(Test::Count { least, most })
}

/// Takes `prefix` from all names of a filter.
fn within(filter: &mut Filter, prefix: &str, path: &str) -> Result<(), Kind> {
    let lists = [&mut filter.must, &mut filter.should, &mut filter.must_not];
    lists.into_iter().flatten().try_for_each(|condition| within_condition(condition, prefix, path))
}

fn within_condition(condition: &mut Condition, prefix: &str, path: &str) -> Result<(), Kind> {
    match condition {
        Condition::Ids(_) => Ok(()),
        Condition::Filter(filter) => within(filter, prefix, path),
        Condition::AtLeast { conditions, .. } => {
            conditions.iter_mut().try_for_each(|inner| within_condition(inner, prefix, path))
        }
        Condition::Field { path: name, .. } => match name.strip_prefix(prefix) {
            Some(rest) => {
                *name = rest.to_owned();
                Ok(())
            }
            None => Err(unexpected(path, &Value::from(&name[..]), NESTED_PATH)),
        },
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The only entry of an object, whose key is the name of an attribute; and where its value stands.
fn one_column<'a>(value: &'a Value, path: &str) -> Result<(String, &'a Value, String), Kind> {
    let object = value.as_object();
    let only = || sole(object.into_iter().flatten());
    match only().or_else(|| sole(conditions_of(object?))) {
        Some((column, value)) => Ok((column.clone(), value, format!("{path}.{column}"))),
        None => Err(unexpected(path, value, COLUMN)),
    }
}

/// The only entry of an object that is a condition, whose key must be `key`.
fn only<'a>(object: &'a Map<String, Value>, key: &str, path: &str) -> Result<&'a Value, Kind> {
    let value = object.get(key).filter(|_| conditions_of(object).count() == 1);
    let expected = || format!("it takes an object with {key} and nothing else");
    value.ok_or_else(|| unexpected(path, &Value::Object(object.clone()), &expected()))
}

/// The only thing of an iterator; `None` if it has none or several.
fn sole<T>(mut things: impl Iterator<Item = T>) -> Option<T> {
    let first = things.next();
    first.filter(|_| things.next().is_none())
}

fn column_name(value: &Value, path: &str) -> Result<String, Kind> {
    let name = value.as_str().ok_or_else(|| unexpected(path, value, NAME))?;
    Ok(name.to_owned())
}

/// Ascending, each once.
fn in_order<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}

fn unexpected(path: &str, found: &Value, expected: &str) -> Kind {
    Kind::Unexpected { path: path.to_owned(), found: shown(found), expected: expected.to_owned() }
}
