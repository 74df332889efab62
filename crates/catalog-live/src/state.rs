//! State machine of the log: segments, memory segment and schema as of a generation.
//!
//! The writer and every reader run it over the same entries, so that they see the same items.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette_catalog::{Catalog, ColumnKind, Item};
use palmette_catalog_filter::Columns;
use serde_json::{Map, Value};

use crate::batch_keys::BatchKeys;
use crate::contents::{self, GenerationSegments};
use crate::error::LiveError;
use crate::log_entry::LogEntry;
use crate::manifest::{Contents, KeptEntry, kept_place};
use crate::memory::Memory;
use crate::options::LiveOptions;
use crate::schema::Schema;
use crate::segment::{MAX_SEGMENTS, Segment, SegmentView};
use crate::snapshot::{DamagedSegment, Snapshot};
use crate::update::{Applied, Update};

/// All items as of a generation, and what the next entry is applied to.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) dir: PathBuf,
    pub(crate) options: LiveOptions,
    pub(crate) generation: u64,
    /// Immutable segments, the oldest first.
    pub(crate) sealed: Vec<SegmentView>,
    pub(crate) memory: Memory,
    /// The memory segment as it was indexed last; `None` when it has nothing.
    pub(crate) memory_view: Option<SegmentView>,
    /// False while the memory segment, or the schema, has something that its index has not.
    is_indexed: bool,
    pub(crate) schema: Arc<Schema>,
    columns: Arc<Columns>,
    pub(crate) kept: Vec<KeptEntry>,
    pub(crate) next_file_number: u64,
    /// Keys of the latest batches; a reader has those of the log that it read.
    pub(crate) keys: BatchKeys,
    /// Permission to go on without segments whose files are damaged; readers alone may have it.
    pub(crate) is_degraded: bool,
    /// Segments that are left out.
    pub(crate) damaged: Vec<DamagedSegment>,
    /// The thread on which the memory segment is indexed.
    pool: rayon::ThreadPool,
}

impl State {
    pub(crate) fn new(
        dir: &Path,
        options: LiveOptions,
        schema: Schema,
        kept: Vec<KeptEntry>,
        next_file_number: u64,
    ) -> Result<Self, LiveError> {
        Ok(Self {
            pool: crate::pool::one_thread("memory segment")?,
            dir: dir.to_owned(),
            options,
            generation: 0,
            sealed: Vec::new(),
            memory: Memory::default(),
            memory_view: None,
            is_indexed: true,
            columns: Arc::new(schema.empty_columns()),
            schema: Arc::new(schema),
            kept,
            next_file_number,
            keys: BatchKeys::default(),
            is_degraded: false,
            damaged: Vec::new(),
        })
    }

    /// Puts the files of a generation in the place of what is there. The memory segment is to be
    /// indexed.
    pub(crate) fn install(&mut self, opened: GenerationSegments) {
        self.is_indexed = false;
        self.memory = opened.memory;
        self.damaged = opened.damaged;
        self.sealed = opened.sealed.into_iter().map(|(view, _)| view).collect();
    }

    /// Opens the files of a generation; segments that this state has open already are not read
    /// again.
    pub(crate) fn open(&self, contents: &Contents) -> Result<GenerationSegments, LiveError> {
        let written = self.sealed.iter().map(SegmentView::segment).filter(|of| of.is_written());
        let known: HashMap<u64, &Segment> =
            written.map(|segment| (segment.file_number(), &**segment)).collect();
        contents::open(&self.dir, &self.options, contents, &known, self.is_degraded)
    }

