//! Levels of searches over arrays of a caller: for engines that have logits of their own.
//!
//! A level is nine launches on the caller's stream. Everything that it reads and writes is the
//! caller's memory but the tables, which are frozen; nothing is taken, copied or waited for, so
//! that a level may become part of a graph that the caller captures.

use std::sync::Arc;

use palmette_catalog_live::ViewItems;

use super::DeviceCatalog;
use super::error::CatalogError;
use super::filters::{ALL, FilterRow};
use super::snapshot::DeviceSnapshot;
use crate::arguments::{
    Arguments, CallerLevel, Extension, Filter, Range, Search, Select, array_bytes,
};
use crate::selection::{BINS, SORTED};
use crate::{Address, CallerStream, Kernel, Region, RegionPlan, launch_on_caller};

/// A generation of a catalog, for levels over arrays of a caller.
#[derive(Debug)]
pub struct CallerTables {
    catalog: Arc<DeviceCatalog>,
    snapshot: Arc<DeviceSnapshot>,
    /// First position in each segment, and a score of 0.
    roots: Region,
    blocks: u32,
}

/// Filters of searches: one for all requests, or one a request.
#[derive(Debug)]
pub struct CallerFilters {
    /// `[filters, segments]`
    region: Region,
    num_filters: usize,
    snapshot: Arc<DeviceSnapshot>,
    /// Bits that the filters read.
    _rows: Vec<Arc<FilterRow>>,
}

/// Shape of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerShape {
    /// Place of the level, from 0.
    pub level: usize,
    /// Number of searches.
    pub requests: usize,
    /// Beams of a search: one at the first level.
    pub rows: usize,
    /// Logits of a beam.
    pub columns: usize,
    /// Column of the level's code 0, and the number by which it is told.
    pub first: u32,
    /// Beams that are kept.
    pub width: usize,
}

/// Arrays of a level, by address: `B` requests, `R` beams before it and `W` after it, `S` segments,
/// `L` levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerArrays {
    /// f32 `[B, R, columns]`.
    pub logits: Address,
    /// True where these are log-probabilities: else they are normalised over all columns.
    pub is_normalised: bool,
    /// f32 `[B, R]`, best first. Not read at the first level, as the next three.
    pub scores: Address,
    /// u32 `[B, R, S, 3]`, as the level before wrote them.
    pub positions: Address,
    /// u32 `[B, 4]`, as the level before wrote them.
    pub states: Address,
    /// i64 `[B, R, L]`.
    pub tokens: Address,
    /// Memory of [`CallerTables::scratch_bytes`], at a multiple of 16.
    pub scratch: Address,
    /// f32 `[B, W]`: minus infinity past the beams that were found.
    pub next_scores: Address,
    /// u32 `[B, W, S, 3]`.
    pub next_positions: Address,
    /// u32 `[B, 4]`: the last two are beams that were found, and rows whose logits have no sum.
    pub next_states: Address,
    /// i64 `[B, W, L + 1]`, the last one the level's.
    pub next_tokens: Address,
    /// i64 `[B, W]`: the beam before that each continues.
    pub parents: Address,
}

/// Places of a level's scratch memory.
struct Scratch {
    searches: usize,
    masks: usize,
    normalisers: usize,
    histogram: usize,
    candidates: usize,
    best: usize,
    bytes: usize,
}

impl Scratch {
    /// Places of a level's arrays; `None` where they are past what a number counts.
    fn new(codes: usize, shape: &CallerShape) -> Option<Self> {
        let mut end = 0_usize;
        let mut take = |number: usize, bytes: usize| {
            let at = end;
            let bytes = number.checked_mul(shape.requests)?.checked_mul(bytes)?;
            end = end.checked_add(bytes)?.checked_next_multiple_of(64)?;
            Some(at)
        };
        Some(Self {
            searches: take(1, Search::BYTES)?,
            masks: take(shape.rows.checked_mul(codes.div_ceil(32))?, 4)?,
            normalisers: take(shape.rows, 4)?,
            histogram: take(BINS, 4)?,
            candidates: take(SORTED, 8)?,
            best: take(shape.width, Extension::BYTES)?,
            bytes: take(0, 0)?,
        })
    }
}

