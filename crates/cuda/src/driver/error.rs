//! Errors of a device, each with its cause and the way out.

use super::RegionPlan;

/// Failure of a device or of what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The machine has no driver.
    #[error("no NVIDIA driver found: libcuda.so.1 is missing; --device cpu computes without")]
    NoDriver,
    /// The machine has no such device.
    #[error("there is no cuda:{index}: the driver knows {count} devices")]
    NoDevice {
        /// The number that was asked for.
        index: usize,
        /// Number of devices.
        count: usize,
    },
    /// The device lacks instructions that the kernels need.
    #[error("cuda:{index} is a {name} ({}.{}); 8.0 or newer is needed", capability.0, capability.1)]
    OldDevice {
        /// The device's number.
        index: usize,
        /// The device's name.
        name: String,
        /// The compute capability.
        capability: (u32, u32),
    },
    /// The driver does not load the kernels.
    #[error("driver {driver} is too old for this program's kernels: 525 or newer")]
    OldDriver {
        /// The newest version of CUDA that it serves.
        driver: String,
    },
    /// The plan does not fit.
    #[error("{}", out_of_memory(plans, *free))]
    OutOfMemory {
        /// The plan.
        plans: Vec<RegionPlan>,
        /// Bytes that are free.
        free: u64,
    },
    /// The plan has more bytes than an address can count.
    #[error(
        "passes of {rows} rows and {requests} requests with prompts of {prompt} tokens need more \
         bytes than an address can count: take smaller limits"
    )]
    Uncountable {
        /// Rows of the largest pass.
        rows: usize,
        /// Requests that compute together.
        requests: usize,
        /// Tokens of the longest prompt.
        prompt: usize,
    },
    /// Requests that are there have the pages that another needs.
    #[error(
        "a prompt needs {needed} pages of 64 tokens, and other requests leave {left} of {all}: more \
         device memory, fewer requests at a time or shorter prompts"
    )]
    PagesTaken {
        /// Pages of the longest prompt.
        needed: usize,
        /// Pages that are not promised.
        left: usize,
        /// Pages of the device.
        all: usize,
    },
    /// Others have the pages that texts need.
    #[error(
        "texts of {tokens} tokens together need {needed} pages of 64 tokens, and {left} of {all} are \
         left: more device memory, or fewer tokens at a time"
    )]
    TextPagesTaken {
        /// Tokens of all texts.
        tokens: usize,
        /// Pages of them.
        needed: usize,
        /// Pages that are not promised.
        left: usize,
        /// Pages of the device.
        all: usize,
    },
    /// Requests that are there have the slots that another needs.
    #[error(
        "beams need {needed} slots side by side, which other requests do not leave of {all}: fewer \
         requests at a time, or a smaller beam width"
    )]
    SlotsTaken {
        /// Beams of all passes.
        needed: usize,
        /// Slots of the device.
        all: usize,
    },
    /// A copy would leave its region.
    #[error("{bytes} bytes from byte {at} on are not within {name}, which has {region_bytes}")]
    Outside {
        /// The region's name.
        name: &'static str,
        /// The first byte.
        at: usize,
        /// Number of bytes.
        bytes: usize,
        /// The region's bytes.
        region_bytes: usize,
    },
    /// Host memory was looked at while a copy of it was under way.
    #[error("a copy of this memory is under way: wait for an event recorded after it")]
    Busy,
    /// An object of another driver.
    #[error("{0} of another driver was given to this one")]
    Foreign(&'static str),
    /// A graph has launches only.
    #[error("only launches on the captured stream become part of a graph, not {0}")]
    NotCapturable(&'static str),
    /// A kernel of other devices was launched.
    #[error("{0} is not built for this device: it has instructions of compute capability 9.0")]
    NoKernel(&'static str),
    /// A kernel failed. The device does no more work for this process.
    #[error("a kernel failed: {0}; the device does no more work for this process")]
    Fault(String),
    /// Another failure of the driver.
    #[error("{call}: {message}")]
    Driver {
        /// The call that failed.
        call: &'static str,
        /// The driver's name of the failure.
        message: String,
    },
}

/// The plan's table, what is free, and what makes it fit.
fn out_of_memory(plans: &[RegionPlan], free: u64) -> String {
    let total: u64 = plans.iter().map(|plan| plan.bytes as u64).sum();
    let mut text = format!(
        "{total} bytes of device memory are planned and {free} are free; --device-batch-tokens and \
         --device-requests make the plan smaller:"
    );
    for plan in plans {
        text += &format!("\n  {:>16}  {}", plan.bytes, plan.name);
    }
    text
}
