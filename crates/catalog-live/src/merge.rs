//! Merging neighbouring segments into one.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use palmette_catalog::{Catalog, CatalogBuilder};

use crate::error::LiveError;
use crate::manifest::{departed_file, segment_file};
use crate::memory::departed_catalog;
use crate::schema::Schema;
use crate::segment::{Segment, SegmentView};
use crate::shared::Shared;
use crate::writer::Writer;

/// Items taken over at a time: between two pieces a merge sees that the catalog is being closed.
const PIECE_ITEMS: usize = 1 << 16;

/// A merge that was begun. Nothing is seen of it before [`commit`](Self::commit); dropped before,
/// it never was.
///
/// Only segments that are neighbours in age are merged, so that items which share a semantic ID
/// keep their order. The directory stays locked for as long as there is a merge.
#[derive(Debug)]
pub struct Merge {
    shared: Arc<Shared>,
    /// Segments as they were when the merge began.
    inputs: Vec<SegmentView>,
    schema: Arc<Schema>,
    file_number: u64,
    merged: Option<SegmentView>,
}

impl Merge {
    /// Marks segments, by place among the immutable ones. `None` when there are none or one is
    /// being merged.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        writer: &mut Writer,
        range: Range<usize>,
    ) -> Option<Self> {
        let inputs = writer.state.sealed.get(range).filter(|inputs| !inputs.is_empty())?.to_vec();
        if inputs.iter().any(|view| writer.merging.contains(&view.segment.key())) {
            return None;
        }
        writer.merging.extend(inputs.iter().map(|view| view.segment.key()));
        let file_number = writer.state.take_file_number();
        writer.pending_files.insert(file_number);
        writer.counts.merges_running += 1;
        let (shared, schema) = (shared.clone(), writer.state.schema.clone());
        Some(Self { shared, inputs, schema, file_number, merged: None })
    }

    /// Builds the merged segment; updates go on meanwhile. Whether it came to an end: it does not
    /// where the catalog is being closed.
    ///
    /// Cost: half a microsecond to 4 an item, most where texts are distinct; memory as for building
    /// a catalog of them.
    ///
    /// # Errors
    /// When the file of a segment is damaged by now, or the merged segment is large enough to be
    /// written at once, and cannot be.
    pub fn build(&mut self) -> Result<bool, LiveError> {
        let options = &self.shared.options;
        let pool = crate::pool::one_thread("merge")?;
        self.inputs.iter().try_for_each(|view| view.segment.verify())?;
        let Some(catalog) = pool.install(|| self.merged_catalog())? else { return Ok(false) };
        let departed = departed_catalog(&self.schema, self.departed())?;
        let is_written = catalog.num_items() >= options.map_items;
        let (catalog, departed) = if is_written {
            let write = |catalog: Catalog, name: String| {
                let path = self.shared.dir.join(name);
                catalog.save(&path)?;
                drop(catalog);
                Catalog::open_with(&path, palmette_mapped::Check::Frame)
            };
            let departed = departed.map(|of| write(of, departed_file(self.file_number)));
            (write(catalog, segment_file(self.file_number))?, departed.transpose()?)
        } else {
            (catalog, departed)
        };
        let number = self.file_number;
        let segment = Segment::new(catalog, departed, number, is_written, options.filter_bytes);
        let mut merged = SegmentView::whole(Arc::new(segment));
        // Most of what was cleared meanwhile is cleared here before writers have to wait for it.
        let now = self.shared.current.load_full();
        for at in 0..self.inputs.len() {
            let key = self.inputs[at].segment.key();
            if let Some(view) = now.segments().iter().find(|view| view.segment.key() == key) {
                catch_up(&mut merged, &mut self.inputs[at], view);
            }
        }
        self.merged = Some(merged);
        Ok(true)
    }

    /// Puts the merged segment in the place of those it was made from, without what was cleared in
    /// them since. Whether that could be done: after a rollback they are no longer there.
    ///
    /// # Panics
    /// When it was not built.
    pub fn commit(mut self) -> bool {
        let mut merged = self.merged.take().expect("a merge is built before it is committed");
        let shared = self.shared.clone();
        let mut writer = shared.lock();
        let keys: Vec<u64> = self.inputs.iter().map(|view| view.segment.key()).collect();
        let Some(range) = writer.place_of(&keys) else { return false };
        for (input, now) in self.inputs.iter_mut().zip(&writer.state.sealed[range.clone()]) {
            catch_up(&mut merged, input, now);
        }
        writer.counts.merges_done += 1;
        writer.counts.items_merged += merged.segment.catalog().num_items();
        writer.state.sealed.splice(range, (!merged.is_forgotten()).then_some(merged));
        if writer.state.is_memory_full() {
            writer.state.seal_memory();
        }
        shared.publish(&writer);
        true
    }

    /// Ids and codes of the items that departed from these segments: the latest version of each,
    /// unless it is there again.
    fn departed(&self) -> Vec<(String, Vec<u32>)> {
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        for (id, codes) in self.inputs.iter().rev().flat_map(SegmentView::all_departed) {
            let is_there = || self.inputs.iter().any(|view| view.find(id).is_some());
            if seen.insert(id) && !is_there() {
                found.push((id.to_owned(), codes));
            }
        }
        found
    }

    /// A catalog of the items that were there; `None` where the catalog is being closed.
    fn merged_catalog(&self) -> Result<Option<Catalog>, LiveError> {
        let num_items = self.inputs.iter().map(SegmentView::num_live).sum();
        let mut builder = CatalogBuilder::new(self.schema.build_options(num_items))?;
        for view in &self.inputs {
            let mut left = view.ranks();
            loop {
                let ranks: Vec<u64> = left.by_ref().take(PIECE_ITEMS).collect();
                if ranks.is_empty() {
                    break;
                }
                if self.shared.is_closing.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                builder.push_items_of(view.segment.catalog(), &ranks)?;
            }
        }
        Ok(Some(builder.finish(None, |_| {})?))
    }
}

impl Drop for Merge {
    fn drop(&mut self) {
        let mut writer = self.shared.lock();
        for view in &self.inputs {
            writer.merging.remove(&view.segment.key());
        }
        writer.pending_files.remove(&self.file_number);
        writer.counts.merges_running -= 1;
        drop(writer);
        self.shared.changed.notify_all();
    }
}

/// Clears in `merged` what is cleared in `now` and was not in `then`, which becomes `now`.
fn catch_up(merged: &mut SegmentView, then: &mut SegmentView, now: &SegmentView) {
    let catalog = then.segment.catalog();
    for rank in then.segment.cleared(then.num_cleared, now.num_cleared) {
        // It was there when the merge began, so it is in the merged segment.
        if let Some(rank) = merged.find(catalog.id(rank)) {
            merged.clear(rank);
        }
    }
    then.num_cleared = now.num_cleared;
}
