//! Beam searches over catalogs on a device, several side by side, level by level without the host.
//!
//! Everything that a batch of searches needs of the host goes up once, before the first level:
//! where each level reads the rows, scores and positions that the one before it leaves. Results
//! come back once, after the last.

use std::sync::Arc;

use palmette_catalog::index::ItemSet;

use super::error::CatalogError;
use super::filters::{ALL, FilterRow};
use super::layout::{Layout, LevelPlaces, SearchSizes, region_bytes};
use super::snapshot::DeviceSnapshot;
use crate::arguments::{Arguments, Extension, Filter, Range, Search, Select};
use crate::selection::{BAD, FOUND, SORTED};
use crate::{Address, DeviceError, Driver, Kernel, Pinned, Region, RegionPlan, Stream, launch};

/// A request over a snapshot: its items, and how wide each level is searched. See
/// [`DeviceCatalog::request`](super::DeviceCatalog::request).
#[derive(Clone, Debug)]
pub struct CatalogRequest {
    pub(super) snapshot: Arc<DeviceSnapshot>,
    /// The items of each segment, `None` for all.
    pub(super) sets: Vec<Option<Arc<ItemSet>>>,
    pub(super) rows: Vec<Option<Arc<FilterRow>>>,
    /// Excluded ranks of each segment, ascending, all of them in its set.
    pub(super) lists: Vec<Vec<u32>>,
    pub(super) widths: Vec<usize>,
    pub(super) floor: f32,
}

impl CatalogRequest {
    /// The snapshot.
    pub fn snapshot(&self) -> &Arc<DeviceSnapshot> {
        &self.snapshot
    }

    /// Sizes by which places are planned.
    pub(super) fn sizes(&self) -> SearchSizes<'_> {
        SearchSizes {
            segments: self.snapshot.num_segments(),
            excluded: self.lists.iter().map(Vec::len).sum(),
            codes: self.snapshot.codes(),
            widths: &self.widths,
        }
    }

    /// Extensions that are kept at each level.
    pub fn widths(&self) -> &[usize] {
        &self.widths
    }

    /// True if it reads the same rows of filters on the device as another.
    pub fn has_filters_of(&self, other: &Self) -> bool {
        let rows =
            |of: &Self| of.rows.iter().map(|row| row.as_ref().map(Arc::as_ptr)).collect::<Vec<_>>();
        rows(self) == rows(other)
    }

    /// The numbers in its view of the items that have a found semantic ID, in the order in which
    /// they are recommended.
    pub fn items<'a>(&'a self, found: &'a DeviceHypothesis) -> impl Iterator<Item = u64> + use<'a> {
        let mut next = 0;
        found.ranks.iter().zip(self.snapshot.num_items()).enumerate().flat_map(move |of| {
            let (segment, (ranks, items)) = of;
            let first = next;
            next += items;
            let (set, list) = (self.sets[segment].as_deref(), &self.lists[segment]);
            let is_in = move |rank: &u32| {
                set.is_none_or(|set| set.ranks().contains(u64::from(*rank)))
                    && list.binary_search(rank).is_err()
            };
            ranks.clone().filter(is_in).map(move |rank| first + u64::from(rank))
        })
    }
}

/// Place of a level's logits on the device: `[rows, columns]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogitsPlace {
    /// Address of the first row.
    pub address: Address,
    /// Logits of a row.
    pub columns: usize,
    /// Column of the level's code 0.
    pub first: usize,
    /// Logarithms of the rows' sums, where they are computed already; else they are of all columns.
    pub normalisers: Option<Address>,
}

/// Rows of a level, as the device knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelRows {
    /// Address of how many there are, a `u32`; none at the first level, which has one row.
    pub count: Option<Address>,
    /// Bound on them.
    pub most: usize,
    /// Address of the extensions that they are, `[most]` of score, parent and code; none at the
    /// first level.
    pub extensions: Option<Address>,
}

