//! Tensors of a model's files, for whoever computes with them.
//!
//! [`Model`](crate::Model) packs them for this processor; an accelerator lays them out in its own
//! way and needs no packed copy beside. Both take them here, one by one and by their Hugging Face
//! names, so that both refuse the same files for the same reasons.

use std::path::Path;

use crate::config::ModelConfig;
use crate::encoder_decoder::{SHARED, settle_shared_tensors};
use crate::error::LoadError;
use crate::kernels::Values;
use crate::tensor_files::{EMBEDDING, HEAD, TensorFiles, refuse_adapter};

/// The tensors that a model's files hold and a configuration asks for, each taken once.
pub struct ModelTensors {
    files: TensorFiles,
    has_own_head: bool,
}

impl ModelTensors {
    /// Opens `model.safetensors` of a directory, or the shards that `model.safetensors.index.json`
    /// names.
    ///
    /// # Errors
    /// When a file is missing, damaged or of another form, is an adapter's, or holds two heads that
    /// differ.
    pub fn open(dir: &Path, config: &ModelConfig) -> Result<Self, LoadError> {
        refuse_adapter(dir)?;
        Self::settled(TensorFiles::open(dir)?, config)
    }

    /// Tensors of the bytes of one safetensors file; `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_bytes(
        name: &Path,
        bytes: Vec<u8>,
        config: &ModelConfig,
    ) -> Result<Self, LoadError> {
        Self::settled(TensorFiles::single(name.to_owned(), bytes)?, config)
    }

    /// Leaves one name for what may be stored under several.
    fn settled(mut files: TensorFiles, config: &ModelConfig) -> Result<Self, LoadError> {
        files.name_as_in_whole_models();
        let mut has_own_head = !config.tie_word_embeddings;
        if config.architecture.encoder.is_some() {
            has_own_head = settle_shared_tensors(&mut files, config)?;
        } else if config.tie_word_embeddings {
            files.tie_head(EMBEDDING)?;
        }
        Ok(Self { files, has_own_head })
    }

    /// True where logits are made by `lm_head.weight`, false where the embeddings make them.
    pub fn has_own_head(&self) -> bool {
        self.has_own_head
    }

    /// The values of a tensor, which must have this shape, `[out, in]`; of embeddings and head,
    /// those of the vocabulary's rows. bfloat16 stays as such, float16 becomes f32.
    ///
    /// # Errors
    /// When it is missing or was taken before, of another shape or type, or holds a value that is
    /// not finite.
    pub fn take(&mut self, name: &str, shape: &[usize]) -> Result<Values, LoadError> {
        match name {
            // Rows that fill the matrix up to a round number belong to no token.
            HEAD | EMBEDDING | SHARED => self.files.take_stored_rows(name, shape),
            _ => self.files.take_stored(name, shape),
        }
    }

    /// Ends the taking.
    ///
    /// # Errors
    /// When a tensor is left over: the file is of another architecture, whose logits would come out
    /// wrong.
    pub fn finish(self) -> Result<(), LoadError> {
        self.files.finish()
    }
}

impl std::fmt::Debug for ModelTensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelTensors").field("has_own_head", &self.has_own_head).finish()
    }
}
