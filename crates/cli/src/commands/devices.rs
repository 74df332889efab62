//! Devices that compute models: `palmette devices`, and a model where `--device` says.

use std::path::Path;

#[cfg(all(feature = "cuda", feature = "bench"))]
use anyhow::bail;
use anyhow::{Context, ensure};
use clap::Args;
#[cfg(feature = "bench")]
use palmette_model::ModelTensors;
use palmette_model::draft::DraftTensors;
use palmette_model::{DeviceName, Model, ModelConfig, SharedEngine};
use palmette_recommend::Prompts;
use palmette_text::EngineLoader;
use palmette_text::engine::EngineOptions;
use serde::Serialize;

use super::loading::{WeightsArg, with_training};
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

/// Tokens of a text with its prompt, on a device that is not told how many.
pub(crate) const TEXT_TOKENS: usize = 32_768;

/// Device that computes models, and its memory.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Device that computes the model: cpu, or cuda:0 and so on, which keeps weights in bfloat16,
    /// or in 8 bits, and refuses by name what it does not compute (`palmette devices` lists them)
    #[arg(long, value_name = "DEVICE", env = "PALMETTE_DEVICE", default_value_t = DeviceName::Cpu)]
    pub(crate) device: DeviceName,
    /// Memory of the device that a model may take, such as 20GiB or 800MiB: what it does not need
    /// keeps the prompts of earlier requests [default: nine tenths of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) device_memory: Option<u64>,
}

/// Memory of this processor for earlier prompts.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PromptCacheArgs {
    /// Memory of each model on this processor for keys and values of histories: one that begins as
    /// an earlier one did is computed from where they part; answers are the same
    #[arg(long, value_name = "MB", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1 << 24))]
    prompt_cache_mb: u32,
}

/// Limits of what a device computes together.
#[cfg(feature = "server")]
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceBatchArgs {
    /// Tokens that a device computes in one pass [default: 8192]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(128..=1 << 20))]
    pub(crate) device_batch_tokens: Option<u32>,
    /// Requests that share the passes of a device [default: 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) device_requests: Option<u32>,
    /// Keeping of keys and values of histories for later ones that begin alike; answers are the
    /// same [default: on]
    #[arg(long, value_enum, value_name = "WHETHER")]
    pub(crate) prefix_cache: Option<Switch>,
}

/// State of something that may be done.
#[cfg(feature = "server")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    /// Done
    On,
    /// Not done
    Off,
}

/// A number of bytes, with a unit or without.
fn size(text: &str) -> Result<u64, String> {
    let form = "it is a number of bytes, such as 20GiB, 800MiB or 1073741824";
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = match unit.trim() {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(form.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| form.to_owned())?;
    match number.checked_mul(factor) {
        Some(0) => Err("it is 0; a model needs memory".to_owned()),
        Some(bytes) => Ok(bytes),
        None => Err(form.to_owned()),
    }
}

/// A device and its limits, as options say them.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "a build without kernels refuses devices by name")
)]
#[derive(Clone, Debug)]
pub(crate) struct DeviceChoice {
    pub(crate) device: DeviceName,
    /// Bytes of its memory to take.
    memory: Option<u64>,
    batch_tokens: Option<u32>,
    /// Requests that compute together; of a command that asks one after another it is 1.
    requests: u32,
    keeps_prefixes: bool,
    /// Bytes for earlier prompts on this processor.
    prompt_memory: usize,
}

/// Requests that compute together where `--device-requests` does not say how many.
#[cfg(feature = "server")]
const REQUESTS: u32 = 16;

impl DeviceArgs {
    /// The device, for this many requests at a time.
    pub(crate) fn choice(&self, requests: usize) -> anyhow::Result<DeviceChoice> {
        ensure!(
            self.device != DeviceName::Cpu || self.device_memory.is_none(),
            "--device-memory is of a device; give one with --device, such as cuda:0"
        );
        Ok(DeviceChoice {
            device: self.device,
            memory: self.device_memory,
            batch_tokens: None,
            requests: requests as u32,
            keeps_prefixes: true,
            prompt_memory: 0,
        })
    }

