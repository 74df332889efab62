//! Faults that must stop a replica: it says which entry, serves what it had, and goes on when that
//! is put right.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use palmette_catalog_replica::{CatalogLog, ChangeError, MemoryLog, Replica, SharedLog};

use crate::crew::{Crew, base, batch, check_same, update, wait_until};

fn crew() -> (Arc<MemoryLog>, Crew) {
    let store = Arc::new(MemoryLog::default());
    let mut crew = Crew::new(Arc::clone(&store) as Arc<dyn SharedLog>);
    // No base helps out.
    crew.options.base_entries = 1 << 40;
    crew.options.patience = Duration::from_millis(50);
    (store, crew)
}

/// Waits until a replica is stopped with these words, at this generation, and refuses changes.
#[track_caller]
fn check_stopped(crew: &Crew, replica: &Replica, generation: u64, words: &[&str]) {
    let says = || {
        let status = replica.status();
        let problem = status.problem.filter(|_| status.is_stopped).unwrap_or_default();
        words.iter().all(|word| problem.contains(word))
    };
    wait_until(&format!("it stops by {words:?}: {:?}", replica.status()), says);
    assert_eq!(replica.live().snapshot().generation(), generation);
    let refused = crew.change(replica, batch("refused", vec![update("x", 1)])).unwrap_err();
    assert!(matches!(refused, ChangeError::Unavailable(_)), "{refused}");
    // Before it went, and after: nothing past the fault was applied.
    assert_eq!(replica.live().snapshot().generation(), generation);
}

#[test]
fn damage_a_gap_and_foreign_frames_stop_a_replica_until_they_are_put_right() {
    let (store, crew) = crew();
    let first = crew.open("first");
    crew.fill(&first, "a", 6);
    let name = crew.frame(4);
    let sound = store.objects()[&name].clone();
    let flipped: Bytes = {
        let mut bytes = sound.to_vec();
        let at = bytes.len() - 9;
        bytes[at] ^= 4;
        bytes.into()
    };
    let of_other = base();
    let other = CatalogLog::begin(Arc::clone(&crew.store), "shop", &of_other);
    let other = crew.runtime.block_on(other).unwrap();
    let foreign =
        store.objects()[&format!("catalogs/shop/{}/log/{:020}", other.identity(), 0)].clone();
    let later = store.objects()[&crew.frame(5)].clone();
    for (fault, words) in [
        (Some(flipped), &["entry 4 cannot be applied", "checksum"][..]),
        (Some(sound.slice(..sound.len() - 1)), &["entry 4 cannot be applied", "checksum"]),
        (Some(Bytes::new()), &["entry 4 cannot be applied", "no frame"]),
        (Some(foreign), &["entry 4 cannot be applied", "two logs were swapped"]),
        (Some(later), &["entry 4 cannot be applied", "entry 5"]),
        (None, &["entry 4 is missing", "gap"]),
    ] {
        match fault {
            Some(bytes) => _ = store.objects().insert(name.clone(), bytes),
            None => _ = store.objects().remove(&name),
        }
        let second = crew.open("second");
        check_stopped(&crew, &second, 3, words);
        store.objects().insert(name.clone(), sound.clone());
        wait_until("it goes on", || second.status().problem.is_none());
        check_same(&[&first, &second], 6);
        drop(second);
        std::fs::remove_dir_all(crew.dir.path().join("second")).unwrap();
    }
}

#[test]
fn a_log_of_another_history_is_refused() {
    let (store, crew) = crew();
    let first = crew.open("first");
    crew.fill(&first, "a", 3);
    let older = store.objects().clone();
    crew.fill(&first, "b", 3);
    // Restored from a copy: entries that were applied are gone.
    *store.objects() = older;
    check_stopped(&crew, &first, 6, &["log does not have entry 6", "older copy"]);
    // It went on from there, by somebody who knew no better.
    let second = crew.open("second");
    crew.fill(&second, "c", 5);
    check_stopped(&crew, &first, 6, &["entry 7 cannot be applied", "another history"]);
    // With its directory gone it follows the log that there is.
    drop(first);
    std::fs::remove_dir_all(crew.dir.path().join("first")).unwrap();
    check_same(&[&crew.open("first"), &second], 8);
}

