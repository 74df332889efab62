//! Replicas that apply the entries of one log against the definition: whatever their segments,
//! restarts and bases, they have the same items, and the same bytes.

use std::path::{Path, PathBuf};

use palmette_catalog::Catalog;
use palmette_catalog_live::replica::{
    BASE_CATALOG, Base, BaseFiles, EntryDone, Proposal, Proposed,
};
use palmette_catalog_live::{
    BatchKey, LiveCatalog, LiveOptions, MergePolicy, Schema, SyncPolicy, Update,
};
use proptest::prelude::*;

use crate::operations::batches;
use crate::same::{Model, check, item};

const LOG: &str = "some log";

#[derive(Clone, Debug)]
enum Operation {
    Batches(Vec<Vec<Update>>),
    Keep,
    Forget(usize),
    Rollback(usize),
    Reopen,
    /// The second replica begins again from a base of the first.
    NewBase,
    /// The second replica goes on from a base of the first, past entries that it never sees.
    SkipTo,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        10 => prop::collection::vec(batches(), 1..4).prop_map(Operation::Batches),
        2 => Just(Operation::Keep),
        1 => (0_usize..3).prop_map(Operation::Forget),
        2 => (0_usize..3).prop_map(Operation::Rollback),
        2 => Just(Operation::Reopen),
        1 => Just(Operation::NewBase),
        1 => Just(Operation::SkipTo),
    ];
    prop::collection::vec(operation, 1..20)
}

fn options(merging: MergePolicy) -> LiveOptions {
    LiveOptions {
        sync: SyncPolicy::Never,
        merging,
        memory_items: 6,
        checkpoint_bytes: 700,
        ..LiveOptions::default()
    }
}

/// Writes a base and those of its kept generations.
fn files_of(live: &LiveCatalog, dir: &Path) -> BaseFiles {
    let write = |base: &Base, name: String| -> PathBuf {
        let to = dir.join(name);
        std::fs::create_dir(&to).unwrap();
        base.write(&to).unwrap();
        to
    };
    let base = live.base();
    let kept = base.kept.iter().map(|kept| {
        let of_kept = live.base_of_kept(kept.generation).unwrap();
        assert_eq!(of_kept.generation(), kept.generation);
        (kept.generation, kept.name.clone(), write(&of_kept, kept.generation.to_string()))
    });
    let kept = kept.collect();
    BaseFiles {
        dir: write(&base, "base".to_owned()),
        generation: base.generation(),
        schema: base.schema().clone(),
        kept,
    }
}

/// An empty replica at generation 0.
fn empty(dir: &Path, merging: MergePolicy) -> LiveCatalog {
    let work = tempfile::tempdir().unwrap();
    let from =
        LiveCatalog::create_with(work.path(), None, None, options(MergePolicy::Never)).unwrap();
    let base = Base::initial(from.snapshot());
    base.write(work.path()).unwrap();
    let files = BaseFiles {
        dir: work.path().to_owned(),
        generation: 0,
        schema: Schema::default(),
        kept: Vec::new(),
    };
    LiveCatalog::create_replica(dir, LOG, &files, options(merging)).unwrap()
}

fn export(live: &LiveCatalog, dir: &Path) -> Vec<u8> {
    let path = dir.join("export");
    live.snapshot().to_catalog(|| {}).unwrap().save(&path).unwrap();
    std::fs::read(path).unwrap()
}

fn apply(live: &LiveCatalog, proposal: &Proposal) -> Vec<EntryDone> {
    let entries: Vec<&[u8]> = proposal.entries().iter().map(Vec::as_slice).collect();
    live.apply_entries(proposal.after() + 1, &entries).unwrap()
}

