//! Handlers, a file for each group of routes.

pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod catalogs;
pub(crate) mod documented;
pub(crate) mod extract;
pub(crate) mod generations;
pub(crate) mod health;
pub(crate) mod items;
pub(crate) mod make_catalog;
pub(crate) mod operations;
pub(crate) mod page;
pub(crate) mod recommend;
pub(crate) mod targets;
pub(crate) mod text;
pub(crate) mod upload;
