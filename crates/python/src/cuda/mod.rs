//! Kernels on arrays of other libraries: an NVIDIA device, or its emulation in tests.
//!
//! Arrays are taken by their addresses, after everything that can be checked without the device is;
//! launches go onto the stream that the caller has, so that they are part of its graphs. Nothing is
//! copied to the host, and nothing is waited for but uploads.

mod device;
mod tables;

pub(crate) use device::CudaDevice;
pub(crate) use tables::{CudaFilters, CudaTables};
