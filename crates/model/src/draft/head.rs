//! The head's weights as this processor computes with them.

use std::ops::Deref;
use std::path::Path;

use super::form::DraftForm;
use super::outline::{DraftOutline, DraftShape};
use super::tensors::DraftTensors;
use crate::error::LoadError;
use crate::kernels::PackedMatrix;
use crate::model::Model;

/// A draft head, frozen and shared; its equations are in [`draft`](super), its [`DraftOutline`] is
/// what it dereferences to.
///
/// What a code adds to the state, `B e + b`, is the same in every request: it is multiplied out
/// when the head is loaded, which leaves two products of a row and level, `D × D` and `D × codes`.
#[derive(Clone, Debug)]
pub struct DraftHead {
    outline: DraftOutline,
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

    /// [`DraftTensors::load`], packed for this processor.
    ///
    /// # Errors
    /// As there.
    pub fn load(dir: &Path, model: &Model, shape: DraftShape) -> Result<Self, LoadError> {
        Ok(Self::new(&DraftTensors::load(dir, &model.config, shape)?, model))
    }

    /// [`DraftTensors::from_bytes`], packed for this processor.
    ///
    /// # Errors
    /// As there.
    pub fn from_bytes(
        name: &Path,
        bytes: Vec<u8>,
        model: &Model,
        shape: DraftShape,
    ) -> Result<Self, LoadError> {
        Ok(Self::new(&DraftTensors::from_bytes(name, bytes, &model.config, shape)?, model))
    }

    /// [`DraftTensors::random`], packed for this processor.
    ///
    /// # Errors
    /// As there.
    pub fn random(
        form: DraftForm,
        model: &Model,
        shape: DraftShape,
        seed: u64,
    ) -> Result<Self, LoadError> {
        Ok(Self::new(&DraftTensors::random(form, &model.config, shape, seed)?, model))
    }

    /// A head of the model for which its tensors were taken.
    pub fn new(tensors: &DraftTensors, model: &Model) -> Self {
        let outline = tensors.outline().clone();
        let (d, levels) = (outline.width, 0..outline.shape.levels.len());
        let packed = |weight: &[f32]| PackedMatrix::transposed(weight, d);
        let moved = |level: usize| {
            let codes = tensors.codes(level, |token, row| model.weights.embed(token, row))?;
            Some(Move { state: tensors.state(level).map(packed), codes })
        };
        let heads = levels.clone().map(|level| packed(tensors.head(level))).collect();
        let moves = levels.filter_map(moved).collect();
        Self { outline, placeholders: tensors.placeholders().to_vec(), heads, moves }
    }

    /// The rows that follow the prompt in place of embeddings, `[num_placeholders, D]`.
    pub(crate) fn placeholders(&self) -> &[f32] {
        &self.placeholders
    }
}

impl Deref for DraftHead {
    type Target = DraftOutline;

    fn deref(&self) -> &DraftOutline {
        &self.outline
    }
}
