//! One file per command.

#[cfg(feature = "bench")]
pub(crate) mod bench;
pub(crate) mod catalog;
mod cold_start;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod devices;
pub(crate) mod eval;
pub(crate) mod generate;
pub(crate) mod grammar;
mod histories;
mod items;
#[cfg(feature = "server")]
pub(crate) mod key;
#[cfg(not(all(feature = "bench", feature = "demo", feature = "server")))]
mod left_out;
pub(crate) mod lexicon;
mod loading;
#[cfg(feature = "server")]
pub(crate) mod loadtest;
mod mode;
pub(crate) mod model;
mod overlap;
pub(crate) mod recommend;
mod segments;
#[cfg(feature = "server")]
pub(crate) mod serve;
pub(crate) mod simulate;
mod spread;
pub(crate) mod vocabulary;

#[cfg(not(feature = "bench"))]
pub(crate) use left_out::bench;
#[cfg(not(feature = "demo"))]
pub(crate) use left_out::demo;
#[cfg(not(feature = "server"))]
pub(crate) use left_out::{key, loadtest, serve};