fn run(operations: Vec<Operation>) {
    let dir = tempfile::tempdir().unwrap();
    let first = empty(&dir.path().join("first"), MergePolicy::Always);
    let mut second = empty(&dir.path().join("second"), MergePolicy::Never);
    let (mut model, mut kept) = (Model::default(), Vec::<(u64, Model)>::new());
    for operation in operations {
        let mut proposal = first.proposal();
        match operation {
            Operation::Batches(batches) => {
                for updates in batches {
                    // Against the definition: what it refuses is refused.
                    let mut after = model.clone();
                    let is_sound = updates.iter().all(|update| after.apply_one(update));
                    match first.propose_batch(&mut proposal, &updates, None) {
                        Ok(proposed) => {
                            assert!(is_sound, "{updates:?}");
                            assert_eq!(proposed, Proposed::Entry(proposal.next() - 1));
                            model = after;
                        }
                        Err(error) => assert!(!is_sound, "{error}: {updates:?}"),
                    }
                }
            }
            Operation::Keep => {
                first.propose_keep(&mut proposal, Some("name")).unwrap();
                kept.push((proposal.next() - 1, model.clone()));
            }
            Operation::Forget(at) if !kept.is_empty() => {
                let (generation, _) = kept.remove(at % kept.len());
                first.propose_forget(&mut proposal, generation).unwrap();
            }
            Operation::Rollback(at) if !kept.is_empty() => {
                let (generation, then) = &kept[at % kept.len()];
                first.propose_rollback(&mut proposal, *generation).unwrap();
                model = then.clone();
            }
            Operation::Forget(_) | Operation::Rollback(_) => {
                assert!(first.propose_forget(&mut proposal, 1 << 40).is_err());
            }
            Operation::Reopen => {
                drop(second);
                let dir = dir.path().join("second");
                second = LiveCatalog::open_replica(&dir, LOG, options(MergePolicy::Never)).unwrap();
            }
            Operation::NewBase => {
                let work = tempfile::tempdir_in(&dir).unwrap();
                let base = files_of(&first, work.path());
                drop(second);
                let dir = dir.path().join("second");
                std::fs::remove_dir_all(&dir).unwrap();
                let of_base = options(MergePolicy::Never);
                second = LiveCatalog::create_replica(&dir, LOG, &base, of_base).unwrap();
            }
            Operation::SkipTo => {
                for _ in 0..2 {
                    let mut skipped = first.proposal();
                    let updates = [Update::Upsert(item(99, &[1, 2], Some(1), None))];
                    first.propose_batch(&mut skipped, &updates, None).unwrap();
                    model.apply(&updates);
                    apply(&first, &skipped);
                }
                let work = tempfile::tempdir_in(&dir).unwrap();
                second.install_base(&files_of(&first, work.path())).unwrap();
                proposal = first.proposal();
            }
        }
        let done = apply(&first, &proposal);
        assert_eq!(apply(&second, &proposal), done);
        for live in [&first, &second] {
            let snapshot = live.snapshot();
            assert_eq!(snapshot.generation(), proposal.next() - 1);
            check(&snapshot, &model, None, 1);
            let generations: Vec<u64> =
                live.generations().iter().map(|kept| kept.generation).collect();
            assert_eq!(generations, kept.iter().map(|(kept, _)| *kept).collect::<Vec<_>>());
        }
        assert_eq!(export(&first, dir.path()), export(&second, dir.path()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn replicas_of_one_log_are_the_same(operations in operations()) {
        run(operations);
    }
}

fn upsert(id: u32, price: serde_json::Value) -> Update {
    let mut item = item(id, &[id % 3, 1], None, None);
    item.attributes.insert("price".to_owned(), price);
    Update::Upsert(item)
}

#[test]
fn gaps_repeats_and_what_cannot_be_read_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let live = empty(dir.path(), MergePolicy::Never);
    let mut proposal = live.proposal();
    for id in 0..3 {
        live.propose_batch(&mut proposal, &[upsert(id, 1.into())], None).unwrap();
    }
    let entries: Vec<&[u8]> = proposal.entries().iter().map(Vec::as_slice).collect();
    let gap = live.apply_entries(2, &entries[1..]).unwrap_err();
    assert!(gap.is_gap() && gap.to_string().contains("entry 2"), "{gap}");
    let unreadable = live.apply_entries(1, &[entries[0], b"nonsense", entries[2]]).unwrap_err();
    assert!(unreadable.to_string().contains("entry 2"), "{unreadable}");
    // What came before it is there, and nothing after it.
    assert_eq!((live.snapshot().generation(), live.snapshot().num_items()), (1, 1));
    let repeated = live.apply_entries(1, &entries).unwrap_err();
    assert!(repeated.is_repeated_entry(), "{repeated}");
    live.apply_entries(2, &entries[1..]).unwrap();
    // By the rules of this catalog no item like that can be.
    let other = empty(&dir.path().join("other"), MergePolicy::Never);
    let mut proposal = other.proposal();
    other.propose_batch(&mut proposal, &[upsert(9, "cheap".into())], None).unwrap();
    let foreign = live.apply_entries(4, &[&proposal.entries()[0]]).unwrap_err();
    assert!(foreign.to_string().contains("entry 4"), "{foreign}");
    assert_eq!((live.snapshot().generation(), live.snapshot().num_items()), (3, 3));
}

#[test]
fn a_replica_changes_by_its_log_alone() {
    let dir = tempfile::tempdir().unwrap();
    let live = empty(dir.path(), MergePolicy::Never);
    let updates = [upsert(1, 1.into())];
    let key = BatchKey { name: "k".into(), fingerprint: [1; 32] };
    let refused = [
        live.apply(&updates).map(|_| ()),
        live.apply_keyed(&updates, &key).map(|_| ()),
        live.apply_valid(&updates).map(|_| ()),
        live.keep(None).map(|_| ()),
        live.forget(0),
        live.rollback(0).map(|_| ()),
        live.widen(&[1]).map(|_| ()),
    ];
    for refused in refused {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(LOG), "{error}");
    }
    drop(live);
    let open = |result: Result<LiveCatalog, palmette_catalog_live::LiveError>| {
        result.map(drop).unwrap_err().to_string()
    };
    assert!(open(LiveCatalog::open_with(dir.path(), LiveOptions::default())).contains(LOG));
    let other = LiveCatalog::open_replica(dir.path(), "another", LiveOptions::default());
    assert!(other.as_ref().is_err_and(|error| error.is_other_log()));
    let own = dir.path().join("own");
    drop(LiveCatalog::create_with(&own, None, None, LiveOptions::default()).unwrap());
    let own = LiveCatalog::open_replica(&own, LOG, LiveOptions::default());
    assert!(own.as_ref().is_err_and(|error| error.is_other_log()));
}

#[test]
fn a_batch_with_a_key_is_applied_once_however_it_comes() {
    let dir = tempfile::tempdir().unwrap();
    let live = empty(&dir.path().join("a"), MergePolicy::Never);
    let key = |name: &str| BatchKey { name: name.to_owned(), fingerprint: [1; 32] };
    let updates = [upsert(1, 1.into())];
    let mut proposal = live.proposal();
    let propose =
        |proposal: &mut Proposal| live.propose_batch(proposal, &updates, Some(&key("a"))).unwrap();
    assert_eq!(propose(&mut proposal), Proposed::Entry(1));
    assert_eq!(propose(&mut proposal), Proposed::Later);
    apply(&live, &proposal);
    let Proposed::Repeated(applied) = propose(&mut live.proposal()) else { panic!("it came") };
    assert_eq!(applied.generation, 1);
    // The same entry again, as a log has it whose writers did not look: nothing is applied, and
    // generations go on.
    let again: &[u8] = &proposal.entries()[0];
    let done = live.apply_entries(2, &[again]).unwrap();
    assert!(matches!(&done[..], [EntryDone::Batch(done)] if done.is_repeated));
    assert_eq!((live.snapshot().generation(), live.snapshot().num_items()), (2, 1));
    // A base has the keys.
    let work = tempfile::tempdir_in(&dir).unwrap();
    let base = files_of(&live, work.path());
    let other =
        LiveCatalog::create_replica(&dir.path().join("b"), LOG, &base, LiveOptions::default());
    assert_eq!(other.unwrap().first_applied(&key("a")).unwrap(), Some(applied));
}

#[test]
fn whole_numbers_are_the_same_whatever_the_segments() {
    let dir = tempfile::tempdir().unwrap();
    let export = |merging, name: &str| {
        let live = empty(&dir.path().join(name), merging);
        for (id, price) in [(1, serde_json::json!(3)), (2, serde_json::json!(4.0))] {
            let mut proposal = live.proposal();
            live.propose_batch(&mut proposal, &[upsert(id, price)], None).unwrap();
            apply(&live, &proposal);
            live.merge_all().unwrap();
        }
        let work = tempfile::tempdir_in(&dir).unwrap();
        let base = files_of(&live, work.path());
        let catalog = Catalog::open(base.dir.join(BASE_CATALOG)).unwrap();
        let shown = (0..2).map(|rank| catalog.attributes(rank)["price"].to_string());
        assert_eq!(shown.collect::<Vec<_>>(), ["3", "4"]);
        export(&live, dir.path())
    };
    assert_eq!(export(MergePolicy::Always, "a"), export(MergePolicy::Never, "b"));
}

#[test]
fn damage_of_a_base_is_an_error_and_leaves_a_replica_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let first = empty(&dir.path().join("a"), MergePolicy::Never);
    let second = empty(&dir.path().join("b"), MergePolicy::Never);
    let mut proposal = first.proposal();
    first.propose_batch(&mut proposal, &[upsert(1, 1.into())], None).unwrap();
    apply(&first, &proposal);
    let work = tempfile::tempdir_in(&dir).unwrap();
    let base = files_of(&first, work.path());
    let path = base.dir.join(BASE_CATALOG);
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(second.install_base(&base).is_err());
    assert_eq!(second.snapshot().generation(), 0);
    apply(&second, &proposal);
    let older = files_of(&first, tempfile::tempdir_in(&dir).unwrap().keep().as_path());
    assert!(second.install_base(&older).unwrap_err().is_repeated_entry());
}

/// A run that is longer than there is room for waits for merges in its middle: what they seal and
/// what a checkpoint writes meanwhile has every entry before.
#[test]
fn long_runs_of_entries_lose_nothing_to_merges() {
    let dir = tempfile::tempdir().unwrap();
    for (round, memory_items) in [1, 2, 5].into_iter().cycle().take(12).enumerate() {
        let path = dir.path().join(round.to_string());
        let options = LiveOptions { memory_items, ..options(MergePolicy::Always) };
        drop(empty(&path, MergePolicy::Always));
        let live = LiveCatalog::open_replica(&path, LOG, options.clone()).unwrap();
        let (mut proposal, mut model) = (live.proposal(), Model::default());
        for number in 0..400 {
            let update = Update::Upsert(item(number, &[number % 4, number % 3], None, None));
            assert!(model.apply_one(&update));
            live.propose_batch(&mut proposal, &[update], None).unwrap();
        }
        assert_eq!(apply(&live, &proposal).len(), 400);
        check(&live.snapshot(), &model, None, 0);
        drop(live);
        let live = LiveCatalog::open_replica(&path, LOG, options).unwrap();
        assert_eq!(live.snapshot().generation(), 400);
        check(&live.snapshot(), &model, None, 0);
    }
}
