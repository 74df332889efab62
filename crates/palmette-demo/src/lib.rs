//! A generated shop with a small trained checkpoint, for a demonstration that needs no files.
#![forbid(unsafe_code)]

mod shop;

pub use shop::{Shop, ShopItem, ShopUser};
