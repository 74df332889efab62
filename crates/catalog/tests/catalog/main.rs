//! The compact index and its file.

mod damaged;
mod index;
mod plan;
mod readers;
mod real_data;
mod search;
mod tokens;