    /// Applies an entry of the log, the next one. What it opens of files is handed to `opened`.
    pub(crate) fn replay(
        &mut self,
        generation: u64,
        entry: LogEntry,
        mut opened: impl FnMut(&GenerationSegments),
    ) -> Result<(), LiveError> {
        match entry {
            LogEntry::Batch { updates, key } => {
                let added_columns = self.check(&updates)?;
                self.generation = generation;
                let applied = self.apply(&updates, &added_columns);
                if let Some(key) = key {
                    self.keys.add(key, applied);
                }
                if self.is_memory_full() && self.has_room() {
                    self.index_memory()?;
                }
            }
            LogEntry::Rollback { to } => {
                let place = kept_place(&self.kept, to)?;
                let found = self.open(&self.kept[place].contents)?;
                self.generation = generation;
                opened(&found);
                self.install(found);
            }
            LogEntry::Widen { codes_per_level } => {
                self.generation = generation;
                self.widen(codes_per_level);
            }
            // A replica makes checkpoints of these, after which its own log begins anew.
            LogEntry::Keep { .. } | LogEntry::Forget { .. } => {
                let problem = "what is kept stands in manifests, not in a directory's own log";
                return Err(LiveError::damaged(&self.dir, problem));
            }
        }
        Ok(())
    }

    /// Checks a whole batch; returns the attributes that it brings and their kinds.
    pub(crate) fn check(&self, updates: &[Update]) -> Result<Vec<(String, ColumnKind)>, LiveError> {
        let checked = self.schema.check_batch(updates, &|id| self.codes(id))?;
        match checked.refused.into_iter().next() {
            Some(refused) => Err(refused.into()),
            None => Ok(checked.added_columns),
        }
    }

    /// Applies checked updates; [`index_memory`](Self::index_memory) is due after it.
    pub(crate) fn apply(
        &mut self,
        updates: &[Update],
        added_columns: &[(String, ColumnKind)],
    ) -> Applied {
        self.is_indexed = false;
        if !added_columns.is_empty() {
            let mut schema = Schema::clone(&self.schema);
            schema.add_columns(added_columns);
            self.set_schema(schema);
        }
        let mut applied = Applied { generation: self.generation, ..Applied::default() };
        for update in updates {
            match update {
                Update::Upsert(item) => {
                    self.remove(&item.id);
                    self.memory.upsert(item);
                    applied.upserted += 1;
                }
                Update::Patch { id, attributes } => match self.patch(id, attributes) {
                    true => applied.patched += 1,
                    false => applied.unchanged += 1,
                },
                Update::Delete(id) if self.delete(id) => applied.deleted += 1,
                Update::Delete(_) => applied.unknown_deletes += 1,
            }
        }
        applied
    }

    /// Widens the codebooks; with more levels than before, IDs may differ in length from then on.
    pub(crate) fn widen(&mut self, codes_per_level: Vec<u32>) {
        let num_levels = self.schema.num_levels.filter(|&levels| levels == codes_per_level.len());
        let codes_per_level = Some(codes_per_level);
        self.set_schema(Schema { codes_per_level, num_levels, ..Schema::clone(&self.schema) });
    }

    pub(crate) fn set_schema(&mut self, schema: Schema) {
        self.is_indexed = false;
        self.columns = Arc::new(schema.empty_columns());
        self.schema = Arc::new(schema);
    }

    /// Changes attributes of an item that is there, which keeps its place among those that share
    /// its codes; whether any changed.
    fn patch(&mut self, id: &str, attributes: &Map<String, Value>) -> bool {
        let Some(found) = self.item(id) else { return false };
        let mut item = found.clone();
        for (name, value) in attributes {
            match value {
                Value::Null => _ = item.attributes.remove(name),
                value => _ = item.attributes.insert(name.clone(), value.clone()),
            }
        }
        if item == found {
            return false;
        }
        if !self.memory.replace(&item) {
            // Those of its codes that come after it go with it, and before all that are in the
            // memory segment already.
            let mut moved = self.sealed_after(id);
            for other in std::iter::once(&item).chain(&moved) {
                self.clear(&other.id);
            }
            moved.insert(0, item);
            self.memory.prepend(&moved);
        }
        true
    }

    /// The items of the immutable segments that share the codes of one there and come after it, in
    /// their order.
    fn sealed_after(&self, id: &str) -> Vec<Item> {
        let mut after = Vec::new();
        let mut codes = None;
        for view in &self.sealed {
            let catalog = view.segment().catalog();
            let first = match &codes {
                Some(_) => 0,
                None => match view.find(id) {
                    Some(rank) => {
                        codes = Some(catalog.codes(rank));
                        rank + 1
                    }
                    None => continue,
                },
            };
            let ranks = codes.iter().flat_map(|codes| catalog.find(codes));
            let ranks = ranks.filter(|&rank| rank >= first && view.has(rank));
            after.extend(ranks.map(|rank| Item {
                id: catalog.id(rank).to_owned(),
                codes: catalog.codes(rank),
                attributes: catalog.attributes(rank),
            }));
        }
        after
    }

