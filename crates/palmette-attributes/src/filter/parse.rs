//! Filters from JSON, in any of their spellings.

use serde_json::{Map, Value};

use super::error::Kind;
use super::{
    Bound, Condition, Filter, FilterError, MAX_CONDITIONS, MAX_DEPTH, MAX_VALUES, Number, Scalar,
};
use crate::columns::kind::is_large_integer;
use crate::shown::shown;

const FILTER: &str = "a filter is an object with any of must, should, must_not and exclude";
const CONDITION: &str = "a condition is an object with one of match, range, ids and exists, or a \
    filter with must, should or must_not";
const COLUMN: &str = "it takes an object with the name of one attribute; several attributes are \
    several conditions";
const VALUE: &str = "an attribute is compared with text, a number, or true or false; one that is \
    missing is found by must_not and exists";
const INTEGER: &str = "integers outside ±2^53 are never compared, since they would lose digits";
const VALUES: &str = "it takes a list of values";
const BOUNDS: &str = "a range is an object with gt or gte, and lt or lte, or one of them";
const BESIDE_KEY: &str = "beside key there is one of match and range";
const VALUE_OR_ANY: &str = "beside key, match takes an object with one of value and any";
const NAME: &str = "it takes the name of an attribute";
const IDS: &str = "ids are a list of texts or integers";

