//! Directories that are damaged, hostile or in use: errors that say so, never a panic.

use std::path::{Path, PathBuf};

use palmette_catalog::Item;
use palmette_catalog_live::{
    LiveCatalog, LiveError, LiveOptions, LiveReader, MergePolicy, ReaderOptions, Schema, Update,
};
use palmette_mapped::Check;

use crate::same::{Model, check, item};

fn options() -> LiveOptions {
    LiveOptions {
        merging: MergePolicy::Never,
        memory_items: 4,
        checkpoint_bytes: u64::MAX,
        check: Check::Whole,
        ..LiveOptions::default()
    }
}

fn batch(n: u32) -> Vec<Update> {
    let upsert = |i: u32| Update::Upsert(item(n * 2 + i, &[n % 4, i, 1], Some(1), Some(0.1)));
    (0..4).map(upsert).chain([Update::Delete(format!("item{}", n * 2 + 1))]).collect()
}

/// A live catalog with segments, live files, a kept generation and a log; its model before the last
/// batch, and after.
fn made(dir: &Path) -> (Model, Model) {
    let live = LiveCatalog::create_with(dir, None, None, options()).expect("new");
    let mut model = Model::default();
    let apply = |model: &mut Model, n: u32| {
        live.apply(&batch(n)).expect("sound");
        model.apply(&batch(n));
    };
    (0..3).for_each(|n| apply(&mut model, n));
    for number in ["", "7"] {
        let refused = live.keep(Some(number)).unwrap_err().to_string();
        assert!(refused.contains("give a name with a letter"), "{refused}");
    }
    live.keep(Some("before")).expect("room");
    (3..6).for_each(|n| apply(&mut model, n));
    let before = model.clone();
    apply(&mut model, 6);
    (before, model)
}

fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let paths =
        std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("readable").path());
    let name = |path: &PathBuf| path.file_name().and_then(|n| n.to_str()).map(str::to_owned);
    let mut paths: Vec<_> =
        paths.filter(|path| name(path).is_some_and(|name| name.starts_with(prefix))).collect();
    paths.sort();
    paths
}

fn copy(from: &Path, to: &Path) {
    _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a folder");
    for path in files(from, "") {
        std::fs::copy(&path, to.join(path.file_name().expect("a file"))).expect("room");
    }
}

#[test]
fn a_log_cut_or_flipped_in_its_last_record_opens_with_the_batches_before() {
    let dir = tempfile::tempdir().expect("a folder");
    let (made_in, copied) = (dir.path().join("made"), dir.path().join("copied"));
    let (before, after) = made(&made_in);
    let [log] = &files(&made_in, "wal-")[..] else { panic!("one log") };
    let bytes = std::fs::read(log).expect("it is there");
    let mut last_record = Vec::new();
    // The last batch was being written when the process ended: the mark does not have it.
    let mut bytes = bytes;
    bytes[32..40].copy_from_slice(&6_u64.to_le_bytes());
    let sum = crc32fast::hash(&bytes[32..40]);
    bytes[40..44].copy_from_slice(&sum.to_le_bytes());
    for at in (64..bytes.len()).rev() {
        copy(&made_in, &copied);
        let log = copied.join(log.file_name().expect("a file"));
        let mut cut = bytes.clone();
        if at % 2 == 0 {
            cut.truncate(at)
        } else {
            cut[at] ^= 0x10
        }
        std::fs::write(&log, &cut).expect("room");
        match LiveCatalog::open_with(&copied, options()) {
            Ok(live) if live.snapshot().generation() == 6 => {
                assert!(live.status().torn_bytes > 0 || cut.len() < bytes.len());
                check(&live.snapshot(), &before, None, 1);
                // It goes on as if the batch had never been.
                live.apply(&batch(6)).expect("sound");
                drop(live);
                let live = LiveCatalog::open_with(&copied, options()).expect("sound");
                check(&live.snapshot(), &after, None, 1);
                last_record.push(at);
            }
            Ok(_) => panic!("byte {at}: an acknowledged batch was taken for torn"),
            Err(e) => {
                let name = log.to_str().expect("UTF-8");
                assert!(e.to_string().contains(name) && e.to_string().contains("at byte"), "{e}");
                assert_eq!(std::fs::read(&log).expect("it is there"), cut, "nothing was changed");
            }
        }
    }
    let whole = last_record.iter().rev().zip(last_record[last_record.len() - 1]..);
    assert!(last_record.len() > 60 && whole.into_iter().all(|(a, b)| *a == b), "{last_record:?}");
}