/// The side of a search that computes logits on the device.
pub trait DeviceLogits {
    /// Place of a request's logits of a level. Asked before anything runs.
    fn place(&self, request: usize, level: usize) -> LogitsPlace;

    /// Puts onto the search's stream what computes the logits of a level for the rows of each
    /// request, or makes it wait for that.
    ///
    /// # Errors
    /// When the device fails.
    fn compute(&mut self, level: usize, rows: &[LevelRows]) -> Result<(), DeviceError>;
}

/// A semantic ID that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceHypothesis {
    /// Codes, from the first level.
    pub codes: Vec<u32>,
    /// Sum of the log-probabilities.
    pub score: f32,
    /// Ranks of the items that have it in each segment, whether they may be returned or not; none
    /// of a segment in which none may.
    pub ranks: Vec<std::ops::Range<u32>>,
}

/// Searches side by side on one stream: made once and reused.
///
/// What is found is to the bit what a sort of all allowed extensions of each level finds, in the
/// order of totals, parents and codes.
#[derive(Debug)]
pub struct DeviceSearch {
    driver: Arc<dyn Driver>,
    on: Stream,
    blocks: u32,
    region: Option<Region>,
    sent: Option<Pinned>,
    outcome: Option<Pinned>,
    requests: Vec<CatalogRequest>,
    layout: Layout,
    /// Levels whose kernels were launched.
    level: usize,
}

impl DeviceSearch {
    /// Searches that run on a stream.
    pub fn new(driver: Arc<dyn Driver>, on: Stream) -> Self {
        let blocks = driver.describe().multiprocessors;
        let (region, sent, outcome) = (None, None, None);
        let (requests, layout) = (Vec::new(), Layout::default());
        Self { driver, on, blocks, region, sent, outcome, requests, layout, level: 0 }
    }

    /// Bytes of its memory on the device.
    pub fn bytes(&self) -> usize {
        self.region.as_ref().map_or(0, Region::bytes)
    }

    /// Runs all levels of some requests: nothing waits for the host. [`finish`](Self::finish) gives
    /// what was found.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and when the device fails.
    pub fn run(
        &mut self,
        requests: Vec<CatalogRequest>,
        logits: &mut dyn DeviceLogits,
    ) -> Result<(), CatalogError> {
        self.begin(requests, logits)?;
        let mut rows = Vec::with_capacity(self.requests.len());
        while self.level < self.num_levels() {
            rows.clear();
            rows.extend((0..self.requests.len()).map(|request| self.rows(request)));
            logits.compute(self.level, &rows)?;
            self.step()?;
        }
        Ok(())
    }

    /// Begins searches of some requests, all of as many levels. Each level is one
    /// [`step`](Self::step), after what computes its logits.
    ///
    /// # Errors
    /// When there is no request, levels or widths are not what kernels search, or the device fails
    /// or has not the memory.
    pub fn begin(
        &mut self,
        requests: Vec<CatalogRequest>,
        logits: &dyn DeviceLogits,
    ) -> Result<(), CatalogError> {
        check(&requests)?;
        // Until all is sent nothing may be launched.
        (self.level, self.requests) = (usize::MAX, Vec::new());
        let layout = Layout::new(&requests);
        if self.region.as_ref().is_none_or(|region| region.bytes() < layout.bytes) {
            let bytes = region_bytes(&layout);
            // Given back first: both together may be more than there is.
            self.region = None;
            let plan = RegionPlan { name: "searches of a catalog", bytes };
            self.region = Some(super::take(&*self.driver, plan)?);
        }
        let region = self.region.as_ref().ok_or(DeviceError::Foreign("no region"))?;
        let mut sent = host_memory(&*self.driver, self.sent.take(), layout.sent)?;
        describe(&requests, &layout, region, logits, sent.bytes()?)?;
        self.driver.write(Stream::Upload, region, 0, &mut sent, layout.sent)?;
        self.driver.wait(self.on, &self.driver.record(Stream::Upload)?)?;
        self.sent = Some(sent);
        (self.level, self.requests, self.layout) = (0, requests, layout);
        Ok(())
    }

