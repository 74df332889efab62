//! Layout of a batch of searches in one region of a device.

use super::search::CatalogRequest;
use crate::arguments::{Arguments, Extension, Filter, Range, Search};
use crate::selection::{BINS, SORTED, STATE};

/// Places within the region: what the host sends, what kernels use, and what comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Searches, `[levels, requests]`.
    pub(super) searches: usize,
    /// Score of the one row of a first level.
    pub(super) zero: usize,
    /// End of what is sent.
    pub(super) sent: usize,
    /// Beginning of what comes back, which ends where the region does.
    pub(super) outcome: usize,
    pub(super) bytes: usize,
    pub(super) requests: Vec<RequestPlaces>,
}

/// Places of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestPlaces {
    /// Filters, `[segments]`.
    pub(super) filters: usize,
    /// Excluded ranks, segment by segment.
    pub(super) lists: usize,
    /// First positions, `[segments]`.
    pub(super) roots: usize,
    pub(super) masks: usize,
    pub(super) normalisers: usize,
    pub(super) histogram: usize,
    pub(super) candidates: usize,
    pub(super) levels: Vec<LevelPlaces>,
}

/// Places of a level of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelPlaces {
    pub(super) state: usize,
    pub(super) best: usize,
    /// Positions of the children, `[width, segments]`.
    pub(super) next: usize,
    /// Scores of the children.
    pub(super) scores: usize,
}

impl Layout {
    pub(super) fn new(requests: &[CatalogRequest]) -> Self {
        let mut end = 0;
        let mut take = |bytes: usize| {
            let at = end;
            end = (end + bytes).next_multiple_of(64);
            at
        };
        let levels = requests.first().map_or(0, |request| request.snapshot.num_levels());
        let mut layout = Self {
            searches: take(levels * requests.len() * Search::BYTES),
            zero: take(4),
            ..Self::default()
        };
        for request in requests {
            let segments = request.snapshot.num_segments();
            let excluded: usize = request.lists.iter().map(Vec::len).sum();
            layout.requests.push(RequestPlaces {
                filters: take(segments * Filter::BYTES),
                lists: take(excluded * 4),
                roots: take(segments * Range::BYTES),
                ..RequestPlaces::default()
            });
        }
        layout.sent = take(0);
        for (request, places) in requests.iter().zip(&mut layout.requests) {
            let rows = |level: usize| if level == 0 { 1 } else { request.widths[level - 1] };
            let codes = request.snapshot.codes().iter().enumerate();
            let words = codes.map(|(level, codes)| rows(level) * codes.div_ceil(32) as usize);
            places.masks = take(words.max().unwrap_or(0) * 4);
            places.normalisers = take((0..levels).map(rows).max().unwrap_or(0) * 4);
            places.histogram = take(BINS * 4);
            places.candidates = take(SORTED * 8);
        }
        layout.outcome = take(0);
        for (request, places) in requests.iter().zip(&mut layout.requests) {
            let segments = request.snapshot.num_segments();
            let level = |&width: &usize| LevelPlaces {
                state: take(STATE * 4),
                best: take(width * Extension::BYTES),
                next: take(width * segments * Range::BYTES),
                scores: take(width * 4),
            };
            places.levels = request.widths.iter().map(level).collect();
        }
        layout.bytes = take(0);
        layout
    }
}
