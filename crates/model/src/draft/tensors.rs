//! Tensors of a head as stored, for whoever computes with them, and the file they come from.

use std::collections::HashMap;
use std::path::Path;

use palmette_core::TokenId;

use super::form::DraftForm;
use super::head::DraftHead;
use super::outline::{DraftOutline, DraftShape};
use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::kernels::PackedMatrix;
use crate::random::Uniform;
use crate::tensor_files::TensorFiles;

/// Tensors of a draft head, f32, matrices as `[out, in]`.
///
/// [`DraftHead`] packs them for this processor; an accelerator lays them out in its own way.
pub struct DraftTensors {
    outline: DraftOutline,
    /// `[L, D]`; none where the form has no placeholders.
    placeholders: Vec<f32>,
    levels: Vec<LevelTensors>,
}

struct LevelTensors {
    /// W, `[codes, D]`
    head: Vec<f32>,
    transition: Option<TransitionTensors>,
}

struct TransitionTensors {
    /// B, `[D, D]`
    token: Vec<f32>,
    /// b, `[D]`
    bias: Vec<f32>,
    /// A, `[D, D]`
    state: Vec<f32>,
}

impl DraftTensors {
    /// Reads `draft.safetensors` of a model's directory; `shape` is what the model's prompts spell.
    ///
    /// # Errors
    /// When the file is missing or damaged, or was made for a model or codes of another shape.
    pub fn load(dir: &Path, config: &ModelConfig, shape: DraftShape) -> Result<Self, LoadError> {
        let path = dir.join(DraftHead::FILE_NAME);
        refuse_encoder(&path, config)?;
        let bytes = std::fs::read(&path).map_err(|e| LoadError::io(&path, e))?;
        Self::from_bytes(&path, bytes, config, shape)
    }

    /// Reads the bytes of a `draft.safetensors`; `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(
        name: &Path,
        bytes: Vec<u8>,
        config: &ModelConfig,
        shape: DraftShape,
    ) -> Result<Self, LoadError> {
        let form = read_form(name, &bytes)?;
        let mut files = TensorFiles::single(name.to_owned(), bytes)?;
        let take = |name: &str, shape: &[usize]| files.take(name, shape);
        let tensors = Self::taken(name, form, config, shape, take)?;
        files.finish()?;
        Ok(tensors)
    }

    /// Made-up tensors, the same for the same seed: for measuring, since time does not depend on
    /// them.
    ///
    /// # Errors
    /// When `shape` does not fit the model.
    pub fn random(
        form: DraftForm,
        config: &ModelConfig,
        shape: DraftShape,
        seed: u64,
    ) -> Result<Self, LoadError> {
        let mut uniform = Uniform::new(seed);
        Self::taken(Path::new(DraftHead::FILE_NAME), form, config, shape, |_, shape| {
            let inputs = *shape.last().unwrap_or(&1);
            let bound = (3.0 / inputs as f32).sqrt();
            let mut value = || (uniform.draw() * 2.0 - 1.0) * bound;
            Ok((0..shape.iter().product()).map(|_| value()).collect())
        })
    }

    /// Asks `take` for each tensor that the form has, by name and shape.
    fn taken(
        path: &Path,
        form: DraftForm,
        config: &ModelConfig,
        shape: DraftShape,
        mut take: impl FnMut(&str, &[usize]) -> Result<Vec<f32>, LoadError>,
    ) -> Result<Self, LoadError> {
        refuse_encoder(path, config)?;
        let d = config.hidden_size;
        check_shape(&shape, config.vocab_size)
            .map_err(|reason| LoadError::weights(path, reason))?;
        let outline = DraftOutline { form, shape, width: d };
        let placeholders = match outline.num_placeholders() {
            0 => Vec::new(),
            count => take("draft.placeholders", &[count, d])?,
        };
        let mut levels = Vec::new();
        for (level, &(_, codes)) in outline.shape.levels.iter().enumerate() {
            let name = |part: &str| format!("draft.levels.{level}.{part}");
            let head = take(&name("head.weight"), &[codes as usize, d])?;
            let mut transition = None;
            if outline.has_transition(level) {
                let token = take(&name("transition.token.weight"), &[d, d])?;
                let bias = take(&name("transition.bias"), &[d])?;
                let state = take(&name("transition.state.weight"), &[d, d])?;
                transition = Some(TransitionTensors { token, bias, state });
            }
            levels.push(LevelTensors { head, transition });
        }
        Ok(Self { outline, placeholders, levels })
    }

    /// The outline of the head, without its weights.
    pub fn outline(&self) -> &DraftOutline {
        &self.outline
    }

    /// The rows that follow the prompt in place of embeddings, `[num_placeholders, D]`.
    pub fn placeholders(&self) -> &[f32] {
        &self.placeholders
    }

    /// W of a level: `[codes, D]`.
    pub fn head(&self, level: usize) -> &[f32] {
        &self.levels[level].head
    }

    /// A of a level's choice, `[D, D]`; none where a state is only added to, or there is none.
    pub fn state(&self, level: usize) -> Option<&[f32]> {
        Some(&self.levels[level].transition.as_ref()?.state)
    }

    /// Summand of the state for each code of a level, `[codes, D]`: `B e + b`, or its embedding e,
    /// which `embed` writes; none where no state is moved by it.
    ///
    /// It is the same in every request, so it is multiplied out once.
    pub fn codes(
        &self,
        level: usize,
        mut embed: impl FnMut(TokenId, &mut [f32]),
    ) -> Option<Vec<f32>> {
        let (d, levels) = (self.outline.width, &self.outline.shape.levels);
        if level + 1 == levels.len() || !self.outline.form.has_state() {
            return None;
        }
        let (first_token, num_codes) = levels[level];
        let mut codes = vec![0.0; num_codes as usize * d];
        for (code, row) in codes.chunks_exact_mut(d).enumerate() {
            embed(TokenId(first_token + code as u32), row);
        }
        if let Some(TransitionTensors { token, bias, .. }) = &self.levels[level].transition {
            let embeddings = codes.clone();
            let token = PackedMatrix::transposed(token, d);
            token.multiply(&mut codes, &embeddings, num_codes as usize);
            for row in codes.chunks_exact_mut(d) {
                row.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
            }
        }
        Some(codes)
    }
}