#[test]
fn a_missing_or_damaged_file_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let (made_in, copied) = (dir.path().join("made"), dir.path().join("copied"));
    made(&made_in);
    let mut num_live = 0;
    for path in files(&made_in, "") {
        let name = path.file_name().and_then(|n| n.to_str()).expect("UTF-8").to_owned();
        if name == "lock" {
            continue;
        }
        num_live += usize::from(name.starts_with("live-"));
        let bytes = std::fs::read(&path).expect("it is there");
        let check = |damaged: Option<&[u8]>| {
            copy(&made_in, &copied);
            match damaged {
                Some(bytes) => std::fs::write(copied.join(&name), bytes).expect("room"),
                None => std::fs::remove_file(copied.join(&name)).expect("it is there"),
            }
            match LiveCatalog::open_with(&copied, options()) {
                Err(e) => {
                    let named = name.starts_with("manifest-") || e.to_string().contains(&name);
                    assert!(named, "{name}: {e}");
                }
                Ok(live) => {
                    // White space in a manifest may be any.
                    let is_space = |b: &u8| b.is_ascii_whitespace();
                    let json = damaged.expect("it is there");
                    let same = json
                        .iter()
                        .filter(|b| !is_space(b))
                        .eq(bytes.iter().filter(|b| !is_space(b)));
                    // As may the mark of a log whose records are whole.
                    let is_whole = name.starts_with("wal-")
                        && json.len() == bytes.len()
                        && (&json[..32], &json[64..]) == (&bytes[..32], &bytes[64..]);
                    assert!(same || is_whole, "{name} was damaged and opened");
                    assert_eq!(live.snapshot().generation(), 7);
                }
            }
        };
        check(None);
        check(Some(&[]));
        for at in (0..bytes.len()).step_by(bytes.len() / 150 + 1) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 7);
            check(Some(&flipped));
            if !name.starts_with("wal-") {
                check(Some(&bytes[..at]));
            }
        }
    }
    assert!(num_live > 0);
}

#[test]
fn hostile_manifests_are_errors() {
    let dir = tempfile::tempdir().expect("a folder");
    let (made_in, copied) = (dir.path().join("made"), dir.path().join("copied"));
    made(&made_in);
    let [manifest] = &files(&made_in, "manifest-")[..] else { panic!("one manifest") };
    let text = std::fs::read_to_string(manifest).expect("it is there");
    let good: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let hostile: [fn(&mut serde_json::Value); 8] = [
        |m| m["number"] = 7.into(),
        |m| m["version"] = 2.into(),
        |m| m["next_file_number"] = 0.into(),
        |m| m["contents"]["segments"][0]["num_items"] = u64::MAX.into(),
        |m| m["contents"]["segments"][0]["num_live"] = u64::MAX.into(),
        |m| m["contents"]["segments"][0]["is_memory"] = true.into(),
        |m| m["contents"]["segments"][0]["file_number"] = u64::MAX.into(),
        |m| {
            let segment = m["contents"]["segments"][0].clone();
            m["contents"]["segments"].as_array_mut().expect("a list").extend(vec![segment; 20]);
        },
    ];
    for (number, change) in hostile.into_iter().enumerate() {
        let mut changed = good.clone();
        change(&mut changed["manifest"]);
        // With the checksum that it should have.
        let bytes = serde_json::to_vec(&changed["manifest"]).expect("JSON");
        changed["checksum"] = crc32fast::hash(&bytes).into();
        copy(&made_in, &copied);
        let path = copied.join(manifest.file_name().expect("a file"));
        std::fs::write(&path, changed.to_string()).expect("room");
        let error = LiveCatalog::open_with(&copied, options()).expect_err("hostile").to_string();
        assert!(!error.contains("checksum"), "change {number}: {error}");
    }
}

