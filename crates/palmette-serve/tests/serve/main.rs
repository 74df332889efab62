//! The server over its routes and over sockets, with the demonstration's shop.

mod batch;
mod catalogs;
mod items;
mod keys;
mod load;
mod recommend;
mod shop;
mod sockets;
mod targets;