#[test]
fn foreign_and_damaged_bases_are_refused() {
    let (store, crew) = crew();
    let other = crew.runtime.block_on(CatalogLog::begin(Arc::clone(&crew.store), "shop", &base()));
    let other = other.unwrap();
    let name = |log: &CatalogLog| format!("catalogs/shop/{}/base/{:020}.json", log.identity(), 0);
    let (own, foreign) = (name(&crew.log), store.objects()[&name(&other)].clone());
    let sound = store.objects().insert(own.clone(), foreign).unwrap();
    let error = crew.try_open("first").unwrap_err().to_string();
    assert!(error.contains("the base is of the log") && error.contains(&own), "{error}");
    let flipped =
        String::from_utf8(sound.to_vec()).unwrap().replace("\"num_items\": 1", "\"num_items\": 2");
    store.objects().insert(own.clone(), flipped.into());
    let error = crew.try_open("first").unwrap_err().to_string();
    assert!(error.contains("checksum") && error.contains(&own), "{error}");
    store.objects().insert(own, sound);
    let file = store
        .objects()
        .keys()
        .find(|name| {
            name.ends_with("catalog.palmcat") && name.contains(&crew.log.identity().to_string())
        })
        .unwrap()
        .clone();
    let mut bytes = store.objects()[&file].to_vec();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    store.objects().insert(file.clone(), bytes.into());
    let error = crew.try_open("first").unwrap_err().to_string();
    assert!(error.contains("damaged") && error.contains(&file), "{error}");
}

/// A replica that slept while the log was trimmed past it adds nothing to where nobody reads.
#[test]
fn a_replica_that_slept_adds_nothing_to_what_was_trimmed() {
    let store = Arc::new(MemoryLog::default());
    let mut crew = Crew::new(Arc::clone(&store) as Arc<dyn SharedLog>);
    let first = crew.open("first");
    crew.fill(&first, "a", 5);
    // It looks for gaps as good as never: what it finds, it finds when it adds.
    crew.options.check = Duration::from_secs(3600);
    crew.options.base_entries = 1 << 40;
    let second = crew.open("second");
    wait_until("it is there", || second.live().snapshot().generation() == 5);
    drop(second);
    crew.fill(&first, "b", 200);
    wait_until("the log is trimmed", || !store.objects().contains_key(&crew.frame(6)));
    // As it was when it slept: everything that it reads says that nothing follows.
    let second = crew.open("second");
    let done = crew.change(&second, batch("late", vec![update("late", 1)])).unwrap();
    assert_eq!(done.generation, 206);
    check_same(&[&first, &second], 206);
    assert!(!store.objects().contains_key(&crew.frame(6)));
}

#[test]
fn a_store_that_does_not_answer_is_waited_for() {
    let (store, crew) = crew();
    let first = crew.open("first");
    crew.fill(&first, "a", 2);
    store.set_down(true);
    wait_until("it says so", || first.status().problem.is_some());
    assert!(!first.status().is_stopped);
    let error = crew.change(&first, batch("b", vec![update("b", 1)])).unwrap_err();
    assert!(matches!(error, ChangeError::Unavailable(_) | ChangeError::Unknown(_)), "{error}");
    let lag = first.status().lag.unwrap();
    wait_until("the lag grows", || first.status().lag.unwrap() > lag + Duration::from_millis(20));
    assert_eq!(first.live().snapshot().generation(), 2);
    // Its own copy is enough to begin with.
    first.close();
    drop(first);
    let first = crew.open("first");
    assert_eq!((first.live().snapshot().generation(), first.status().lag), (2, None));
    store.set_down(false);
    wait_until("it is back", || first.status().problem.is_none() && first.status().lag.is_some());
    crew.fill(&first, "b", 1);
    check_same(&[&first], 3);
}
