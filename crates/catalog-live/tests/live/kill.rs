//! Killing the process that writes, at any moment, again and again: what was acknowledged is there.
//!
//! This binary runs itself as the process to be killed. The same directory goes on from round to
//! round. `PALMETTE_KILLS` sets the number of rounds, 20 without it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use palmette_catalog_live::{BatchKey, LiveCatalog, LiveOptions, MergePolicy, SyncPolicy, Update};

use crate::same::{Model, check, item};

/// The directory of the live catalog: set only in the process that is to be killed.
const CHILD_DIR: &str = "PALMETTE_LIVE_CHILD";
const NUM_IDS: u64 = 400;

/// Tiny tiers and logs, so that merges and checkpoints are always under way.
fn options() -> LiveOptions {
    LiveOptions {
        sync: SyncPolicy::EveryBatch,
        merging: MergePolicy::Tiered,
        memory_items: 6,
        checkpoint_bytes: 600,
        map_items: 40,
        ..LiveOptions::default()
    }
}

/// A finaliser (Steele et al., "Fast splittable pseudorandom number generators").
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What makes a generation: every 50th goes back to the generation that was kept last, all others
/// are batches.
fn is_rollback(generation: u64) -> bool {
    generation.is_multiple_of(50)
}

/// The generation that is kept when `generation` is rolled back: the last that is 20 after a
/// rollback.
fn kept_before(generation: u64) -> u64 {
    generation - 30
}

fn is_kept(generation: u64) -> bool {
    generation % 50 == 20
}

/// The batch that makes a generation.
fn batch(generation: u64) -> Vec<Update> {
    let random = |n: u64| mix(generation.wrapping_mul(1000) + n);
    let update = |n: u64| {
        let id = random(n) % NUM_IDS;
        if random(n + 100).is_multiple_of(3) {
            return Update::Delete(format!("item{id}"));
        }
        let len = 1 + random(n + 200) % 4;
        let codes: Vec<u32> = (0..len).map(|l| (random(n + 300 + l * 50) % 4) as u32).collect();
        let price = (random(n + 600) % 3 > 0).then(|| (random(n + 700) % 100) as f64 / 7.0);
        Update::Upsert(item(id as u32, &codes, Some((generation % 3) as u8), price))
    };
    (0..random(0) % 12).map(update).collect()
}

/// The key of that batch.
fn key(generation: u64) -> BatchKey {
    BatchKey { name: format!("batch {generation}"), fingerprint: [generation as u8; 32] }
}

/// In the process to be killed: applies generation after generation and says so, until it is
/// killed.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD_DIR) else { return };
    let live = LiveCatalog::open_with(Path::new(&dir), options()).expect("sound after a kill");
    let mut out = std::io::stdout().lock();
    loop {
        let generation = live.snapshot().generation();
        if is_kept(generation) && live.generations().iter().all(|g| g.generation != generation) {
            live.keep(None).expect("room");
            for old in live.generations().iter().filter(|old| old.generation < generation) {
                live.forget(old.generation).expect("it is kept");
            }
        }
        let next = generation + 1;
        let made = if is_rollback(next) {
            live.rollback(kept_before(next)).expect("it is kept")
        } else {
            let done = live.apply_keyed(&batch(next), &key(next)).expect("sound updates");
            assert!(!done.is_repeated, "generation {next} is new");
            done.applied.generation
        };
        assert_eq!(made, next);
        writeln!(out, "acknowledged {next}").and_then(|()| out.flush()).expect("a reader");
    }
}

/// Models of generations, one after another.
struct Models {
    generation: u64,
    model: Model,
    kept: Model,
}

impl Models {
    fn go_to(&mut self, generation: u64) {
        while self.generation < generation {
            self.generation += 1;
            if is_rollback(self.generation) {
                self.model = self.kept.clone();
            } else {
                self.model.apply(&batch(self.generation));
            }
            if is_kept(self.generation) {
                self.kept = self.model.clone();
            }
        }
    }
}

#[test]
fn what_was_acknowledged_outlives_being_killed() {
    let rounds = std::env::var("PALMETTE_KILLS").map_or(20, |n| n.parse().expect("a number"));
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().join("live");
    drop(LiveCatalog::create_with(&dir, None, None, options()).expect("new"));
    let mut models = Models { generation: 0, model: Model::default(), kept: Model::default() };
    let (mut merges, mut torn) = (0, 0);
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["kill::child", "--exact", "--nocapture"])
            .env(CHILD_DIR, &dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary runs");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut acknowledged = models.generation;
        let after = mix(round) % 60;
        let micros = mix(round + 1000) % 40_000;
        let (begin, begun) = std::sync::mpsc::channel::<()>();
        let killer = std::thread::spawn(move || {
            // Counts once enough batches were acknowledged, or the child has ended.
            _ = begun.recv();
            std::thread::sleep(Duration::from_micros(micros));
            child.kill().expect("it was started");
            child.wait().expect("it was killed")
        });
        let first = acknowledged;
        for line in lines.map_while(Result::ok) {
            let Some(number) = line.strip_prefix("acknowledged ") else { continue };
            // A line may be cut by the kill, but only its end: that is a smaller number.
            if let Ok(number) = number.parse::<u64>()
                && number == acknowledged + 1
            {
                acknowledged = number;
            }
            if acknowledged >= first + after {
                _ = begin.send(());
            }
        }
        _ = begin.send(());
        let status = killer.join().expect("no panic");
        assert!(!status.success(), "the child ended by itself: {status}");

        let live = LiveCatalog::open_with(&dir, options()).expect("sound after a kill");
        let snapshot = live.snapshot();
        let generation = snapshot.generation();
        // The batch after the last acknowledged one may be there, or not.
        assert!(
            (acknowledged..=acknowledged + 1).contains(&generation),
            "generation {generation} after {acknowledged} were acknowledged"
        );
        models.go_to(generation);
        // Batches come again whose answer may have been lost: once applied is applied.
        for before in generation.saturating_sub(3).max(1)..=generation {
            if !is_rollback(before) {
                let done = live.apply_keyed(&batch(before), &key(before)).expect("the same batch");
                assert!(done.is_repeated && done.applied.generation == before, "{done:?}");
            }
        }
        assert_eq!(live.first_applied(&key(generation + 1)).expect("no other"), None);
        assert_eq!(live.snapshot().generation(), generation);
        check(&snapshot, &models.model, None, round);
        live.wait_for_merges();
        check(&live.snapshot(), &models.model, None, round);
        (merges, torn) = (merges + live.status().merges_done, torn + live.status().torn_bytes);
        assert_eq!(live.status().background_error, None);
    }
    assert!(models.generation > rounds, "{} batches in {rounds} rounds", models.generation);
    eprintln!(
        "{rounds} kills, {} generations, {torn} torn bytes, {merges} merges after reopening",
        models.generation
    );
}
