//! Requests that compute together: the thread of a device, which makes passes of what waits.
//!
//! Each reading posts its request and goes on; the thread takes what is there (beams first, then
//! parts of prompts in the order of their coming), describes a pass, puts it on the stream of
//! passes and gives the requests back. At most two passes are on the stream, so one is described
//! while the other runs, and what comes meanwhile is in the next. It never waits for more to come.
//!
//! What a request shares a pass with changes no bit of it. Source of the loop: xGR,
//! arXiv 2512.11529, §7, whose quota of waiting is left out.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use palmette_model::ModelConfig;

use crate::arguments::BeamRows;
use crate::forward::Forward;
use crate::pages::Pages;
use crate::pass::{Description, PassShape, Share};
use crate::plan::{CHUNK_ROWS, Layout, Memory, PAGE, Plan, RUN};
use crate::request::{DeviceRequest, RowKind};
use crate::slots::Slots;
use crate::weights::Weights;
use crate::{DeviceError, Driver, Event, Graph, Kernel, KernelSet, Stream, launch};

/// Limit on the rows of a prompt's part whose blocks are one a run, where it sees several runs.
const SHORT_ROWS: usize = PAGE;

/// Passes that a device has computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PassCounts {
    /// Passes.
    pub(crate) passes: u64,
    /// Requests in them, each counted once a pass.
    pub(crate) requests: u64,
    /// Rows of prompts.
    pub(crate) prompt_rows: u64,
    /// Rows of beams.
    pub(crate) beam_rows: u64,
}

/// Parts of an engine that its thread and its readings use.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) driver: Arc<dyn Driver>,
    /// Number of the device's multiprocessors.
    pub(crate) multiprocessors: u32,
    pub(crate) kernels: KernelSet,
    pub(crate) config: ModelConfig,
    pub(crate) weights: Weights,
    pub(crate) plan: Plan,
    pub(crate) memory: Memory,
    pub(crate) pages: Arc<Pages>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) counts: Mutex<PassCounts>,
    /// The failure after which the device does no more work for this process.
    pub(crate) failure: OnceLock<String>,
    /// Bytes that readings have taken of their own.
    pub(crate) reading_bytes: AtomicU64,
}

impl Shared {
    pub(crate) fn pass_counts(&self) -> PassCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the device that nobody has, and that no request is promised.
    pub(crate) fn room(&self) -> Result<u64, DeviceError> {
        let promised = self.plan.readings().into_iter().flatten();
        let promised = promised.map(|plan| plan.bytes as u64).sum::<u64>();
        let to_come = promised.saturating_sub(self.reading_bytes.load(Ordering::Relaxed));
        Ok(self.driver.free_bytes()?.saturating_sub(to_come))
    }

    /// Notes the first failure after which the device does no more work.
    pub(crate) fn note(&self, error: &DeviceError) {
        if matches!(error, DeviceError::Fault(_)) {
            let _ = self.failure.set(error.to_string());
        }
    }

    /// Failure that is behind another, which is noted: a copy of a device that has failed is under
    /// way for good.
    pub(crate) fn cause(&self, error: DeviceError) -> DeviceError {
        let is_stuck = matches!(error, DeviceError::Busy);
        let asked = || self.driver.finish(&self.driver.record(Stream::Download)?);
        let behind = if is_stuck { asked().err() } else { None };
        let cause =
            behind.filter(|behind| matches!(behind, DeviceError::Fault(_))).unwrap_or(error);
        self.note(&cause);
        cause
    }

    fn count(&self, shares: &[Share]) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.passes += 1;
        counts.requests += shares.len() as u64;
        for share in shares {
            match share.request.kind {
                RowKind::Beams => counts.beam_rows += share.rows as u64,
                _ => counts.prompt_rows += share.rows as u64,
            }
        }
    }

    /// Puts beams that the device found into the description of a pass, behind their step.
    fn continue_beams(&self, layout: Layout, share: &Share) -> Result<(), DeviceError> {
        let Some(found) = &share.request.found else { return Ok(()) };
        let places = self.plan.places(layout);
        let at = |place: usize| self.memory.pass.address_at(place + share.first_row * 4);
        let rows = BeamRows {
            tokens: at(places.tokens),
            pass_ancestors: at(places.ancestors),
            pass_rows: places.merged as i32,
            ..found.rows
        };
        self.driver.wait(Stream::Compute, &found.end)?;
        let grid = [self.multiprocessors, 1, 1];
        launch(&*self.driver, Stream::Compute, Kernel::ContinueBeams, grid, &rows)
    }

    pub(crate) fn forward(&self, on: Stream) -> Forward<'_> {
        Forward {
            driver: &*self.driver,
            on,
            multiprocessors: self.multiprocessors,
            kernels: self.kernels,
            config: &self.config,
            weights: &self.weights,
            plan: &self.plan,
            memory: &self.memory,
        }
    }
}

