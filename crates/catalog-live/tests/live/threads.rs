//! Reading without a pause while a writer applies and merges.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use palmette_catalog_live::{
    LiveCatalog, LiveOptions, LiveReader, MergePolicy, ReaderOptions, Snapshot, SyncPolicy, Update,
};

use crate::same::{Model, check, item};

/// The contents of each generation, known before it is seen.
type Models = Mutex<HashMap<u64, Model>>;

/// Applies batches while threads read by what `open` gives them; each snapshot equals the model of
/// its generation.
fn read_while_writing(
    num_batches: u64,
    open: impl Fn(&Arc<LiveCatalog>, &Path) -> Box<dyn Fn() -> Arc<Snapshot>> + Sync,
) {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().join("live");
    let options = LiveOptions {
        sync: SyncPolicy::Never,
        merging: MergePolicy::Tiered,
        memory_items: 10,
        checkpoint_bytes: 4000,
        map_items: 60,
        ..LiveOptions::default()
    };
    let live = Arc::new(LiveCatalog::create_with(&dir, None, None, options).expect("new"));
    let models: Models = Mutex::new(HashMap::from([(0, Model::default())]));
    let (is_done, num_checks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for reader in 0..3 {
            let (live, models, is_done, num_checks) = (&live, &models, &is_done, &num_checks);
            let (open, dir) = (&open, &dir);
            scope.spawn(move || {
                let filter = r#"{"must":[{"key":"colour","match":{"value":"c1"}}]}"#;
                let filter = serde_json::from_str(filter).expect("a filter");
                let snapshot = open(live, dir);
                while !is_done.load(Ordering::Relaxed) {
                    let snapshot = snapshot();
                    let models = models.lock().unwrap_or_else(PoisonError::into_inner);
                    let model = models[&snapshot.generation()].clone();
                    drop(models);
                    check(&snapshot, &model, Some(&filter), reader);
                    num_checks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut model = Model::default();
        for n in 1..=num_batches {
            let id = |i: u64| ((n * 7 + i * 13) % 120) as u32;
            let upsert = |i: u64| {
                let codes = [(id(i) + n as u32) % 5, (n % 3) as u32, id(i) % 4];
                Update::Upsert(item(id(i), &codes, Some((n % 3) as u8), None))
            };
            let updates = [
                upsert(0),
                upsert(1),
                upsert(2),
                Update::Delete(format!("item{}", id(3))),
                Update::Delete(format!("item{}", id(4))),
            ];
            model.apply(&updates);
            // Known before it is seen.
            models.lock().unwrap_or_else(PoisonError::into_inner).insert(n, model.clone());
            assert_eq!(live.apply(&updates).expect("sound").generation, n);
        }
        is_done.store(true, Ordering::Relaxed);
        check(&live.snapshot(), &model, None, 0);
    });
    live.wait_for_merges();
    let status = live.status();
    assert!(status.merges_done > 0 && status.checkpoints_done > 0, "{status:?}");
    assert_eq!(status.background_error, None);
    assert!(num_checks.into_inner() > 0);
}

#[test]
fn readers_see_whole_generations_while_a_writer_applies_and_merges() {
    // Each look is at the newest generation of the writer's own process.
    read_while_writing(300, |live, _| {
        let live = Arc::clone(live);
        Box::new(move || live.snapshot())
    });
}

/// Followers of the directory: files come and go under their hands.
#[test]
fn readers_of_the_directory_see_whole_generations_while_a_writer_applies_and_merges() {
    read_while_writing(300, |_, dir| {
        let options = ReaderOptions { poll: Some(Duration::from_millis(1)), ..Default::default() };
        let reader = LiveReader::open_with(dir, options).expect("beside the writer");
        Box::new(move || {
            let snapshot = reader.snapshot();
            assert_eq!(reader.status().background_error, None);
            snapshot
        })
    });
}
