//! Memo of derivatives, a row of byte classes an expression.

use super::ExprId;

/// Derivatives that are known, a row of classes for each expression of which one is.
///
/// PERF: rows of expressions that were made one after the other lie together, as they are asked for
/// together. In a hash map look-ups waited for memory of their own: two instructions of them had
/// 44% of the samples of `Maker::derive`.
#[derive(Debug, Default)]
pub(super) struct ClassRows {
    /// Row starts by expression; [`NO_ROW`] and shorter where it has none.
    starts: Vec<usize>,
    /// [`UNKNOWN`] where it is not known.
    entries: Vec<ExprId>,
}

const NO_ROW: usize = usize::MAX;

/// No expression has this number: there are fewer.
const UNKNOWN: ExprId = ExprId(u32::MAX);

impl ClassRows {
    pub(super) fn get(&self, of: ExprId, class: usize) -> Option<ExprId> {
        match self.starts.get(of.index()) {
            None | Some(&NO_ROW) => None,
            Some(start) => Some(self.entries[start + class]).filter(|&after| after != UNKNOWN),
        }
    }

    /// Remembers one of an expression that has so many classes, always as many.
    pub(super) fn insert(&mut self, of: ExprId, class: usize, num_classes: usize, after: ExprId) {
        if self.starts.len() <= of.index() {
            self.starts.resize(of.index() + 1, NO_ROW);
        }
        let start = &mut self.starts[of.index()];
        if *start == NO_ROW {
            *start = self.entries.len();
            self.entries.resize(*start + num_classes, UNKNOWN);
        }
        self.entries[*start + class] = after;
    }

    pub(super) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.entries.capacity() * size_of::<ExprId>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_was_remembered_and_nothing_else() {
        let mut rows = ClassRows::default();
        let (a, b) = (ExprId(7), ExprId(2));
        rows.insert(a, 2, 3, ExprId(5));
        rows.insert(b, 0, 2, ExprId(6));
        rows.insert(a, 0, 3, ExprId(8));
        let row = |of, len| (0..len).map(|class| rows.get(of, class)).collect::<Vec<_>>();
        assert_eq!(row(a, 3), [Some(ExprId(8)), None, Some(ExprId(5))]);
        assert_eq!(row(b, 2), [Some(ExprId(6)), None]);
        assert_eq!([row(ExprId(3), 2), row(ExprId(9), 2)].concat(), [None; 4]);
    }
}
