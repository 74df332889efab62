//! Rules from JSON; unknown keys are refused with the nearest known one.

use palmette_catalog_filter::{Filter, id_text, nearest, parse_unique, whole_number};
use serde_json::{Map, Value};

use super::error::RulesError;
use super::{
    Amount, AtMost, Boost, Diversity, MAX_BOOSTS, MAX_CAPS, MAX_IDS, Moment, Rules, TieBreak, Valid,
};

const CAPS: &str = "it takes a list such as [{\"attribute\": \"brand\", \"items\": 2}]";
const BOOSTS: &str = "it takes a list such as [{\"filter\": {\"must\": …}, \"add\": 0.5}]";
const IDS: &str = "it takes a list of ids such as [\"P0001\"]";

impl Rules {
    /// Reads rules from JSON text.
    ///
    /// # Errors
    /// When it is no JSON, a key appears twice or is none of a rule's, or a value is not one that
    /// the rule takes; the message names the place.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let value = parse_unique(text).map_err(|error| RulesError::NoJson(error.to_string()))?;
        Self::from_value(&value)
    }

    /// Reads rules from JSON.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn from_value(value: &Value) -> Result<Self, RulesError> {
        let mut rules = Self::default();
        let keys = [
            "at_most",
            "at_most_per_semantic_id",
            "boosts",
            "tie_break",
            "must_include",
            "must_exclude",
            "valid",
            "diversity",
        ];
        for (key, at) in PlacedValue::new("the rules", value).entries(&keys)? {
            match key {
                "at_most" => rules.at_most = at.list(MAX_CAPS, CAPS, PlacedValue::cap)?,
                "at_most_per_semantic_id" => rules.at_most_per_semantic_id = Some(at.count()?),
                "boosts" => rules.boosts = at.list(MAX_BOOSTS, BOOSTS, PlacedValue::boost)?,
                "tie_break" => rules.tie_break = Some(at.tie_break()?),
                "must_include" => rules.must_include = at.list(MAX_IDS, IDS, PlacedValue::id)?,
                "must_exclude" => rules.must_exclude = at.list(MAX_IDS, IDS, PlacedValue::id)?,
                "valid" => rules.valid = Some(at.valid()?),
                _ => rules.diversity = Some(at.diversity()?),
            }
        }
        Ok(rules)
    }
}

