//! One file per command.

pub(crate) mod bench;
pub(crate) mod catalog;
mod cold_start;
pub(crate) mod demo;
pub(crate) mod eval;
pub(crate) mod grammar;
mod items;
mod loading;
mod mode;
mod overlap;
pub(crate) mod recommend;
