//! Choice of the steps of streamlining.

/// A step of streamlining. Each stands on the grammar alone, so any of them may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// 1: rows that differ in interchangeable terminals only become one.
    Interchange,
    /// 2: rows with a terminal that the graph of successors does not have after the one before it
    /// go.
    Successors,
    /// 3: rows with neighbours that are never legal go, and last terminals that are always legal
    /// after the one before them are dropped.
    Pairs,
    /// 4: the same of whole rows and of their ends.
    Sequences,
    /// 5, future work of the source: an end is dropped where it is always legal after the *two*
    /// terminals before it.
    Context,
    /// 6, future work of the source: rows that exactly the same stacks accept become one.
    Joint,
}

impl Step {
    /// The steps in order.
    pub const ALL: [Self; 6] = [
        Self::Interchange,
        Self::Successors,
        Self::Pairs,
        Self::Sequences,
        Self::Context,
        Self::Joint,
    ];
}

/// Set of steps that are taken, always in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Steps(u8);

impl Steps {
    /// Number of the steps that the source has.
    pub const NUM_PUBLISHED: usize = 4;
    /// Number of all steps.
    pub const MAX: usize = Step::ALL.len();
    /// Rows as the tokens spell them.
    pub const NONE: Self = Self(0);
    /// Each step.
    pub const ALL: Self = Self::first(Self::MAX);

    /// The first `count` steps, or all where there are no more.
    pub const fn first(count: usize) -> Self {
        let count = if count < Self::MAX { count } else { Self::MAX };
        Self((1 << count) - 1)
    }

    /// One step by itself.
    pub const fn only(step: Step) -> Self {
        Self(1 << step as u8)
    }

    /// True when the step is taken.
    pub const fn has(self, step: Step) -> bool {
        self.0 & (1 << step as u8) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, Steps};

    #[test]
    fn steps_are_a_set() {
        let taken = |steps: Steps| Step::ALL.map(|step| steps.has(step));
        assert_eq!(taken(Steps::NONE), [false; 6]);
        assert_eq!(taken(Steps::ALL), [true; 6]);
        assert_eq!(taken(Steps::first(2)), [true, true, false, false, false, false]);
        assert_eq!(taken(Steps::only(Step::Pairs)), [false, false, true, false, false, false]);
        assert_eq!(Steps::first(100), Steps::ALL);
    }
}
