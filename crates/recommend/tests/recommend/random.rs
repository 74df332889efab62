//! Random numbers that are the same in every run.

/// A 64-bit linear congruential generator; its upper bits are the random ones.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        const STEP: u64 = 6_364_136_223_846_793_005;
        self.0 = self.0.wrapping_mul(STEP).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) * bound) >> 32
    }

    /// True once in so many times.
    pub(crate) fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }

    /// A value once in so many times.
    pub(crate) fn some<T>(&mut self, one_in: u64, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.is(one_in).then(|| value(self))
    }
}
