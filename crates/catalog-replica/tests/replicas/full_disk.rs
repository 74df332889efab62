//! A replica whose own disk is full for a while falls behind, says so, and catches up by itself.

use std::sync::Arc;

use palmette_catalog_replica::{MemoryLog, Replica};
use palmette_testkit::disk::SmallDisk;

use crate::crew::{Crew, batch, check_same, update, wait_until};

#[test]
fn a_replica_catches_up_when_its_disk_has_room_again() {
    let Some(disk) = SmallDisk::mount(2 << 10) else { return };
    let crew = Crew::new(Arc::new(MemoryLog::default()));
    let sound = crew.open("sound");
    let small =
        Replica::open(crew.handle(), crew.log.clone(), "shop", disk.path(), crew.options.clone());
    let small = small.unwrap();
    crew.fill(&sound, "a", 10);
    check_same(&[&sound, &small], sound.live().snapshot().generation());
    for round in 0..3 {
        let before = sound.live().snapshot().generation();
        disk.fill();
        // More than a page: what there was of the last one is used up.
        for number in 0..20 {
            let updates = (0..40).map(|n| update(&format!("b{round}-{number}-{n}"), n)).collect();
            crew.change(&sound, batch(&format!("b{round}-{number}"), updates)).unwrap();
        }
        // Generations are kept by entries, which make checkpoints.
        crew.change(&sound, palmette_catalog_replica::Change::Keep { name: None }).unwrap();
        wait_until("it cannot write", || small.status().problem.is_some());
        let status = small.status();
        assert!(!status.is_stopped, "{status:?}");
        assert!(small.live().snapshot().generation() < before + 21);
        disk.free();
        check_same(&[&sound, &small], before + 21);
        wait_until("it follows", || small.status().problem.is_none());
        // It takes changes, too.
        crew.fill(&small, &format!("c{round}-"), 5);
        check_same(&[&sound, &small], before + 26);
    }
}
