//! Fields of live catalogs: unions over segments, pinned to a generation.

use palmette_catalog::{Filter, Item};
use palmette_catalog_live::{
    CatalogView, LiveCatalog, LiveOptions, MergePolicy, Schema, SyncPolicy, Update,
};
use palmette_catalog_members::CatalogFields;
use palmette_core::{MemberSet, MemberSpelling};
use proptest::prelude::*;
use serde_json::json;

use crate::definition::{self, declared};

fn live(dir: &tempfile::TempDir, memory_items: usize, merging: MergePolicy) -> LiveCatalog {
    let options =
        LiveOptions { memory_items, merging, sync: SyncPolicy::Never, ..LiveOptions::default() };
    let schema = Schema { columns: declared(), ..Schema::default() };
    LiveCatalog::create_with(dir.path(), None, Some(schema), options).expect("a new catalog")
}

fn update() -> impl Strategy<Value = Update> {
    let patch = (definition::id(), definition::attributes());
    prop_oneof![
        5 => definition::item().prop_map(Update::Upsert),
        1 => definition::id().prop_map(Update::Delete),
        1 => patch.prop_map(|(id, attributes)| Update::Patch { id, attributes }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn sets_of_a_view_are_the_values_of_its_items(
        batches in prop::collection::vec(prop::collection::vec(update(), 1..8), 1..9),
        memory_items in 1_usize..6,
        merges in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let merging = if merges { MergePolicy::Always } else { MergePolicy::Never };
        let live = live(&dir, memory_items, merging);
        let mut views: Vec<CatalogView> = Vec::new();
        for (at, batch) in batches.iter().enumerate() {
            // Patches of items that are not there are refused, and the batch with them.
            let _ = live.apply(batch);
            if at % 3 == 0 {
                definition::check(&live.view());
                views.push(live.view());
            }
        }
        // A view is what it was, whatever came after it.
        views.push(live.view());
        views.iter().for_each(definition::check);
    }
}

#[test]
fn a_value_of_several_segments_is_one_member() {
    let dir = tempfile::tempdir().expect("a folder");
    let live = live(&dir, 2, MergePolicy::Never);
    let item = |id: &str, brand: &str| {
        let attributes = json!({"brand": brand}).as_object().expect("one").clone();
        Update::Upsert(Item { id: id.into(), codes: vec![1, 2], attributes })
    };
    for batch in [["a1", "a2"], ["b1", "b2"], ["c1", "c2"]] {
        live.apply(&batch.map(|id| item(id, if id.ends_with('1') { "Acme" } else { id })))
            .expect("sound");
    }
    let view = live.view();
    assert_eq!(view.parts().count(), 3);
    let fields = CatalogFields::new(view);
    let brands = |filter: &str| {
        let filter = Filter::parse(filter).expect("a filter");
        fields.set("brand", Some(&filter), MemberSpelling::JsonString).expect("a field")
    };
    assert_eq!((brands("{}").len(), brands("{}").num_items()), (4, 6));
    let acme = brands(r#"{"match": {"brand": "Acme"}}"#);
    assert_eq!((acme.len(), acme.num_items(), acme.item(acme.find("Acme").unwrap())), (1, 3, None));
    // It stays a member of this view after its last item is gone, and is none of the next.
    live.apply(&["a1", "b1", "c1"].map(|id| Update::Delete(id.into()))).expect("sound");
    assert!(brands("{}").find("Acme").is_some());
    let next = CatalogFields::new(live.view());
    assert!(next.set("brand", None, MemberSpelling::Raw).expect("a field").find("Acme").is_none());
}