impl Filter {
    /// Reads a filter from JSON text.
    ///
    /// # Errors
    /// When it is no JSON, or no filter: names the place. Filters nest 16 deep and
    /// hold 1024 conditions and 65,536 values and ids at most.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let value = serde_json::from_str(text).map_err(|error| Kind::NoJson(error.to_string()))?;
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
        Ok(Parser::default().filter(object, "")?)
    }
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
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Kind::TooDeep { path: path.to_owned() });
        }
        let mut filter = Filter::default();
        for (key, value) in object {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            match &key[..] {
                "must" => filter.must = self.conditions(value, &path)?,
                "should" => filter.should = self.conditions(value, &path)?,
                "must_not" => filter.must_not = self.conditions(value, &path)?,
                "exclude" => filter.exclude = self.ids(value, &path)?,
                _ => return Err(unexpected(&path, value, FILTER)),
            }
        }
        self.depth -= 1;
        Ok(filter)
    }

    fn conditions(&mut self, value: &Value, path: &str) -> Result<Vec<Condition>, Kind> {
        let conditions = match value {
            Value::Array(values) => {
                let one = |(i, value)| self.condition(value, &format!("{path}[{i}]"));
                values.iter().enumerate().map(one).collect::<Result<_, _>>()?
            }
            value => vec![self.condition(value, path)?],
        };
        Ok(in_order(conditions))
    }

    fn condition(&mut self, value: &Value, path: &str) -> Result<Condition, Kind> {
        self.num_conditions += 1;
        if self.num_conditions > MAX_CONDITIONS {
            return Err(Kind::TooManyConditions { path: path.to_owned() });
        }
        let Value::Object(object) = value else { return Err(unexpected(path, value, CONDITION)) };
        let is_filter_key = |key: &str| ["must", "should", "must_not", "exclude"].contains(&key);
        if object.keys().all(|key| is_filter_key(key)) {
            return Ok(Condition::Filter(Box::new(self.filter(object, path)?)));
        }
        if object.contains_key("key") {
            return self.condition_with_key(object, path);
        }
        let Some((key, value)) = sole(object.iter()) else {
            return Err(unexpected(path, value, CONDITION));
        };
        let path = &format!("{path}.{key}");
        Ok(match &key[..] {
            "match" => {
                let (column, value, path) = one_column(value, path)?;
                self.match_any(column, value, &path)?
            }
            "term" => {
                let (column, value, path) = one_column(value, path)?;
                Condition::Match { column, values: vec![self.scalar(value, &path)?] }
            }
            "terms" => {
                let (column, value, path) = one_column(value, path)?;
                Condition::Match { column, values: self.scalars(value, &path)? }
            }
            "range" => {
                let (column, value, path) = one_column(value, path)?;
                self.range(column, value, &path)?
            }
            "ids" => match value.as_object() {
                Some(object) => Condition::Ids(
                    self.ids(only(object, "values", path)?, &format!("{path}.values"))?,
                ),
                None => Condition::Ids(self.ids(value, path)?),
            },
            "has_id" => Condition::Ids(self.ids(value, path)?),
            "exists" => {
                let name = match value.as_object() {
                    Some(object) => only(object, "field", path)?,
                    None => value,
                };
                Condition::Exists { column: column_name(name, path)? }
            }
            _ => return Err(unexpected(path, value, CONDITION)),
        })
    }

    /// Qdrant's spelling, with the attribute in `key`.
    fn condition_with_key(
        &mut self,
        object: &Map<String, Value>,
        path: &str,
    ) -> Result<Condition, Kind> {
        let column = column_name(&object["key"], &format!("{path}.key"))?;
        let others = object.iter().filter(|(key, _)| *key != "key");
        let Some((key, value)) = sole(others) else {
            return Err(unexpected(path, &Value::Object(object.clone()), BESIDE_KEY));
        };
        let path = format!("{path}.{key}");
        match &key[..] {
            "range" => self.range(column, value, &path),
            "match" => {
                let values = match sole(value.as_object().into_iter().flatten()) {
                    Some((key, value)) if key == "value" => {
                        vec![self.scalar(value, &format!("{path}.value"))?]
                    }
                    Some((key, values)) if key == "any" => {
                        self.scalars(values, &format!("{path}.any"))?
                    }
                    _ => return Err(unexpected(&path, value, VALUE_OR_ANY)),
                };
                Ok(Condition::Match { column, values })
            }
            _ => Err(unexpected(&path, value, BESIDE_KEY)),
        }
    }

    /// A match with one value or any of a list.
    fn match_any(&mut self, column: String, value: &Value, path: &str) -> Result<Condition, Kind> {
        let values = match value {
            Value::Array(_) => self.scalars(value, path)?,
            value => vec![self.scalar(value, path)?],
        };
        Ok(Condition::Match { column, values })
    }

    fn range(&mut self, column: String, value: &Value, path: &str) -> Result<Condition, Kind> {
        let bounds = value.as_object().filter(|bounds| !bounds.is_empty());
        let bounds = bounds.ok_or_else(|| unexpected(path, value, BOUNDS))?;
        let (mut lower, mut upper) = (None, None);
        for (key, bound) in bounds {
            let path = format!("{path}.{key}");
            let (end, inclusive) = match &key[..] {
                "gt" => (&mut lower, false),
                "gte" => (&mut lower, true),
                "lt" => (&mut upper, false),
                "lte" => (&mut upper, true),
                _ => return Err(unexpected(&path, bound, BOUNDS)),
            };
            let value = self.scalar(bound, &path)?;
            if end.replace(Bound { value, inclusive }).is_some() {
                return Err(unexpected(&path, bound, BOUNDS));
            }
        }
        Ok(Condition::Range { column, lower, upper })
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
            match value {
                Value::String(id) => Ok(id.clone()),
                Value::Number(id) if !id.is_f64() => Ok(id.to_string()),
                _ => Err(unexpected(path, value, IDS)),
            }
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

/// The only entry of an object, whose key is the name of an attribute; and where its value stands.
fn one_column<'a>(value: &'a Value, path: &str) -> Result<(String, &'a Value, String), Kind> {
    match sole(value.as_object().into_iter().flatten()) {
        Some((column, value)) => Ok((column.clone(), value, format!("{path}.{column}"))),
        None => Err(unexpected(path, value, COLUMN)),
    }
}

/// The only entry of an object, whose key must be `key`.
fn only<'a>(object: &'a Map<String, Value>, key: &str, path: &str) -> Result<&'a Value, Kind> {
    let value = object.get(key).filter(|_| object.len() == 1);
    let expected = || format!("it takes an object with {key} and nothing else");
    value.ok_or_else(|| unexpected(path, &Value::Object(object.clone()), &expected()))
}

/// What an iterator gives when it gives one thing only.
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
