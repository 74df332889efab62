//! Filters as JSON, in one spelling.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Bound, Condition, Filter, Scalar, Test};
use crate::columns::kind::number_to_json;

impl Filter {
    fn to_json(&self) -> Value {
        let mut object = Map::new();
        let lists = [("must", &self.must), ("should", &self.should), ("must_not", &self.must_not)];
        for (key, conditions) in lists {
            if !conditions.is_empty() {
                let conditions = conditions.iter().map(Condition::to_json).collect();
                object.insert(key.to_owned(), conditions);
            }
        }
        if !self.exclude.is_empty() {
            object.insert("exclude".to_owned(), json!(self.exclude));
        }
        Value::Object(object)
    }
}

impl Condition {
    fn to_json(&self) -> Value {
        match self {
            Self::Field { path, test } => test.to_json(path),
            Self::Ids(ids) => json!({"ids": ids}),
            Self::AtLeast { count, conditions } => {
                let conditions: Value = conditions.iter().map(Condition::to_json).collect();
                json!({"min_should": {"conditions": conditions, "min_count": count}})
            }
            Self::Filter(filter) => filter.to_json(),
        }
    }
}

impl Test {
    fn to_json(&self, path: &str) -> Value {
        let list = |values: &[Scalar]| values.iter().map(Scalar::to_json).collect::<Value>();
        match self {
            Self::Any(values) => match &values[..] {
                [value] => json!({"match": {path: value.to_json()}}),
                values => json!({"match": {path: list(values)}}),
            },
            Self::Except(values) => json!({"match": {path: {"except": list(values)}}}),
            Self::Range { lower, upper } => {
                let mut bounds = Map::new();
                let mut add = |bound: &Option<Bound>, exclusive: &str, inclusive: &str| {
                    if let Some(Bound { value, inclusive: is_inclusive }) = bound {
                        let key = if *is_inclusive { inclusive } else { exclusive };
                        bounds.insert(key.to_owned(), value.to_json());
                    }
                };
                add(lower, "gt", "gte");
                add(upper, "lt", "lte");
                json!({"range": {path: bounds}})
            }
            Self::Exists => json!({"exists": path}),
            Self::Empty => json!({"is_empty": {"key": path}}),
            Self::Count { least, most } => {
                json!({"key": path, "values_count": {"gte": least, "lte": most}})
            }
            Self::Present => json!({"present": path}),
            Self::Nested(filter) => json!({"nested": {"key": path, "filter": filter.to_json()}}),
        }
    }
}

impl Scalar {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Boolean(value) => json!(value),
            Self::Number(number) => number_to_json(number.get()),
            Self::Text(text) => json!(text),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_json().fmt(f)
    }
}

impl Serialize for Filter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Filter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(serde::de::Error::custom)
    }
}
