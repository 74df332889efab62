//! Devices that compute models: `palmette devices`, and a model where `--device` says.

use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;
use palmette_model::{DeviceName, Model, SharedEngine};
use serde::Serialize;

use super::loading::WeightsArg;
use crate::output::{bytes, print, print_json, table, visible};

/// List the devices that `--device` takes, with their memory
///
/// This processor, `cpu`, is always there. NVIDIA devices need a driver (525 or newer) and compute
/// capability 8.0 or newer, and nothing else: kernels are part of this program. Where there is no
/// driver, that is said, and is no failure.
#[derive(Debug, Args)]
pub(crate) struct DevicesArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct DeviceList {
    /// Each that can be named.
    devices: Vec<DeviceEntry>,
    /// Reason for there being no others.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
struct DeviceEntry {
    device: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    /// Reason for which it cannot be taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &DevicesArgs) -> anyhow::Result<()> {
    let mut devices = vec![DeviceEntry {
        device: DeviceName::Cpu.to_string(),
        name: "this processor".to_owned(),
        capability: None,
        memory_bytes: None,
        free_bytes: None,
        refused: None,
    }];
    let note = add_cuda(&mut devices).err();
    let listed = DeviceList { devices, note };
    if args.json {
        return print_json(&listed);
    }
    let size = |count: Option<u64>| count.map_or_else(String::new, |count| bytes(count as usize));
    let row = |of: &DeviceEntry| {
        let about = of.capability.clone().unwrap_or_default();
        let refused = of.refused.clone().unwrap_or_default();
        let (all, free) = (size(of.memory_bytes), size(of.free_bytes));
        vec![of.device.clone(), visible(&of.name), about, all, free, refused]
    };
    let rows: Vec<Vec<String>> = listed.devices.iter().map(row).collect();
    let mut text = table(&["device", "name", "capability", "memory", "free", ""], &rows);
    if let Some(note) = &listed.note {
        text += &format!("\n{note}\n");
    }
    print(&text)
}

/// Adds the NVIDIA devices; an error is why there are none.
#[cfg(feature = "cuda")]
fn add_cuda(devices: &mut Vec<DeviceEntry>) -> Result<(), String> {
    let found = palmette_cuda::Device::list().map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("the NVIDIA driver knows no device".to_owned());
    }
    devices.extend(found.into_iter().enumerate().map(|(index, found)| {
        let (major, minor) = found.info.capability;
        DeviceEntry {
            device: DeviceName::Cuda(index).to_string(),
            name: found.info.name,
            capability: Some(format!("{major}.{minor}")),
            memory_bytes: Some(found.info.bytes),
            free_bytes: Some(found.free),
            refused: (!found.is_new_enough).then(|| "8.0 or newer is needed".to_owned()),
        }
    }));
    Ok(())
}

/// Adds nothing: this build has no kernels.
#[cfg(not(feature = "cuda"))]
fn add_cuda(_: &mut Vec<DeviceEntry>) -> Result<(), String> {
    Err(crate::features::left_out("computes on no other device", "cuda").to_string())
}

/// The model of a directory, on the device of that name.
pub(crate) fn load(
    device: DeviceName,
    dir: &Path,
    weights: WeightsArg,
) -> anyhow::Result<SharedEngine> {
    match device {
        DeviceName::Cpu => Ok(Model::load(dir)?.with_weights(weights.format()?).into()),
        DeviceName::Cuda(index) => {
            ensure!(
                weights != WeightsArg::Int8,
                "--weights int8 is not computed on a device yet: {device} keeps weights in bfloat16 (--weights bf16)"
            );
            load_cuda(index, dir).with_context(|| format!("--device {device}"))
        }
    }
}

#[cfg(feature = "cuda")]
fn load_cuda(index: usize, dir: &Path) -> anyhow::Result<SharedEngine> {
    let device = std::sync::Arc::new(palmette_cuda::Device::open(index)?);
    Ok(std::sync::Arc::new(palmette_cuda::CudaEngine::load(device, dir, &Default::default())?)
        .into())
}

#[cfg(not(feature = "cuda"))]
fn load_cuda(_: usize, _: &Path) -> anyhow::Result<SharedEngine> {
    Err(crate::features::left_out("computes on no other device", "cuda"))
}
