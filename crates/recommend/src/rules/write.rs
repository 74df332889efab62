//! Rules as JSON, in the form that is [read](Rules::parse).

use palmette_catalog_filter::Moment;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Amount, Boost, Rules};

impl Rules {
    /// The rules as a JSON object, without those that are not given.
    pub fn to_value(&self) -> Value {
        let mut rules = Map::new();
        let mut put = |name: &str, value: Value, is_given: bool| {
            if is_given {
                rules.insert(name.to_owned(), value);
            }
        };
        let caps = self.at_most.iter();
        let caps: Value =
            caps.map(|cap| json!({"attribute": cap.attribute, "items": cap.items})).collect();
        put("at_most", caps, !self.at_most.is_empty());
        let per_id = self.at_most_per_semantic_id;
        put("at_most_per_semantic_id", json!(per_id), per_id.is_some());
        put("boosts", self.boosts.iter().map(boost).collect(), !self.boosts.is_empty());
        if let Some(tie_break) = &self.tie_break {
            let order = if tie_break.descending { "descending" } else { "ascending" };
            put("tie_break", json!({"attribute": tie_break.attribute, "order": order}), true);
        }
        put("must_include", json!(self.must_include), !self.must_include.is_empty());
        put("must_exclude", json!(self.must_exclude), !self.must_exclude.is_empty());
        if let Some(valid) = &self.valid {
            let now = valid.now.as_ref().map(|now| match now {
                Moment::Text(text) => json!(text),
                Moment::Seconds(seconds) => json!(seconds),
            });
            put("valid", json!({"from": valid.from, "to": valid.to, "now": now}), true);
        }
        if let Some(diversity) = &self.diversity {
            put("diversity", json!({"lambda": diversity.lambda, "pool": diversity.pool}), true);
        }
        Value::Object(rules)
    }
}

impl Serialize for Rules {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

fn boost(boost: &Boost) -> Value {
    let filter = &boost.filter;
    match &boost.amount {
        Amount::Add(add) => json!({"filter": filter, "add": add}),
        Amount::Linear { attribute, weight, offset } => {
            json!({"filter": filter, "attribute": attribute, "weight": weight, "offset": offset})
        }
    }
}
