//! What does a merge cost an item?
//!
//! ```text
//! cargo bench -p palmette-catalog-live --bench merge
//! ```
//!
//! Four segments of 100,000 items each (4 codes below 256, uniform from a fixed seed) are merged
//! into one, seven times, nothing else going on: with a brand of 1,024 and a price of 500, and with
//! a title of its own for each besides. Printed: the median, in microseconds an item.

use std::time::Instant;

use palmette_catalog::Item;
use palmette_catalog_live::{LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update};
use serde_json::json;

const SEGMENTS: u64 = 4;
const SEGMENT_ITEMS: u64 = 100_000;
const REPEAT: usize = 7;

#[allow(clippy::print_stdout, reason = "the report is what it is for")]
fn main() {
    for (what, with_titles) in [("brand and price", false), ("brand, price and title", true)] {
        let dir = tempfile::tempdir().expect("a folder");
        let options = LiveOptions {
            sync: SyncPolicy::Never,
            merging: MergePolicy::Never,
            memory_items: SEGMENT_ITEMS as usize,
            ..LiveOptions::default()
        };
        let live = LiveCatalog::create_with(&dir.path().join("live"), None, None, options);
        let live = live.expect("an empty folder");
        for segment in 0..SEGMENTS {
            let ids = segment * SEGMENT_ITEMS..(segment + 1) * SEGMENT_ITEMS;
            let updates: Vec<Update> =
                ids.map(|id| Update::Upsert(item(id, with_titles))).collect();
            live.apply(&updates).expect("sound items");
        }
        let mut times: Vec<f64> = (0..REPEAT)
            .map(|_| {
                let mut merge = live.begin_merge(0..SEGMENTS as usize).expect("idle segments");
                let begun = Instant::now();
                assert!(merge.build().expect("it fits into memory"), "nobody closes the catalog");
                begun.elapsed().as_secs_f64() * 1e6 / (SEGMENTS * SEGMENT_ITEMS) as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{what}: {:.2} us an item", times[REPEAT / 2]);
    }
}

fn item(id: u64, with_title: bool) -> Item {
    let random = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let codes = [8, 16, 32, 40].map(|shift| (random >> shift) as u32 & 255);
    let mut attributes =
        json!({"brand": format!("brand {}", random >> 54), "price": (random >> 20) % 500});
    if with_title {
        attributes["title"] = json!(format!("A title that no other item has than number {id}"));
    }
    let attributes = attributes.as_object().expect("an object").clone();
    Item { id: id.to_string(), codes: codes.into(), attributes }
}
