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
mod text_chats;
mod text_codes;
mod text_completions;
mod text_lifetimes;
mod text_masks;
mod text_members;
mod text_messages;
mod text_models;
mod text_refusals;
mod text_responses;
mod transport;