    /// The device of a server.
    #[cfg(feature = "server")]
    pub(crate) fn served(&self, batch: &DeviceBatchArgs) -> anyhow::Result<DeviceChoice> {
        let DeviceBatchArgs { device_batch_tokens, device_requests, prefix_cache } = batch;
        for (name, is_given) in [
            ("--device-batch-tokens", device_batch_tokens.is_some()),
            ("--device-requests", device_requests.is_some()),
            ("--prefix-cache", prefix_cache.is_some()),
        ] {
            ensure!(
                self.device != DeviceName::Cpu || !is_given,
                "{name} is of a device; give one with --device, such as cuda:0"
            );
        }
        let requests = device_requests.unwrap_or(REQUESTS);
        Ok(DeviceChoice {
            batch_tokens: *device_batch_tokens,
            keeps_prefixes: *prefix_cache != Some(Switch::Off),
            ..self.choice(requests as usize)?
        })
    }
}

impl DeviceChoice {
    /// The choice with memory for earlier prompts.
    pub(crate) fn with_prompt_cache(self, cache: PromptCacheArgs) -> anyhow::Result<Self> {
        let prompt_memory = (cache.prompt_cache_mb as usize) << 20;
        ensure!(
            self.device == DeviceName::Cpu || prompt_memory == 0,
            "--prompt-cache-mb is of this processor; a device keeps histories in what --device-memory leaves"
        );
        Ok(Self { prompt_memory, ..self })
    }

    /// Bytes for earlier prompts on this processor.
    #[cfg(feature = "server")]
    pub(crate) fn prompt_memory(&self) -> usize {
        self.prompt_memory
    }

    /// Limits as these, on another device.
    #[cfg(feature = "server")]
    pub(crate) fn on(&self, device: DeviceName) -> Self {
        Self { device, ..self.clone() }
    }

    /// Requests that compute together.
    #[cfg(feature = "server")]
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// The model of a directory, on the device; a device computes its draft head too, where it is
    /// to draft.
    pub(crate) fn load(
        &self,
        dir: &Path,
        prompts: &Prompts,
        weights: WeightsArg,
        drafts: bool,
    ) -> anyhow::Result<SharedEngine> {
        match self.device {
            DeviceName::Cpu => {
                let model = Model::load(dir)?.with_weights(weights.format()?);
                let model = model.with_prompt_memory(self.prompt_memory);
                Ok(model.context("--prompt-cache-mb")?.into())
            }
            DeviceName::Cuda(index) => self.load_cuda(index, dir, weights, &|config| {
                // Text before items or about them goes on behind the prompt.
                let positions = config.max_position_embeddings;
                let prompt_tokens = prompts.max_tokens(positions)?.saturating_add(FREE_TOKENS);
                let draft = match drafts {
                    true => {
                        let shape = prompts.format().draft_shape()?;
                        Some(DraftTensors::load(dir, config, shape).map_err(with_training)?)
                    }
                    false => None,
                };
                let requests = self.requests as usize;
                Ok(Room { requests, has_beams: true, prompt_tokens, draft })
            }),
        }
    }

    /// A model of these tensors on a device, which reads the prompt of each request anew.
    #[cfg(all(feature = "cuda", feature = "bench"))]
    pub(crate) fn load_tensors(
        &self,
        (config, tensors): (ModelConfig, ModelTensors),
        draft: Option<DraftTensors>,
        prompt_tokens: usize,
        weights: WeightsArg,
    ) -> anyhow::Result<SharedEngine> {
        let load = || {
            let DeviceName::Cuda(index) = self.device else { bail!("it is this processor") };
            let driver = std::sync::Arc::new(palmette_cuda::Device::open(index)?);
            let room =
                Room { requests: self.requests as usize, has_beams: true, prompt_tokens, draft };
            let limits = Self { keeps_prefixes: false, ..self.clone() }.limits(&room, weights);
            let draft = room.draft;
            let engine = palmette_cuda::CudaEngine::new(driver, config, tensors, draft, &limits)?;
            Ok(SharedEngine::from(std::sync::Arc::new(engine)))
        };
        load().with_context(|| format!("--device {}", self.device))
    }

    #[cfg(all(not(feature = "cuda"), feature = "bench"))]
    pub(crate) fn load_tensors(
        &self,
        _: (ModelConfig, ModelTensors),
        _: Option<DraftTensors>,
        _: usize,
        _: WeightsArg,
    ) -> anyhow::Result<SharedEngine> {
        let left_out = Err(crate::features::left_out("computes on no other device", "cuda"));
        left_out.with_context(|| format!("--device {}", self.device))
    }

