//! The server over its routes and over sockets, with the demonstration's shop.

mod page;
mod recommend;
mod shop;
