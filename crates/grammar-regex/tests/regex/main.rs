//! Regular expressions against their definition, other implementations, and the rules of their
//! dialects.

mod oracle;
mod python_table;