/// A value and its place in the document.
struct PlacedValue<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> PlacedValue<'a> {
    fn new(path: impl Into<String>, value: &'a Value) -> Self {
        Self { path: path.into(), value }
    }

    /// The entries of an object, all of them known.
    fn entries<'k>(&self, keys: &[&'k str]) -> Result<Vec<(&'k str, PlacedValue<'a>)>, RulesError> {
        let expected = || format!("it takes an object with {}", keys.join(", "));
        let object: &Map<String, Value> =
            self.value.as_object().ok_or_else(|| self.unexpected(&expected()))?;
        let entry = |(key, value): (&String, &'a Value)| {
            let known = keys.iter().find(|known| *known == key);
            let known = known.ok_or_else(|| RulesError::UnknownKey {
                path: self.path.clone(),
                key: key.clone(),
                nearest: nearest(key, keys.iter().copied()).map(str::to_owned),
                keys: keys.join(", "),
            })?;
            let path = match self.path.as_str() {
                "the rules" => key.clone(),
                path => format!("{path}.{key}"),
            };
            Ok((*known, PlacedValue { path, value }))
        };
        // As the document has them, which a map does not say; no rule depends on it.
        let given = object.iter().filter(|(_, value)| !value.is_null());
        given.map(|(key, value)| entry((key, value))).collect()
    }

    fn list<T>(
        &self,
        most: usize,
        expected: &str,
        read: impl Fn(&PlacedValue<'a>) -> Result<T, RulesError>,
    ) -> Result<Vec<T>, RulesError> {
        let values = self.value.as_array().ok_or_else(|| self.unexpected(expected))?;
        if values.len() > most {
            let (path, found) = (self.path.clone(), format!("a list of {}", values.len()));
            let expected = format!("at most {most} are possible");
            return Err(RulesError::Unexpected { path, found, expected });
        }
        let each = values.iter().enumerate();
        each.map(|(i, value)| read(&PlacedValue::new(format!("{}[{i}]", self.path), value)))
            .collect()
    }

    fn cap(&self) -> Result<AtMost, RulesError> {
        let (mut attribute, mut items) = (None, None);
        for (key, at) in self.entries(&["attribute", "items"])? {
            match key {
                "attribute" => attribute = Some(at.text()?),
                _ => items = Some(at.count()?),
            }
        }
        Ok(AtMost {
            attribute: self.needed(attribute, "attribute")?,
            items: self.needed(items, "items")?,
        })
    }

    fn boost(&self) -> Result<Boost, RulesError> {
        let (mut filter, mut add, mut attribute) = (None, None, None);
        let (mut weight, mut offset) = (None, None);
        for (key, at) in self.entries(&["filter", "add", "attribute", "weight", "offset"])? {
            match key {
                "filter" => filter = Some(at.filter()?),
                "add" => add = Some(at.number()?),
                "attribute" => attribute = Some(at.text()?),
                "weight" => weight = Some(at.number()?),
                _ => offset = Some(at.number()?),
            }
        }
        let amount = match (add, attribute, weight) {
            (Some(add), None, None) if offset.is_none() => Amount::Add(add),
            (None, Some(attribute), Some(weight)) => {
                Amount::Linear { attribute, weight, offset: offset.unwrap_or(0.0) }
            }
            _ => {
                return Err(self.unexpected(
                    "a boost has either add, a number, or attribute and weight, and offset if you like",
                ));
            }
        };
        Ok(Boost { filter, amount })
    }

    fn tie_break(&self) -> Result<TieBreak, RulesError> {
        let (mut attribute, mut descending) = (None, false);
        for (key, at) in self.entries(&["attribute", "order"])? {
            match (key, at.value.as_str()) {
                ("attribute", _) => attribute = Some(at.text()?),
                (_, Some("ascending")) => descending = false,
                (_, Some("descending")) => descending = true,
                _ => return Err(at.unexpected("an order is \"ascending\" or \"descending\"")),
            }
        }
        Ok(TieBreak { attribute: self.needed(attribute, "attribute")?, descending })
    }

    fn valid(&self) -> Result<Valid, RulesError> {
        let mut valid = Valid { from: None, to: None, now: None };
        for (key, at) in self.entries(&["from", "to", "now"])? {
            match key {
                "from" => valid.from = Some(at.text()?),
                "to" => valid.to = Some(at.text()?),
                _ => valid.now = Some(at.moment()?),
            }
        }
        if valid.from.is_none() && valid.to.is_none() {
            return Err(
                self.unexpected("valid names a timestamp attribute as from, as to, or both")
            );
        }
        Ok(valid)
    }

    fn diversity(&self) -> Result<Diversity, RulesError> {
        let (mut lambda, mut pool) = (None, None);
        for (key, at) in self.entries(&["lambda", "pool"])? {
            match key {
                "lambda" => lambda = Some(at.share()?),
                _ => pool = Some(at.count()?),
            }
        }
        Ok(Diversity { lambda: self.needed(lambda, "lambda")?, pool })
    }

    fn moment(&self) -> Result<Moment, RulesError> {
        match self.value {
            Value::String(text) => Ok(Moment::Text(text.clone())),
            Value::Number(_) => Ok(Moment::Seconds(self.number()?)),
            _ => Err(self.unexpected("a moment is an RFC 3339 time or seconds since 1970")),
        }
    }

    fn filter(&self) -> Result<Filter, RulesError> {
        let filter = Filter::from_value(self.value);
        filter.map_err(|error| RulesError::filter(self.path.clone(), error))
    }

    fn text(&self) -> Result<String, RulesError> {
        let text = self.value.as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned).ok_or_else(|| self.unexpected("it takes the name of an attribute"))
    }

    fn id(&self) -> Result<String, RulesError> {
        id_text(self.value).ok_or_else(|| self.unexpected("ids are texts or integers"))
    }

    fn count(&self) -> Result<usize, RulesError> {
        let count = whole_number(self.value).filter(|&count| count > 0);
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.ok_or_else(|| self.unexpected("it takes a whole number, 1 or more"))
    }

    fn number(&self) -> Result<f64, RulesError> {
        let number = self.value.as_f64().filter(|number| number.is_finite());
        number.ok_or_else(|| self.unexpected("it takes a number"))
    }

    fn share(&self) -> Result<f64, RulesError> {
        let share = self.value.as_f64().filter(|share| (0.0..=1.0).contains(share));
        share.ok_or_else(|| self.unexpected("it takes a number from 0 to 1"))
    }

    fn needed<T>(&self, value: Option<T>, key: &str) -> Result<T, RulesError> {
        value.ok_or_else(|| self.unexpected(&format!("it needs {key}")))
    }

    fn unexpected(&self, expected: &str) -> RulesError {
        const MAX_CHARS: usize = 60;
        let mut found = self.value.to_string();
        if let Some((end, _)) = found.char_indices().nth(MAX_CHARS) {
            found.truncate(end);
            found.push('…');
        }
        RulesError::Unexpected { path: self.path.clone(), found, expected: expected.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read() {
        let rules = Rules::parse(
            r#"{
                "at_most": [{"attribute": "brand", "items": 2}],
                "at_most_per_semantic_id": 1,
                "boosts": [
                    {"filter": {"must": {"match": {"brand": "Acme"}}}, "add": -0.5},
                    {"attribute": "margin", "weight": 0.1}
                ],
                "tie_break": {"attribute": "price", "order": "descending"},
                "must_include": ["a", 7],
                "must_exclude": ["b"],
                "valid": {"to": "until", "now": 1.5},
                "diversity": {"lambda": 0.25, "pool": 30}
            }"#,
        )
        .unwrap();
        assert_eq!(rules.at_most, [AtMost { attribute: "brand".into(), items: 2 }]);
        assert_eq!((rules.at_most_per_semantic_id, rules.wanted(5)), (Some(1), 30));
        assert_eq!(rules.boosts[0].amount, Amount::Add(-0.5));
        let linear = Amount::Linear { attribute: "margin".into(), weight: 0.1, offset: 0.0 };
        assert_eq!(rules.boosts[1], Boost { filter: None, amount: linear });
        assert!(rules.tie_break.as_ref().is_some_and(|tie| tie.descending));
        assert_eq!(
            (&rules.must_include[..], &rules.must_exclude[..]),
            (&["a".to_owned(), "7".to_owned()][..], &["b".to_owned()][..])
        );
        let now = Some(Moment::Seconds(1.5));
        assert_eq!(
            rules.valid,
            Some(Valid { from: None, to: Some("until".into()), now: now.clone() })
        );
        let nulls = Rules::parse(
            r#"{"at_most": null, "boosts": [{"filter": null, "add": 1.0, "weight": null}], "valid": {"from": null, "to": "until"},
                "diversity": {"lambda": 0.5, "pool": 30.0}, "must_include": [7.0]}"#,
        );
        let given = r#"{"boosts": [{"add": 1}], "valid": {"to": "until"}, "diversity": {"lambda": 0.5, "pool": 30}, "must_include": ["7"]}"#;
        assert_eq!(nulls, Rules::parse(given));
        assert_eq!(Rules::from_value(&rules.to_value()), Ok(rules.clone()));
        // A moment of its own stays.
        assert_eq!(rules.at(Moment::Seconds(9.0)).valid.unwrap().now, now);
        assert!(Rules::parse("{}").unwrap().is_empty());
    }

    #[track_caller]
    fn check(text: &str, message: &str) {
        let error = Rules::parse(text).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn the_rest_is_refused_with_its_place() {
        check("[]", "the rules: [] cannot stand here; it takes an object with at_most");
        check("{", "this is none");
        check("{} x", "this is none");
        check(r#"{"boosts": [], "boosts": []}"#, r#"the key "boosts" appears twice"#);
        check(r#"{"at_mots": []}"#, r#"there is no rule "at_mots" here (did you mean "at_most"?)"#);
        check(
            r#"{"at_most": [{"atribute": "b", "items": 1}]}"#,
            r#"at_most[0]: there is no rule "atribute" here (did you mean "attribute"?); there are attribute, items"#,
        );
        check(
            r#"{"at_most": [{"attribute": "b"}]}"#,
            "at_most[0]: {\"attribute\":\"b\"} cannot stand here; it needs items",
        );
        check(r#"{"at_most": [{"attribute": "b", "items": 0}]}"#, "at_most[0].items: 0 cannot");
        check(r#"{"at_most_per_semantic_id": 1.5}"#, "a whole number, 1 or more");
        check(r#"{"boosts": [{"add": 1, "weight": 2}]}"#, "either add, a number, or attribute");
        check(r#"{"boosts": [{"add": 1, "offset": 2}]}"#, "either add, a number, or attribute");
        check(r#"{"boosts": [{"add": 1, "filter": {"most": []}}]}"#, "boosts[0].filter: most");
        check(
            r#"{"boosts": {"add": 1}}"#,
            "boosts: {\"add\":1} cannot stand here; it takes a list",
        );
        check(r#"{"tie_break": {"attribute": "p", "order": "up"}}"#, "tie_break.order: \"up\"");
        check(r#"{"must_include": [1.5]}"#, "must_include[0]: 1.5 cannot");
        check(r#"{"valid": {"now": 3}}"#, "valid names a timestamp attribute");
        check(r#"{"valid": {"from": "f", "now": []}}"#, "valid.now: []");
        check(r#"{"diversity": {"lambda": 1.1}}"#, "a number from 0 to 1");
        check(r#"{"diversity": {"pool": 5}}"#, "it needs lambda");
        let many = format!(r#"{{"must_exclude": [{}]}}"#, vec!["1"; 65_537].join(","));
        check(&many, "must_exclude: a list of 65537 cannot stand here; at most 65536");
    }
}
