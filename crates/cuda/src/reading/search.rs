//! Whole searches of a reading: passes and steps one behind the other, without the host.
//!
//! The host describes a level's pass before it knows its beams, for as many as there may be. What
//! the step before found is written over them on the device. So all levels are on the streams at
//! once, and the host waits for the last.

use std::iter::repeat_n;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use palmette_core::TokenId;
use palmette_decode::Extension;
use palmette_model::{CatalogSearch, Reading, SearchLevel, SessionError};

use super::CudaReading;
use crate::arguments::BeamRows;
use crate::catalog::{
    CatalogError, CatalogRequest, DeviceLogits, DeviceSearch, LevelRows, LogitsPlace, SearchPart,
};
use crate::plan::ancestor_bytes;
use crate::request::{DeviceBeams, RowKind};
use crate::{Address, DeviceError, Event, Region, RegionPlan, Stream};

/// Memory of a reading's whole searches.
#[derive(Debug)]
pub(super) struct CatalogRun {
    search: DeviceSearch,
    /// Slots of the beams' ancestors, of two levels in turn: `[2, passes, rows]`.
    ancestors: Option<Region>,
    /// Parents of beams that are not known yet.
    parents: Vec<u32>,
}

/// Logits of each level where a reading has them.
struct LevelLogits<'a> {
    address: Address,
    levels: &'a [SearchLevel],
}

impl DeviceLogits for LevelLogits<'_> {
    fn place(&self, _: usize, level: usize) -> LogitsPlace {
        let SearchLevel { tokens, columns, .. } = &self.levels[level];
        let (columns, first) = (columns.len(), tokens.start - columns.start);
        LogitsPlace { address: self.address, columns, first, normalisers: None }
    }

    fn compute(&mut self, _: usize, _: &[LevelRows]) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// A search that was not run: since the host is to do it, for want of memory, or for good.
enum Failure {
    Elsewhere,
    NoMemory(DeviceError),
    Device(DeviceError),
    Session(SessionError),
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::OutOfMemory { .. } => Self::NoMemory(error),
            error => Self::Device(error),
        }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Device(error) => error.into(),
            // A row without a distribution is for the host to name.
            _ => Self::Elsewhere,
        }
    }
}

