//! The table of models, catalogs and targets.

use std::sync::Arc;

use palmette_catalog_replica::{LogError, MemoryLog, RegistryLog, SharedLog};

use crate::crew::runtime;

fn table(store: &Arc<MemoryLog>) -> RegistryLog {
    RegistryLog::new(Arc::clone(store) as Arc<dyn SharedLog>)
}

#[test]
fn versions_of_several_writers_follow_one_another() {
    let (runtime, store) = (runtime(), Arc::new(MemoryLog::default()));
    let add = |table: &RegistryLog, name: String| {
        let changed = runtime.block_on(table.change::<LogError>(|registry| {
            registry.catalogs.insert(name.clone(), String::new());
            Ok(())
        }));
        changed.unwrap().0
    };
    let numbers: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (add, table) = (&add, table(&store));
                scope.spawn(move || {
                    (0..25).map(|n| add(&table, format!("{writer}-{n}"))).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let mut sorted = numbers;
    sorted.sort_unstable();
    assert_eq!(sorted, (2..=101).collect::<Vec<u64>>());
    let (number, registry) = runtime.block_on(table(&store).newest()).unwrap().unwrap();
    assert_eq!((number, registry.catalogs.len()), (101, 100));
    // What changes nothing makes no version.
    assert_eq!(add(&table(&store), "0-0".to_owned()), 101);
}

#[test]
fn a_table_of_another_log_or_a_damaged_one_is_refused() {
    let runtime = runtime();
    let (store, other) = (Arc::new(MemoryLog::default()), Arc::new(MemoryLog::default()));
    let known = table(&store);
    let cluster = runtime.block_on(known.cluster()).unwrap();
    assert_ne!(cluster, runtime.block_on(table(&other).cluster()).unwrap());
    let name = format!("registry/{:020}.json", 1);
    let foreign = other.objects()[&name].clone();
    store.objects().insert(format!("registry/{:020}.json", 2), foreign.clone());
    let error = runtime.block_on(known.newest()).unwrap_err().to_string();
    assert!(error.contains("two logs were swapped"), "{error}");
    let text =
        String::from_utf8(foreign.to_vec()).unwrap().replace("\"number\": 1", "\"number\": 2");
    store.objects().insert(format!("registry/{:020}.json", 2), text.into());
    let error = runtime.block_on(known.newest()).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
    store.objects().clear();
    let error = runtime.block_on(known.newest()).unwrap_err().to_string();
    assert!(error.contains("is gone"), "{error}");
}

#[test]
fn models_come_back_as_they_were_put() {
    let (runtime, store) = (runtime(), Arc::new(MemoryLog::default()));
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("model");
    std::fs::create_dir(&from).unwrap();
    for (name, content) in [("config.json", "{}"), ("model.safetensors", "weights")] {
        std::fs::write(from.join(name), content).unwrap();
    }
    let table = table(&store);
    let put = runtime.block_on(table.put_model("m", &from)).unwrap();
    let to = dir.path().join("copy");
    runtime.block_on(table.fetch_model(&put, &to)).unwrap();
    assert_eq!(std::fs::read(to.join("model.safetensors")).unwrap(), b"weights");
    assert_eq!(runtime.block_on(table.put_model("m", &to)).unwrap(), put);
    let object = &put.files[1].object;
    store.objects().insert(object.clone(), "wrong".into());
    let error = runtime.block_on(table.fetch_model(&put, &dir.path().join("again"))).unwrap_err();
    assert!(error.to_string().contains(object) && !dir.path().join("again").exists(), "{error}");
    let mut outside = put;
    outside.files[0].name = "../escaped".to_owned();
    assert!(runtime.block_on(table.fetch_model(&outside, &dir.path().join("x"))).is_err());
    assert!(!dir.path().join("escaped").exists());
}
