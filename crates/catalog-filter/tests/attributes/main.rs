//! Columns, and the items that filters select from them.

mod columns;
mod damaged;
mod filter;
mod select;
mod tables;