    #[cfg(feature = "cuda")]
    fn limits(&self, room: &Room, weights: WeightsArg) -> palmette_cuda::DeviceLimits {
        let unless_given = palmette_cuda::DeviceLimits::default();
        palmette_cuda::DeviceLimits {
            batch_rows: self.batch_tokens.map_or(unless_given.batch_rows, |rows| rows as usize),
            requests: room.requests,
            beams: if room.has_beams { unless_given.beams } else { 0 },
            prompt_tokens: Some(room.prompt_tokens),
            memory: self.memory,
            keeps_prefixes: self.keeps_prefixes,
            weights: match weights {
                WeightsArg::F32 | WeightsArg::Bf16 => palmette_cuda::DeviceWeights::Bf16,
                WeightsArg::Int8 | WeightsArg::Int8Bf16 => palmette_cuda::DeviceWeights::Int8,
            },
        }
    }

    /// Loader of the models of texts, this many at once with this many tokens together.
    pub(crate) fn text_loader(
        self,
        weights: WeightsArg,
        texts: usize,
        tokens: usize,
    ) -> anyhow::Result<EngineLoader> {
        let DeviceName::Cuda(index) = self.device else { return Ok(weights.format()?.into()) };
        let requests = EngineOptions::most_sequences(texts);
        Ok(EngineLoader::of_device(move |dir| {
            let room = |config: &ModelConfig| {
                let prompt_tokens = tokens.min(config.max_position_embeddings);
                Ok(Room { requests, has_beams: false, prompt_tokens, draft: None })
            };
            let loaded = self.load_cuda(index, dir, weights, &room);
            loaded.map_err(|error| format!("{error:#}"))
        }))
    }

    fn load_cuda(
        &self,
        index: usize,
        dir: &Path,
        weights: WeightsArg,
        room: &dyn Fn(&ModelConfig) -> anyhow::Result<Room>,
    ) -> anyhow::Result<SharedEngine> {
        let loaded = self.open_cuda(index, dir, weights, room);
        loaded.with_context(|| format!("--device {}", self.device))
    }

    #[cfg(feature = "cuda")]
    fn open_cuda(
        &self,
        index: usize,
        dir: &Path,
        weights: WeightsArg,
        room: &dyn Fn(&ModelConfig) -> anyhow::Result<Room>,
    ) -> anyhow::Result<SharedEngine> {
        let driver = std::sync::Arc::new(palmette_cuda::Device::open(index)?);
        let config = ModelConfig::read(&dir.join("config.json"))?;
        let room = room(&config)?;
        let limits = self.limits(&room, weights);
        let engine = palmette_cuda::CudaEngine::load(driver, dir, room.draft, &limits)?;
        let engine = SharedEngine::from(std::sync::Arc::new(engine));
        // A server has its log hear of it instead.
        engine.on_warning(Box::new(|warning| eprintln!("warning: {}", visible(warning))));
        Ok(engine)
    }

    #[cfg(not(feature = "cuda"))]
    fn open_cuda(
        &self,
        _: usize,
        _: &Path,
        _: WeightsArg,
        _: &dyn Fn(&ModelConfig) -> anyhow::Result<Room>,
    ) -> anyhow::Result<SharedEngine> {
        Err(crate::features::left_out("computes on no other device", "cuda"))
    }
}

/// Room of a model on a device.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "a build without kernels refuses devices by name")
)]
struct Room {
    /// Requests that compute together.
    requests: usize,
    /// True where requests have beams.
    has_beams: bool,
    /// Tokens of the longest prompt.
    prompt_tokens: usize,
    /// Tensors of a draft head that is computed there.
    draft: Option<DraftTensors>,
}

/// Tokens of text that a request may have beside its prompt.
const FREE_TOKENS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units_or_none() {
        let [kib, gib] = [1 << 10, 1 << 30];
        for (text, bytes) in
            [("7", 7), ("3KiB", 3 * kib), ("20GiB", 20 * gib), ("2 GB", 2_000_000_000)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "1.5GiB", "20G", "-1", "99999999999GiB", "0", "0MiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
