//! Oracles, generators and law checks for Palmette's tests.
