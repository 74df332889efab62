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

/// Sizes of a search, by which its places are planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SearchSizes<'a> {
    pub(crate) segments: usize,
    /// Numbers that the request excludes.
    pub(crate) excluded: usize,
    /// Codes of each level.
    pub(crate) codes: &'a [u32],
    /// Extensions that each level keeps.
    pub(crate) widths: &'a [usize],
}

impl SearchSizes<'_> {
    /// Bytes that a search takes which is alone on its stream.
    pub(crate) fn bytes(&self) -> usize {
        region_bytes(&Layout::of(&[*self]))
    }
}

/// Bytes of the region that a layout is given: some more, so that the next may fit too.
pub(super) fn region_bytes(layout: &Layout) -> usize {
    layout.bytes.next_power_of_two()
}

impl Layout {
    pub(super) fn new(requests: &[CatalogRequest]) -> Self {
        Self::of(&requests.iter().map(CatalogRequest::sizes).collect::<Vec<_>>())
    }

    fn of(requests: &[SearchSizes<'_>]) -> Self {
        let mut end = 0;
        let mut take = |bytes: usize| {
            let at = end;
            end = (end + bytes).next_multiple_of(64);
            at
        };
        let levels = requests.first().map_or(0, |request| request.codes.len());
        let mut layout = Self {
            searches: take(levels * requests.len() * Search::BYTES),
            zero: take(4),
            ..Self::default()
        };
        for &SearchSizes { segments, excluded, .. } in requests {
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
            let codes = request.codes.iter().enumerate();
            let words = codes.map(|(level, codes)| rows(level) * codes.div_ceil(32) as usize);
            places.masks = take(words.max().unwrap_or(0) * 4);
            places.normalisers = take((0..levels).map(rows).max().unwrap_or(0) * 4);
            places.histogram = take(BINS * 4);
            places.candidates = take(SORTED * 8);
        }
        layout.outcome = take(0);
        for (request, places) in requests.iter().zip(&mut layout.requests) {
            let segments = request.segments;
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
