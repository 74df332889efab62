//! Drafts of a reading: levels behind one pass over prompt and placeholders.
//!
//! Levels are launched on the stream of selection, in the order in which they are asked for, so
//! what is sent for one is written when the one before has read its own. In a whole search the
//! extensions of a level are where its step left them, and nothing is sent at all.

use std::ops::Range;

use palmette_core::TokenId;
use palmette_model::SessionError;
use palmette_model::draft::DraftOutline;

use crate::arguments::{Arguments, Extension};
use crate::draft::DraftRows;
use crate::meeting::Shared;
use crate::plan::{DraftPlaces, ReadingMemory, ReadingPlan};
use crate::{Address, DeviceError, Event, Pinned, Stream};

/// Position of a reading in its draft, and the memory on the way to its levels.
#[derive(Debug)]
pub(super) struct DraftRun {
    head: DraftOutline,
    places: DraftPlaces,
    most_rows: usize,
    /// Numbers of rows and extensions on their way to the device.
    sent: Pinned,
    sent_end: Option<Event>,
    /// True while the pass over the prompt is under way, behind which the first level comes.
    pub(super) is_begun: bool,
    level: usize,
    /// Bound on the rows of the level, and the address of their number.
    rows: (usize, Address),
}

impl DraftRun {
    /// Memory of a draft; none where a reading was not planned for one.
    pub(super) fn new(
        shared: &Shared,
        plan: &ReadingPlan,
        memory: &ReadingMemory,
    ) -> Result<Option<Self>, DeviceError> {
        let head = shared.weights.draft.as_ref();
        let (Some(head), Some(draft), Some(places)) = (head, plan.draft(), plan.draft_places())
        else {
            return Ok(None);
        };
        // Windows begin at column 0, and stay so.
        shared.driver.clear(Stream::Selection, &memory.draft)?;
        Ok(Some(Self {
            head: head.outline().clone(),
            sent: shared.driver.pinned(places.sent)?,
            sent_end: None,
            rows: (0, Address::NULL),
            places,
            most_rows: draft.rows,
            is_begun: false,
            level: 0,
        }))
    }

    pub(super) fn head(&self) -> &DraftOutline {
        &self.head
    }

    /// Limit on the rows of a level.
    pub(super) fn most_rows(&self) -> usize {
        self.most_rows
    }

    /// Tokens of a level's codes.
    pub(super) fn tokens_of(&self, level: usize) -> Result<Range<usize>, SessionError> {
        let levels = &self.head.shape.levels;
        let too_many = SessionError::TooManyPasses { pass: level, max: levels.len() - 1 };
        let &(first, codes) = levels.get(level).ok_or(too_many)?;
        Ok(first as usize..(first + codes) as usize)
    }

    /// Begins with the first level, once the pass over the prompt is posted.
    pub(super) fn begin(&mut self) {
        (self.is_begun, self.level, self.rows.0) = (true, 0, 0);
    }

    /// Goes on to the next level, whose columns it returns, with rows that continue the `rows` of
    /// the latest.
    pub(super) fn advance(
        &mut self,
        rows: usize,
        parents: &[u32],
        tokens: &[TokenId],
    ) -> Result<Range<usize>, SessionError> {
        let (beams, max) = (tokens.len(), self.most_rows);
        if beams > max {
            return Err(SessionError::TooManyBeams { beams, max });
        }
        let columns = self.tokens_of(self.level + 1)?;
        if let Some(&parent) = parents.iter().find(|&&parent| parent as usize >= rows) {
            return Err(SessionError::UnknownParent { parent, rows });
        }
        let Range { start, end } = self.tokens_of(self.level)?;
        if let Some(&token) = tokens.iter().find(|token| !(start..end).contains(&token.index())) {
            return Err(SessionError::NoCode { token, start, end });
        }
        self.level += 1;
        Ok(columns)
    }

    /// Launches the first level behind the pass over the prompt; returns its end.
    pub(super) fn launch_first(
        &mut self,
        shared: &Shared,
        memory: &ReadingMemory,
        pass: &Event,
    ) -> Result<Event, DeviceError> {
        self.is_begun = false;
        shared.driver.wait(Stream::Selection, pass)?;
        self.send(shared, memory, 1, std::iter::empty())
    }

    /// Launches the level to which [`advance`](Self::advance) went; returns its end, none where
    /// there are no rows.
    pub(super) fn launch_next(
        &mut self,
        shared: &Shared,
        memory: &ReadingMemory,
        parents: &[u32],
        tokens: &[TokenId],
    ) -> Result<Option<Event>, DeviceError> {
        if tokens.is_empty() {
            self.rows.0 = 0;
            return Ok(None);
        }
        let first = self.head.shape.levels[self.level - 1].0;
        let extensions = parents.iter().zip(tokens).map(|(&parent, token)| {
            let code = token.0 - first;
            Extension { score: 0.0, parent, code }
        });
        self.send(shared, memory, tokens.len(), extensions).map(Some)
    }

    /// Launches the next level over rows that a step on the device found, at most so many; returns
    /// its columns and its end.
    pub(super) fn launch_found(
        &mut self,
        shared: &Shared,
        memory: &ReadingMemory,
        most: usize,
        [count, extensions]: [Address; 2],
    ) -> Result<(Range<usize>, Event), SessionError> {
        let columns = self.tokens_of(self.level + 1)?;
        self.level += 1;
        Ok((columns, self.launch(shared, memory, most, [count, extensions])?))
    }

    /// Sends the rows of the level, and launches it.
    fn send(
        &mut self,
        shared: &Shared,
        memory: &ReadingMemory,
        rows: usize,
        extensions: impl Iterator<Item = Extension>,
    ) -> Result<Event, DeviceError> {
        let (driver, region) = (&*shared.driver, &memory.draft);
        if let Some(end) = self.sent_end.take() {
            driver.finish(&end)?;
        }
        let (places, bytes) = (self.places, self.sent.bytes()?);
        // The numbers of two levels, in turn.
        let counts = [self.level, self.level + 1].map(|level| places.counts + level % 2 * 4);
        for (at, count) in counts.into_iter().zip([rows, self.rows.0]) {
            bytes[at..][..4].copy_from_slice(&(count as u32).to_le_bytes());
        }
        let mut end = places.extensions;
        for extension in extensions {
            extension.write(&mut bytes[end..end + Extension::BYTES]);
            end += Extension::BYTES;
        }
        driver.write(Stream::Selection, region, 0, &mut self.sent, end)?;
        self.sent_end = Some(driver.record(Stream::Selection)?);
        let [count, before] = counts.map(|at| region.address_at(at));
        self.rows.1 = before;
        self.launch(shared, memory, rows, [count, region.address_at(places.extensions)])
    }

    /// Launches the level over at most `most` rows, whose number and extensions are at these
    /// addresses; returns its end.
    fn launch(
        &mut self,
        shared: &Shared,
        memory: &ReadingMemory,
        most: usize,
        [count, extensions]: [Address; 2],
    ) -> Result<Event, DeviceError> {
        let head = shared.weights.draft.as_ref();
        let head = head.ok_or(DeviceError::Foreign("a draft head"))?;
        let ((most_before, count_before), level) = (self.rows, self.level);
        let rows = DraftRows { level, most, most_before, count, count_before, extensions };
        let forward = shared.forward(Stream::Selection);
        forward.draft_level(head, memory, &self.places, rows)?;
        self.rows = (most, count);
        shared.driver.record(Stream::Selection)
    }
}
