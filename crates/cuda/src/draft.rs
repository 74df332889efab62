//! A draft head on a device: its weights, and the launches of a level.
//!
//! A pass over the prompt and the head's placeholders leaves their hidden states with the reading;
//! from these each level's logits are a product or two of its rows, on the stream of selection. Its
//! equations are those of [`palmette_model::draft`], its arithmetic is that of the other products:
//! what they read is bfloat16, states between levels are too, sums are f32. So a row's bits depend
//! on its prompt and its tokens alone. Placeholders are rows behind the embeddings, their tokens
//! those past the vocabulary.

use palmette_core::TokenId;
use palmette_model::ModelConfig;
use palmette_model::draft::{DraftOutline, DraftTensors};

use crate::arguments::{DraftStates, Product};
use crate::error::CudaError;
use crate::forward::{Forward, no_product};
use crate::plan::{DraftPlaces, Plan, ReadingMemory, TILE};
use crate::sizes::{family_name, runs};
use crate::weights::{Places, Upload, bf16_bytes};
use crate::{Address, DeviceError, Driver, Kernel, Region, RegionPlan};

/// Weights of a draft head on a device.
#[derive(Debug)]
pub(crate) struct DraftWeights {
    outline: DraftOutline,
    levels: Vec<Level>,
    region: Region,
}

/// Addresses of a level's tensors, bfloat16.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// W, `[codes, D]`
    head: Address,
    transition: Option<Transition>,
}

/// Addresses of what moves the state by a level's choice, bfloat16.
#[derive(Clone, Copy, Debug)]
struct Transition {
    /// A, `[D, D]`
    state: Address,
    /// B e + b, `[codes, D]`
    codes: Address,
}

impl DraftWeights {
    /// Refuses a head that the kernels do not compute.
    pub(crate) fn check(outline: &DraftOutline, config: &ModelConfig) -> Result<(), CudaError> {
        if config.architecture.embedding_scale == 1.0 {
            return Ok(());
        }
        let family = family_name(config.architecture.family);
        let form = outline.form.input.name();
        let what = format!("a draft head (of input {form}) over embeddings that have a factor");
        Err(CudaError::Unsupported { family, what })
    }

    /// Plan of the region, without any weights.
    pub(crate) fn planned(outline: &DraftOutline) -> RegionPlan {
        let (mut places, d) = (Places::default(), outline.width);
        for (level, &(_, codes)) in outline.shape.levels.iter().enumerate() {
            places.take(codes as usize * d * 2);
            if outline.has_transition(level) {
                places.take(d * d * 2);
                places.take(codes as usize * d * 2);
            }
        }
        RegionPlan { name: "draft head", bytes: places.end }
    }

    /// Uploads a head's tensors; `embeddings` are the bytes of the model's, in bfloat16.
    pub(crate) fn upload(
        driver: &dyn Driver,
        tensors: &DraftTensors,
        embeddings: &[u8],
        region: Region,
    ) -> Result<Self, CudaError> {
        let outline = tensors.outline().clone();
        let mut to = Upload::new(driver, region)?;
        let embed = |token: TokenId, row: &mut [f32]| {
            let from = embeddings[token.index() * row.len() * 2..].chunks_exact(2);
            row.iter_mut().zip(from).for_each(|(value, bytes)| {
                *value = f32::from_bits(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16);
            });
        };
        let mut levels = Vec::new();
        for level in 0..outline.shape.levels.len() {
            let head = to.put(&bf16_bytes(tensors.head(level).to_vec().into()))?;
            let mut transition = None;
            if let (Some(state), Some(codes)) = (tensors.state(level), tensors.codes(level, embed))
            {
                let state = to.put(&bf16_bytes(state.to_vec().into()))?;
                transition = Some(Transition { state, codes: to.put(&bf16_bytes(codes.into()))? });
            }
            levels.push(Level { head, transition });
        }
        Ok(Self { outline, levels, region: to.region })
    }

