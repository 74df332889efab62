//! Random batches: few ids, colliding codes, ragged lengths.

use palmette_catalog::{Filter, Item};
use palmette_catalog_live::Update;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::same::{MAX_LEVELS, NUM_CODES, item};

pub(crate) fn items() -> impl Strategy<Value = Item> {
    // Few codes make collisions and shared prefixes likely.
    let code = prop_oneof![3 => 0_u32..2, 1 => 0..NUM_CODES];
    let codes = prop::collection::vec(code, 1..=MAX_LEVELS);
    let colour = prop::option::of(0_u8..3);
    let price = prop::option::of((0_u32..9).prop_map(|n| f64::from(n) + 0.1));
    (0_u32..30, codes, colour, price, more_attributes()).prop_map(
        |(id, codes, colour, price, more)| {
            let mut item = item(id, &codes, colour, price);
            item.attributes.extend(more);
            item
        },
    )
}

/// Attributes with fields within them, and a time at which an item is over.
fn more_attributes() -> impl Strategy<Value = Map<String, Value>> {
    let text = || prop::sample::select(vec!["red", "blue"]);
    let variant = (prop::option::of(text()), prop::option::of(0_u8..4)).prop_map(|(c, s)| {
        let fields = [c.map(|c| ("c", json!(c))), s.map(|s| ("s", json!(s)))];
        named(fields.into_iter().flatten())
    });
    let variants = prop::collection::vec(variant.prop_map(Value::Object), 1..3)
        .prop_map(|variants| ("variants", json!(variants)));
    let place = (0_u8..3, prop_oneof![3 => text().prop_map(Value::from), 1 => Just(Value::Null)])
        .prop_map(|(lat, city)| ("place", json!({"lat": lat, "city": city, "lists": [[lat], []]})));
    let until = (0_i64..10).prop_map(|n| ("until", json!(format!("1970-01-01T00:00:0{n}Z"))));
    let any = prop_oneof![variants, place, until];
    prop::collection::vec(any, 0..3).prop_map(named)
}

fn named(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Random filters over the attributes and the fields within them: names that no item has and values
/// of other kinds too.
pub(crate) fn filters() -> impl Strategy<Value = Filter> {
    let name = prop::sample::select(vec![
        "colour",
        "price",
        "variants.c",
        "variants.s",
        "variants[].c",
        "place.lat",
        "place.city",
        "place.lists",
        "variants",
        "place",
        "size",
        "variants.size",
        "place.lat.x",
        "colour.keyword",
        "place.city.keyword",
        "price.keyword",
        "until",
    ]);
    let value = prop::sample::select(vec![
        json!("c0"),
        json!("c1"),
        json!("red"),
        json!("blue"),
        json!(0),
        json!(1),
        json!(2),
        json!(4.1),
        json!("1970-01-01T00:00:05Z"),
    ]);
    let condition = (name, value.clone(), value, 0_u8..9).prop_map(|(name, one, other, kind)| match kind {
        0 => json!({"match": {name: one}}),
        1 => json!({"match": {name: [one, other]}}),
        2 => json!({"key": name, "match": {"except": [one]}}),
        3 => json!({"range": {name: {"gte": one}}}),
        4 => json!({"range": {name: {"gt": one, "lt": other}}}),
        5 => json!({"exists": name}),
        6 => json!({"is_empty": {"key": name}}),
        7 => json!({"key": name, "values_count": {"gte": 1, "lt": 3}}),
        _ => json!({"nested": {"key": name, "filter": {"must": [{"match": {"c": one}}, {"range": {"s": {"gte": 1}}}]}}}),
    });
    let list = || prop::collection::vec(condition.clone(), 0..3);
    (list(), list(), list(), prop::collection::vec(0_u32..30, 0..3)).prop_map(
        |(must, should, must_not, exclude)| {
            let exclude: Vec<String> = exclude.into_iter().map(|id| format!("item{id}")).collect();
            let filter =
                json!({"must": must, "should": should, "must_not": must_not, "exclude": exclude});
            Filter::from_value(&filter).expect("a filter")
        },
    )
}

pub(crate) fn batches() -> impl Strategy<Value = Vec<Update>> {
    let delete = (0_u32..30).prop_map(|id| Update::Delete(format!("item{id}")));
    let patch = (items(), any::<bool>()).prop_map(|(item, takes_away)| {
        let Item { id, mut attributes, .. } = item;
        if takes_away {
            attributes.insert("colour".to_owned(), Value::Null);
        }
        Update::Patch { id, attributes }
    });
    let update = prop_oneof![6 => items().prop_map(Update::Upsert), 3 => delete, 2 => patch];
    prop::collection::vec(update, 0..12)
}
