//! Random operations, after each of which every snapshot that is held equals its model.

use std::sync::Arc;

use palmette_catalog::{Catalog, Filter, Item};
use palmette_catalog_filter::Moment;
use palmette_catalog_live::{
    Applied, LiveCatalog, LiveOptions, LiveReader, Merge, MergePolicy, ReaderOptions, Snapshot,
    SyncPolicy, Update,
};
use proptest::prelude::*;

use crate::operations::{batches, filters, items};
use crate::same::{Model, build_options, check};

#[derive(Clone, Debug)]
enum Operation {
    Apply(Vec<Update>),
    /// Begins a merge of some segments and builds it now, or a part later.
    BeginMerge {
        first: usize,
        len: usize,
        build: bool,
    },
    CommitMerge,
    MergeAll,
    Checkpoint,
    Reopen,
    Keep,
    Forget(usize),
    Rollback(usize),
    /// Deletes what is over at this second.
    Expire(u8),
    Pin,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        8 => batches().prop_map(Operation::Apply),
        4 => (0_usize..6, 1_usize..5, any::<bool>())
            .prop_map(|(first, len, build)| Operation::BeginMerge { first, len, build }),
        3 => Just(Operation::CommitMerge),
        1 => Just(Operation::MergeAll),
        1 => Just(Operation::Checkpoint),
        2 => Just(Operation::Reopen),
        1 => Just(Operation::Keep),
        1 => (0_usize..3).prop_map(Operation::Forget),
        1 => (0_usize..3).prop_map(Operation::Rollback),
        1 => (0_u8..10).prop_map(Operation::Expire),
        1 => Just(Operation::Pin),
    ];
    prop::collection::vec(operation, 1..25)
}

fn options(merging: MergePolicy, map_items: u64) -> LiveOptions {
    LiveOptions {
        sync: SyncPolicy::Never,
        merging,
        memory_items: 8,
        checkpoint_bytes: 1 << 10,
        map_items,
        ..LiveOptions::default()
    }
}

