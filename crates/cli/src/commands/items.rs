//! Items as commands show them: exactly to programs, safely to people.

use palmette_catalog::Catalog;
use palmette_catalog_live::CatalogView;
use serde_json::{Value, json};

use crate::output::visible;

/// An item as programs read it.
pub(crate) fn item_json(catalog: &Catalog, rank: u64) -> Value {
    json!({
        "id": catalog.id(rank),
        "title": catalog.title(rank),
        "codes": catalog.codes(rank),
    })
}

/// An item with its score and all its attributes, as programs read it.
pub(crate) fn scored_item_json(catalog: &Catalog, rank: u64, score: f32) -> Value {
    json!({
        "id": catalog.id(rank),
        "title": catalog.title(rank),
        "score": score,
        "codes": catalog.codes(rank),
        "attributes": catalog.attributes(rank),
    })
}

/// Adds the moment of a live catalog to a document, and the files that it went on without.
pub(crate) fn tell_view(document: &mut Value, view: &CatalogView) {
    if let Some(generation) = view.generation() {
        document["generation"] = generation.into();
    }
    if !view.damaged().is_empty() {
        document["damaged"] = json!(view.damaged());
    }
}

/// A semantic ID as people read it: `<a_12><b_3>` where the source spelled it so, else `12-3`.
pub(crate) fn codes_text(view: &CatalogView, codes: &[u32]) -> String {
    spelled(view.level_prefixes(), codes)
}

/// The semantic ID of an item of a view as people read it.
pub(crate) fn codes_text_of(view: &CatalogView, number: u64) -> String {
    spelled(view.level_prefixes(), &view.codes(number))
}

/// A semantic ID as people read it, by the letters of its levels where they have some.
pub(crate) fn spelled(prefixes: Option<&[String]>, codes: &[u32]) -> String {
    match prefixes {
        Some(prefixes) if prefixes.len() >= codes.len() => {
            let tag = |(code, prefix): (&u32, &String)| format!("<{}_{code}>", visible(prefix));
            codes.iter().zip(prefixes).map(tag).collect()
        }
        _ => codes.iter().map(u32::to_string).collect::<Vec<_>>().join("-"),
    }
}

/// The title of an item, or its id where it has none; exact.
pub(crate) fn name(catalog: &Catalog, rank: u64) -> String {
    catalog.title(rank).unwrap_or_else(|| format!("item {}", catalog.id(rank)))
}

/// The name of an item as people read it, at most `width` characters on one line.
pub(crate) fn name_text(catalog: &Catalog, rank: u64, width: usize) -> String {
    visible(&shortened(&name(catalog, rank), width))
}

/// At most `width` characters, the last one an ellipsis where more were cut.
pub(crate) fn shortened(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
    }
}
