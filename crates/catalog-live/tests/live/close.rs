//! Closing a catalog that is still held.

use std::sync::Arc;

use palmette_catalog_live::{LiveCatalog, LiveOptions, Update};

use crate::same::item;

#[test]
fn a_closed_catalog_is_read_and_writes_nothing() {
    let parent = tempfile::tempdir().expect("a folder");
    let dir = parent.path().join("live");
    // Of one item, so that every batch makes work in the background.
    let options = LiveOptions { memory_items: 1, checkpoint_items: 1, ..LiveOptions::default() };
    let live = Arc::new(LiveCatalog::create_with(&dir, None, None, options).expect("a new one"));
    for id in 0..20 {
        live.apply(&[Update::Upsert(item(id, &[id % 6], None, None))]).expect("sound");
    }
    let held = Arc::clone(&live);
    live.close();
    live.close();
    std::fs::remove_dir_all(&dir).expect("nobody writes there");
    for refused in [
        held.apply(&[Update::Delete("item1".into())]).map(|_| ()),
        held.keep(None).map(|_| ()),
        held.checkpoint().map(|_| ()),
        held.merge_all(),
    ] {
        let error = refused.expect_err("it is closed");
        assert!(error.to_string().contains("was closed"), "{error}");
    }
    assert_eq!(held.snapshot().num_items(), 20);
    assert!(held.snapshot().find("item7").is_some());
    assert!(held.begin_merge(0..2).is_none());
    held.wait_for_merges();
    drop((live, held));
    assert!(!dir.exists());
}
