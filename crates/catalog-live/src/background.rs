//! The threads that merge and make checkpoints while others apply and read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::checkpoint::{Cause, Keeping, checkpoint};
use crate::merge::Merge;
use crate::options::MergePolicy;
use crate::policy::{NUM_LANES, pick};
use crate::shared::Shared;
use crate::writer::Writer;

/// Time after which what failed is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Time between trials whether the log can be written again.
const TRIAL: Duration = Duration::from_secs(1);

/// One thread for each lane of merges, and one for checkpoints.
pub(crate) fn start(shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    let lanes = match shared.options.merging {
        MergePolicy::Never => 0,
        _ => NUM_LANES,
    };
    let spawn = |name: String, run: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name).spawn(run).expect("the system has threads to give")
    };
    let merging = (0..lanes).map(|lane| {
        let shared = shared.clone();
        spawn(format!("merge {lane}"), Box::new(move || merge_lane(&shared, lane)))
    });
    let mut threads: Vec<_> = merging.collect();
    let shared = shared.clone();
    threads.push(spawn("checkpoint".into(), Box::new(move || make_checkpoints(&shared))));
    threads
}

/// True if a merge is due in any lane.
pub(crate) fn any_due(writer: &Writer) -> bool {
    let (options, candidates) = (&writer.state.options, writer.candidates());
    (0..NUM_LANES)
        .any(|lane| pick(options.merging, &candidates, options.memory_items as u64, lane).is_some())
}

fn merge_lane(shared: &Arc<Shared>, lane: usize) {
    while let Some(mut merge) = next_merge(shared, lane) {
        match merge.build() {
            Ok(true) => {
                merge.commit();
                shared.lock().counts.merge_error = None;
            }
            Ok(false) => {}
            Err(e) => {
                drop(merge);
                let mut writer = shared.lock();
                writer.counts.merge_error = Some(e.to_string());
                // Tried again once something has changed, or there may be room again.
                shared.changed.notify_all();
                drop(shared.wait_for(writer, RETRY));
            }
        }
    }
}

/// Waits for a merge to do; `None` when the catalog is being closed.
fn next_merge(shared: &Arc<Shared>, lane: usize) -> Option<Merge> {
    let mut writer = shared.lock();
    loop {
        if shared.is_closing.load(Ordering::Relaxed) {
            return None;
        }
        let options = &writer.state.options;
        let (memory_items, merging) = (options.memory_items as u64, options.merging);
        let range = pick(merging, &writer.candidates(), memory_items, lane);
        if let Some(merge) = range.and_then(|range| Merge::begin(shared, &mut writer, range)) {
            return Some(merge);
        }
        writer = shared.wait(writer);
    }
}

/// Makes checkpoints when they are due, and looks whether the log can be written again where it
/// could not be.
fn make_checkpoints(shared: &Arc<Shared>) {
    let (mut next_checkpoint, mut next_trial) = (Instant::now(), Instant::now());
    loop {
        let mut writer = shared.lock();
        loop {
            if shared.is_closing.load(Ordering::Relaxed) {
                return;
            }
            let now = Instant::now();
            let bytes = writer.wal.bytes();
            let is_long = bytes >= shared.options.checkpoint_bytes
                || writer.counts.updates_logged >= shared.options.checkpoint_items && bytes > 0;
            // A checkpoint that failed has work left, whatever the log's length.
            let is_due = (is_long || writer.counts.checkpoint_error.is_some())
                && writer.check_sound().is_ok();
            if is_due && now >= next_checkpoint {
                break;
            }
            let cannot_write = writer.counts.write_error.is_some() && !writer.is_closed;
            if cannot_write && now >= next_trial {
                writer.try_to_write();
                next_trial = now + TRIAL;
            }
            writer = match is_due || cannot_write {
                true => shared.wait_for(writer, TRIAL),
                false => shared.wait(writer),
            };
        }
        drop(writer);
        let made = checkpoint(shared, Keeping::AsItIs, Cause::Wish);
        if made.is_err() {
            next_checkpoint = Instant::now() + RETRY;
        }
        shared.lock().counts.checkpoint_error = made.err().map(|e| e.to_string());
    }
}
