//! A generated shop with a small trained checkpoint, for a demonstration that needs no files.
