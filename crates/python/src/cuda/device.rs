//! Class `CudaDevice`: a device whose kernels compute on the arrays of a caller.

use std::sync::Arc;

use palmette_cuda::masks::{DeviceMatrix, LogitType, MaskError, MaskedLogits};
use palmette_cuda::{Address, CallerStream, DeviceError as Failure, Driver};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::tables::CudaTables;
use crate::buffers::{DeviceArray, Element, Place};
use crate::errors::DeviceError;
use crate::process::{self, OfProcess};

/// A device, opened once a process.
#[pyclass(frozen, module = "palmette")]
#[derive(Debug)]
pub(crate) struct CudaDevice {
    driver: OfProcess<Arc<dyn Driver>>,
    index: usize,
}

/// True where the device is the emulation.
const IS_EMULATED: bool = cfg!(feature = "cuda-emulator");

#[cfg(not(feature = "cuda-emulator"))]
fn open(index: usize) -> Result<Arc<dyn Driver>, Failure> {
    Ok(Arc::new(palmette_cuda::Device::open(index)?))
}

#[cfg(feature = "cuda-emulator")]
fn open(index: usize) -> Result<Arc<dyn Driver>, Failure> {
    use palmette_cuda::Architecture;
    use palmette_cuda_emulator::Emulator;
    match Emulator::new(Architecture::Hopper, 1) {
        Some(device) if index == 0 => Ok(Arc::new(device)),
        device => Err(Failure::NoDevice { index, count: device.iter().count() }),
    }
}

/// The exception of a device's failure.
pub(crate) fn of_device(error: &Failure) -> PyErr {
    DeviceError::new_err(match error {
        Failure::NoDriver => "no NVIDIA driver found: libcuda.so.1 is missing; \
                              palmette.torch and palmette.torch_tables compute without"
            .to_owned(),
        error => error.to_string(),
    })
}

impl CudaDevice {
    /// The driver, in the process that opened it.
    pub(crate) fn driver(&self) -> PyResult<&Arc<dyn Driver>> {
        self.driver.get().ok_or_else(|| {
            DeviceError::new_err(
                "the device was opened before this process was forked, and a forked process has no device of its parent's: \
                 start it by the method `spawn`",
            )
        })
    }

    /// The memory in which arrays for it lie.
    pub(crate) fn place(&self) -> Place {
        match IS_EMULATED {
            true => Place::Host,
            false => Place::Cuda(self.index as i32),
        }
    }

    /// An array of i32 that kernels read.
    fn numbers(&self, object: &Bound<'_, PyAny>, name: &'static str) -> PyResult<DeviceArray> {
        let rule = "int32, such as x.to(torch.int32)";
        DeviceArray::new(object, name, self.place(), &[Element::Signed(4)], rule)
    }
}

#[pymethods]
impl CudaDevice {
    /// Opens the device of a number, and loads the kernels.
    #[staticmethod]
    #[pyo3(name = "open")]
    fn open_device(py: Python<'_>, index: usize) -> PyResult<Self> {
        let opened = process::detach(py, || open(index));
        let driver = OfProcess::new(opened.map_err(|error| of_device(&error))?);
        Ok(Self { driver, index })
    }

    /// Number of the device.
    #[getter]
    fn index(&self) -> usize {
        self.index
    }

    /// Name, as the driver has it.
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.driver()?.describe().name)
    }

    /// Compute capability.
    #[getter]
    fn capability(&self) -> PyResult<(u32, u32)> {
        Ok(self.driver()?.describe().capability)
    }

    /// True in builds for tests alone: the device is an emulation, whose memory is that of this
    /// process.
    #[classattr]
    #[pyo3(name = "IS_EMULATED")]
    fn is_emulated() -> bool {
        IS_EMULATED
    }

    /// Puts a catalog on the device: of a constraint, in the model's tokens, or of a catalog whose
    /// codes are the tokens.
    fn tables(slf: &Bound<'_, Self>, source: &Bound<'_, PyAny>) -> PyResult<CudaTables> {
        CudaTables::new(slf, source, None)
    }

    /// Writes minus infinity to logits that their row's mask has no 1 for, on a stream.
    ///
    /// `rows`: the rows, or all; `masks_of`: the mask of each, or that of its own number.
    #[pyo3(signature = (logits, masks, rows, masks_of, stream))]
    fn mask_rows(
        &self,
        py: Python<'_>,
        logits: &Bound<'_, PyAny>,
        masks: &Bound<'_, PyAny>,
        rows: Option<&Bound<'_, PyAny>>,
        masks_of: Option<&Bound<'_, PyAny>>,
        stream: u64,
    ) -> PyResult<()> {
        let elements = [Element::Float(4), Element::Float(2), Element::BFloat16];
        let rule = "float32, float16 or bfloat16";
        let logits =
            DeviceArray::new(logits, "logits", self.place(), &elements, rule)?.writable()?;
        let words = [Element::Signed(4), Element::Unsigned(4)];
        let rule = "int32 words of 32 tokens";
        let masks = DeviceArray::new(masks, "bitmask", self.place(), &words, rule)?;
        let rows = rows.map(|rows| self.numbers(rows, "rows")).transpose()?;
        let masks_of = masks_of.map(|ids| self.numbers(ids, "ids")).transpose()?;
        let matrix = |array: &DeviceArray| {
            let (rows, columns, stride) = array.rows()?;
            PyResult::Ok(DeviceMatrix { address: Address(array.address()), rows, columns, stride })
        };
        let logit_type = match logits.element() {
            Element::Float(4) => LogitType::F32,
            Element::Float(2) => LogitType::F16,
            _ => LogitType::Bf16,
        };
        let (of_logits, of_masks) = (matrix(&logits)?, matrix(&masks)?);
        let count = match (&rows, &masks_of) {
            (Some(rows), _) => length(rows)?,
            (None, Some(_)) => of_logits.rows,
            (None, None) if of_logits.rows == of_masks.rows => of_logits.rows,
            (None, None) => {
                return Err(PyValueError::new_err(format!(
                    "logits have {} rows and the bitmask has {}; give as many of both, or the rows to be done",
                    of_logits.rows, of_masks.rows
                )));
            }
        };
        if let Some(ids) = &masks_of {
            ids.exact(&[count], "a mask for each row")?;
        }
        let address = |array: &Option<DeviceArray>| array.as_ref().map(|at| Address(at.address()));
        let masked = MaskedLogits {
            logits: of_logits,
            logit_type,
            masks: of_masks,
            count,
            rows: address(&rows),
            masks_of: address(&masks_of),
        };
        let driver = self.driver()?;
        let applied = process::detach(py, || masked.apply(&**driver, CallerStream(stream)));
        applied.map_err(|error| match error {
            MaskError::Device(error) => of_device(&error),
            error => PyValueError::new_err(error.to_string()),
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<CudaDevice {}: {}>", self.index, self.name()?))
    }
}

/// The length of a list of numbers, in one piece.
fn length(array: &DeviceArray) -> PyResult<usize> {
    let &[length] = array.shape() else {
        return Err(PyValueError::new_err(format!(
            "rows have {} dimensions; give a list of numbers, or a tensor of one dimension",
            array.shape().len()
        )));
    };
    array.exact(&[length], "a number for each row")?;
    Ok(length)
}
