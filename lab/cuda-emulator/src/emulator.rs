//! The emulated device: the seam of `palmette-cuda` over compiled kernels.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use palmette_cuda::{
    Address, Architecture, CallerStream, DeviceError, DeviceInfo, Driver, Event, Graph, HostMemory,
    Kernel, Pinned, Region, RegionPlan, Stream, TensorMap, Tiles,
};

use crate::native::DeviceMemory;
use crate::streams::{Copy, Launch, Streams, Work};

/// An emulated device.
///
/// The seed decides the order of everything that a device leaves open: of streams, of threads, of
/// the completion of copies. Results that differ between seeds are a fault of a caller or kernel.
#[derive(Debug)]
pub struct Emulator {
    architecture: Architecture,
    streams: Mutex<Streams>,
    bytes: u64,
    /// Bytes of the regions that are there.
    taken: Arc<AtomicU64>,
}

/// Memory of a region, counted as long as it is there.
#[derive(Debug)]
struct Counted {
    _memory: DeviceMemory,
    bytes: u64,
    taken: Arc<AtomicU64>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes of a device, unless they are given.
const BYTES: u64 = 4 << 30;

impl Emulator {
    /// A device with the arithmetic of an architecture. None where nothing could compile the
    /// kernels: Linux on x86-64 and a C++20 compiler are needed.
    pub fn new(architecture: Architecture, seed: u64) -> Option<Self> {
        Self::with_bytes(architecture, seed, BYTES)
    }

    /// A device as [`new`](Self::new) has it, with so many bytes of memory.
    pub fn with_bytes(architecture: Architecture, seed: u64, bytes: u64) -> Option<Self> {
        let streams = Mutex::new(Streams::new(architecture, seed));
        cfg!(emulated).then_some(Self { architecture, streams, bytes, taken: Arc::default() })
    }

    fn free(&self) -> u64 {
        self.bytes.saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Accesses to shared memory by ldmatrix that met in a bank, so far.
    pub fn bank_conflicts(&self) -> u64 {
        self.streams().conflicts
    }

    /// Fails all work from now on, as a device does whose kernel failed.
    pub fn fail(&self, message: &str) {
        self.streams().fault = Some(message.to_owned());
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().expect("no work panics")
    }

    fn push_copy(&self, on: Stream, work: Work) -> Result<(), DeviceError> {
        let mut streams = self.streams();
        if streams.captured.is_some() {
            return Err(DeviceError::NotCapturable("copies"));
        }
        streams.push(on, work);
        Ok(())
    }
}

/// Host memory of the emulation: copies that are under way hold it too.
#[derive(Debug)]
struct Host(Arc<Mutex<Vec<u8>>>, usize);

impl HostMemory for Host {
    fn len(&self) -> usize {
        self.1
    }

    fn bytes(&mut self) -> Result<&mut [u8], DeviceError> {
        let bytes = Arc::get_mut(&mut self.0).ok_or(DeviceError::Busy)?;
        Ok(bytes.get_mut().expect("no copy panics"))
    }
}

impl Driver for Emulator {
    fn describe(&self) -> DeviceInfo {
        let (name, capability) = match self.architecture {
            Architecture::Ampere => ("emulated Ampere", (8, 0)),
            Architecture::Hopper => ("emulated Hopper", (9, 0)),
        };
        DeviceInfo {
            name: name.to_owned(),
            capability,
            bytes: self.bytes,
            multiprocessors: 3,
            shared_bytes: 227 << 10,
        }
    }

    fn regions(&self, plans: &[RegionPlan]) -> Result<Vec<Region>, DeviceError> {
        let free = self.free();
        let too_much = || DeviceError::OutOfMemory { plans: plans.to_vec(), free };
        if plans.iter().map(|plan| plan.bytes as u64).sum::<u64>() > free {
            return Err(too_much());
        }
        let take = |plan: &RegionPlan| {
            let memory = DeviceMemory::take(plan.bytes).ok_or_else(too_much)?;
            let (address, bytes) = (Address(memory.address()), plan.bytes as u64);
            self.taken.fetch_add(bytes, Ordering::Relaxed);
            let memory = Counted { _memory: memory, bytes, taken: Arc::clone(&self.taken) };
            Ok(Region::new(plan.clone(), address, Arc::new(memory)))
        };
        plans.iter().map(take).collect()
    }

    fn free_bytes(&self) -> Result<u64, DeviceError> {
        Ok(self.free())
    }

