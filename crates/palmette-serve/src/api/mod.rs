//! Handlers, a file for each group of routes.

pub(crate) mod body;
pub(crate) mod health;
pub(crate) mod page;
pub(crate) mod recommend;
