//! Batches with keys: applied once, across reopenings, checkpoints and rollbacks.

use palmette_catalog_live::{
    Applied, BatchKey, LiveCatalog, LiveError, LiveOptions, LiveReader, ReaderOptions, Update,
    verify,
};
use proptest::prelude::*;

use crate::operations::batches;
use crate::same::item;

fn key(name: &str, print: u8) -> BatchKey {
    BatchKey { name: name.to_owned(), fingerprint: [print; 32] }
}

#[derive(Clone, Debug)]
enum Operation {
    /// A batch by one of few keys, so that many are repetitions, some of another batch.
    Keyed(u8, u8, Vec<Update>),
    Plain(Vec<Update>),
    Checkpoint,
    Keep,
    Rollback,
    Reopen,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        6 => (0_u8..6, 0_u8..2, batches()).prop_map(|(k, p, batch)| Operation::Keyed(k, p, batch)),
        2 => batches().prop_map(Operation::Plain),
        1 => Just(Operation::Checkpoint),
        1 => Just(Operation::Keep),
        1 => Just(Operation::Rollback),
        3 => Just(Operation::Reopen),
    ];
    prop::collection::vec(operation, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The definition: a map from keys to what their first batch did, which nothing but a new key
    /// changes.
    #[test]
    fn a_key_means_its_first_batch_whatever_comes_after(operations in operations()) {
        let dir = tempfile::tempdir().expect("a folder");
        let options = || LiveOptions { checkpoint_bytes: 300, ..LiveOptions::default() };
        let mut live = LiveCatalog::create_with(dir.path(), None, None, options()).expect("new");
        let mut firsts: std::collections::BTreeMap<u8, (u8, Applied)> = Default::default();
        let mut generation = 0;
        for operation in operations {
            match operation {
                Operation::Keyed(name, print, batch) => {
                    let key = key(&format!("batch {name}"), print);
                    let done = live.apply_keyed(&batch, &key);
                    match (firsts.get(&name), done) {
                        (Some((first, applied)), Ok(done)) if *first == print => {
                            prop_assert!(done.is_repeated);
                            prop_assert_eq!(done.applied, *applied);
                        }
                        (Some((_, applied)), Err(error)) => {
                            let made = format!("made generation {}", applied.generation);
                            prop_assert!(error.is_refusal(), "{error}");
                            prop_assert!(error.to_string().contains(&made), "{error}");
                        }
                        (None, Ok(done)) => {
                            generation += 1;
                            prop_assert!(!done.is_repeated);
                            prop_assert_eq!(done.applied.generation, generation);
                            firsts.insert(name, (print, done.applied));
                        }
                        // A patch of an item that is not there: the key is free.
                        (None, Err(error)) => prop_assert!(error.update_index().is_some()),
                        (of, done) => prop_assert!(false, "{of:?}: {done:?}"),
                    }
                }
                Operation::Plain(batch) => generation += u64::from(live.apply(&batch).is_ok()),
                Operation::Checkpoint => _ = live.checkpoint().expect("room"),
                Operation::Keep => _ = live.keep(Some("kept")).expect("room"),
                Operation::Rollback => {
                    if let Some(kept) = live.generations().last() {
                        generation = live.rollback(kept.generation).expect("it is kept");
                    }
                }
                Operation::Reopen => {
                    drop(live);
                    live = LiveCatalog::open_with(dir.path(), options()).expect("closed");
                }
            }
            prop_assert_eq!(live.snapshot().generation(), generation);
            prop_assert_eq!(live.status().generation, generation);
        }
        for name in 0..6 {
            let found = live.first_applied(&key(&format!("batch {name}"), 0)).ok();
            let first = firsts.get(&name);
            let same = first.filter(|(print, _)| *print == 0).map(|(_, applied)| *applied);
            let is_other = first.is_some_and(|(print, _)| *print != 0);
            prop_assert_eq!(found, (!is_other).then_some(same));
        }
        let files = verify(dir.path()).expect("a catalog");
        prop_assert!(files.iter().all(|file| file.problem.is_none()), "{files:?}");
    }
}

#[test]
fn a_keys_file_that_is_damaged_or_gone_is_named_and_nothing_is_forgotten() {
    let dir = tempfile::tempdir().expect("a folder");
    let options = LiveOptions::default;
    let live = LiveCatalog::create_with(dir.path(), None, None, options()).expect("new");
    let lamp = [Update::Upsert(item(1, &[2, 3], None, None))];
    live.apply_keyed(&lamp, &key("import", 7)).expect("sound");
    live.checkpoint().expect("room");
    // The keys have not changed: their file stays.
    live.apply(&[Update::Delete("item1".into())]).expect("sound");
    live.checkpoint().expect("room");
    drop(live);
    let path = dir.path().join("keys-1.palmkeys");
    let whole = std::fs::read(&path).expect("it is there");
    let problem = || {
        let files = verify(dir.path()).expect("a catalog");
        files.into_iter().find(|file| file.file == "keys-1.palmkeys").and_then(|file| file.problem)
    };
    assert_eq!(problem(), None);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 8;
    for damaged in [Some(&flipped), None] {
        match damaged {
            Some(bytes) => std::fs::write(&path, bytes).expect("room"),
            None => std::fs::remove_file(&path).expect("it is there"),
        }
        let error = LiveCatalog::open_with(dir.path(), options()).expect_err("damaged").to_string();
        assert!(error.contains("keys-1.palmkeys"), "{error}");
        assert!(problem().is_some());
        // Readers take no batches, and go on.
        let reader = LiveReader::open_with(dir.path(), ReaderOptions::default()).expect("sound");
        assert_eq!(reader.snapshot().generation(), 2);
    }
    std::fs::write(&path, &whole).expect("room");
    let live = LiveCatalog::open_with(dir.path(), options()).expect("whole again");
    let done = live.apply_keyed(&lamp, &key("import", 7)).expect("the first answer");
    assert!(done.is_repeated && done.applied.generation == 1, "{done:?}");
    assert_eq!(live.snapshot().num_items(), 0, "it was deleted since, and not applied again");
    let error: LiveError = live.apply_keyed(&lamp, &key("import", 8)).expect_err("another");
    assert!(error.to_string().contains("a new batch needs a new key"), "{error}");
    let error = live.apply_keyed(&lamp, &key("", 8)).expect_err("no key");
    assert!(error.is_refusal() && error.to_string().contains("0 bytes"), "{error}");
}

/// Nobody who looks at numbers waits for a batch that is being applied.
#[test]
fn numbers_are_there_while_the_writer_is_held() {
    let dir = tempfile::tempdir().expect("a folder");
    let live =
        LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default()).expect("new");
    live.apply(&[Update::Upsert(item(1, &[2, 3], None, None))]).expect("sound");
    live.keep(Some("one")).expect("room");
    let (status, kept) = live.while_held(|| {
        // A look that waited would never end: it is on this thread.
        (live.status(), live.generations())
    });
    assert_eq!((status.generation, status.num_items), (1, 1));
    assert_eq!((status.wal_bytes, status.checkpoints_done), (0, 1));
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].name.as_deref(), Some("one"));
    live.forget(1).expect("it is kept");
    assert_eq!(live.generations(), []);
}
