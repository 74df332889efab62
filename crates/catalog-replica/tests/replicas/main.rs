//! Replicas in threads of one process, over logs in memory and in a directory: races, lost answers,
//! restarts, trimming, and what must stop a replica.

mod crew;
mod faults;
mod full_disk;
mod kill;
mod laws;
mod races;
mod stores;
mod table;

#[test]
fn replicas_that_are_killed_lose_nothing() {
    if std::env::var_os(kill::CHILD).is_none() {
        kill::run();
    }
}

#[test]
fn child() {
    kill::child();
}