    fn clear(&self, on: Stream, region: &Region) -> Result<(), DeviceError> {
        let work = Work::Clear(region.address().0, region.bytes(), region.memory());
        self.push_copy(on, work)
    }

    fn pinned(&self, bytes: usize) -> Result<Pinned, DeviceError> {
        Ok(Pinned::new(Box::new(Host(Arc::new(Mutex::new(vec![0; bytes])), bytes))))
    }

    fn write(
        &self,
        on: Stream,
        to: &Region,
        at: usize,
        from: &mut Pinned,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        from.check(bytes)?;
        let address = to.checked(at, bytes)?.0;
        let (host, memory) = (Arc::clone(&from.get::<Host>()?.0), to.memory());
        self.push_copy(on, Work::Write(Copy { address, memory, host, bytes }))
    }

    fn read(
        &self,
        on: Stream,
        from: &Region,
        at: usize,
        to: &mut Pinned,
        bytes: usize,
    ) -> Result<(), DeviceError> {
        to.check(bytes)?;
        let address = from.checked(at, bytes)?.0;
        let (host, memory) = (Arc::clone(&to.get::<Host>()?.0), from.memory());
        self.push_copy(on, Work::Read(Copy { address, memory, host, bytes }))
    }

    /// The map as `Tiles` of `native/emulator.h` reads it.
    fn tensor_map(&self, tiles: &Tiles) -> Result<TensorMap, DeviceError> {
        tiles.check()?;
        let Tiles { address, rows, columns, box_rows } = *tiles;
        let mut bytes = [0; 128];
        let words =
            [u64::from_le_bytes(*b"tiles\0\0\0"), address.0, rows, columns, box_rows.into()];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        Ok(TensorMap(bytes))
    }

    fn launch(
        &self,
        on: Stream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        let launch = Launch { kernel, grid, arguments: arguments.to_vec() };
        let mut streams = self.streams();
        match &mut streams.captured {
            Some((stream, launches)) if *stream == on => launches.push(launch),
            Some(_) => return Err(DeviceError::NotCapturable("launches on another stream")),
            None => streams.push(on, Work::Launch(launch)),
        }
        Ok(())
    }

    /// At once, as work of the caller's on this processor is done: arrays in host memory are device
    /// memory here.
    fn launch_on_caller(
        &self,
        _on: CallerStream,
        kernel: Kernel,
        grid: [u32; 3],
        arguments: &[u8],
    ) -> Result<(), DeviceError> {
        self.streams().run(&Launch { kernel, grid, arguments: arguments.to_vec() })
    }

    fn capture(
        &self,
        on: Stream,
        launches: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<Graph, DeviceError> {
        if self.streams().captured.replace((on, Vec::new())).is_some() {
            return Err(DeviceError::NotCapturable("another capture"));
        }
        let result = launches();
        let captured = self.streams().captured.take();
        result?;
        let (_, launches) = captured.expect("put there above");
        Ok(Graph::new(Arc::new(launches)))
    }

    fn replay(&self, on: Stream, graph: &Graph) -> Result<(), DeviceError> {
        let mut streams = self.streams();
        if streams.captured.is_some() {
            return Err(DeviceError::NotCapturable("graphs"));
        }
        for launch in graph.get::<Vec<Launch>>()? {
            streams.push(on, Work::Launch(launch.clone()));
        }
        Ok(())
    }

    fn record(&self, on: Stream) -> Result<Event, DeviceError> {
        let mut streams = self.streams();
        if streams.captured.is_some() {
            return Err(DeviceError::NotCapturable("events"));
        }
        let event = Arc::new(AtomicBool::new(false));
        streams.push(on, Work::Record(Arc::clone(&event)));
        streams.run_some()?;
        Ok(Event::new(Arc::new(event)))
    }

    fn wait(&self, on: Stream, event: &Event) -> Result<(), DeviceError> {
        let mut streams = self.streams();
        if streams.captured.is_some() {
            return Err(DeviceError::NotCapturable("waits"));
        }
        streams.push(on, Work::Wait(flag(event)?));
        streams.run_some()
    }

    fn is_done(&self, event: &Event) -> Result<bool, DeviceError> {
        self.streams().run_some()?;
        Ok(flag(event)?.load(Ordering::Relaxed))
    }

    fn finish(&self, event: &Event) -> Result<(), DeviceError> {
        let event = flag(event)?;
        self.streams().run_until(&event)
    }
}

fn flag(event: &Event) -> Result<Arc<AtomicBool>, DeviceError> {
    event.get::<Arc<AtomicBool>>().cloned()
}
