//! The parts of many states, put together by segment.

use palmette_catalog::CatalogState;

use crate::constraint::SnapshotState;

/// The parts of many states that are not dead, by segment.
///
/// In the smallest segments few states have one after a code or two: what is done there is then
/// done for those few.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gathered {
    /// Bits of each state, one for each segment in which it has a part.
    alive: Vec<u32>,
    /// The places of all states.
    all_rows: Vec<u32>,
    segments: Vec<GatheredSegment>,
}

/// Parts in one segment; after the first `len`, remains of earlier ones.
#[derive(Clone, Debug, Default)]
struct GatheredSegment {
    len: usize,
    parts: Vec<CatalogState>,
    /// The place of the state of each, unless all states have one.
    rows: Vec<u32>,
    codes: Vec<u32>,
}

/// The parts in a segment, to be moved.
pub(crate) struct GatheredParts<'a> {
    pub(crate) parts: &'a mut [CatalogState],
    /// The place of the state of each.
    pub(crate) rows: &'a [u32],
    /// The code of each.
    pub(crate) codes: &'a [u32],
    /// Bits of all states, one for each segment in which the state has a part.
    pub(crate) alive: &'a mut [u32],
}

impl Gathered {
    /// Gathers the parts of `states`.
    pub(crate) fn gather(&mut self, states: &[SnapshotState], num_segments: usize) {
        self.alive.clear();
        self.alive.extend(states.iter().map(|state| state.alive));
        let first = self.all_rows.len()..states.len().max(self.all_rows.len());
        self.all_rows.extend(first.map(|row| row as u32));
        if self.segments.len() < num_segments {
            self.segments.resize_with(num_segments, GatheredSegment::default);
        }
        let (any, all) =
            self.alive.iter().fold((0, !0), |(any, all), &alive| (any | alive, all & alive));
        for (at, segment) in self.segments.iter_mut().enumerate().take(num_segments) {
            if any >> at & 1 == 0 {
                segment.len = 0;
            } else if all >> at & 1 == 1 {
                segment.gather_all(states, at);
            } else {
                segment.gather_alive(states, &self.alive, at);
            }
        }
    }

    /// A bit for each segment in which a state has a part, state by state.
    pub(crate) fn alive(&self) -> &[u32] {
        &self.alive
    }

    /// The parts in a segment, and the place of the state of each.
    pub(crate) fn of_segment(&self, at: usize) -> (&[CatalogState], &[u32]) {
        let GatheredSegment { len, parts, rows, .. } = &self.segments[at];
        let rows = if *len == self.alive.len() { &self.all_rows } else { rows };
        (&parts[..*len], &rows[..*len])
    }

    /// Gathers the code of each part's state, where not all have one.
    pub(crate) fn gather_codes(&mut self, codes: &[u32], num_segments: usize) {
        for segment in &mut self.segments[..num_segments] {
            if segment.len < codes.len() {
                let own = segment.codes.iter_mut().zip(&segment.rows[..segment.len]);
                own.for_each(|(code, &row)| *code = codes[row as usize]);
            }
        }
    }

    /// The parts in a segment with their codes, after [`gather_codes`](Self::gather_codes) was
    /// given the same.
    pub(crate) fn parts_mut<'a>(&'a mut self, at: usize, codes: &'a [u32]) -> GatheredParts<'a> {
        let Self { alive, all_rows, segments } = self;
        let segment = &mut segments[at];
        let len = segment.len;
        let parts = &mut segment.parts[..len];
        if len == alive.len() {
            return GatheredParts { parts, rows: &all_rows[..len], codes, alive };
        }
        GatheredParts { parts, rows: &segment.rows[..len], codes: &segment.codes[..len], alive }
    }
}

impl GatheredSegment {
    fn make_room(&mut self, num_states: usize) {
        if self.parts.len() < num_states {
            self.rows.resize(num_states, 0);
            self.codes.resize(num_states, 0);
            self.parts.resize(num_states, CatalogState::DEAD);
        }
    }

    /// Gathers the parts of a segment in which all states have one.
    fn gather_all(&mut self, states: &[SnapshotState], at: usize) {
        self.make_room(states.len());
        self.parts.iter_mut().zip(states).for_each(|(part, state)| *part = state.parts[at]);
        self.len = states.len();
    }

    /// PERF: whether a state has a part is not predictable, so each place is written and only then
    /// kept or written over.
    fn gather_alive(&mut self, states: &[SnapshotState], alive: &[u32], at: usize) {
        self.make_room(states.len());
        let rows = &mut self.rows[..alive.len()];
        let mut len = 0;
        for (row, alive) in (0..).zip(alive) {
            if let Some(place) = rows.get_mut(len) {
                *place = row;
            }
            len += (alive >> at & 1) as usize;
        }
        let parts = self.parts.iter_mut().zip(&rows[..len]);
        parts.for_each(|(part, &row)| *part = states[row as usize].parts[at]);
        self.len = len;
    }
}