impl CallerTables {
    /// Tables of a snapshot of a catalog.
    ///
    /// # Errors
    /// When the device fails or has not the memory.
    pub fn new(
        catalog: Arc<DeviceCatalog>,
        snapshot: Arc<DeviceSnapshot>,
    ) -> Result<Self, CatalogError> {
        let driver = &*catalog.driver;
        let mut bytes = array_bytes(&snapshot.roots().collect::<Vec<_>>());
        bytes.extend([0; 4]);
        let plan = RegionPlan { name: "first positions in a catalog", bytes: bytes.len() };
        let roots = super::take(driver, plan)?;
        super::upload(driver, &roots, &bytes)?;
        let blocks = driver.describe().multiprocessors;
        Ok(Self { catalog, snapshot, roots, blocks })
    }

    /// The catalog on the device, whose other generations share tables with this one.
    pub fn catalog(&self) -> &Arc<DeviceCatalog> {
        &self.catalog
    }

    /// The generation.
    pub fn snapshot(&self) -> &Arc<DeviceSnapshot> {
        &self.snapshot
    }

    /// Filters of searches, each the items that may be found or all that are there: one for all
    /// requests, or one a request.
    ///
    /// # Errors
    /// When the device fails or has not the memory.
    ///
    /// # Panics
    /// When the items are of another kind of view.
    pub fn filters(&self, filters: &[Option<ViewItems>]) -> Result<CallerFilters, CatalogError> {
        let (mut arguments, mut kept) = (Vec::<Filter>::new(), Vec::new());
        for items in filters {
            let snapshot = &self.snapshot;
            let request =
                self.catalog.request(snapshot, items.as_ref(), [], Vec::new(), f32::MIN)?;
            for row in request.rows {
                arguments.push(row.as_ref().map_or(ALL, |row| row.argument()));
                kept.extend(row);
            }
        }
        let driver = &*self.catalog.driver;
        let bytes = array_bytes(&arguments);
        let plan = RegionPlan { name: "filters of searches", bytes: bytes.len().max(1) };
        let region = super::take(driver, plan)?;
        super::upload(driver, &region, &bytes)?;
        let (snapshot, num_filters) = (Arc::clone(&self.snapshot), filters.len());
        Ok(CallerFilters { region, num_filters, snapshot, _rows: kept })
    }

    /// Bytes of scratch memory that a level takes.
    ///
    /// # Errors
    /// When the shape is not one that kernels search.
    pub fn scratch_bytes(&self, shape: &CallerShape) -> Result<usize, CatalogError> {
        Ok(self.checked(shape)?.1.bytes)
    }

