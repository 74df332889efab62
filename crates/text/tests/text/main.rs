//! Texts of tiny models against their definitions: masks, draws and streams, one step at a time.

mod folder;
mod questions;
mod requests;
mod shared_masks;
mod texts;
mod tiny;
mod tool_formats;