impl CudaReading {
    /// [`Reading::search`]: false where the device does not take the search.
    pub(super) fn search_catalog(
        &mut self,
        search: &CatalogSearch<'_>,
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<bool, SessionError> {
        if !self.has_prompt {
            return Err(SessionError::NoPrompt);
        }
        let has_room = match search.drafts {
            true => self.has_room_for_draft(search.levels),
            false => self.has_room(search.levels),
        };
        if !has_room {
            return Ok(false);
        }
        let shared = Arc::clone(&self.engine.shared);
        let request = self.engine.catalogs.request(search);
        let request = request.inspect_err(|error| shared.note(error))?;
        let Some(request) = request else { return Ok(false) };
        let driver = &shared.driver;
        let mut run = self.run.take().unwrap_or_else(|| CatalogRun {
            search: DeviceSearch::new(driver.clone(), Stream::Selection),
            ancestors: None,
            parents: Vec::new(),
        });
        let taken = run.bytes();
        let result = match search.drafts {
            true => self.draft_levels(&mut run, request, search.levels, steps),
            false => self.run_levels(&mut run, request, search.levels, steps),
        };
        if result.is_err() {
            // What is on the stream uses the memory of the run.
            let _ = driver.record(Stream::Selection).and_then(|event| driver.finish(&event));
        }
        let bytes = run.bytes();
        self.run = Some(run);
        if bytes > taken {
            shared.reading_bytes.fetch_add(bytes - taken, Ordering::Relaxed);
            self.own_bytes += bytes - taken;
        }
        match result {
            Ok(()) => {
                self.engine.catalogs.count();
                Ok(true)
            }
            Err(Failure::Elsewhere) => Ok(false),
            Err(Failure::NoMemory(error)) => {
                self.engine.catalogs.warn(search.view, SearchPart::Search, &error.into());
                Ok(false)
            }
            Err(Failure::Device(error)) => {
                shared.note(&error);
                Err(error.into())
            }
            Err(Failure::Session(error)) => Err(error),
        }
    }

    /// True where the reading is planned for passes as wide, of tokens that there are.
    fn has_room(&self, levels: &[SearchLevel]) -> bool {
        let Some((_, read)) = levels.split_last() else { return false };
        let is_within = |level: &SearchLevel| {
            let SearchLevel { tokens, columns, .. } = level;
            self.check_columns(columns).is_ok()
                && columns.start <= tokens.start
                && tokens.start < tokens.end
                && tokens.end <= columns.end
        };
        read.len() <= self.beams.len()
            && read.iter().zip(&self.beams).all(|(level, &most)| level.width <= most)
            && levels.iter().all(is_within)
    }

    fn run_levels(
        &mut self,
        run: &mut CatalogRun,
        request: CatalogRequest,
        levels: &[SearchLevel],
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<(), Failure> {
        let passes = levels.len() - 1;
        let widths = levels[..passes].iter().map(|level| level.width);
        let most_rows = widths.max().unwrap_or(1);
        let address = self.request()?.memory.logits.address();
        run.search.begin(vec![request], &LevelLogits { address, levels })?;
        let tables = run.tables(&*self.engine.shared.driver, ancestor_bytes(passes, most_rows))?;

        self.begin_prompt(levels[0].columns.clone())?;
        let mut end = self.step(&mut run.search)?;
        for level in 1..levels.len() {
            let SearchLevel { tokens, width, .. } = &levels[level - 1];
            let LevelRows { count, extensions, .. } = run.search.rows(0);
            run.parents.clear();
            run.parents.resize(*width, 0);
            let request = self.request()?;
            let first_slot = request.ancestors.next_slot();
            request.ancestors.fork(&run.parents);
            request.kind = RowKind::Beams;
            request.beams.clear();
            request.beams.extend(repeat_n(TokenId(tokens.start as u32), *width));
            let rows = BeamRows {
                extensions: extensions.unwrap_or_default(),
                count: count.unwrap_or_default(),
                ancestors: tables[level % 2],
                next_ancestors: tables[(level + 1) % 2],
                // They are the pass's to say.
                tokens: Address::NULL,
                pass_ancestors: Address::NULL,
                pass_rows: 0,
                rows: *width as i32,
                passes: level as i32,
                most_rows: most_rows as i32,
                first_token: tokens.start as i32,
                first_slot: first_slot as i32,
            };
            request.found = Some(DeviceBeams { rows, end });
            self.post(*width, levels[level].columns.clone())?;
            end = self.step(&mut run.search)?;
        }
        run.take_extensions(levels, steps)
    }

    /// True where a reading drafts levels of these tokens, as wide.
    fn has_room_for_draft(&self, levels: &[SearchLevel]) -> bool {
        let Some(draft) = &self.draft else { return false };
        let is_level = |(at, level): (usize, &SearchLevel)| {
            level.width <= draft.most_rows()
                && level.columns == level.tokens
                && draft.tokens_of(at).is_ok_and(|tokens| tokens == level.tokens)
        };
        levels.len() == draft.head().shape.levels.len() && levels.iter().enumerate().all(is_level)
    }

    /// Begins the next level of a draft, whose rows the step before found.
    fn launch_found_level(&mut self, most: usize, found: [Address; 2]) -> Result<(), SessionError> {
        let (Some(draft), Some(request)) = (&mut self.draft, &self.request) else {
            return Err(SessionError::NoDraftHere);
        };
        let memory = &request.memory;
        let (columns, end) = draft.launch_found(&self.engine.shared, memory, most, found)?;
        (self.rows, self.columns, self.computed) = (most, columns, Some(end));
        Ok(())
    }

    /// Levels of a draft and their steps, one behind the other.
    fn draft_levels(
        &mut self,
        run: &mut CatalogRun,
        request: CatalogRequest,
        levels: &[SearchLevel],
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<(), Failure> {
        let address = self.request()?.memory.logits.address();
        run.search.begin(vec![request], &LevelLogits { address, levels })?;
        self.begin_draft()?;
        self.step(&mut run.search)?;
        for level in &levels[..levels.len() - 1] {
            let LevelRows { count, extensions, .. } = run.search.rows(0);
            let found = [count, extensions].map(Option::unwrap_or_default);
            self.launch_found_level(level.width, found)?;
            self.step(&mut run.search)?;
        }
        run.take_extensions(levels, steps)
    }

    /// Launches a step behind the pass that was posted last; returns the end of the step.
    fn step(&mut self, search: &mut DeviceSearch) -> Result<Event, Failure> {
        self.request()?;
        let driver = &*self.engine.shared.driver;
        if let Some(pass) = &self.computed {
            driver.wait(Stream::Selection, pass)?;
        }
        search.step()?;
        Ok(driver.record(Stream::Selection)?)
    }
}

impl CatalogRun {
    /// Bytes on the device.
    fn bytes(&self) -> u64 {
        let ancestors = self.ancestors.as_ref().map_or(0, Region::bytes);
        (self.search.bytes() + ancestors) as u64
    }

    /// Writes what each level found over `steps`, once all of it is there.
    fn take_extensions(
        &mut self,
        levels: &[SearchLevel],
        steps: &mut Vec<Vec<Extension>>,
    ) -> Result<(), Failure> {
        steps.resize_with(levels.len(), Vec::new);
        self.search.extensions(0, |level, found| {
            let first = levels[level].tokens.start as u32;
            let best = &mut steps[level];
            best.clear();
            best.extend(found.map(|of| Extension {
                score: of.score,
                bound: 0.0,
                parent: of.parent,
                token: TokenId(first + of.code),
            }));
        })?;
        Ok(())
    }

    /// Two tables of so many bytes in all.
    fn tables(
        &mut self,
        driver: &dyn crate::Driver,
        bytes: usize,
    ) -> Result<[Address; 2], DeviceError> {
        let both = bytes.max(16);
        let region = match self.ancestors.take().filter(|region| region.bytes() >= both) {
            Some(region) => region,
            None => {
                let plan = RegionPlan { name: "ancestors of beams", bytes: both };
                driver.regions(&[plan])?.pop().ok_or(DeviceError::Foreign("no region"))?
            }
        };
        let tables = [region.address(), region.address_at(bytes / 2)];
        self.ancestors = Some(region);
        Ok(tables)
    }
}
