//! The seam between host code and a device: memory, launches and their order.

mod cuda;
mod error;
mod memory;
mod modules;
mod tiles;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

pub use cuda::{Device, ListedDevice};
pub use error::DeviceError;
pub use memory::{Address, HostMemory, Pinned, Region, RegionPlan};
pub use tiles::{TensorMap, Tiles};

use crate::{Arguments, Kernel};

/// A device or its emulation.
///
/// Laws: work on one stream happens in order; between streams nothing is ordered but by
/// [`record`](Self::record) and [`wait`](Self::wait). A call returns before its work is done, so a
/// fault of a kernel is the error of a later call, and of all after it.
pub trait Driver: Debug + Send + Sync {
    /// The device's name and sizes.
    fn describe(&self) -> DeviceInfo;

    /// Takes memory for every plan, or for none. What it holds at first is not defined.
    fn regions(&self, plans: &[RegionPlan]) -> Result<Vec<Region>, DeviceError>;

    /// Bytes of memory that nobody has.
    fn free_bytes(&self) -> Result<u64, DeviceError>;

    /// Zeroes a region. Not while launches are captured.
    fn clear(&self, on: Stream, region: &Region) -> Result<(), DeviceError>;

    /// Takes host memory that copies can go through, zeroed.
    fn pinned(&self, bytes: usize) -> Result<Pinned, DeviceError>;

    /// Copies the first `bytes` bytes of `from` into a region, from its byte `at` on. Not while
    /// launches are captured.
    fn write(
        &self,
        on: Stream,
        to: &Region,
        at: usize,
        from: &mut Pinned,
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// Fills the first `bytes` bytes of `to` with a region's from `at` on. Not while launches are
    /// captured.
    fn read(
        &self,
        on: Stream,
        from: &Region,
        at: usize,
        to: &mut Pinned,
        bytes: usize,
    ) -> Result<(), DeviceError>;

    /// Makes the map by which kernels copy boxes of a matrix. The matrix is the caller's: a region
    /// must live until the work that has the map is done.
    ///
    /// # Errors
    /// When the device copies no such boxes.
    fn tensor_map(&self, tiles: &Tiles) -> Result<TensorMap, DeviceError>;

    /// Runs a kernel; its arguments are copied by the call. Callers use [`launch`].
    ///
    /// Addresses in the arguments are the caller's: a region must live until the work is done.
    fn launch(
        &self,
        on: Stream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError>;

    /// Runs a kernel on a stream of the caller's, as [`launch`](Self::launch) does on one of the
    /// device's: after what is there, and into the graph that is captured there, if one is. The
    /// context that the thread has stays. Callers use [`launch_on_caller`].
    fn launch_on_caller(
        &self,
        on: CallerStream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError>;

    /// Notes the launches that `launches` makes on a stream instead of making them.
    fn capture(
        &self,
        on: Stream,
        launches: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Graph, DeviceError>;

    /// Makes the launches of a graph.
    fn replay(&self, on: Stream, graph: &Graph) -> Result<(), DeviceError>;

    /// Marks the end of what is on a stream by now.
    fn record(&self, on: Stream) -> Result<Event, DeviceError>;

    /// Lets what comes onto a stream later wait for an event.
    fn wait(&self, on: Stream, event: &Event) -> Result<(), DeviceError>;

    /// Tells whether an event has happened, at once.
    fn is_done(&self, event: &Event) -> Result<bool, DeviceError>;

    /// Waits until an event has happened.
    fn finish(&self, event: &Event) -> Result<(), DeviceError>;
}

/// Bound on the bytes of a kernel's arguments.
pub(crate) const MOST_ARGUMENTS: usize = 512;

/// Runs a kernel over `grid` blocks.
///
/// # Panics
/// When the kernel takes another struct.
pub fn launch<A: Arguments>(
    driver: &dyn Driver,
    on: Stream,
    kernel: Kernel,
    grid: [u32; 3],
    arguments: &A,
) -> Result<(), DeviceError> {
    assert_eq!(kernel.arguments(), (A::NAME, A::BYTES), "arguments of {}", kernel.name());
    let mut bytes = [0; MOST_ARGUMENTS];
    arguments.write(&mut bytes[..A::BYTES]);
    driver.launch(on, kernel, grid, &bytes[..A::BYTES])
}

/// Runs a kernel over `grid` blocks on a stream of the caller's.
///
/// # Panics
/// When the kernel takes another struct.
pub fn launch_on_caller<A: Arguments>(
    driver: &dyn Driver,
    on: CallerStream,
    kernel: Kernel,
    grid: [u32; 3],
    arguments: &A,
) -> Result<(), DeviceError> {
    assert_eq!(kernel.arguments(), (A::NAME, A::BYTES), "arguments of {}", kernel.name());
    let mut bytes = [0; MOST_ARGUMENTS];
    arguments.write(&mut bytes[..A::BYTES]);
    driver.launch_on_caller(on, kernel, grid, &bytes[..A::BYTES])
}

/// Name and sizes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name, as the driver has it.
    pub name: String,
    /// Compute capability.
    pub capability: (u32, u32),
    /// Bytes of memory.
    pub bytes: u64,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block may have.
    pub shared_bytes: usize,
}

/// Arithmetic of the matrix units: it decides the bits of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// Two steps of 8 products with 24 bits: Ampere and Ada.
    Ampere,
    /// One step of 16 products with 25 bits: Hopper and Blackwell.
    Hopper,
}

impl Architecture {
    /// The arithmetic of a compute capability; none below 8.0.
    pub fn from_capability((major, _): (u32, u32)) -> Option<Self> {
        match major {
            0..8 => None,
            8 => Some(Self::Ampere),
            _ => Some(Self::Hopper),
        }
    }
}

/// A queue of work. Work on one is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Kernels.
    Compute,
    /// Copies to the device.
    Upload,
    /// Copies from the device.
    Download,
    /// Choice of extensions: beside a pass that runs, and before it where both could.
    Selection,
}

impl Stream {
    /// Streams, all of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Compute, Self::Upload, Self::Download, Self::Selection];
}

/// A stream that is the caller's: the driver's handle as a number, 0 for the default stream. It is
/// of the device's primary context, which is that of torch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallerStream(pub u64);

/// A place in a stream's work.
#[derive(Clone, Debug)]
pub struct Event(Arc<dyn Any + Send + Sync>);

impl Event {
    /// A driver's own event.
    pub fn new(event: Arc<dyn Any + Send + Sync>) -> Self {
        Self(event)
    }

    /// The driver's own event.
    ///
    /// # Errors
    /// When another kind of driver made it.
    pub fn get<T: 'static>(&self) -> Result<&T, DeviceError> {
        self.0.downcast_ref().ok_or(DeviceError::Foreign("an event"))
    }
}

/// Launches that are made again by one call.
#[derive(Clone, Debug)]
pub struct Graph(Arc<dyn Any + Send + Sync>);

impl Graph {
    /// A driver's own graph.
    pub fn new(graph: Arc<dyn Any + Send + Sync>) -> Self {
        Self(graph)
    }

    /// The driver's own graph.
    ///
    /// # Errors
    /// When another kind of driver made it.
    pub fn get<T: 'static>(&self) -> Result<&T, DeviceError> {
        self.0.downcast_ref().ok_or(DeviceError::Foreign("a graph"))
    }
}
