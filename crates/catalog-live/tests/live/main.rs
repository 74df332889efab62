//! A live catalog against the definition: a list of items, and a catalog built from it anew.

mod close;
mod damage;
mod filters;
mod full_disk;
mod keys;
mod kill;
mod model;
mod operations;
mod replica;
mod same;
mod threads;
