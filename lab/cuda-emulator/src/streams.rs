//! Streams of the emulated device: queues whose heads run in a seeded order.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use palmette_cuda::{Architecture, DeviceError, Kernel, Stream};

use crate::native;

/// A launch, its arguments copied.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) grid: [u32; 3],
    pub(crate) arguments: Vec<u8>,
}

/// A copy between the device, whose memory is held, and the first bytes of the host's.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) address: u64,
    pub(crate) memory: Arc<dyn Any + Send + Sync>,
    pub(crate) host: Arc<Mutex<Vec<u8>>>,
    pub(crate) bytes: usize,
}

/// Work on a stream.
#[derive(Debug)]
pub(crate) enum Work {
    Launch(Launch),
    /// Zeroing of an address and a number of bytes, whose memory is held.
    Clear(u64, usize, Arc<dyn Any + Send + Sync>),
    /// To the device.
    Write(Copy),
    /// From the device.
    Read(Copy),
    Record(Arc<AtomicBool>),
    Wait(Arc<AtomicBool>),
}

/// Streams of a device, all of them.
#[derive(Debug)]
pub(crate) struct Streams {
    queues: [VecDeque<Work>; Stream::ALL.len()],
    random: u64,
    architecture: Architecture,
    /// The launches of a stream that are captured.
    pub(crate) captured: Option<(Stream, Vec<Launch>)>,
    /// The first failure of a kernel.
    pub(crate) fault: Option<String>,
    /// Accesses to shared memory that met in a bank.
    pub(crate) conflicts: u64,
}

impl Streams {
    pub(crate) fn new(architecture: Architecture, seed: u64) -> Self {
        Self {
            queues: Default::default(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            architecture,
            captured: None,
            fault: None,
            conflicts: 0,
        }
    }

    pub(crate) fn push(&mut self, on: Stream, work: Work) {
        self.queues[on as usize].push_back(work);
    }

    /// Runs some of what is there, or none.
    pub(crate) fn run_some(&mut self) -> Result<(), DeviceError> {
        for _ in 0..self.next_random() % 4 {
            self.step();
        }
        self.result()
    }

    /// Runs what is there, in a seeded order, until an event has happened.
    pub(crate) fn run_until(&mut self, event: &AtomicBool) -> Result<(), DeviceError> {
        while !event.load(Ordering::Relaxed) && self.fault.is_none() {
            if !self.step() {
                let message = "an event is waited for that no work will bring about".to_owned();
                return Err(DeviceError::Driver { call: "finish", message });
            }
        }
        self.result()
    }

    /// Runs a kernel, unless one has failed.
    pub(crate) fn run(&mut self, launch: &Launch) -> Result<(), DeviceError> {
        self.result()?;
        let Launch { kernel, grid, arguments } = launch;
        let seed = self.next_random();
        match native::launch(*kernel, *grid, arguments, seed, self.architecture) {
            Ok(conflicts) => self.conflicts += conflicts,
            Err(message) => self.fault = Some(message),
        }
        self.result()
    }

    fn result(&self) -> Result<(), DeviceError> {
        self.fault.clone().map_or(Ok(()), |fault| Err(DeviceError::Fault(fault)))
    }

    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }

    /// Runs the head of one stream. False if none has work that can run.
    fn step(&mut self) -> bool {
        let can_run = |queue: &VecDeque<Work>| match queue.front() {
            None => false,
            Some(Work::Wait(event)) => event.load(Ordering::Relaxed),
            Some(_) => true,
        };
        let able: Vec<usize> =
            (0..self.queues.len()).filter(|&at| can_run(&self.queues[at])).collect();
        if able.is_empty() || self.fault.is_some() {
            return false;
        }
        let chosen = able[self.next_random() as usize % able.len()];
        match self.queues[chosen].pop_front().expect("it has a head") {
            Work::Wait(_) => {}
            Work::Record(event) => event.store(true, Ordering::Relaxed),
            Work::Clear(address, bytes, _memory) => native::copy_to(address, &vec![0; bytes]),
            Work::Write(Copy { address, memory: _memory, host, bytes }) => {
                native::copy_to(address, &host.lock().expect("no copy panics")[..bytes]);
            }
            Work::Read(Copy { address, memory: _memory, host, bytes }) => {
                native::copy_from(address, &mut host.lock().expect("no copy panics")[..bytes]);
            }
            Work::Launch(launch) => {
                // Its failure is that of all calls from now on.
                let _ = self.run(&launch);
            }
        }
        true
    }
}
