//! Replicas as processes that write, killed at any moment: what was acknowledged is in the log,
//! once.
//!
//! This binary runs itself as the processes to be killed. `PALMETTE_KILLS` sets the number of
//! kills, `PALMETTE_TEST_LOG` the log.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use palmette_catalog_live::Update;
use palmette_catalog_replica::{CatalogLog, Change, Replica};

use crate::crew::{base, batch, check_same, options, runtime, update};

/// Set in a process that is to be killed: address, identity of the log, directory, and name.
pub(crate) const CHILD: &str = "PALMETTE_REPLICATE_CHILD";

/// A replica, and the runtime that outlives it.
fn open(address: &str, identity: &str, dir: &Path) -> (Replica, tokio::runtime::Runtime) {
    let runtime = runtime();
    let store = runtime.block_on(palmette_catalog_replica::open(address)).unwrap();
    let log = CatalogLog::new(store, "shop", identity.parse().unwrap());
    let replica = Replica::open(runtime.handle().clone(), log, "shop", dir, options()).unwrap();
    (replica, runtime)
}

fn change(name: &str, number: u64) -> Change {
    let key = format!("{name}-{number}");
    // One of its own, one that all write, and one that goes.
    let gone = Update::Delete(format!("{name}-{}", number.wrapping_sub(3)));
    batch(&key, vec![update(&key, number), update("shared", number), gone])
}

/// In the process to be killed: repeats the batch that is told to be the first, and goes on from
/// there.
pub(crate) fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let told: Vec<&str> = told.split('\n').collect();
    let [address, identity, dir, name, first] = told[..] else { panic!("{told:?}") };
    let (replica, runtime) = open(address, identity, Path::new(dir));
    let mut out = std::io::stdout().lock();
    for number in first.parse::<u64>().unwrap().. {
        let done = runtime.block_on(replica.change(change(name, number), None)).unwrap();
        let generation = done.batch.unwrap().applied.generation;
        writeln!(out, "acknowledged {number} {generation}").and_then(|()| out.flush()).unwrap();
    }
}

/// Acknowledged batches, by writer and number, with their generations.
type Acknowledged = Arc<Mutex<BTreeMap<(usize, u64), u64>>>;

struct Writing {
    child: Child,
    reading: JoinHandle<()>,
}

fn start(told: &str, writer: usize, acknowledged: &Acknowledged) -> Writing {
    let seen = acknowledged.lock().unwrap();
    // The last that was acknowledged comes again, as of a client that lost the answer.
    let last = seen.range((writer, 0)..(writer + 1, 0)).next_back();
    let first = last.map_or(0, |((_, number), _)| *number);
    drop(seen);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, format!("{told}\n{first}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let acknowledged = Arc::clone(acknowledged);
    let reading = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let Some((_, line)) = line.split_once("acknowledged ") else { continue };
            let mut numbers = line.split(' ').map(|number| number.parse::<u64>());
            let (Some(Ok(number)), Some(Ok(generation))) = (numbers.next(), numbers.next()) else {
                continue;
            };
            let before = acknowledged.lock().unwrap().insert((writer, number), generation);
            assert!(before.is_none_or(|before| before == generation), "{writer}-{number} is twice");
        }
    });
    Writing { child, reading }
}

impl Writing {
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reading.join().unwrap();
    }
}

/// Kills three writing replicas again and again.
pub(crate) fn run() {
    let kills = std::env::var("PALMETTE_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let here = format!("file://{}", dir.path().join("log").display());
    let address = std::env::var("PALMETTE_TEST_LOG").unwrap_or(here);
    let runtime = runtime();
    let store = runtime.block_on(palmette_catalog_replica::open(&address)).unwrap();
    let log = runtime.block_on(CatalogLog::begin(store, "shop", &base())).unwrap();
    let identity = log.identity().to_string();
    let root = |writer: usize| dir.path().join(writer.to_string());
    let told =
        |writer: usize| format!("{address}\n{identity}\n{}\nw{writer}", root(writer).display());
    let acknowledged = Acknowledged::default();
    let mut writing: Vec<Option<Writing>> =
        (0..3).map(|writer| Some(start(&told(writer), writer, &acknowledged))).collect();
    for kill in 0..kills {
        let (before, began) = (acknowledged.lock().unwrap().len(), Instant::now());
        while acknowledged.lock().unwrap().len() < before + 5 + kill % 7 {
            assert!(began.elapsed() < Duration::from_secs(120), "nothing is acknowledged any more");
            std::thread::sleep(Duration::from_millis(1));
        }
        let writer = (kill * 7 + kill / 3) % 3;
        writing[writer].take().unwrap().kill();
        if kill % 5 == 4 {
            std::fs::remove_dir_all(root(writer)).unwrap();
        }
        writing[writer] = Some(start(&told(writer), writer, &acknowledged));
    }
    // On a busy machine one of them may not have written yet.
    let began = Instant::now();
    let wrote = |writer| acknowledged.lock().unwrap().keys().any(|(of, _)| *of == writer);
    while !(0..3).all(wrote) {
        assert!(began.elapsed() < Duration::from_secs(120), "one of them writes nothing");
        std::thread::sleep(Duration::from_millis(1));
    }
    writing.into_iter().flatten().for_each(Writing::kill);
    // Everything that is in the log is there, on those that were killed and on one that is new.
    let opened: Vec<_> = (0..4).map(|writer| open(&address, &identity, &root(writer))).collect();
    let acknowledged = acknowledged.lock().unwrap();
    let most = acknowledged.values().max().copied().unwrap();
    let began = Instant::now();
    let newest = || opened.iter().map(|(of, _)| of.live().snapshot().generation()).max().unwrap();
    while opened.iter().any(|(of, _)| of.status().lag.is_none()) || newest() < most {
        assert!(began.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    let replicas: Vec<&Replica> = opened.iter().map(|(replica, _)| replica).collect();
    check_same(&replicas, newest());
    let mut generations: Vec<u64> = acknowledged.values().copied().collect();
    generations.sort_unstable();
    assert!(generations.windows(2).all(|pair| pair[0] < pair[1]), "two batches in one generation");
    // Those that were on their way when a process was killed may be there too, and came again.
    assert!(newest() - acknowledged.len() as u64 <= 3, "{} of {}", acknowledged.len(), newest());
    let snapshot = replicas[3].live().snapshot();
    for writer in 0..3 {
        let (&(_, last), _) =
            acknowledged.range((writer, 0)..(writer + 1, 0)).next_back().expect("it wrote");
        for number in last.saturating_sub(1)..=last {
            assert!(snapshot.find(&format!("w{writer}-{number}")).is_some());
        }
        // Deleted by a later batch, and known as such.
        let gone = format!("w{writer}-{}", last.saturating_sub(6));
        assert!(last < 6 || snapshot.find(&gone).is_none() && snapshot.departed(&gone).is_some());
    }
    eprintln!(
        "{kills} kills, {} batches acknowledged, {} in the log",
        acknowledged.len(),
        newest()
    );
}
