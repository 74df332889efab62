//! Items made up from their number, the same in every run.

use std::sync::Arc;

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder, CodeTokens, Item, LevelTokens};
use serde_json::json;

pub(crate) const NUM_LEVELS: usize = 4;
pub(crate) const NUM_CODES: u32 = 256;
pub(crate) const NUM_TOKENS: usize = NUM_LEVELS * NUM_CODES as usize;

/// A catalog of the items 0 to `num_items`.
pub(crate) fn base(num_items: u64) -> Catalog {
    let options = BuildOptions {
        codes_per_level: Some(vec![NUM_CODES; NUM_LEVELS]),
        ..BuildOptions::default()
    };
    let mut builder = CatalogBuilder::new(options).expect("sound options");
    for id in 0..num_items {
        let item = item(id, id);
        builder.push(id, item.id, &item.codes, item.attributes).expect("sound items");
    }
    builder.finish(None, |_| {}).expect("distinct ids")
}

/// An item whose codes and attributes come from a seed.
pub(crate) fn item(id: u64, seed: u64) -> Item {
    let attributes =
        json!({"brand": format!("brand {}", mix(seed) % 1000), "price": mix(seed + 7) % 500});
    let attributes = attributes.as_object().expect("an object").clone();
    Item { id: id.to_string(), codes: codes(seed).into(), attributes }
}

/// The codes of an item from its seed.
pub(crate) fn codes(seed: u64) -> [u32; NUM_LEVELS] {
    let bits = mix(seed ^ 0x5eed);
    std::array::from_fn(|level| (bits >> (16 * level)) as u32 % NUM_CODES)
}

/// The tokens that spell them.
pub(crate) fn tokens() -> Arc<CodeTokens> {
    let level = |l| LevelTokens { first_token: l * NUM_CODES, num_codes: NUM_CODES };
    let levels = (0..NUM_LEVELS as u32).map(level).collect();
    Arc::new(CodeTokens::new(levels, NUM_TOKENS).expect("in range"))
}

/// A finaliser (Steele et al., "Fast splittable pseudorandom number generators").
pub(crate) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