    /// Rows of a request at the level that comes next.
    ///
    /// # Panics
    /// When there is no such request.
    pub fn rows(&self, request: usize) -> LevelRows {
        let places = &self.layout.requests[request];
        let (Some(last), Some(region)) = (self.level.checked_sub(1), &self.region) else {
            return LevelRows { count: None, most: 1, extensions: None };
        };
        let LevelPlaces { state, best, .. } = places.levels[last];
        LevelRows {
            count: Some(region.address_at(state + FOUND * 4)),
            most: self.requests[request].widths[last],
            extensions: Some(region.address_at(best)),
        }
    }

    /// Launches the kernels of the next level, whose logits are computed.
    ///
    /// # Errors
    /// When the device fails.
    ///
    /// # Panics
    /// When no level is left.
    pub fn step(&mut self) -> Result<(), CatalogError> {
        assert!(self.level < self.num_levels(), "a level of {}", self.num_levels());
        let region = self.region.as_ref().ok_or(DeviceError::Foreign("no region"))?;
        let at = self.layout.searches + self.level * self.requests.len() * Search::BYTES;
        let arguments = Select { searches: region.address_at(at) };
        for kernel in [
            Kernel::ClearStep,
            Kernel::AllowedCodes,
            Kernel::RowScores,
            Kernel::PickBin,
            Kernel::KeepCandidates,
            Kernel::SortBest,
            Kernel::Advance,
        ] {
            let is_one = matches!(kernel, Kernel::PickBin | Kernel::SortBest);
            let blocks = if is_one { 1 } else { self.blocks };
            let grid = [blocks, self.requests.len() as u32, 1];
            launch(&*self.driver, self.on, kernel, grid, &arguments)?;
        }
        self.level += 1;
        Ok(())
    }

    /// Hypotheses of each request after the levels that were searched, best first: prefixes, or
    /// whole semantic IDs after the last. Waits for the device.
    ///
    /// # Errors
    /// When the device fails. A request with a row of logits that is no distribution has an error
    /// of its own.
    pub fn finish(
        &mut self,
    ) -> Result<Vec<Result<Vec<DeviceHypothesis>, CatalogError>>, CatalogError> {
        let Some(last) = self.level.checked_sub(1).filter(|&last| last < self.num_levels()) else {
            return Ok(Vec::new());
        };
        self.download()?;
        let outcome = Outcome::new(&mut self.outcome, self.layout.outcome)?;
        let found = self.requests.iter().zip(&self.layout.requests).map(|(request, places)| {
            outcome.check(&places.levels[..=last])?;
            let segments = request.snapshot.num_segments();
            let hypothesis = |place: usize| {
                let mut codes = vec![0; last + 1];
                let mut at = place;
                for level in (0..=last).rev() {
                    let extension = outcome.extension(&places.levels[level], at);
                    (codes[level], at) = (extension.code, extension.parent as usize);
                }
                let ranks = (0..segments).map(|segment| {
                    let range =
                        places.levels[last].next + (place * segments + segment) * Range::BYTES;
                    outcome.word(range)..outcome.word(range + 4)
                });
                let score = outcome.extension(&places.levels[last], place).score;
                DeviceHypothesis { codes, score, ranks: ranks.collect() }
            };
            let count = outcome.count(&places.levels[last], request.widths[last]);
            Ok((0..count).map(hypothesis).collect())
        });
        Ok(found.collect())
    }

