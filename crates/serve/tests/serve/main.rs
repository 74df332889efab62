//! The server over its routes and over sockets, with the demonstration's shop.

mod batch;
mod callers;
mod catalogs;
mod device;
mod document;
mod forms;
mod items;
mod kept_prompts;
mod keys;
mod load;
mod operations;
mod page;
mod places;
mod questions;
mod recommend;
mod shop;
mod sockets;
#[cfg(feature = "tables")]
mod tables;
mod targets;
mod text;
mod text_beams;
mod text_catalogs;
mod text_codes;
mod text_members;
mod text_messages;
mod transport;
