//! Items from Parquet and Arrow files.