    /// The extensions of each level that a request was searched at, best first. Waits for the
    /// device. `write` is given the level and the extensions.
    ///
    /// # Errors
    /// When the device fails, or a row of logits is no distribution.
    ///
    /// # Panics
    /// When there is no such request.
    pub(crate) fn extensions(
        &mut self,
        request: usize,
        mut write: impl FnMut(usize, &mut dyn Iterator<Item = Extension>),
    ) -> Result<(), CatalogError> {
        self.download()?;
        let outcome = Outcome::new(&mut self.outcome, self.layout.outcome)?;
        let levels = &self.layout.requests[request].levels[..self.level];
        outcome.check(levels)?;
        for (level, places) in levels.iter().enumerate() {
            let count = outcome.count(places, self.requests[request].widths[level]);
            write(level, &mut (0..count).map(|place| outcome.extension(places, place)));
        }
        Ok(())
    }

    /// Copies what the kernels found to the host, and waits for it.
    fn download(&mut self) -> Result<(), CatalogError> {
        let region = self.region.as_ref().ok_or(DeviceError::Foreign("no region"))?;
        let (driver, bytes) = (&*self.driver, self.layout.bytes - self.layout.outcome);
        let mut outcome = host_memory(driver, self.outcome.take(), bytes)?;
        driver.wait(Stream::Download, &driver.record(self.on)?)?;
        driver.read(Stream::Download, region, self.layout.outcome, &mut outcome, bytes)?;
        driver.finish(&driver.record(Stream::Download)?)?;
        self.outcome = Some(outcome);
        Ok(())
    }

    /// The requests, in their order.
    pub fn requests(&self) -> &[CatalogRequest] {
        &self.requests
    }

    fn num_levels(&self) -> usize {
        self.requests.first().map_or(0, |request| request.snapshot.num_levels())
    }
}

/// Bytes that came back, by their places in the region.
struct Outcome<'a> {
    bytes: &'a [u8],
    begin: usize,
}

impl<'a> Outcome<'a> {
    fn new(bytes: &'a mut Option<Pinned>, begin: usize) -> Result<Self, DeviceError> {
        let bytes = bytes.as_mut().ok_or(DeviceError::Foreign("nothing"))?.bytes()?;
        Ok(Self { bytes, begin })
    }

    fn word(&self, at: usize) -> u32 {
        let at = at - self.begin;
        self.bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
    }

    fn extension(&self, level: &LevelPlaces, place: usize) -> Extension {
        let at = level.best + place * Extension::BYTES;
        let (score, parent, code) = (self.word(at), self.word(at + 4), self.word(at + 8));
        Extension { score: f32::from_bits(score), parent, code }
    }

    /// Number of a level's extensions, of so many that there is room for.
    fn count(&self, level: &LevelPlaces, width: usize) -> usize {
        (self.word(level.state + FOUND * 4) as usize).min(width)
    }

    /// Fails where a level had a row without a distribution.
    fn check(&self, levels: &[LevelPlaces]) -> Result<(), CatalogError> {
        let is_bad = |places: &LevelPlaces| self.word(places.state + BAD * 4) > 0;
        match levels.iter().position(is_bad) {
            Some(level) => Err(CatalogError::BadLogits { level }),
            None => Ok(()),
        }
    }
}

/// Fails unless the kernels search these together.
fn check(requests: &[CatalogRequest]) -> Result<(), CatalogError> {
    let unsupported = |what, got, rule| Err(CatalogError::Unsupported { what, got, rule });
    let Some(first) = requests.first() else {
        return unsupported("requests", 0, "one or more");
    };
    let levels = first.snapshot.num_levels();
    if levels == 0 {
        return unsupported("levels", 0, "one or more");
    }
    for request in requests {
        let (has, widths) = (request.snapshot.num_levels(), &request.widths);
        if has != levels {
            return unsupported("levels of a request", has, "as many as those beside it");
        }
        if widths.len() != levels {
            return unsupported("widths of a request", widths.len(), "one a level");
        }
        if let Some(&width) = widths.iter().find(|width| !(1..=SORTED).contains(width)) {
            return unsupported("beam width", width, "1 to 4,096 beams");
        }
        if request.floor.is_nan() {
            return unsupported("floors that are no number", 1, "scores above a number");
        }
        for (level, &codes) in request.snapshot.codes().iter().enumerate() {
            let rows = if level == 0 { 1 } else { widths[level - 1] };
            if rows as u64 * u64::from(codes) > 1 << 31 {
                return unsupported("codes of a level", codes as usize, "2^31 codes of all rows");
            }
        }
    }
    Ok(())
}

