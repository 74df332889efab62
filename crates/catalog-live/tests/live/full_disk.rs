//! A disk that is full for a while, and what a process leaves that is killed while it writes.

use std::time::{Duration, Instant};

use palmette_catalog::Item;
use palmette_catalog_live::{LiveCatalog, LiveOptions, LiveReader, ReaderOptions, Update};
use palmette_testkit::disk::SmallDisk;
use serde_json::json;

use crate::same::{Model, check, item};

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited for too long until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A batch of some KiB.
fn batch(n: u32) -> Vec<Update> {
    let upsert = |i: u32| {
        let Item { id, codes, mut attributes } =
            item(n * 5 + i, &[n % 4, i % 6, 1], Some(1), Some(0.1));
        attributes.insert("note".to_owned(), json!("x".repeat(300) + &format!("{n} {i}")));
        Update::Upsert(Item { id, codes, attributes })
    };
    (0..9).map(upsert).collect()
}

#[test]
fn a_full_disk_refuses_changes_and_a_free_one_takes_them_again() {
    let Some(disk) = SmallDisk::mount(3 << 10) else { return };
    let dir = disk.path().join("live");
    // Merges and checkpoints all the time: they find no room either.
    let options =
        LiveOptions { memory_items: 8, checkpoint_bytes: 20_000, ..LiveOptions::default() };
    let live = LiveCatalog::create_with(&dir, None, None, options.clone()).expect("there is room");
    let reader =
        LiveReader::open_with(&dir, ReaderOptions { poll: None, ..ReaderOptions::default() });
    let reader = reader.expect("sound");
    let mut model = Model::default();
    let mut n = 0;
    for _ in 0..3 {
        for _ in 0..20 {
            n += 1;
            live.apply(&batch(n)).expect("there is room");
            model.apply(&batch(n));
        }
        disk.fill();
        let (mut num_refused, mut is_shown) = (0, false);
        while num_refused < 5 {
            n += 1;
            match live.apply(&batch(n)) {
                // A checkpoint has made room.
                Ok(_) => model.apply(&batch(n)),
                Err(error) => {
                    assert!(error.is_passing(), "{error}");
                    assert!(error.to_string().contains("cannot write the log"), "{error}");
                    num_refused += 1;
                    is_shown |= live.status().write_error.is_some();
                }
            }
        }
        assert!(is_shown);
        check(&live.snapshot(), &model, None, u64::from(n));
        reader.refresh().expect("sound");
        check(&reader.snapshot(), &model, None, u64::from(n));
        disk.free();
        wait_until("it is seen that there is room", || {
            let status = live.status();
            status.write_error.is_none() && status.background_error.is_none()
        });
        n += 1;
        live.apply(&batch(n)).expect("there is room again");
        model.apply(&batch(n));
        check(&live.snapshot(), &model, None, u64::from(n));
    }
    drop(live);
    let again = LiveCatalog::open_with(&dir, options).expect("sound");
    check(&again.snapshot(), &model, None, u64::from(n));
    again.checkpoint().expect("there is room");
    check(&again.snapshot(), &model, None, u64::from(n));
}

/// Files that a killed process was writing are removed by the next that writes, and by no reader;
/// files of others stay.
#[test]
fn temporary_files_go_at_the_next_start() {
    let dir = tempfile::tempdir().expect("a folder");
    let open = || LiveCatalog::open_with(dir.path(), LiveOptions::default());
    drop(LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default()).expect("new"));
    let left = dir.path().join(".tmpAb12Cd");
    let others = [dir.path().join("notes.tmp"), dir.path().join(".hidden")];
    for path in others.iter().chain([&left]) {
        std::fs::write(path, "half").expect("room");
    }
    std::fs::create_dir(dir.path().join(".tmpfolder")).expect("room");
    drop(LiveReader::open_with(dir.path(), ReaderOptions::default()).expect("sound"));
    assert!(left.exists(), "somebody may be writing it");
    let live = open().expect("sound");
    assert!(!left.exists());
    assert!(others.iter().all(|path| path.exists()) && dir.path().join(".tmpfolder").exists());
    // Whatever it writes leaves none.
    live.apply(&batch(1)).expect("room");
    live.keep(None).expect("room");
    let names = std::fs::read_dir(dir.path())
        .expect("a folder")
        .map(|entry| entry.expect("readable").file_name());
    let temporary = names.filter(|name| name.to_string_lossy().starts_with(".tmp")).count();
    assert_eq!(temporary, 1, "the folder of somebody else");
}
