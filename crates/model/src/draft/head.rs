//! The head's weights, and the file they come from.

use std::collections::HashMap;
use std::path::Path;

use palmette_core::TokenId;

use super::form::DraftForm;
use crate::error::LoadError;
use crate::kernels::PackedMatrix;
use crate::model::Model;
use crate::random::Uniform;
use crate::tensor_files::TensorFiles;

/// The codes that a draft head spells: code `c` of level `l` is token `levels[l].0 + c`, of
/// `levels[l].1` codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftShape {
    /// First token and number of codes of each level.
    pub levels: Vec<(u32, u32)>,
}

/// A draft head, frozen and shared; its equations are in [`draft`](super).
///
/// What a code adds to the state, `B e + b`, is the same in every request: it is multiplied out
/// when the head is loaded, which leaves two products of a row and level, `D × D` and `D × codes`.
#[derive(Clone, Debug)]
pub struct DraftHead {
    pub(super) form: DraftForm,
    pub(super) shape: DraftShape,
    /// D
    pub(super) width: usize,
    /// `[L, D]`; none where the form has no placeholders.
    placeholders: Vec<f32>,
    /// `[D, codes]` of each level.
    pub(super) heads: Vec<PackedMatrix>,
    /// Moves of each level except the last; none where there is no state.
    pub(super) moves: Vec<Move>,
}

/// Move of the state by a level's choice.
#[derive(Clone, Debug)]
pub(super) struct Move {
    /// A, `[D, D]`; `None` where the state is only added to.
    pub(super) state: Option<PackedMatrix>,
    /// Summand of each code of the level, `[codes, D]`.
    pub(super) codes: Vec<f32>,
}

impl DraftHead {
    /// Name in a model's directory.
    pub const FILE_NAME: &str = "draft.safetensors";

    /// The entry of the file's metadata that holds the [`DraftForm`] as JSON.
    pub const FORM_KEY: &str = "palmette.draft_form";

    /// Largest number of levels of a head. Its states are kept for all of them at once.
    pub const MAX_LEVELS: usize = 64;

    /// Reads `draft.safetensors` of a model's directory; `shape` is what the model's prompts spell.
    ///
    /// # Errors
    /// When the file is missing or damaged, or was made for a model or codes of another shape.
    pub fn load(dir: &Path, model: &Model, shape: DraftShape) -> Result<Self, LoadError> {
        let path = dir.join(Self::FILE_NAME);
        refuse_encoder(&path, model)?;
        let bytes = std::fs::read(&path).map_err(|e| LoadError::io(&path, e))?;
        Self::from_bytes(&path, bytes, model, shape)
    }

    /// Reads the bytes of a `draft.safetensors`; `name` stands for the path in errors.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_bytes(
        name: &Path,
        bytes: Vec<u8>,
        model: &Model,
        shape: DraftShape,
    ) -> Result<Self, LoadError> {
        let form = read_form(name, &bytes)?;
        let mut files = TensorFiles::single(name.to_owned(), bytes)?;
        let head =
            Self::from_tensors(name, form, model, shape, |name, shape| files.take(name, shape))?;
        files.finish()?;
        Ok(head)
    }

    /// A head with made-up weights, the same for the same seed: for measuring, since time does not
    /// depend on them.
    ///
    /// # Errors
    /// When `shape` does not fit the model.
    pub fn random(
        form: DraftForm,
        model: &Model,
        shape: DraftShape,
        seed: u64,
    ) -> Result<Self, LoadError> {
        let mut uniform = Uniform::new(seed);
        let name = Path::new(Self::FILE_NAME);
        Self::from_tensors(name, form, model, shape, |_, shape| {
            let inputs = *shape.last().unwrap_or(&1);
            let bound = (3.0 / inputs as f32).sqrt();
            let mut value = || (uniform.draw() * 2.0 - 1.0) * bound;
            Ok((0..shape.iter().product()).map(|_| value()).collect())
        })
    }

    /// Asks `take` for each tensor that the form has, by name and shape, matrices as `[out, in]`.
    fn from_tensors(
        path: &Path,
        form: DraftForm,
        model: &Model,
        shape: DraftShape,
        mut take: impl FnMut(&str, &[usize]) -> Result<Vec<f32>, LoadError>,
    ) -> Result<Self, LoadError> {
        refuse_encoder(path, model)?;
        let (d, levels) = (model.config.hidden_size, shape.levels.len());
        check_shape(&shape, model.config.vocab_size)
            .map_err(|reason| LoadError::weights(path, reason))?;
        let placeholders = match form.has_placeholders() {
            true => take("draft.placeholders", &[levels, d])?,
            false => Vec::new(),
        };
        let (mut heads, mut moves) = (Vec::new(), Vec::new());
        for (level, &(first_token, num_codes)) in shape.levels.iter().enumerate() {
            let name = |part: &str| format!("draft.levels.{level}.{part}");
            let weight = take(&name("head.weight"), &[num_codes as usize, d])?;
            heads.push(PackedMatrix::transposed(&weight, d));
            if level + 1 == levels || !form.has_state() {
                continue;
            }
            let mut codes = vec![0.0; num_codes as usize * d];
            for (code, row) in codes.chunks_exact_mut(d).enumerate() {
                model.weights.embed(TokenId(first_token + code as u32), row);
            }
            let mut state = None;
            if form.has_transitions() {
                let token = take(&name("transition.token.weight"), &[d, d])?;
                let embeddings = codes.clone();
                let token = PackedMatrix::transposed(&token, d);
                token.multiply(&mut codes, &embeddings, num_codes as usize);
                let bias = take(&name("transition.bias"), &[d])?;
                for row in codes.chunks_exact_mut(d) {
                    row.iter_mut().zip(&bias).for_each(|(value, bias)| *value += bias);
                }
                let weight = take(&name("transition.state.weight"), &[d, d])?;
                state = Some(PackedMatrix::transposed(&weight, d));
            }
            moves.push(Move { state, codes });
        }
        Ok(Self { form, shape, width: d, placeholders, heads, moves })
    }

    /// Equations that it follows.
    pub fn form(&self) -> DraftForm {
        self.form
    }

    /// The codes it spells.
    pub fn shape(&self) -> &DraftShape {
        &self.shape
    }

    /// Rows that follow the prompt.
    pub fn num_placeholders(&self) -> usize {
        if self.form.has_placeholders() { self.shape.levels.len() } else { 0 }
    }

    /// The rows that follow the prompt in place of embeddings, `[num_placeholders, D]`.
    pub(crate) fn placeholders(&self) -> &[f32] {
        &self.placeholders
    }

    /// Number of parameters.
    pub fn num_parameters(&self) -> usize {
        let d = self.width;
        let heads: usize = self.heads.iter().map(PackedMatrix::num_values).sum();
        let moves = self.moves.iter().filter(|m| m.state.is_some()).count() * (2 * d * d + d);
        self.placeholders.len() + heads + moves
    }

    /// Floating-point operations of a row's products at a level: the state's move there, and the
    /// logits.
    pub fn operations_of_row(&self, level: usize) -> u64 {
        let moved = match level.checked_sub(1).and_then(|before| self.moves.get(before)) {
            Some(Move { state: Some(state), .. }) => state.num_values(),
            _ => 0,
        };
        2 * (moved + self.heads[level].num_values()) as u64
    }
}

/// Refuses a model whose prompts an encoder reads, so that no hidden states of placeholders come
/// after them.
fn refuse_encoder(path: &Path, model: &Model) -> Result<(), LoadError> {
    if model.config.architecture.encoder.is_none() {
        return Ok(());
    }
    let family = model.config.architecture.family.name();
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
