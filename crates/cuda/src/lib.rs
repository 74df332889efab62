//! NVIDIA devices: kernels, their arguments, and the seam through which they are launched.
//!
//! [`Driver`] is the seam: memory, launches and their order. Everything above it is host code that
//! runs over a [`Device`] and over its emulation alike; the emulation computes the same bits. A
//! [`Kernel`] knows how it is launched, and takes one struct of [`arguments`].
//!
//! [`CudaEngine`] is a model on a device, an [`Engine`](palmette_model::Engine) of searches: its
//! weights, a plan of every byte, pages of keys and values that prompts share, and one thread which
//! makes passes of the requests that wait. Texts that are written side by side are requests there
//! whose prompts grow (`sequences.rs`). A draft head is computed behind the pass over its prompt,
//! without passes of its own (`draft.rs`).
//!
//! A [`DeviceCatalog`](catalog::DeviceCatalog) is a catalog there, for searches without the host in
//! between; the engine puts the catalogs that are searched beside its model.
//!
//! Engines of others have their own logits and streams: [`masks::MaskedLogits`] and
//! [`CallerTables`](catalog::CallerTables) take arrays by address and launch onto a
//! [`CallerStream`], without memory, copies or waits of their own.
//!
//! Laws of the kernels, held to by the tests of this crate:
//! - a row is a function of its tokens, the weights and the architecture: not of the batch, of
//!   tiles, of the grid or of the split of a sum among blocks;
//! - the portable kernels and those of Hopper's own instructions ([`KernelSet`]) have equal bits;
//! - every sum has one order, and nothing is fused or approximated by the compiler's choice;
//! - the best extensions are those of a sort by total, then parent, then token.

#![deny(unsafe_code)]

pub mod arguments;
pub mod catalog;
mod draft;
mod driver;
mod engine;
mod error;
mod forward;
mod kernel;
pub mod masks;
mod meeting;
mod pages;
mod pass;
mod plan;
mod reading;
mod request;
mod selection;
mod sequences;
mod sizes;
mod slots;
mod weights;

pub use arguments::{Arguments, Field};
pub use driver::{
    Address, Architecture, CallerStream, Device, DeviceError, DeviceInfo, Driver, Event, Graph,
    HostMemory, ListedDevice, Pinned, Region, RegionPlan, Stream, TensorMap, Tiles, launch,
    launch_on_caller,
};
pub use engine::CudaEngine;
pub use error::CudaError;
pub use kernel::{Kernel, KernelSet, Module};
pub use plan::{DeviceLimits, DeviceWeights};
