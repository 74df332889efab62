//! Item catalogs: sets of semantic IDs as ranks and ranges, their readers and file format.
