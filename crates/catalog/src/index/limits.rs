//! Limits of an index: levels, items, codes.

/// Largest number of codes that a semantic ID may have.
pub const MAX_LEVELS: usize = 64;

/// Largest number of items of one index.
pub const MAX_ITEMS: usize = (u32::MAX - 1) as usize;

/// Largest code at any level.
pub const MAX_CODE: u32 = i32::MAX as u32;
