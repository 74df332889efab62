//! Handlers, a file for each group of routes.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod health;
pub(crate) mod page;
pub(crate) mod recommend;
pub(crate) mod targets;