impl std::fmt::Debug for DraftTensors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DraftTensors").field("outline", &self.outline).finish_non_exhaustive()
    }
}

/// Refuses a model whose prompts an encoder reads, so that no hidden states of placeholders come
/// after them.
fn refuse_encoder(path: &Path, config: &ModelConfig) -> Result<(), LoadError> {
    if config.architecture.encoder.is_none() {
        return Ok(());
    }
    let family = config.architecture.family.name();
    let reason = format!(
        "is for decoders: a draft head reads hidden states at placeholders after the prompt, and an encoder reads that in \
         {family}; search without a head (`--mode beam`), or take a decoder of the table in docs/models.md"
    );
    Err(LoadError::weights(path, reason))
}

fn check_shape(shape: &DraftShape, vocab_size: usize) -> Result<(), String> {
    let (levels, most) = (shape.levels.len(), DraftHead::MAX_LEVELS);
    if levels == 0 || levels > most {
        return Err(format!("is to spell {levels} levels; a draft head has from 1 to {most}"));
    }
    for (level, &(first, count)) in shape.levels.iter().enumerate() {
        if count == 0 || u64::from(first) + u64::from(count) > vocab_size as u64 {
            return Err(format!(
                "is to spell level {level} by {count} tokens from {first}; there must be at least one, of the model's {vocab_size}"
            ));
        }
    }
    Ok(())
}

fn read_form(path: &Path, bytes: &[u8]) -> Result<DraftForm, LoadError> {
    let (_, header) = safetensors::SafeTensors::read_metadata(bytes)
        .map_err(|e| LoadError::weights(path, format!("is no safetensors file: {e}")))?;
    let none = HashMap::new();
    let text = header.metadata().as_ref().unwrap_or(&none).get(DraftHead::FORM_KEY);
    let Some(text) = text else {
        let key = DraftHead::FORM_KEY;
        let reason = format!("is no draft head: its metadata lack {key:?}");
        return Err(LoadError::weights(path, reason));
    };
    serde_json::from_str(text).map_err(|e| {
        let key = DraftHead::FORM_KEY;
        LoadError::weights(path, format!("has {key:?} = {text}, which cannot be read: {e}"))
    })
}
