//! The positions that a state went through, shared by forks.

use std::sync::Arc;

use super::state::Place;

/// The longest chunk, in places.
const LONGEST: usize = 64;

/// A list of places that grows and shrinks at its end, where a clone costs one count more.
///
/// Places are in chunks. The last one grows in place while nobody else has it; otherwise, and when
/// it is full, another one is begun behind it, twice as long: so a text of `n` tokens takes `n /
/// LONGEST` allocations.
#[derive(Clone)]
pub(super) struct History {
    last: Option<Arc<Chunk>>,
    /// Number of places of the last chunk that are of this list; the others are of forks, or were
    /// taken back.
    used: usize,
    len: usize,
}

struct Chunk {
    places: Vec<Place>,
    /// The chunk before it, and how many of its places are before this one.
    before: Option<(Arc<Chunk>, usize)>,
}

impl History {
    /// No place.
    pub(super) fn new() -> Self {
        Self { last: None, used: 0, len: 0 }
    }

    /// Number of places.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a place.
    pub(super) fn push(&mut self, place: Place) {
        self.len += 1;
        if let Some(chunk) = self.last.as_mut().and_then(Arc::get_mut)
            && self.used < chunk.places.capacity()
        {
            chunk.places.truncate(self.used);
            chunk.places.push(place);
            self.used += 1;
            return;
        }
        let before = self.last.take().map(|chunk| (chunk, self.used));
        let longer = before.as_ref().map_or(4, |(chunk, _)| 2 * chunk.places.capacity());
        let mut places = Vec::with_capacity(longer.min(LONGEST));
        places.push(place);
        self.last = Some(Arc::new(Chunk { places, before }));
        self.used = 1;
    }

    /// Takes back the last `count` places, of which there must be as many; gives the first of them.
    pub(super) fn pop(&mut self, count: usize) -> Option<Place> {
        self.len -= count;
        let mut left = count;
        while let Some(chunk) = &self.last {
            if left <= self.used {
                self.used -= left;
                return chunk.places.get(self.used).filter(|_| left > 0).cloned();
            }
            left -= self.used;
            let (last, used) = chunk.before.clone()?;
            (self.last, self.used) = (Some(last), used);
        }
        None
    }
}

impl Drop for Chunk {
    /// Without recursion: the chain is as long as the text.
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut chunk) = before.and_then(|(chunk, _)| Arc::into_inner(chunk)) {
            before = chunk.before.take();
        }
    }
}
