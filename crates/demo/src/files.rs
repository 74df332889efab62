//! The shop as files that the other commands read, and as a catalog.

use palmette_catalog::{BuildOptions, Catalog, Item};
use serde_json::{Map, Value, json};

use crate::shop::{Shop, ShopItem};

impl Shop {
    /// The seed of the demonstration's shop. The checkpoint belongs to it.
    pub const DEMO_SEED: u64 = 7;

    /// The shop of the demonstration.
    pub fn demo() -> Self {
        Self::generate(Self::DEMO_SEED)
    }

    /// The items as JSON lines, as `palmette catalog build` reads them.
    pub fn items_jsonl(&self) -> String {
        let line = |item: &ShopItem| {
            let mut fields = Map::new();
            fields.insert("item_id".into(), item.id.clone().into());
            fields.insert("codes".into(), item.codes.to_vec().into());
            fields.extend(attributes(item));
            Value::Object(fields).to_string() + "\n"
        };
        self.items.iter().map(line).collect()
    }

    /// The users' histories, `{user: [item, …]}`.
    pub fn histories_json(&self) -> String {
        let mut users = Map::new();
        for user in &self.users {
            let ids: Vec<&str> = user.history.iter().map(|&i| self.items[i].id.as_str()).collect();
            users.insert(user.id.clone(), ids.into());
        }
        Value::Object(users).to_string()
    }

    /// The shop as a catalog.
    pub fn catalog(&self) -> Catalog {
        let item = |item: &ShopItem| Item {
            id: item.id.clone(),
            codes: item.codes.to_vec(),
            attributes: attributes(item),
        };
        let items: Vec<Item> = self.items.iter().map(item).collect();
        let options = BuildOptions {
            codes_per_level: Some(Self::CODES_PER_LEVEL.to_vec()),
            num_levels: Some(Self::CODES_PER_LEVEL.len()),
            ..BuildOptions::default()
        };
        Catalog::build(items.into(), &options).expect("generated items keep to their codebooks")
    }
}

fn attributes(item: &ShopItem) -> Map<String, Value> {
    let fields = json!({
        "title": item.title,
        "category": item.category,
        "product_type": item.product_type,
        "brand": item.brand,
        "price": item.price,
        "stock": item.stock,
        "age_days": item.age_days,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => unreachable!("written as an object"),
    }
}