/// A request, or several that come at once, so that the next pass has all of them.
#[derive(Debug)]
enum Post {
    One(Box<DeviceRequest>),
    Several(VecDeque<Box<DeviceRequest>>),
}

/// The place where readings post their requests. Its thread ends with it.
#[derive(Debug)]
pub(crate) struct Meeting {
    posts: Option<SyncSender<Post>>,
    thread: Option<JoinHandle<()>>,
}

impl Meeting {
    /// Starts the thread of a device.
    pub(crate) fn start(shared: Arc<Shared>) -> Result<Self, DeviceError> {
        let driver = &*shared.driver;
        let describe = || Description::new(driver, &shared.plan);
        let descriptions = [describe()?, describe()?];
        let capture = |shape| {
            driver.capture(Stream::Compute, &mut || shared.forward(Stream::Compute).layers(shape))
        };
        let [few, many, most] = PassShape::ALL;
        let graphs = [capture(few)?, capture(many)?, capture(most)?];
        let (posts, posted) = sync_channel(shared.plan.requests);
        let room = shared.plan.requests;
        let passes = Passes {
            waiting: VecDeque::with_capacity(room),
            shares: Vec::with_capacity(room),
            descriptions,
            graphs,
            posted,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("device".to_owned())
            .spawn(move || passes.run())
            .map_err(|error| DeviceError::Driver { call: "thread", message: error.to_string() })?;
        Ok(Self { posts: Some(posts), thread: Some(thread) })
    }

    /// Posts a request; it comes back by its own way.
    pub(crate) fn post(&self, request: Box<DeviceRequest>) -> Result<(), DeviceError> {
        self.send(Post::One(request))
    }

    /// Posts several requests at once; each comes back by its own way.
    pub(crate) fn post_several(
        &self,
        requests: VecDeque<Box<DeviceRequest>>,
    ) -> Result<(), DeviceError> {
        self.send(Post::Several(requests))
    }

    fn send(&self, post: Post) -> Result<(), DeviceError> {
        let gone = || DeviceError::Foreign("a meeting that ended");
        self.posts.as_ref().ok_or_else(gone)?.send(post).map_err(|_| gone())
    }
}

impl Drop for Meeting {
    fn drop(&mut self) {
        self.posts = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Work of the thread.
struct Passes {
    shared: Arc<Shared>,
    posted: Receiver<Post>,
    waiting: VecDeque<Box<DeviceRequest>>,
    shares: Vec<Share>,
    descriptions: [Description; 2],
    graphs: [Graph; 3],
}

impl Passes {
    fn run(mut self) {
        loop {
            if self.waiting.is_empty() {
                // Readings are gone with the place where they post.
                let Ok(post) = self.posted.recv() else { return };
                self.queue(post);
            }
            let passed = self.pass();
            let error = passed.as_ref().err().cloned();
            if let Some(error) = &error {
                self.shared.note(error);
            }
            for share in self.shares.drain(..).rev() {
                match (&passed, share.is_last) {
                    (Ok(end), true) => share.request.answer(Ok(end.clone())),
                    // More of its prompt is in the next pass.
                    (Ok(_), false) => self.waiting.push_front(share.request),
                    (Err(error), _) => share.request.answer(Err(error.clone())),
                }
            }
            if let Some(error) = error {
                for request in self.waiting.drain(..) {
                    request.answer(Err(error.clone()));
                }
            }
        }
    }

    fn queue(&mut self, post: Post) {
        match post {
            Post::One(request) => self.waiting.push_back(request),
            Post::Several(requests) => self.waiting.extend(requests),
        }
    }

    /// Puts a pass of what waits on the stream; returns its end.
    fn pass(&mut self) -> Result<Event, DeviceError> {
        // The description of the pass before the last is the next one's.
        self.descriptions.swap(0, 1);
        if let Some(end) = self.descriptions[0].end.take() {
            self.shared.driver.finish(&end)?;
        }
        // What came while a pass was waited for takes part.
        while let Ok(post) = self.posted.try_recv() {
            self.queue(post);
        }
        self.take();
        debug_assert!(!self.shares.is_empty(), "each request fits into a pass by itself");
        let (shared, shares) = (&*self.shared, &mut self.shares[..]);
        let description = &mut self.descriptions[0];
        let (driver, plan) = (&*shared.driver, &shared.plan);
        let shape = description.send(driver, plan, &shared.memory.pass, shares)?;
        for share in shares.iter() {
            shared.continue_beams(shape.layout, share)?;
        }
        if shares.iter().any(|share| share.rows > 0) {
            let graph = PassShape::ALL.iter().position(|of| *of == shape).unwrap_or_default();
            driver.replay(Stream::Compute, &self.graphs[graph])?;
        }
        for (index, share) in shares.iter_mut().enumerate() {
            let forward = shared.forward(Stream::Compute);
            forward.keep_rows(shape.layout, index, share)?;
            if share.product_rows > 0 {
                forward.logits(shape.layout, index, share)?;
            }
            let request = &mut share.request;
            if request.kind != RowKind::Beams {
                request.read += share.rows;
                // What comes later on the stream finds them written.
                request.chain.share(&request.prompt, request.read);
            }
        }
        shared.count(shares);
        let end = driver.record(Stream::Compute)?;
        description.end = Some(end.clone());
        Ok(end)
    }

    /// Takes the shares of the next pass: at least one, since each fits by itself.
    fn take(&mut self) {
        let plan = &self.shared.plan;
        let (mut rows, mut merged) = (0, 0);
        let most_rows = if self.waiting.len() > 1 { CHUNK_ROWS } else { plan.rows };
        for are_beams in [true, false] {
            for _ in 0..self.waiting.len() {
                let Some(request) = self.waiting.pop_front() else { break };
                let is_of_turn = (request.kind == RowKind::Beams) == are_beams;
                let share = match is_of_turn && self.shares.len() < plan.requests {
                    false => Err(request),
                    true => {
                        let room = most_rows.min(plan.rows - rows);
                        share(request, room, plan.merged - merged)
                    }
                };
                match share {
                    Err(request) => self.waiting.push_back(request),
                    Ok(share) => {
                        rows += share.rows;
                        merged += if share.is_merged { share.rows } else { 0 };
                        self.shares.push(share);
                    }
                }
            }
        }
    }
}

/// Share of a request in a pass that has room for so many more rows of prompts, and so many whose
/// attention is merged; the request, where it has to wait.
fn share(
    mut request: Box<DeviceRequest>,
    room: usize,
    merged: usize,
) -> Result<Share, Box<DeviceRequest>> {
    if request.kind == RowKind::Beams {
        let count = request.beams.len();
        return if count <= merged { Ok(Share::new(request, count, true)) } else { Err(request) };
    }
    request.take_pages();
    let Some(count) = part(request.read, request.prompt.len(), room) else { return Err(request) };
    let fits = count <= merged;
    if request.logits_rows > 1 {
        // There is room for the logits of as many rows as are merged, and they come at once.
        let is_whole = request.read + count == request.prompt.len();
        return if fits && is_whole { Ok(Share::new(request, count, true)) } else { Err(request) };
    }
    let is_short = count <= SHORT_ROWS && request.read + count > RUN;
    Ok(Share::new(request, count, count > 0 && is_short && fits))
}

/// Rows of a prompt's next part, where there is room for so many. Parts end with pages, so that a
/// page's values are written in whole columns; none where there is no room for one.
fn part(read: usize, tokens: usize, room: usize) -> Option<usize> {
    match tokens - read {
        left if left <= room => Some(left),
        _ => ((read + room) / PAGE * PAGE).checked_sub(read).filter(|&rows| rows > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_end_with_pages() {
        assert_eq!(part(0, 100, 200), Some(100));
        assert_eq!(part(0, 300, 200), Some(192));
        assert_eq!(part(192, 300, 108), Some(108));
        assert_eq!(part(70, 300, 100), Some(58));
        assert_eq!(part(70, 300, 57), None);
        assert_eq!(part(64, 300, 0), None);
        assert_eq!(part(300, 300, 0), Some(0));
    }
}