    /// The item with this id.
    fn item(&self, id: &str) -> Option<Item> {
        let sealed = || {
            let (catalog, rank) = self.sealed_place(id)?;
            let (codes, attributes) = (catalog.codes(rank), catalog.attributes(rank));
            Some(Item { id: id.to_owned(), codes, attributes })
        };
        self.memory.item(id).cloned().or_else(sealed)
    }

    /// The codes of the item with this id.
    pub(crate) fn codes(&self, id: &str) -> Option<Vec<u32>> {
        let sealed = || self.sealed_place(id).map(|(catalog, rank)| catalog.codes(rank));
        self.memory.item(id).map(|item| item.codes.clone()).or_else(sealed)
    }

    /// The immutable segment that has the item with this id, and its rank there.
    fn sealed_place(&self, id: &str) -> Option<(&Catalog, u64)> {
        let mut newest_first = self.sealed.iter().rev();
        newest_first.find_map(|view| Some((view.segment().catalog(), view.find(id)?)))
    }

    /// Removes the item with this id, whose codes stay known; whether it was anywhere.
    fn delete(&mut self, id: &str) -> bool {
        self.memory.delete(id) || self.clear(id)
    }

    /// Removes the item with this id for another version of it.
    fn remove(&mut self, id: &str) -> bool {
        self.memory.remove(id).is_some() || self.clear(id)
    }

    /// Clears the item with this id in the immutable segment that has it.
    fn clear(&mut self, id: &str) -> bool {
        self.sealed.iter_mut().rev().any(|view| match view.find(id) {
            Some(rank) => {
                view.clear(rank);
                true
            }
            None => false,
        })
    }

    /// Indexes the memory segment. It becomes an immutable one where it is full and there is room.
    pub(crate) fn index_memory(&mut self) -> Result<(), LiveError> {
        self.memory_view = None;
        if !self.memory.is_empty() {
            let (catalog, departed) = self.pool.install(|| self.memory.build(&self.schema))?;
            let number = self.take_file_number();
            let segment = Segment::new(catalog, departed, number, false, self.options.filter_bytes);
            self.memory_view = Some(SegmentView::whole(Arc::new(segment)));
        }
        self.is_indexed = true;
        if self.is_memory_full() {
            self.seal_memory();
        }
        Ok(())
    }

    /// True where the index of the memory segment has all of it: a snapshot, or files, of this
    /// state are whole.
    pub(crate) fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    pub(crate) fn is_memory_full(&self) -> bool {
        self.memory.len() >= self.options.memory_items.max(1)
    }

    /// Makes the memory segment an immutable one if there is room; whether it is empty now.
    pub(crate) fn seal_memory(&mut self) -> bool {
        // What is not in the index would be lost with the memory.
        if self.is_indexed
            && self.has_room()
            && let Some(view) = self.memory_view.take()
        {
            self.sealed.push(view);
            self.memory = Memory::default();
        }
        self.memory.is_empty()
    }

    /// True where there may be another immutable segment, and the memory segment after it.
    pub(crate) fn has_room(&self) -> bool {
        self.sealed.len() + 1 < MAX_SEGMENTS
    }

    /// Segments in the order of age, the memory segment last.
    pub(crate) fn views(&self) -> impl Iterator<Item = &SegmentView> {
        self.sealed.iter().chain(&self.memory_view)
    }

    /// Snapshot of this generation, for readers.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let segments = self.views().cloned().collect();
        let (schema, columns) = (self.schema.clone(), self.columns.clone());
        Snapshot::new(self.generation, segments, schema, columns, self.damaged.clone())
    }

    pub(crate) fn take_file_number(&mut self) -> u64 {
        self.next_file_number += 1;
        self.next_file_number - 1
    }
}