    /// The outline of the head, without its weights.
    pub(crate) fn outline(&self) -> &DraftOutline {
        &self.outline
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

/// Rows of a level of a draft.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DraftRows {
    pub(crate) level: usize,
    /// Bound on the rows, and on those of the level before.
    pub(crate) most: usize,
    pub(crate) most_before: usize,
    /// Address of how many there are, and there were.
    pub(crate) count: Address,
    pub(crate) count_before: Address,
    /// Address of the extensions that they are; null at the first level.
    pub(crate) extensions: Address,
}

impl Forward<'_> {
    /// The states and the logits of a level's rows, from those of the level before.
    pub(crate) fn draft_level(
        &self,
        head: &DraftWeights,
        of: &ReadingMemory,
        places: &DraftPlaces,
        rows: DraftRows,
    ) -> Result<(), DeviceError> {
        let (d, DraftRows { level, most, .. }) = (self.plan.sizes.hidden, rows);
        let (form, at) = (head.outline.form, |place: usize| of.draft.address_at(place));
        let hidden = |row: usize| of.last_normed.address_at(row * d * 2);
        let [before, states] = [places.states[(level + 1) % 2], places.states[level % 2]].map(at);
        let mut moved = DraftStates {
            rows: rows.count,
            extensions: Address::NULL,
            sums: Address::NULL,
            before: Address::NULL,
            codes: Address::NULL,
            hidden: Address::NULL,
            states: Address::NULL,
            inputs: at(places.inputs),
            width: d as i32,
            parts: 0,
            part_rows: places.part_rows as i32,
            squashes: 0,
        };
        if form.has_placeholders() {
            moved.hidden = hidden(1 + level);
        } else if !form.has_state() {
            moved.hidden = hidden(0);
        }
        if form.has_state() {
            moved.states = states;
            match level.checked_sub(1) {
                None => moved.before = hidden(0),
                Some(chosen) => {
                    moved.extensions = rows.extensions;
                    match head.levels[chosen].transition {
                        Some(transition) => {
                            moved.sums = at(places.sums);
                            moved.codes = transition.codes;
                            moved.squashes = 1;
                            moved.parts = self.moved_states(
                                before,
                                transition.state,
                                moved.sums,
                                places,
                                rows,
                            )?;
                        }
                        None => {
                            let first = head.outline.shape.levels[chosen].0 as usize;
                            let embeddings = self.weights.embeddings.0;
                            moved.codes = Address(embeddings + (first * d * 2) as u64);
                            moved.before = before;
                        }
                    }
                }
            }
        }
        self.rows(Kernel::DraftStates, &moved)?;
        let codes = head.outline.shape.levels[level].1 as usize;
        self.product(
            [Kernel::ProductLogits, Kernel::HopperProductLogits],
            most,
            &Product {
                rows: rows.count,
                x: moved.inputs,
                w: head.levels[level].head,
                out: of.logits.address(),
                windows: at(places.windows),
                statistics: of.logit_statistics.address(),
                n: codes as i32,
                k: d as i32,
                runs: runs(codes, d) as i32,
                first_tile: 0,
                tiles: codes.div_ceil(TILE) as i32,
                columns: codes as i32,
                ..no_product()
            },
        )
    }

    /// Partial sums of `A s` of the rows before; returns how many parts they have.
    fn moved_states(
        &self,
        states: Address,
        w: Address,
        out: Address,
        places: &DraftPlaces,
        rows: DraftRows,
    ) -> Result<i32, DeviceError> {
        let d = self.plan.sizes.hidden;
        let (runs, are_few) = (runs(d, d) as i32, Plan::splits(rows.most_before));
        let product = Product {
            rows: rows.count_before,
            x: states,
            w,
            out,
            n: d as i32,
            k: d as i32,
            runs,
            split: i32::from(are_few),
            part_rows: places.part_rows as i32,
            ..no_product()
        };
        let kernels = [Kernel::ProductSums, Kernel::HopperProductSums];
        self.product(kernels, rows.most_before, &product)?;
        Ok(if are_few { runs } else { 1 })
    }
}
