//! Simulations.
#[test]
fn t() {}
