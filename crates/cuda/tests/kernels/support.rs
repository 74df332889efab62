//! Emulated devices with arrays, random values, and what compares results.

use std::sync::Arc;

use palmette_cuda::arguments::{Arguments, array_bytes};
use palmette_cuda::{
    Address, Architecture, Driver, Event, Kernel, Region, RegionPlan, Stream, launch,
};
use palmette_cuda_emulator::Emulator;

/// A device on which tests run kernels one by one.
pub(crate) struct Device {
    pub(crate) driver: Arc<dyn Driver>,
    emulator: Option<Arc<Emulator>>,
}

/// Kernels of products and of attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Set {
    Portable,
    Hopper,
}

impl Set {
    pub(crate) const ALL: [Self; 2] = [Self::Portable, Self::Hopper];

    /// Name of a kernel of the set.
    pub(crate) fn name_of(self, portable: &str) -> String {
        match self {
            Self::Portable => portable.to_owned(),
            Self::Hopper => format!("hopper_{portable}"),
        }
    }
}

/// A number in device memory.
pub(crate) trait Value: Copy {
    const BYTES: usize = size_of::<Self>();
    fn write(self, to: &mut [u8]);
    fn read(from: &[u8]) -> Self;
}
macro_rules! values {
    ($($type:ty)*) => { $(impl Value for $type {
        fn write(self, to: &mut [u8]) {
            to.copy_from_slice(&self.to_le_bytes());
        }
        fn read(from: &[u8]) -> Self {
            Self::from_le_bytes(from.try_into().unwrap())
        }
    })* };
}
values!(f32 i32 u8 u16 u32 u64);

/// Devices under three seeds; none, and a loud word of it, where kernels cannot be emulated.
pub(crate) fn devices(architecture: Architecture) -> Vec<Device> {
    (1..=3).filter_map(|seed| device(architecture, seed)).collect()
}

pub(crate) fn device(architecture: Architecture, seed: u64) -> Option<Device> {
    let driver = Emulator::new(architecture, seed);
    if driver.is_none() {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
    }
    let emulator = Arc::new(driver?);
    Some(Device { driver: Arc::clone(&emulator) as Arc<dyn Driver>, emulator: Some(emulator) })
}

impl Device {
    /// A device of the machine.
    pub(crate) fn from_driver(driver: Arc<dyn Driver>) -> Self {
        Self { driver, emulator: None }
    }

    /// Sets of kernels that it has.
    pub(crate) fn sets(&self) -> Vec<Set> {
        match self.driver.describe().capability.0 {
            9 => Set::ALL.into(),
            _ => vec![Set::Portable],
        }
    }

    /// Accesses to shared memory by ldmatrix that met in a bank.
    pub(crate) fn bank_conflicts(&self) -> u64 {
        self.emulator.as_ref().map_or(0, |emulator| emulator.bank_conflicts())
    }

    /// Memory that begins as NaN and ends at a guard page.
    pub(crate) fn empty(&self, bytes: usize) -> Region {
        let plan = RegionPlan { name: "an array of a test", bytes };
        self.driver.regions(&[plan]).unwrap().pop().unwrap()
    }

    pub(crate) fn put<T: Value>(&self, values: &[T]) -> Region {
        self.put_bytes(&bytes_of(values))
    }

    pub(crate) fn put_structs<A: Arguments>(&self, values: &[A]) -> Region {
        self.put_bytes(&array_bytes(values))
    }

    fn put_bytes(&self, bytes: &[u8]) -> Region {
        let region = self.empty(bytes.len());
        let mut pinned = self.driver.pinned(bytes.len()).unwrap();
        pinned.bytes().unwrap().copy_from_slice(bytes);
        self.driver.write(Stream::Upload, &region, 0, &mut pinned, bytes.len()).unwrap();
        self.finish(Stream::Upload);
        region
    }

    pub(crate) fn get_bytes(&self, region: &Region) -> Vec<u8> {
        let mut pinned = self.driver.pinned(region.bytes()).unwrap();
        self.driver.read(Stream::Download, region, 0, &mut pinned, region.bytes()).unwrap();
        self.finish(Stream::Download);
        pinned.bytes().unwrap().to_vec()
    }

    pub(crate) fn get<T: Value>(&self, region: &Region) -> Vec<T> {
        self.get_bytes(region).chunks_exact(T::BYTES).map(T::read).collect()
    }

    #[track_caller]
    pub(crate) fn run<A: Arguments>(&self, kernel: Kernel, grid: [u32; 3], arguments: &A) {
        launch(&*self.driver, Stream::Compute, kernel, grid, arguments).unwrap();
        self.finish(Stream::Compute);
    }

    #[track_caller]
    fn finish(&self, on: Stream) {
        let finish = |event: Event| self.driver.finish(&event);
        self.driver.record(on).and_then(finish).unwrap();
    }
}

/// Bytes of numbers.
pub(crate) fn bytes_of<T: Value>(values: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; values.len() * T::BYTES];
    for (value, to) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
        value.write(to);
    }
    bytes
}

/// Random numbers by xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Between -1 and 1.
    pub(crate) fn uniform(&mut self) -> f32 {
        ((self.next() % (1 << 24)) as f64 / f64::from(1 << 23) - 1.0) as f32
    }

    pub(crate) fn floats(&mut self, len: usize, scale: f32) -> Vec<f32> {
        (0..len).map(|_| self.uniform() * scale).collect()
    }

    pub(crate) fn bf16(&mut self, len: usize, scale: f32) -> Vec<u16> {
        self.floats(len, scale).into_iter().map(to_bf16).collect()
    }
}

/// To nearest, ties to even.
pub(crate) fn to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

pub(crate) fn to_f64(value: u16) -> f64 {
    f64::from(f32::from_bits(u32::from(value) << 16))
}

/// Root of the summed squares of the differences, relative to the values; infinite for NaN.
pub(crate) fn relative_error(got: impl Iterator<Item = f64>, want: &[f64]) -> f64 {
    let (mut error, mut size, mut len) = (0.0, 0.0, 0);
    for (got, want) in got.zip(want) {
        error += (got - want) * (got - want);
        size += want * want;
        len += 1;
    }
    assert_eq!(len, want.len(), "numbers of values");
    if error.is_nan() { f64::INFINITY } else { (error / size.max(1e-300)).sqrt() }
}

/// Bits of floats, to be compared.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

pub(crate) const NULL: Address = Address::NULL;
