//! A model as loaded: configuration and weights, frozen and shared.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::kernels::{Int8Kernel, bf16_is_fast};
use crate::prompt_store::{PromptStore, PromptStoreError};
use crate::tensor_files::refuse_adapter;
use crate::weights::Weights;

/// Format in which a model's weights are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WeightFormat {
    /// Weights as they are stored, everything computed in f32. What a checkpoint has as bfloat16
    /// takes two bytes a value and is widened as it is read, which gives the bits that four would.
    #[default]
    F32,
    /// Matrices, embeddings and head among them, rounded to bfloat16: two bytes a value, everything
    /// computed in f32. The same as [`F32`](Self::F32) for a checkpoint that is stored so.
    Bf16,
    /// The layers' matrices in integers of 8 bits with a scale for each column, and what is
    /// multiplied with them rounded to 8 bits, with a scale for each row, as it comes; embeddings,
    /// head, norms and attention as in f32. A quarter of the layers' memory, and less time where
    /// the processor [has instructions for it](Self::check_here) (docs/benchmarks.md). Scores
    /// change a little, and with them now and then the order of two items (docs/quality.md).
    Int8,
    /// The form of [`Int8`](Self::Int8) with attention's products in bfloat16: those of queries and
    /// keys, and of weights and values, in what is cached of prompts and sequences, have both sides
    /// rounded, and sums in f32. Scores change by less than the integers change them, to the same
    /// bits on every processor; offered where there is AMX.
    #[serde(rename = "int8-bf16")]
    Int8Bf16,
}

impl WeightFormat {
    /// Refuses a format with which this processor takes longer than in f32.
    ///
    /// # Errors
    /// For [`Int8`](Self::Int8) without AVX2, AVX-512 VNNI or the dot products of ARM, and for
    /// [`Int8Bf16`](Self::Int8Bf16) without AMX: products would take longer than those in f32. The
    /// results would be the same.
    pub fn check_here(self) -> Result<(), SlowFormat> {
        match self {
            Self::Int8 if !Int8Kernel::here().is_fast() => Err(SlowFormat::Int8),
            Self::Int8Bf16 if !Int8Kernel::here().is_fast() || !bf16_is_fast() => {
                Err(SlowFormat::Int8Bf16)
            }
            _ => Ok(()),
        }
    }
}

/// Weights in a format that this processor computes with more slowly than in f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlowFormat {
    /// [`WeightFormat::Int8`]
    #[error(
        "int8 weights would take longer than f32 here: this processor has neither AVX2 nor AVX-512 VNNI nor ARM's \
         dot products, and products of integers are slow without; take f32, or bf16 for half the memory"
    )]
    Int8,
    /// [`WeightFormat::Int8Bf16`]
    #[error(
        "int8-bf16 would take longer than f32 here: this processor has no AMX for bfloat16, or the system does not \
         give it to this process, and attention's products are slow without; take int8"
    )]
    Int8Bf16,
}

/// A decoder or an encoder–decoder, ready for [`Session`](crate::Session)s. Share it in an `Arc` or
/// by reference.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) config: ModelConfig,
    pub(crate) weights: Weights,
    /// See [`WeightFormat::Int8Bf16`].
    pub(crate) attends_in_bf16: bool,
    /// Keys and values of earlier prompts, where they are kept.
    pub(crate) prompt_store: Option<Arc<PromptStore>>,
}

impl Model {
    /// Loads a Hugging Face directory: `config.json` and `model.safetensors`, whole or in shards
    /// with `model.safetensors.index.json`, stored as f32, bf16 or f16. Computes in f32. The table
    /// of [`Architecture`](crate::Architecture) says which models are read.
    ///
    /// Names may lack their `model.`, as in models saved without an output head. Embeddings may
    /// have more rows than `vocab_size`: those that fill them up are left out. A head that is tied
    /// may be stored as well, if it is the same, and so may the embeddings of an encoder–decoder,
    /// once for each part.
    ///
    /// # Errors
    /// When a file is missing, damaged or of another form, the configuration asks for something not
    /// computed here, or a tensor is missing, left over, of another shape or type, or holds a value
    /// that is not finite.
    pub fn load(dir: &Path) -> Result<Self, LoadError> {
        refuse_adapter(dir)?;
        let config = ModelConfig::read(&dir.join("config.json"))?;
        let weights = Weights::read(dir, &config)?;
        Ok(Self { config, weights, attends_in_bf16: false, prompt_store: None })
    }

    /// A model from the bytes of a safetensors file.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(config: ModelConfig, safetensors: Vec<u8>) -> Result<Self, LoadError> {
        let name = Path::new("model.safetensors");
        config.check().map_err(|reason| LoadError::config(Path::new("config"), reason))?;
        let weights = Weights::from_bytes(name, safetensors, &config)?;
        Ok(Self { config, weights, attends_in_bf16: false, prompt_store: None })
    }

    /// A model with made-up weights, the same for the same seed: for measuring, since time does not
    /// depend on them.
    ///
    /// # Errors
    /// When the configuration is not [sound](ModelConfig::check).
    pub fn random(config: ModelConfig, seed: u64) -> Result<Self, LoadError> {
        config.check().map_err(|reason| LoadError::config(Path::new("config"), reason))?;
        let weights = Weights::random(&config, seed)?;
        Ok(Self { config, weights, attends_in_bf16: false, prompt_store: None })
    }

    /// Converts the weights to another format. What was rounded stays so: load it again for its
    /// weights as they were. What is [kept of prompts](Self::with_prompt_memory) is of the weights,
    /// and goes with them: it is asked for afterwards.
    #[must_use]
    pub fn with_weights(mut self, format: WeightFormat) -> Self {
        self.prompt_store = None;
        match format {
            WeightFormat::F32 => {}
            WeightFormat::Bf16 => self.weights.round_to_bf16(),
            WeightFormat::Int8 => self.weights.round_to_int8(),
            WeightFormat::Int8Bf16 => {
                self.weights.round_to_int8();
                self.attends_in_bf16 = true;
            }
        }
        self
    }

    /// Has products with weights in 8 bits computed by other instructions than the fastest, to the
    /// same bits: for measuring. Weights that are not in 8 bits stay as they are.
    #[must_use]
    pub fn with_int8_kernel(mut self, kernel: Int8Kernel) -> Self {
        self.weights.set_int8_kernel(kernel);
        self
    }

    /// Keeps keys and values of the prompts that its sessions read, in `bytes` of memory at most,
    /// so that a prompt that begins like an earlier one is read from where they part; 0 for none.
    /// Logits are the same to the bit. Those unused for longest give way.
    ///
    /// An encoder reads all of a prompt before any of it is known, so that nothing is kept where
    /// there is one.
    ///
    /// # Errors
    /// When the bytes hold no page of 16 tokens, or there is not the memory.
    pub fn with_prompt_memory(mut self, bytes: usize) -> Result<Self, PromptStoreError> {
        let keeps = bytes > 0 && self.config.architecture.encoder.is_none();
        let store = keeps.then(|| PromptStore::with_bytes(&self.config, bytes)).transpose()?;
        self.prompt_store = store.map(Arc::new);
        Ok(self)
    }

    /// Bytes that earlier prompts take once their memory is full.
    pub fn prompt_memory(&self) -> usize {
        self.prompt_store.as_ref().map_or(0, |store| store.bytes())
    }

    /// Bytes of all weights in memory.
    pub fn weight_bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// The model's shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Number of parameters, tied ones counted once.
    pub fn num_parameters(&self) -> usize {
        self.weights.num_parameters()
    }
}
