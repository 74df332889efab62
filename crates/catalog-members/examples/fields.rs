//! Bench of fields as sets: the index, a filter's values, a new generation.
//!
//! ```text
//! cargo run --release -p palmette-catalog-members --example fields -- 1000000
//! ```
//!
//! Measured on one thread but for sorting, in milliseconds: the first set of a field, which makes
//! its index; the first under a filter of 1%, of 50%, and one that excludes ten ids besides, the
//! filter's items known; the same again. Bytes of all indexes. The items are made from a seed: ids
//! of 9 bytes, titles of some 30, of which a tenth repeat, ten thousand brands, prices.
#![allow(clippy::print_stdout, reason = "a report")]

use std::time::Instant;

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, CatalogBuilder, Filter};
use palmette_catalog_live::CatalogView;
use palmette_catalog_members::CatalogFields;
use palmette_core::{MemberSet, MemberSpelling};
use serde_json::json;

fn main() {
    let num = std::env::args().nth(1).and_then(|number| number.parse().ok());
    let num: u64 = num.expect("argument: how many items");
    let mut builder = CatalogBuilder::new(BuildOptions::default()).expect("sound options");
    for item in 0..num {
        let random = item.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let title = random % (num * 9 / 10 + 1);
        let attributes = json!({
            "title": format!("Product of the kind {title:08}, {} pieces", title % 40),
            "brand": format!("brand {}", random % 10_007),
            "price": random % 5000,
            "percent": random % 100,
        });
        let codes = [random % 256, random / 256 % 256, random / 65_536 % 256].map(|c| c as u32);
        let attributes = attributes.as_object().expect("an object").clone();
        builder.push(item + 1, format!("P{random:08x}{item}"), &codes, attributes).expect("sound");
    }
    let view = CatalogView::from(builder.finish(None, |_| ()).expect("sound items"));
    let fields = CatalogFields::new(view.clone());
    let filters = [
        ("all", "{}"),
        ("1%", r#"{"match": {"percent": 7}}"#),
        ("50%", r#"{"range": {"percent": {"lt": 50}}}"#),
    ];
    for field in ["id", "title", "brand", "price"] {
        for (name, filter) in filters {
            let filter = Filter::parse(filter).expect("a filter");
            let mut excluding = filter.clone();
            for item in view.numbers().step_by(num as usize / 10) {
                let id = json!({"exclude": [view.id(item)]});
                excluding = excluding.and(&Filter::from_value(&id).expect("a filter"));
            }
            view.filter(&filter).expect("a filter of the catalog");
            view.filter(&excluding).expect("a filter of the catalog");
            let timed = |filter: &Filter| {
                let began = Instant::now();
                let set = fields.set(field, Some(filter), MemberSpelling::JsonString);
                (began.elapsed().as_secs_f64() * 1e3, set.expect("a field").len())
            };
            let times = [&filter, &filter, &excluding, &excluding].map(timed);
            let [first, again, without, without_again] = times.map(|(time, _)| time);
            println!(
                "{field} {name}: {} values; {first:.3} ms, again {again:.3}; ten excluded {without:.3}, again {without_again:.3}",
                times[0].1,
            );
        }
    }
    println!("indexes: {:.1} bytes an item", fields.bytes() as f64 / num as f64);
}
