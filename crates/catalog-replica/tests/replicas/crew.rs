//! Replicas of one catalog, and writers to them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use palmette_catalog::Item;
use palmette_catalog_live::replica::Base;
use palmette_catalog_live::{BatchKey, LiveCatalog, LiveOptions, SyncPolicy, Update};
use palmette_catalog_replica::{
    CatalogLog, Change, ChangeError, Changed, Replica, ReplicaOptions, SharedLog,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Handle, Runtime};

/// Time after which something that was to happen is taken not to.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A log, and directories for its replicas.
pub(crate) struct Crew {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<dyn SharedLog>,
    pub(crate) log: CatalogLog,
    pub(crate) dir: TempDir,
    pub(crate) options: ReplicaOptions,
}

/// Small tiers, many bases, quick looks.
pub(crate) fn options() -> ReplicaOptions {
    ReplicaOptions {
        check: Duration::from_millis(20),
        base_entries: 40,
        retain_entries: 20,
        patience: Duration::from_secs(5),
        live: LiveOptions {
            sync: SyncPolicy::Never,
            memory_items: 16,
            checkpoint_bytes: 2000,
            ..LiveOptions::default()
        },
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A catalog with one item as a base.
pub(crate) fn base() -> Base {
    let dir = tempfile::tempdir().unwrap();
    let live = LiveCatalog::create_with(dir.path(), None, None, LiveOptions::default()).unwrap();
    live.apply(&[update("first", 0)]).unwrap();
    Base::initial(live.snapshot())
}

pub(crate) fn update(id: &str, number: u64) -> Update {
    let attributes = json!({"number": number}).as_object().unwrap().clone();
    Update::Upsert(Item { id: id.to_owned(), codes: vec![(number % 5) as u32, 1], attributes })
}

pub(crate) fn batch(key: &str, updates: Vec<Update>) -> Change {
    let key = BatchKey { name: key.to_owned(), fingerprint: [7; 32] };
    Change::Batch { updates: Arc::new(updates), key: Some(key) }
}

impl Crew {
    pub(crate) fn new(store: Arc<dyn SharedLog>) -> Self {
        let runtime = runtime();
        let log = runtime.block_on(CatalogLog::begin(Arc::clone(&store), "shop", &base())).unwrap();
        Self { runtime, store, log, dir: tempfile::tempdir().unwrap(), options: options() }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Opens the replica of a name.
    ///
    /// A lock that was just let go may be held for a moment yet: by a process that another test of
    /// this binary starts, between its fork and the program that it becomes.
    pub(crate) fn open(&self, name: &str) -> Replica {
        for _ in 0..500 {
            match self.try_open(name) {
                Err(error) if error.to_string().contains("another process") => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                opened => return opened.unwrap(),
            }
        }
        panic!("{name} stays locked");
    }

    pub(crate) fn try_open(
        &self,
        name: &str,
    ) -> Result<Replica, palmette_catalog_replica::LogError> {
        let root = self.dir.path().join(name);
        Replica::open(self.handle(), self.log.clone(), "shop", &root, self.options.clone())
    }

    pub(crate) fn change(&self, replica: &Replica, change: Change) -> Result<Changed, ChangeError> {
        self.runtime.block_on(replica.change(change, None))
    }

    /// Adds batches of one item.
    #[track_caller]
    pub(crate) fn fill(&self, replica: &Replica, name: &str, count: u64) {
        for number in 0..count {
            let id = format!("{name}{number}");
            self.change(replica, batch(&id, vec![update(&id, number)])).unwrap();
        }
    }

    /// Names and lengths of the objects of the catalog's log below a folder of it.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let folder = format!("catalogs/shop/{}/{folder}", self.log.identity());
        self.runtime.block_on(self.store.names(&folder, "", 10_000)).unwrap()
    }

    /// The object of a frame.
    pub(crate) fn frame(&self, number: u64) -> String {
        format!("catalogs/shop/{}/log/{number:020}", self.log.identity())
    }
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited for too long until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until replicas are at one generation, and checks that they have the same bytes.
#[track_caller]
pub(crate) fn check_same(replicas: &[&Replica], generation: u64) {
    let dir = tempfile::tempdir().unwrap();
    let mut first: Option<Vec<u8>> = None;
    for (at, replica) in replicas.iter().enumerate() {
        wait_until(&format!("replica {at} is at {generation}: {:?}", replica.status()), || {
            replica.live().snapshot().generation() >= generation
        });
        let snapshot = replica.live().snapshot();
        assert_eq!(snapshot.generation(), generation, "replica {at}");
        let bytes = export(replica, dir.path());
        assert_eq!(*first.get_or_insert_with(|| bytes.clone()), bytes, "replica {at}");
    }
}

pub(crate) fn export(replica: &Replica, dir: &Path) -> Vec<u8> {
    let path = dir.join("export");
    replica.live().snapshot().to_catalog(|| {}).unwrap().save(&path).unwrap();
    std::fs::read(path).unwrap()
}
