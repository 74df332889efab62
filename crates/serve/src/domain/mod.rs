//! Parts of the server that have no HTTP in them. They are the table of targets, permissions, kept
//! answers, uploads, the shared log.
//!
//! Nothing here knows a handler, the state of the server, or its routes.

pub(crate) mod answers;
pub(crate) mod background;
pub(crate) mod catalog_files;
pub(crate) mod claims;
pub(crate) mod cluster;
pub(crate) mod code_tokens;
pub(crate) mod data_dir;
pub(crate) mod exported;
pub(crate) mod generations;
pub(crate) mod keys;
pub(crate) mod load_error;
pub(crate) mod models;
pub(crate) mod name;
pub(crate) mod operations;
pub(crate) mod permissions;
pub(crate) mod registry;
pub(crate) mod targets_file;
pub(crate) mod text_catalogs;
pub(crate) mod texts;
pub(crate) mod upload_room;
pub(crate) mod writes;