#[test]
fn a_directory_in_use_missing_or_taken_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().join("live");
    assert!(LiveCatalog::open_with(&dir, options()).is_err());
    let live = LiveCatalog::create_with(&dir, None, None, options()).expect("new");
    assert!(LiveCatalog::open_with(&dir, options()).expect_err("it is open").is_locked());
    assert!(
        LiveCatalog::create_with(&dir, None, None, options()).expect_err("it is open").is_locked()
    );
    drop(live);
    assert!(LiveCatalog::create_with(&dir, None, None, options()).is_err());
    LiveCatalog::open_with(&dir, options()).expect("it is closed");
}

#[test]
fn a_batch_with_one_bad_update_changes_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let schema = Schema { codes_per_level: Some(vec![4, 4]), ..Schema::default() };
    let dir = dir.path().join("live");
    let live = LiveCatalog::create_with(&dir, None, Some(schema), options()).expect("new");
    let good = Update::Upsert(item(1, &[1, 2], Some(1), Some(2.0)));
    live.apply(std::slice::from_ref(&good)).expect("sound");
    let upsert = |id: &str, codes: &[u32], attributes: serde_json::Value| {
        let attributes = attributes.as_object().expect("an object").clone();
        Update::Upsert(Item { id: id.into(), codes: codes.into(), attributes })
    };
    let none = serde_json::json!({});
    let bad = [
        (upsert("", &[1], none.clone()), "empty id"),
        (Update::Delete(String::new()), "empty id"),
        (upsert("a", &[], none.clone()), "empty semantic ID"),
        (upsert("a", &[1, 4], none.clone()), "has code 4 at level 1; codes there are below 4"),
        (upsert("a", &[1, 1, 1], none.clone()), "has 3 codes"),
        (upsert("a", &[1], serde_json::json!({"price": "much"})), "declared number"),
        (upsert("a", &[1], serde_json::json!({"colour": 3})), "declared keyword"),
    ];
    for (update, rule) in bad {
        let error: LiveError = live.apply(&[good.clone(), update.clone()]).expect_err("bad");
        assert_eq!(error.update_index(), Some(1));
        assert!(error.rule().is_some_and(|found| found.contains(rule)), "{error}");
        assert!(error.to_string().contains("update 1"), "{error}");
        assert_eq!(live.snapshot().generation(), 1);
    }
    let new_twice = [
        upsert("a", &[1], serde_json::json!({"size": 1})),
        upsert("b", &[1], serde_json::json!({"size": "large"})),
    ];
    assert_eq!(live.apply(&new_twice).expect_err("two kinds").update_index(), Some(1));
    assert_eq!(live.snapshot().schema().columns.len(), 2);
    drop(live);
    assert_eq!(LiveCatalog::open_with(&dir, options()).expect("closed").snapshot().generation(), 1);
}

/// Bits that are flipped, one at a time; more by the environment.
fn num_flips() -> u64 {
    std::env::var("PALMETTE_FLIPS").map_or(400, |given| given.parse().expect("a number"))
}

/// A live catalog in which every kind of file is: segments with and without tombstones, departed
/// items, a kept generation, a log.
fn made_of_all_files(dir: &Path) -> Model {
    let (_, mut model) = made(dir);
    let live = LiveCatalog::open_with(dir, options()).expect("closed");
    live.merge_all().expect("room");
    for n in 7..9 {
        live.apply(&batch(n)).expect("sound");
        model.apply(&batch(n));
    }
    live.checkpoint().expect("room");
    live.apply(&batch(9)).expect("sound");
    model.apply(&batch(9));
    model
}

