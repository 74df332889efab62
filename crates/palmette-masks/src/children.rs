//! Children of a stack-automaton node, by the state that is read next.

use palmette_parser::lr::StateId;

/// Children by state.
#[derive(Debug, Default)]
pub(super) enum Children<N> {
    #[default]
    None,
    One(StateId, N),
    /// Ascending.
    #[expect(clippy::box_collection, reason = "most nodes have one, and there are many nodes")]
    Many(Box<Vec<(StateId, N)>>),
}

impl<N: Copy> Children<N> {
    pub(super) fn get(&self, of: StateId) -> Option<N> {
        match self {
            Self::None => None,
            &Self::One(state, child) => (state == of).then_some(child),
            Self::Many(children) => {
                let at = children.binary_search_by_key(&of, |&(state, _)| state).ok()?;
                Some(children[at].1)
            }
        }
    }

    /// All of them, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = (StateId, N)> {
        let (one, many) = match self {
            Self::None => (None, &[] as &[_]),
            &Self::One(state, child) => (Some((state, child)), &[] as _),
            Self::Many(children) => (None, children.as_slice()),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Adds a child that is not there; gives how much memory more it takes.
    pub(super) fn insert(&mut self, state: StateId, child: N) -> usize {
        let entry = size_of::<(StateId, N)>();
        match self {
            Self::None => {
                *self = Self::One(state, child);
                0
            }
            &mut Self::One(known, of_known) => {
                let mut both = vec![(known, of_known), (state, child)];
                both.sort_unstable_by_key(|&(state, _)| state);
                *self = Self::Many(Box::new(both));
                size_of::<Vec<(StateId, N)>>() + 2 * entry
            }
            Self::Many(children) => {
                let at = children.partition_point(|&(other, _)| other < state);
                children.insert(at, (state, child));
                entry
            }
        }
    }
}
