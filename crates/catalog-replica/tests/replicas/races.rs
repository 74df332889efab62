//! Writers that race, replicas that come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use palmette_catalog_replica::{Change, ChangeError, DirectoryLog, MemoryLog, SharedLog};

use crate::crew::{Crew, batch, check_same, update, wait_until};

/// Three replicas, two writers at each, one replica that is closed and opened again all the time,
/// or loses its directory: in the end all have the same, and every batch is there once.
fn race(store: Arc<dyn SharedLog>, batches: u64) {
    let crew = Crew::new(store);
    let (first, second) = (crew.open("first"), crew.open("second"));
    let is_over = AtomicBool::new(false);
    let restarts = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (crew, replica) = (&crew, if writer % 2 == 0 { &first } else { &second });
                scope.spawn(move || {
                    for number in 0..batches {
                        let name = format!("{writer}-{number}");
                        // One item that is nobody else's, and one that all write.
                        let updates = vec![update(&name, number), update("shared", writer)];
                        crew.change(replica, batch(&name, updates)).unwrap();
                    }
                })
            })
            .collect();
        let restarting = scope.spawn(|| {
            let mut restarts = 0;
            while !is_over.load(Ordering::Relaxed) {
                let third = crew.open("third");
                std::thread::sleep(std::time::Duration::from_millis(10));
                drop(third);
                restarts += 1;
                if restarts % 3 == 0 {
                    std::fs::remove_dir_all(crew.dir.path().join("third")).unwrap();
                }
            }
            restarts
        });
        let done: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        done.into_iter().for_each(|done| done.unwrap());
        restarting.join().unwrap()
    });
    assert!(restarts > 0);
    let third = crew.open("third");
    // Each batch made one generation: none is lost, none is twice.
    check_same(&[&first, &second, &third], 4 * batches);
    let snapshot = third.live().snapshot();
    assert_eq!(snapshot.num_items(), 4 * batches + 2);
    for name in ["0-0", "3-1", "shared", "first"] {
        assert!(snapshot.find(name).is_some(), "{name}");
    }
    let (one, two) = (first.status(), second.status());
    assert!(one.appended > 0 && two.appended > 0, "{one:?} {two:?}");
    assert!(one.appended + two.appended <= 4 * batches);
    // What bases stand for is gone. One that was closed between making a base and trimming left that
    // to the next.
    assert!((crew.names("log").len() as u64) < 4 * batches, "the log is trimmed");
    crew.fill(&first, "more", 100);
    wait_until("old bases are gone", || crew.names("base").len() <= 2);
}

#[test]
fn writers_race_in_memory() {
    race(Arc::new(MemoryLog::default()), 60);
}

#[test]
fn writers_race_in_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    race(Arc::new(DirectoryLog::open(dir.path()).unwrap()), 30);
}

#[test]
fn a_lost_answer_is_found_again() {
    let store = Arc::new(MemoryLog::default());
    let crew = Crew::new(Arc::clone(&store) as Arc<dyn SharedLog>);
    let (first, second) = (crew.open("first"), crew.open("second"));
    for number in 0..10 {
        store.lose_answers(1);
        let name = format!("batch {number}");
        let done = crew.change(&first, batch(&name, vec![update(&name, number)])).unwrap();
        assert_eq!(done.generation, number + 1);
    }
    check_same(&[&first, &second], 10);
}

/// The client heard nothing, and asks another server: the first answer comes again.
#[test]
fn a_batch_that_is_repeated_elsewhere_is_applied_once() {
    let crew = Crew::new(Arc::new(MemoryLog::default()));
    let (first, second) = (crew.open("first"), crew.open("second"));
    let change = || batch("order 7", vec![update("a", 1)]);
    let done = crew.change(&first, change()).unwrap();
    crew.fill(&first, "other", 100);
    for replica in [&second, &first] {
        let again = crew.change(replica, change()).unwrap();
        let batch = again.batch.unwrap();
        assert!(batch.is_repeated);
        assert_eq!(batch.applied, done.batch.unwrap().applied);
    }
    // One that begins from a base knows it too.
    let third = crew.open("third");
    assert!(crew.change(&third, change()).unwrap().batch.unwrap().is_repeated);
    check_same(&[&first, &second, &third], 101);
}

#[test]
fn conditions_are_judged_at_the_place_in_the_log() {
    let crew = Crew::new(Arc::new(MemoryLog::default()));
    let replicas = [crew.open("first"), crew.open("second")];
    // Of those that ask for generation 0 one is first.
    let won: usize = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|at| {
                let (crew, replica) = (&crew, &replicas[at % 2]);
                scope.spawn(move || {
                    let change = batch(&format!("try {at}"), vec![update("a", at as u64)]);
                    match crew.runtime.block_on(replica.change(change, Some(vec![0]))) {
                        Ok(done) => {
                            assert_eq!(done.generation, 1);
                            1
                        }
                        Err(ChangeError::Elsewhere { now: 1 }) => 0,
                        Err(other) => panic!("{other}"),
                    }
                })
            })
            .collect();
        tries.into_iter().map(|tried| tried.join().unwrap()).sum()
    });
    assert_eq!(won, 1);
    check_same(&[&replicas[0], &replicas[1]], 1);
}

#[test]
fn kept_generations_are_everywhere_and_in_bases() {
    let crew = Crew::new(Arc::new(MemoryLog::default()));
    let (first, second) = (crew.open("first"), crew.open("second"));
    crew.fill(&first, "a", 5);
    let kept = crew.change(&second, Change::Keep { name: Some("opening".into()) }).unwrap();
    assert_eq!(kept.generation, 6);
    crew.fill(&second, "b", 120);
    let refused = crew.change(&first, Change::Rollback { to: 5 });
    assert!(matches!(refused, Err(ChangeError::Refused(error)) if error.is_not_kept()));
    // The third never saw the entry that keeps it.
    crate::crew::wait_until("a base is there", || {
        !crew.names("base").contains(&format!("{:020}.json", 0))
    });
    let third = crew.open("third");
    let done = crew.change(&third, Change::Rollback { to: 6 }).unwrap();
    check_same(&[&first, &second, &third], done.generation);
    assert_eq!(first.live().snapshot().num_items(), 6);
    let forgotten = crew.change(&first, Change::Forget { generation: 6 }).unwrap();
    check_same(&[&first, &second, &third], forgotten.generation);
    for replica in [&first, &second, &third] {
        assert!(replica.live().generations().is_empty());
    }
}
