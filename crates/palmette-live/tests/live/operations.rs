//! Random batches: few ids, colliding codes, ragged lengths.

use palmette_catalog::Item;
use palmette_live::Update;
use proptest::prelude::*;
use serde_json::Value;

use crate::same::{MAX_LEVELS, NUM_CODES, item};

pub(crate) fn items() -> impl Strategy<Value = Item> {
    // Few codes make collisions and shared prefixes likely.
    let code = prop_oneof![3 => 0_u32..2, 1 => 0..NUM_CODES];
    let codes = prop::collection::vec(code, 1..=MAX_LEVELS);
    let colour = prop::option::of(0_u8..3);
    let price = prop::option::of((0_u32..9).prop_map(|n| f64::from(n) + 0.1));
    (0_u32..30, codes, colour, price)
        .prop_map(|(id, codes, colour, price)| item(id, &codes, colour, price))
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
