//! Every example runs to its end, and asserts on the way what it shows.

#[path = "../examples/beam_search.rs"]
mod beam_search;
#[path = "../examples/database_schema.rs"]
mod database_schema;
#[path = "../examples/extraction.rs"]
mod extraction;
#[path = "../examples/generate_text.rs"]
mod generate_text;
#[path = "../examples/items_in_text.rs"]
mod items_in_text;
#[path = "../examples/json_mask_loop.rs"]
mod json_mask_loop;
#[path = "../examples/listed_items.rs"]
mod listed_items;
#[path = "../examples/live_catalog.rs"]
mod live_catalog;
#[path = "../examples/speculative_drafts.rs"]
mod speculative_drafts;

#[test]
fn beam_search_runs() {
    beam_search::main().unwrap();
}

#[test]
fn database_schema_runs() {
    database_schema::main().unwrap();
}

#[test]
fn extraction_runs() {
    extraction::run(Some("2000")).unwrap();
}

#[test]
fn generate_text_runs() {
    generate_text::main().unwrap();
}

#[test]
fn items_in_text_runs() {
    items_in_text::main().unwrap();
}

#[test]
fn json_mask_loop_runs() {
    json_mask_loop::main().unwrap();
}

#[test]
fn listed_items_runs() {
    listed_items::main().unwrap();
}

#[test]
fn live_catalog_runs() {
    live_catalog::main().unwrap();
}

#[test]
fn speculative_drafts_runs() {
    speculative_drafts::main().unwrap();
}
