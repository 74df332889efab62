//! Models of made-up weights that both engines compute.

use std::sync::Arc;

use palmette_cuda::{Architecture, CudaEngine, DeviceLimits, DeviceWeights};
use palmette_cuda_emulator::Emulator;
pub(crate) use palmette_cuda_emulator::decoder::{LIMITS, config, upload, weights};
use palmette_model::{Model, ModelConfig};

/// Forms of weights: what is asked of one is asked of the other.
pub(crate) const FORMS: [DeviceWeights; 2] = [DeviceWeights::Bf16, DeviceWeights::Int8];

/// The limits of tests, with weights of this form.
pub(crate) fn limits(weights: DeviceWeights) -> DeviceLimits {
    DeviceLimits { weights, ..LIMITS }
}

pub(crate) fn here(config: &ModelConfig) -> Arc<Model> {
    Arc::new(Model::from_bytes(config.clone(), weights(config)).expect("a sound model"))
}

/// The model on an emulated device; none, and a loud word of it, where kernels cannot be emulated.
pub(crate) fn emulated(
    config: &ModelConfig,
    architecture: Architecture,
    seed: u64,
) -> Option<Arc<CudaEngine>> {
    emulated_within(config, architecture, seed, &LIMITS)
}

/// [`emulated`], with weights of this form.
pub(crate) fn emulated_of(
    weights: DeviceWeights,
    config: &ModelConfig,
    architecture: Architecture,
    seed: u64,
) -> Option<Arc<CudaEngine>> {
    emulated_within(config, architecture, seed, &limits(weights))
}

pub(crate) fn emulated_within(
    config: &ModelConfig,
    architecture: Architecture,
    seed: u64,
    limits: &DeviceLimits,
) -> Option<Arc<CudaEngine>> {
    let Some(driver) = Emulator::new(architecture, seed) else {
        eprintln!("SKIPPED: kernels are emulated on Linux on x86-64, by a C++20 compiler");
        return None;
    };
    Some(Arc::new(
        upload(Arc::new(driver), config, limits).expect("a model that the kernels compute"),
    ))
}
