//! A generated shop with a small trained checkpoint, for a demonstration that needs no files.
//!
//! [`Shop`] is invented from a seed; [`Demo`] joins the shop of the demonstration with the model
//! that was trained on it, which is part of this crate (`checkpoint/`, made as its README says).
#![forbid(unsafe_code)]

mod demo;
mod files;
mod shop;

pub use demo::{Demo, DemoError};
pub use shop::{Shop, ShopItem, ShopUser};
