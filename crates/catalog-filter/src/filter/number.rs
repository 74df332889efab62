//! Numbers that can be compared and hashed.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// A finite number, zero without a sign.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number(f64);

impl Number {
    /// `None` when it is not finite.
    pub(crate) fn new(number: f64) -> Option<Self> {
        number.is_finite().then_some(Self(number + 0.0))
    }

    pub(crate) fn get(self) -> f64 {
        self.0
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}