/// Single flipped bits: whatever file has one, a reader has the same items or an error that names
/// the file, and a writer that opens it writes no other items into new files.
#[test]
fn a_flipped_bit_changes_no_answer_and_is_not_laundered() {
    let dir = tempfile::tempdir().expect("a folder");
    let (made_in, copied) = (dir.path().join("made"), dir.path().join("copied"));
    let model = made_of_all_files(&made_in);
    let all: Vec<(PathBuf, u64)> = files(&made_in, "")
        .into_iter()
        .map(|path| (path.clone(), std::fs::metadata(path).expect("it is there").len()))
        .filter(|&(_, len)| len > 0)
        .collect();
    for prefix in ["segment-", "departed-", "live-", "manifest-", "wal-"] {
        assert!(!files(&made_in, prefix).is_empty(), "{prefix}");
    }
    let num_bits: u64 = all.iter().map(|(_, len)| len * 8).sum();
    let mut found = 0;
    for flip in 0..num_flips() {
        // Bits in an order without a pattern.
        let mut bit = (flip + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % num_bits;
        let mut files = all.iter();
        let path = loop {
            let (path, len) = files.next().expect("bits of all files");
            if bit < len * 8 {
                break path;
            }
            bit -= len * 8;
        };
        let mut bytes = std::fs::read(path).expect("it is there");
        let whole = bytes.clone();
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        std::fs::write(path, &bytes).expect("room");
        let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let options_of_reader = ReaderOptions { poll: None, ..ReaderOptions::default() };
        match LiveReader::open_with(&made_in, options_of_reader) {
            Ok(reader) => {
                check(&reader.snapshot(), &model, None, 1);
                // Only a kept generation is damaged.
                if let Err(e) = reader.generation("before") {
                    assert!(e.to_string().contains(name), "{name}, bit {bit}: {e}");
                    found += 1;
                }
            }
            Err(e) => {
                assert!(e.to_string().contains(name), "{name}, bit {bit}: {e}");
                found += 1;
            }
        }
        if flip % 4 == 0 {
            copy(&made_in, &copied);
            if let Ok(live) = LiveCatalog::open_with(&copied, LiveOptions::clone(&sums())) {
                let merged = live.merge_all().and_then(|()| live.checkpoint());
                merged.expect("what was opened is sound");
                drop(live);
                let live = LiveCatalog::open_with(&copied, sums()).expect("written anew");
                check(&live.snapshot(), &model, None, 1);
            }
        }
        std::fs::write(path, &whole).expect("room");
    }
    assert!(found * 2 > num_flips(), "{found} of {} flips were errors", num_flips());
}

fn sums() -> LiveOptions {
    LiveOptions { check: Check::Sums, ..options() }
}

/// Files are mapped: damage may come after they were opened and verified.
#[test]
fn damage_while_it_is_open_is_found_before_it_is_merged_or_exported() {
    let dir = tempfile::tempdir().expect("a folder");
    made_of_all_files(dir.path());
    let live = LiveCatalog::open_with(dir.path(), sums()).expect("closed");
    live.snapshot().to_catalog(|| {}).expect("sound");
    let segment = files(dir.path(), "segment-").pop().expect("a segment");
    let all = files(dir.path(), "segment-");
    for path in all {
        let mut file =
            std::fs::OpenOptions::new().write(true).read(true).open(&path).expect("it is there");
        let at = std::io::Seek::seek(&mut file, std::io::SeekFrom::End(-900)).expect("long enough");
        assert!(at > 0);
        std::io::Write::write_all(&mut file, &[0x5a; 3]).expect("room");
    }
    let named = |error: LiveError| {
        let error = error.to_string();
        assert!(error.contains("segment-") && error.contains("is damaged"), "{error}");
    };
    named(live.snapshot().to_catalog(|| {}).expect_err("damaged"));
    named(live.merge_all().expect_err("damaged"));
    assert!(segment.exists());
}

/// A reader that is told to goes on without a damaged segment, and says so.
#[test]
fn a_degraded_reader_goes_on_without_a_damaged_segment() {
    let dir = tempfile::tempdir().expect("a folder");
    let model = made_of_all_files(dir.path());
    // The first three are of the generation that is kept.
    let path = files(dir.path(), "segment-").into_iter().nth(3).expect("a segment");
    let mut bytes = std::fs::read(&path).expect("it is there");
    let at = bytes.len() - 900;
    bytes[at] ^= 1;
    std::fs::write(&path, &bytes).expect("room");
    let options = ReaderOptions { poll: None, ..ReaderOptions::default() };
    let error =
        LiveReader::open_with(dir.path(), options.clone()).expect_err("damaged").to_string();
    assert!(error.contains(path.to_str().expect("UTF-8")), "{error}");
    let reader = LiveReader::open_with(dir.path(), ReaderOptions { degraded: true, ..options });
    let snapshot = reader.expect("the others are sound").snapshot();
    let [damaged] = snapshot.damaged() else { panic!("{:?}", snapshot.damaged()) };
    assert!(path.ends_with(&damaged.file) && damaged.problem.contains("is damaged"), "{damaged:?}");
    assert_eq!(snapshot.num_items() + damaged.num_items, model.items.len() as u64);
    assert!(snapshot.items().all(|at| model.items.contains(&snapshot.item(at))));
}
