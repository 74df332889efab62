//! Homes of logs that are built in, each against the laws of all.

use std::sync::Arc;

use palmette_catalog_replica::{DirectoryLog, MemoryLog};

use crate::crew::runtime;
use crate::laws::{check_by_address, check_laws};

#[test]
fn memory_keeps_them() {
    runtime().block_on(check_laws(Arc::new(MemoryLog::default())));
}

#[test]
fn a_directory_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("new/folder");
    runtime().block_on(check_laws(Arc::new(DirectoryLog::open(&root).unwrap())));
    let left = std::fs::read_dir(root.join(".making")).unwrap().count();
    assert_eq!(left, 0);
}

/// Any other store, by its address: `PALMETTE_TEST_LOG=postgres://…`, of which all is empty.
#[test]
fn a_store_by_its_address_keeps_them() {
    check_by_address();
}