/// Runs operations on a live catalog and on its model.
fn run(initial: Vec<Item>, operations: Vec<Operation>, filter: &Filter, options: LiveOptions) {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().join("live");
    let mut model = Model { items: initial.clone(), ..Model::default() };
    let initial = (!initial.is_empty())
        .then(|| Catalog::build(initial.into(), &build_options()).expect("sound items"));
    // Codebooks as large as any item may need, where the initial catalog has smaller ones.
    let mut schema =
        initial.as_ref().map(palmette_catalog_live::Schema::of_catalog).unwrap_or_default();
    schema.codes_per_level = Some(vec![crate::same::NUM_CODES; crate::same::MAX_LEVELS]);
    schema.num_levels = None;
    if schema.columns.is_empty() {
        schema.columns = build_options().columns;
    }
    let mut live =
        LiveCatalog::create_with(&dir, initial, Some(schema), options.clone()).expect("new");
    let reader_options = ReaderOptions { poll: None, ..ReaderOptions::default() };
    let mut reader =
        LiveReader::open_with(&dir, reader_options.clone()).expect("beside the writer");
    let mut generation = 0;
    let mut pinned: Vec<(Arc<Snapshot>, Model)> = vec![(live.snapshot(), model.clone())];
    let mut kept: Vec<(u64, Model)> = Vec::new();
    let mut merge: Option<(Merge, bool)> = None;
    for (seed, operation) in operations.into_iter().enumerate() {
        match operation {
            Operation::Apply(updates) => {
                let (mut wanted, mut refused) = (Applied::default(), Vec::new());
                for (index, update) in updates.iter().enumerate() {
                    let before = model.clone();
                    if !model.apply_one(update) {
                        refused.push(index);
                        continue;
                    }
                    let count = match update {
                        Update::Upsert(_) => &mut wanted.upserted,
                        Update::Patch { .. } if model == before => &mut wanted.unchanged,
                        Update::Patch { .. } => &mut wanted.patched,
                        Update::Delete(_) if model == before => &mut wanted.unknown_deletes,
                        Update::Delete(_) => &mut wanted.deleted,
                    };
                    *count += 1;
                }
                let applied = match refused.first() {
                    None => live.apply(&updates).expect("sound updates"),
                    Some(&first) => {
                        let error = live.apply(&updates).expect_err("a patch of nothing");
                        assert_eq!(error.update_index(), Some(first));
                        let (applied, found) = live.apply_valid(&updates).expect("room");
                        assert_eq!(found.iter().map(|of| of.index).collect::<Vec<_>>(), refused);
                        applied
                    }
                };
                generation += u64::from(refused.len() < updates.len() || updates.is_empty());
                assert_eq!(applied, Applied { generation, ..wanted });
            }
            Operation::BeginMerge { first, len, build } => {
                drop(merge.take());
                // The last one may be the memory segment, which is none of those.
                let num_segments = live.status().segments.len();
                let first = first % num_segments.max(1);
                let end = (first + len).min(num_segments.saturating_sub(1));
                merge = live.begin_merge(first..end.max(first)).map(|mut merge| {
                    if build {
                        assert!(merge.build().expect("room"));
                    }
                    (merge, build)
                });
            }
            Operation::CommitMerge => {
                if let Some((mut merge, is_built)) = merge.take() {
                    if !is_built {
                        assert!(merge.build().expect("room"));
                    }
                    merge.commit();
                }
            }
            Operation::MergeAll => {
                drop(merge.take());
                live.merge_all().expect("room");
                if options.merging == MergePolicy::Never {
                    let status = live.status();
                    assert!(status.segments.len() <= 1 && status.num_tombstones == 0, "{status:?}");
                }
            }
            Operation::Checkpoint => assert_eq!(live.checkpoint().expect("room"), generation),
            Operation::Reopen => {
                drop(merge.take());
                drop(live);
                live = LiveCatalog::open_with(&dir, options.clone()).expect("it was closed");
            }
            Operation::Keep => {
                assert_eq!(live.keep(Some("a name")).expect("room"), generation);
                kept.retain(|(other, _)| *other != generation);
                kept.push((generation, model.clone()));
            }
            Operation::Forget(at) if at < kept.len() => {
                let (generation, _) = kept.remove(at);
                live.forget(generation).expect("it is kept");
                assert!(live.rollback(generation).expect_err("it is forgotten").is_not_kept());
            }
            Operation::Rollback(at) if at < kept.len() => {
                generation += 1;
                assert_eq!(live.rollback(kept[at].0).expect("it is kept"), generation);
                model = kept[at].1.clone();
            }
            Operation::Expire(second) => {
                let deleted = model.expire(&format!("1970-01-01T00:00:0{second}Z"));
                generation += u64::from(deleted > 0);
                let now = Moment::Seconds(second.into());
                let applied = live.expire("until", &now).expect("a timestamp");
                assert_eq!(applied, Applied { generation, deleted, ..Applied::default() });
                assert!(
                    live.expire("price", &now).is_err(),
                    "no timestamp, if there is one at all"
                );
            }
            Operation::Forget(_) | Operation::Rollback(_) => {
                assert!(live.forget(u64::MAX).expect_err("never made").is_not_kept());
            }
            Operation::Pin => pinned.push((live.snapshot(), model.clone())),
        }
        let snapshot = live.snapshot();
        assert_eq!(snapshot.generation(), generation);
        let numbers = live.generations();
        assert_eq!(
            numbers.iter().map(|g| (g.generation, g.num_items)).collect::<Vec<_>>(),
            kept.iter().map(|(g, m)| (*g, m.items.len() as u64)).collect::<Vec<_>>()
        );
        check(&snapshot, &model, Some(filter), seed as u64);
        // A reader that looks now and then, and one that has just begun, see what the writer's
        // process does.
        if seed % 3 > 0 {
            assert_eq!(reader.refresh().expect("sound files"), generation);
            check(&reader.snapshot(), &model, Some(filter), seed as u64);
            for (number, model) in &kept {
                let of = reader.generation(&number.to_string()).expect("it is kept");
                check(&of, model, Some(filter), seed as u64);
            }
        }
        if seed % 5 == 4 {
            reader =
                LiveReader::open_with(&dir, reader_options.clone()).expect("beside the writer");
            check(&reader.snapshot(), &model, Some(filter), seed as u64);
        }
        let (old, old_model) = &pinned[seed % pinned.len()];
        check(old, old_model, Some(filter), seed as u64);
    }
    for (snapshot, model) in &pinned {
        check(snapshot, model, Some(filter), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn equals_its_model_when_told_what_to_merge(
        initial in prop::collection::vec(items(), 0..30),
        operations in operations(),
        filter in filters(),
        map_items in prop_oneof![Just(0_u64), Just(1000)],
    ) {
        run(distinct(initial), operations, &filter, options(MergePolicy::Never, map_items));
    }

    #[test]
    fn equals_its_model_while_merging_by_itself(
        initial in prop::collection::vec(items(), 0..30),
        operations in operations(),
        filter in filters(),
        always: bool,
    ) {
        let merging = if always { MergePolicy::Always } else { MergePolicy::Tiered };
        run(distinct(initial), operations, &filter, options(merging, 20));
    }
}

fn distinct(items: Vec<Item>) -> Vec<Item> {
    let mut model = Model::default();
    model.apply(&items.into_iter().map(Update::Upsert).collect::<Vec<_>>());
    model.items
}
