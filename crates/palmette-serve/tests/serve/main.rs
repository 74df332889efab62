//! The server over its routes and over sockets, with the demonstration's shop.

mod catalogs;
mod items;
mod keys;
mod page;
mod recommend;
mod shop;