/// Writes what is sent: searches by level and request, filters, lists and the first positions.
fn describe(
    requests: &[CatalogRequest],
    layout: &Layout,
    region: &Region,
    logits: &dyn DeviceLogits,
    bytes: &mut [u8],
) -> Result<(), CatalogError> {
    let at = |place: usize| region.address_at(place);
    bytes[layout.zero..][..4].fill(0);
    for (number, (request, places)) in requests.iter().zip(&layout.requests).enumerate() {
        let segments = request.snapshot.num_segments();
        let mut list_at = places.lists;
        for segment in 0..segments {
            let list = &request.lists[segment];
            let row = request.rows[segment].as_ref().map_or(ALL, |row| row.argument());
            let excluded = if list.is_empty() { Address::NULL } else { at(list_at) };
            let filter = Filter { excluded, num_excluded: list.len() as i32, ..row };
            filter.write(&mut bytes[places.filters + segment * Filter::BYTES..][..Filter::BYTES]);
            for rank in list {
                bytes[list_at..list_at + 4].copy_from_slice(&rank.to_le_bytes());
                list_at += 4;
            }
        }
        for (segment, root) in request.snapshot.roots().enumerate() {
            root.write(&mut bytes[places.roots + segment * Range::BYTES..][..Range::BYTES]);
        }
        for (level, of_level) in places.levels.iter().enumerate() {
            let before = level.checked_sub(1).map(|last| &places.levels[last]);
            let codes = request.snapshot.codes()[level] as usize;
            let LogitsPlace { address, columns, first, normalisers } = logits.place(number, level);
            if first.checked_add(codes).is_none_or(|end| end > columns) {
                let (what, rule) = ("columns of logits", "a column for each code of a level");
                return Err(CatalogError::Unsupported { what, got: columns, rule });
            }
            let search = Search {
                logits: address,
                scores: at(before.map_or(layout.zero, |before| before.scores)),
                positions: at(before.map_or(places.roots, |before| before.next)),
                levels: request.snapshot.levels(level),
                filters: at(places.filters),
                live: before.map_or(Address::NULL, |before| at(before.state + FOUND * 4)),
                masks: at(places.masks),
                normalisers: normalisers.unwrap_or(at(places.normalisers)),
                histogram: at(places.histogram),
                state: at(of_level.state),
                candidates: at(places.candidates),
                best: at(of_level.best),
                next: at(of_level.next),
                next_scores: at(of_level.scores),
                rows: if level == 0 { 1 } else { request.widths[level - 1] as i32 },
                segments: segments as i32,
                codes: codes as i32,
                columns: columns as i32,
                first: first as i32,
                width: request.widths[level] as i32,
                capacity: SORTED as i32,
                normalised: i32::from(normalisers.is_some()),
                floor: request.floor,
            };
            let place = layout.searches + (level * requests.len() + number) * Search::BYTES;
            search.write(&mut bytes[place..][..Search::BYTES]);
        }
    }
    Ok(())
}

/// Host memory of so many bytes or more: what there was, where that is enough and no copy has it.
fn host_memory(
    driver: &dyn Driver,
    old: Option<Pinned>,
    bytes: usize,
) -> Result<Pinned, DeviceError> {
    if let Some(mut old) = old.filter(|old| old.len() >= bytes)
        && old.bytes().is_ok()
    {
        return Ok(old);
    }
    driver.pinned(bytes.next_power_of_two())
}
