//! Replicas in threads of one process, over logs in memory and in a directory: races, lost answers, restarts, trimming, and what must
//! stop a replica.

mod crew;
mod faults;
mod races;
mod stores;
mod table;
