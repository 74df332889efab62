//! Compiled kernels: what the C++ side exports, as safe functions.
//!
//! Safe for kernels that keep to their memory. One that does not reaches a guard page, which is an
//! error, or memory of the process: this crate is for tests.
#![allow(unsafe_code, reason = "calls of the C++ side")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;

use palmette_cuda::{Architecture, Kernel};

unsafe extern "C" {
    fn palmette_emulator_launch(
        kernel: i32,
        grid: *const u32,
        arguments: *const c_void,
        seed: u64,
        halves: i32,
    ) -> *const c_char;
    fn palmette_emulator_conflicts() -> u64;
    fn palmette_emulator_step(sum: f32, a: *const u16, b: *const u16, halves: i32) -> f32;
    fn palmette_emulator_multiply_bytes(
        a: *const [u32; 4],
        b: *const [u32; 2],
        d: *mut [i32; 4],
    ) -> *const c_char;
    fn palmette_emulator_exp2(x: f32) -> f32;
    fn palmette_emulator_log(x: f32) -> f32;
    fn palmette_emulator_take(bytes: usize) -> *mut c_void;
    fn palmette_emulator_give_back(data: *mut c_void, bytes: usize);
    fn palmette_emulator_kernels() -> *const c_char;
    fn palmette_emulator_layouts() -> *const c_char;
    fn palmette_emulator_trial(name: *const c_char, seed: u64) -> *const c_char;
}

fn text(from: *const c_char) -> String {
    // SAFETY: the C++ side ends its texts by 0, and keeps them until this thread's next call.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

fn halves(architecture: Architecture) -> i32 {
    i32::from(architecture == Architecture::Ampere)
}

/// Runs a kernel over its grid; returns how many accesses to shared memory met in a bank.
///
/// # Errors
/// A message with kernel, block and thread.
pub(crate) fn launch(
    kernel: Kernel,
    grid: [u32; 3],
    arguments: &[u8],
    seed: u64,
    architecture: Architecture,
) -> Result<u64, String> {
    assert_eq!(arguments.len(), kernel.arguments().1, "bytes of arguments of {}", kernel.name());
    let number = kernel as i32;
    // SAFETY: both arrays are as long as the C++ side reads, by the assertion and the tests that
    // compare its table with `Kernel`. For what the kernel itself reads and writes see above.
    let message = unsafe {
        let before = palmette_emulator_conflicts();
        let arguments = arguments.as_ptr().cast();
        let message =
            palmette_emulator_launch(number, grid.as_ptr(), arguments, seed, halves(architecture));
        if message.is_null() {
            return Ok(palmette_emulator_conflicts() - before);
        }
        message
    };
    Err(text(message))
}

/// A step of the matrix units: 16 products of bf16 onto `sum`.
pub fn step(sum: f32, a: &[u16; 16], b: &[u16; 16], architecture: Architecture) -> f32 {
    // SAFETY: both arrays have the 16 values that are read.
    unsafe { palmette_emulator_step(sum, a.as_ptr(), b.as_ptr(), halves(architecture)) }
}

/// A warp's product of bytes, 16 x 8 x 32 onto `d`: what each lane holds of the operands.
///
/// # Errors
/// A message where the lanes do not meet.
pub fn multiply_bytes(
    a: &[[u32; 4]; 32],
    b: &[[u32; 2]; 32],
    d: &mut [[i32; 4]; 32],
) -> Result<(), String> {
    // SAFETY: each array has what 32 lanes read and write.
    let message =
        unsafe { palmette_emulator_multiply_bytes(a.as_ptr(), b.as_ptr(), d.as_mut_ptr()) };
    if message.is_null() { Ok(()) } else { Err(text(message)) }
}

/// 2^x as the kernels compute it.
pub fn exp2(x: f32) -> f32 {
    // SAFETY: it takes a number.
    unsafe { palmette_emulator_exp2(x) }
}

/// ln x as the kernels compute it.
pub fn log(x: f32) -> f32 {
    // SAFETY: it takes a number.
    unsafe { palmette_emulator_log(x) }
}

/// The C++ side's kernels, a line each: name, threads, bytes of shared memory and of arguments.
pub fn kernels() -> String {
    // SAFETY: it takes nothing.
    text(unsafe { palmette_emulator_kernels() })
}

/// The C++ side's structs: name, bytes and alignment; then a line a field: name, offset and bytes.
pub fn layouts() -> String {
    // SAFETY: it takes nothing.
    text(unsafe { palmette_emulator_layouts() })
}

/// Runs a trial of the models themselves: see `native/trials.h`.
///
/// # Errors
/// The fault that ended it.
pub fn trial(name: &str, seed: u64) -> Result<(), String> {
    let name = CString::new(name).expect("no name has a 0");
    // SAFETY: the name ends by 0, and is read by the call alone.
    let message = unsafe { palmette_emulator_trial(name.as_ptr(), seed) };
    if message.is_null() { Ok(()) } else { Err(text(message)) }
}

/// Memory of the emulated device: it begins as NaN and ends at a guard page.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    data: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: it is plain memory; `Emulator` lets one thread at a time at it.
unsafe impl Send for DeviceMemory {}
// SAFETY: as above.
unsafe impl Sync for DeviceMemory {}

impl DeviceMemory {
    /// Takes memory; none where there is none.
    pub(crate) fn take(bytes: usize) -> Option<Self> {
        // SAFETY: it takes a number.
        let data = NonNull::new(unsafe { palmette_emulator_take(bytes) })?;
        Some(Self { data, bytes })
    }

    pub(crate) fn address(&self) -> u64 {
        self.data.as_ptr() as u64
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: it was taken with this number of bytes, and nobody has it any more.
        unsafe { palmette_emulator_give_back(self.data.as_ptr(), self.bytes) }
    }
}

/// Copies bytes to the device; the caller has checked that they lie within a region that lives.
pub(crate) fn copy_to(address: u64, from: &[u8]) {
    // SAFETY: `Region::checked` was asked by the caller, which holds the region's memory.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), address as *mut u8, from.len()) }
}

/// Copies bytes from the device; as [`copy_to`].
pub(crate) fn copy_from(address: u64, to: &mut [u8]) {
    // SAFETY: as in `copy_to`.
    unsafe { std::ptr::copy_nonoverlapping(address as *const u8, to.as_mut_ptr(), to.len()) }
}
