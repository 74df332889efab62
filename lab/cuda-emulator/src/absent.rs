//! Absent kernels: the functions of `native` where nothing could compile them.

use palmette_cuda::{Architecture, Kernel};

pub(crate) fn launch(
    _kernel: Kernel,
    _grid: [u32; 3],
    _arguments: &[u8],
    _seed: u64,
    _architecture: Architecture,
) -> Result<u64, String> {
    Err("kernels are emulated on Linux on x86-64, by a C++20 compiler".to_owned())
}

/// NaN: there is no step to make.
pub fn step(_sum: f32, _a: &[u16; 16], _b: &[u16; 16], _architecture: Architecture) -> f32 {
    f32::NAN
}

/// An error: there is no product to make.
///
/// # Errors
/// Always.
pub fn multiply_bytes(
    _a: &[[u32; 4]; 32],
    _b: &[[u32; 2]; 32],
    _d: &mut [[i32; 4]; 32],
) -> Result<(), String> {
    Err("kernels are emulated on Linux on x86-64, by a C++20 compiler".to_owned())
}

/// NaN: there is no kernel to ask.
pub fn exp2(_x: f32) -> f32 {
    f32::NAN
}

/// NaN: there is no kernel to ask.
pub fn log(_x: f32) -> f32 {
    f32::NAN
}

/// No kernels.
pub fn kernels() -> String {
    String::new()
}

/// No structs.
pub fn layouts() -> String {
    String::new()
}

/// No trials.
pub fn trial(_name: &str, _seed: u64) -> Result<(), String> {
    Err("kernels are emulated on Linux on x86-64, by a C++20 compiler".to_owned())
}

/// Memory that nobody can take.
#[derive(Debug)]
pub(crate) enum DeviceMemory {}

impl DeviceMemory {
    pub(crate) fn take(_bytes: usize) -> Option<Self> {
        None
    }

    pub(crate) fn address(&self) -> u64 {
        match *self {}
    }
}

pub(crate) fn copy_to(_address: u64, _from: &[u8]) {}

pub(crate) fn copy_from(_address: u64, _to: &mut [u8]) {}