    /// Launches the kernels of a level: the best extensions of each search by total, then by the
    /// lower parent, then by the lower code, exactly. Totals that are not above minus infinity are
    /// none.
    ///
    /// Arrays are the caller's, and as long as they are said to be: they live until the work is
    /// done, as these tables and filters do.
    ///
    /// # Errors
    /// When the shape is not one that kernels search, the filters are of other tables or another
    /// number of requests, or the device fails.
    pub fn select(
        &self,
        on: CallerStream,
        filters: &CallerFilters,
        shape: &CallerShape,
        arrays: &CallerArrays,
    ) -> Result<(), CatalogError> {
        let unsupported = |what, got, rule| CatalogError::Unsupported { what, got, rule };
        let (codes, scratch) = self.checked(shape)?;
        if !Arc::ptr_eq(&filters.snapshot, &self.snapshot) {
            let (what, rule) = ("filters of other tables", "with filters that were made by them");
            return Err(unsupported(what, filters.num_filters, rule));
        }
        if ![1, shape.requests].contains(&filters.num_filters) {
            let rule = "with one filter for all requests, or one a request";
            return Err(unsupported("filters", filters.num_filters, rule));
        }
        if shape.requests == 0 {
            return Ok(());
        }
        if !arrays.scratch.0.is_multiple_of(16) {
            let got = (arrays.scratch.0 % 16) as usize;
            return Err(unsupported("bytes past a multiple of 16", got, "in aligned memory"));
        }
        let is_first = shape.level == 0;
        let at = |place: usize| Address(arrays.scratch.0 + place as u64);
        let root = |first: Address, others: Address| if is_first { first } else { others };
        let segments = self.snapshot.num_segments();
        let level = CallerLevel {
            searches: at(scratch.searches),
            logits: arrays.logits,
            scores: root(self.roots.address_at(segments * Range::BYTES), arrays.scores),
            positions: root(self.roots.address(), arrays.positions),
            levels: self.snapshot.levels(shape.level),
            filters: filters.region.address(),
            found: root(Address::NULL, arrays.states),
            tokens: arrays.tokens,
            masks: at(scratch.masks),
            normalisers: at(scratch.normalisers),
            histogram: at(scratch.histogram),
            state: arrays.next_states,
            candidates: at(scratch.candidates),
            best: at(scratch.best),
            next: arrays.next_positions,
            next_scores: arrays.next_scores,
            next_tokens: arrays.next_tokens,
            parents: arrays.parents,
            requests: shape.requests as i32,
            rows: shape.rows as i32,
            segments: segments as i32,
            codes: codes as i32,
            columns: shape.columns as i32,
            width: shape.width as i32,
            level: shape.level as i32,
            first: shape.first.cast_signed(),
            own_filters: i32::from(filters.num_filters > 1),
            normalised: i32::from(arrays.is_normalised),
            floor: f32::MIN,
        };
        let select = Select { searches: level.searches };
        let (driver, requests) = (&*self.catalog.driver, shape.requests as u32);
        launch_on_caller(driver, on, Kernel::BeginLevel, [self.blocks, 1, 1], &level)?;
        for (kernel, blocks) in [
            (Kernel::ClearStep, self.blocks),
            (Kernel::AllowedCodes, self.blocks),
            (Kernel::RowScores, self.blocks),
            (Kernel::PickBin, 1),
            (Kernel::KeepCandidates, self.blocks),
            (Kernel::SortBest, 1),
            (Kernel::Advance, self.blocks),
        ] {
            launch_on_caller(driver, on, kernel, [blocks, requests, 1], &select)?;
        }
        let blocks = shape.width.div_ceil(Kernel::WriteBeams.threads() as usize) as u32;
        launch_on_caller(driver, on, Kernel::WriteBeams, [blocks, requests, 1], &level)?;
        Ok(())
    }

    /// Codes of the level, and the scratch memory that it takes.
    fn checked(&self, shape: &CallerShape) -> Result<(usize, Scratch), CatalogError> {
        let unsupported = |what, got, rule| Err(CatalogError::Unsupported { what, got, rule });
        let CallerShape { level, requests, rows, columns, first, width } = *shape;
        let Some(&codes) = self.snapshot.codes().get(level) else {
            return unsupported("level", level, "the levels of the catalog");
        };
        let codes = codes as usize;
        if level == 0 && rows != 1 {
            return unsupported("beams before the first level", rows, "one there");
        }
        if !(1..=SORTED).contains(&width) || !(1..=SORTED).contains(&rows) {
            let got = if (1..=SORTED).contains(&width) { rows } else { width };
            return unsupported("beam width", got, "1 to 4,096 beams");
        }
        if requests > MOST_REQUESTS {
            return unsupported("requests", requests, "65,535 requests at once");
        }
        let end = (first as usize).checked_add(codes);
        if end.is_none_or(|end| end > columns) || columns > i32::MAX as usize {
            return unsupported("columns of logits", columns, "a column for each code of a level");
        }
        if rows.checked_mul(codes).is_none_or(|all| all > 1 << 31) {
            return unsupported("codes of a level", codes, "2^31 codes of all rows");
        }
        if requests * rows > i32::MAX as usize || requests * width > i32::MAX as usize {
            return unsupported("requests", requests, "2^31 beams of all requests");
        }
        match Scratch::new(codes, shape) {
            Some(scratch) => Ok((codes, scratch)),
            None => unsupported("requests", requests, "as many as memory is counted for"),
        }
    }
}

/// Blocks of a grid in its second dimension.
const MOST_REQUESTS: usize = 65_535;
