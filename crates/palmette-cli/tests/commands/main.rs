//! The commands as a user types them.

mod bench;
mod bench_recommend;
mod catalog_build;
mod catalog_plan;
mod cli;
mod command;
mod filters;
mod grammar;
mod shop;
