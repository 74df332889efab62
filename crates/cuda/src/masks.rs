//! Masks over logits of a caller: arrays by address, on the caller's stream.
//!
//! Engines with logits of their own use them: nothing is copied, allocated or waited for, so that
//! a launch may become part of a graph that the caller captures.

use crate::arguments::RowMasks;
use crate::{Address, CallerStream, DeviceError, Driver, Kernel, launch_on_caller};

/// Type of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogitType {
    /// 32 bits.
    F32,
    /// 16 bits, IEEE 754.
    F16,
    /// The upper half of an f32.
    Bf16,
}

/// A matrix in device memory whose rows are each in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMatrix {
    /// Address of the first element, a multiple of an element's bytes.
    pub address: Address,
    /// Number of rows.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// Elements from the beginning of a row to that of the next.
    pub stride: usize,
}

/// Rows of logits and their masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaskedLogits {
    /// Logits: minus infinity is written to those that a mask has no 1 for, columns past its words
    /// included.
    pub logits: DeviceMatrix,
    /// Their type.
    pub logit_type: LogitType,
    /// Masks: bit `t % 32` of word `t / 32` is token `t`.
    pub masks: DeviceMatrix,
    /// Number of rows that are masked.
    pub count: usize,
    /// The rows, i32 `[count]`: those outside of the logits are left out. None: the first ones.
    pub rows: Option<Address>,
    /// The mask of each, i32 `[count]`: none below 0, and past the last one that allows nothing.
    /// Where it is `None`, a row has the mask of its own number.
    pub masks_of: Option<Address>,
}

/// A number of logits or masks that kernels do not count to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{number} {what}; kernels of masks take up to 2^29")]
pub struct MaskSizeError {
    what: &'static str,
    number: usize,
}

impl MaskedLogits {
    /// Launches the kernel.
    ///
    /// Addresses are the caller's: each array lives until the work is done.
    ///
    /// # Errors
    /// When a number is past those that kernels count to, or the device fails.
    pub fn apply(&self, driver: &dyn Driver, on: CallerStream) -> Result<(), MaskError> {
        if self.count == 0 || self.logits.rows == 0 || self.logits.columns == 0 {
            return Ok(());
        }
        let (kernel, grid, arguments) = self.launch()?;
        Ok(launch_on_caller(driver, on, kernel, grid, &arguments)?)
    }

    /// The launch: a kernel, its blocks and its arguments.
    ///
    /// # Errors
    /// When a number is past those that kernels count to.
    pub fn launch(&self) -> Result<(Kernel, [u32; 3], RowMasks), MaskSizeError> {
        let Self { logits, masks, count, .. } = *self;
        let (kernel, infinity) = match self.logit_type {
            LogitType::F32 => (Kernel::MaskRows32, f32::NEG_INFINITY.to_bits()),
            LogitType::F16 => (Kernel::MaskRows16, 0xfc00),
            LogitType::Bf16 => (Kernel::MaskRows16, 0xff80),
        };
        let arguments = RowMasks {
            rows: self.rows.unwrap_or(Address::NULL),
            masks_of: self.masks_of.unwrap_or(Address::NULL),
            masks: masks.address,
            logits: logits.address,
            count: counted("rows that are masked", count)?,
            num_rows: counted("rows of logits", logits.rows)?,
            num_masks: counted("masks", masks.rows)?,
            columns: counted("logits of a row", logits.columns)?,
            words: counted("words of a mask", masks.columns)?,
            row_stride: counted("logits from row to row", logits.stride)?,
            mask_stride: counted("words from mask to mask", masks.stride)?,
            infinity,
        };
        // 4 columns a thread, and a row of blocks a row.
        let blocks = logits.columns.div_ceil(4 * kernel.threads() as usize) as u32;
        let grid = [blocks, count.min(MOST_BLOCKS) as u32, 1];
        Ok((kernel, grid, arguments))
    }
}

/// Blocks of a grid in its second dimension.
const MOST_BLOCKS: usize = 65_535;

fn counted(what: &'static str, number: usize) -> Result<i32, MaskSizeError> {
    match i32::try_from(number) {
        Ok(counted) if counted <= 1 << 29 => Ok(counted),
        _ => Err(MaskSizeError { what, number }),
    }
}

/// Failure to mask logits.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// A number that kernels do not count to.
    #[error(transparent)]
    Size(#[from] MaskSizeError),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
