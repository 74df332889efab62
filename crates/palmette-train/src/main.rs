//! The training command.

fn main() {}
