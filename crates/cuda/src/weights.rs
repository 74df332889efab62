//! Weights of a decoder on a device: matrices as rows of outputs in bfloat16 or in 8 bits, vectors
//! in f32.
//!
//! Queries, keys and values are stacked to one matrix; gate and up are interleaved by row, so that
//! the two values of a SwiGLU lie in one thread. One region holds everything; tensors begin at
//! multiples of 256 bytes. Values that are stored as f32 or f16 are rounded once, to nearest even;
//! to 8 bits as this processor's models round them, from what is stored.

use palmette_model::draft::{DraftOutline, DraftTensors};
use palmette_model::kernels::round_to_int8;
use palmette_model::{ModelConfig, ModelTensors, Values};

use crate::draft::DraftWeights;
use crate::error::CudaError;
use crate::plan::DeviceWeights;
use crate::sizes::Sizes;
use crate::{Address, DeviceError, Driver, Pinned, Region, RegionPlan, Stream};

/// Bytes at which tensors begin.
const ALIGNMENT: usize = 256;
/// Bytes of host memory that uploads go through.
const STAGED: usize = 16 << 20;

/// Addresses of a layer's matrix, `[N, K]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    /// bfloat16, or integers of 8 bits.
    pub(crate) rows: Address,
    /// Factors of the rows' integers, `[N]`; none in bfloat16.
    pub(crate) factors: Option<Address>,
}

/// Addresses of a layer's tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    /// `[D]`
    pub(crate) attention_norm: Address,
    /// `[(H + 2 G) C, D]`
    pub(crate) qkv: Matrix,
    /// `[(H + 2 G) C]`, or null
    pub(crate) qkv_bias: Address,
    /// `[C]`, or null
    pub(crate) query_norm: Address,
    /// `[C]`, or null
    pub(crate) key_norm: Address,
    /// `[D, H C]`
    pub(crate) attention_out: Matrix,
    /// `[D]`
    pub(crate) mlp_norm: Address,
    /// `[2 F, D]`, row `2 i` of the gate and `2 i + 1` of up
    pub(crate) gate_up: Matrix,
    /// `[D, F]`
    pub(crate) down: Matrix,
}

/// Weights of a model on a device.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) layers: Vec<Layer>,
    /// `[V, D]`, and behind them the rows of a draft head's placeholders
    pub(crate) embeddings: Address,
    /// `[V, D]`; the embeddings where they are one.
    pub(crate) head: Address,
    /// `[D]`
    pub(crate) final_norm: Address,
    /// `[positions, C / 2]`
    pub(crate) cosines: Address,
    /// `[positions, C / 2]`
    pub(crate) sines: Address,
    pub(crate) draft: Option<DraftWeights>,
    region: Region,
}

/// Bytes of a plan, handed out one after another.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) end: usize,
}

impl Places {
    pub(crate) fn take(&mut self, bytes: usize) -> usize {
        let at = self.end.next_multiple_of(ALIGNMENT);
        self.end = at + bytes;
        at
    }
}

/// Plan of the region, without any weights.
pub(crate) fn planned(
    config: &ModelConfig,
    sizes: &Sizes,
    form: DeviceWeights,
    draft: Option<&DraftOutline>,
) -> RegionPlan {
    let mut places = Places::default();
    let (d, f, c) = (sizes.hidden, sizes.inner, sizes.head_width);
    let mut of = |values: usize, width: usize| {
        places.take(values * width);
    };
    let placeholders = draft.map_or(0, DraftOutline::num_placeholders);
    of((sizes.vocab + placeholders) * d, 2);
    if !config.tie_word_embeddings {
        of(sizes.vocab * d, 2);
    }
    of(d, 4);
    let positions = config.max_position_embeddings;
    of(positions * c / 2, 4);
    of(positions * c / 2, 4);
    let matrix = |of: &mut dyn FnMut(usize, usize), n: usize, k: usize| match form {
        DeviceWeights::Bf16 => of(n * k, 2),
        DeviceWeights::Int8 => {
            of(n * k, 1);
            of(n, 4);
        }
    };
    for _ in 0..sizes.layers {
        of(d, 4);
        matrix(&mut of, sizes.qkv_width(), d);
        if config.architecture.query_key_value_biases {
            of(sizes.qkv_width(), 4);
        }
        if config.architecture.query_key_norms {
            of(c, 4);
            of(c, 4);
        }
        matrix(&mut of, d, sizes.query_width());
        of(d, 4);
        matrix(&mut of, 2 * f, d);
        matrix(&mut of, d, f);
    }
    RegionPlan { name: "weights", bytes: places.end }
}

impl Weights {
    /// Uploads the tensors of a model's files, and those of a draft head to a region of its own.
    pub(crate) fn upload(
        driver: &dyn Driver,
        config: &ModelConfig,
        sizes: &Sizes,
        form: DeviceWeights,
        mut tensors: ModelTensors,
        draft: Option<(DraftTensors, Region)>,
        region: Region,
    ) -> Result<Self, CudaError> {
        let mut to = Upload::new(driver, region)?;
        let (d, f, c) = (sizes.hidden, sizes.inner, sizes.head_width);
        let mut rows = bf16_bytes(tensors.take("model.embed_tokens.weight", &[sizes.vocab, d])?);
        let draft = match draft {
            None => None,
            Some((tensors, region)) => {
                let draft = DraftWeights::upload(driver, &tensors, &rows, region)?;
                rows.extend(bf16_bytes(tensors.placeholders().to_vec().into()));
                Some(draft)
            }
        };
        let embeddings = to.put(&rows)?;
        drop(rows);
        let head = match tensors.has_own_head() {
            true => to.put(&bf16_bytes(tensors.take("lm_head.weight", &[sizes.vocab, d])?))?,
            false => embeddings,
        };
        let final_norm = to.vector(vec![tensors.take("model.norm.weight", &[d])?])?;
        let table = config.rope_table(config.max_position_embeddings);
        let table = table.ok_or_else(|| DeviceError::Driver {
            call: "the table of rotary positions",
            message: format!("no memory for {} positions", config.max_position_embeddings),
        })?;
        let (cosines, sines) = table.cosines_and_sines();
        let cosines = to.floats(cosines.iter().copied())?;
        let sines = to.floats(sines.iter().copied())?;
        let mut layers = Vec::new();
        for layer in 0..sizes.layers {
            let mut take = |name: &str, shape: &[usize]| {
                tensors.take(&format!("model.layers.{layer}.{name}"), shape)
            };
            let (queries, keys) = (sizes.query_width(), sizes.key_width());
            let parts = [("q", queries), ("k", keys), ("v", keys)];
            let attention_norm = to.vector(vec![take("input_layernorm.weight", &[d])?])?;
            let mut rows = Vec::new();
            for (part, width) in parts {
                rows.push(take(&format!("self_attn.{part}_proj.weight"), &[width, d])?);
            }
            let qkv = to.stacked(rows, form, d)?;
            let mut qkv_bias = Address::NULL;
            if config.architecture.query_key_value_biases {
                let mut biases = Vec::new();
                for (part, width) in parts {
                    biases.push(take(&format!("self_attn.{part}_proj.bias"), &[width])?);
                }
                qkv_bias = to.vector(biases)?;
            }
            let (mut query_norm, mut key_norm) = (Address::NULL, Address::NULL);
            if config.architecture.query_key_norms {
                query_norm = to.vector(vec![take("self_attn.q_norm.weight", &[c])?])?;
                key_norm = to.vector(vec![take("self_attn.k_norm.weight", &[c])?])?;
            }
            layers.push(Layer {
                attention_norm,
                qkv,
                qkv_bias,
                query_norm,
                key_norm,
                attention_out: {
                    let out = take("self_attn.o_proj.weight", &[d, queries])?;
                    to.stacked(vec![out], form, queries)?
                },
                mlp_norm: to.vector(vec![take("post_attention_layernorm.weight", &[d])?])?,
                gate_up: {
                    let gate = take("mlp.gate_proj.weight", &[f, d])?;
                    to.interleaved(gate, take("mlp.up_proj.weight", &[f, d])?, form, d)?
                },
                down: to.stacked(vec![take("mlp.down_proj.weight", &[d, f])?], form, f)?,
            });
        }
        tensors.finish()?;
        let region = to.region;
        Ok(Self { layers, embeddings, head, final_norm, cosines, sines, draft, region })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

/// Tensors on their way to the region.
pub(crate) struct Upload<'a> {
    driver: &'a dyn Driver,
    pub(crate) region: Region,
    places: Places,
    /// Host memory that every tensor goes through.
    staged: Pinned,
}

impl<'a> Upload<'a> {
    pub(crate) fn new(driver: &'a dyn Driver, region: Region) -> Result<Self, DeviceError> {
        let staged = driver.pinned(STAGED.min(region.bytes()))?;
        Ok(Self { driver, region, places: Places::default(), staged })
    }

    /// Rows of matrices one after another, `width` values each.
    fn stacked(
        &mut self,
        parts: Vec<Values>,
        form: DeviceWeights,
        width: usize,
    ) -> Result<Matrix, DeviceError> {
        let mut rows = MatrixBytes::default();
        for part in parts {
            rows.extend(MatrixBytes::new(part, form, width));
        }
        self.matrix(&rows, form)
    }

    /// Rows of two matrices in turn, `width` values each.
    fn interleaved(
        &mut self,
        even: Values,
        odd: Values,
        form: DeviceWeights,
        width: usize,
    ) -> Result<Matrix, DeviceError> {
        let [even, odd] = [even, odd].map(|values| MatrixBytes::new(values, form, width));
        let value_bytes = match form {
            DeviceWeights::Bf16 => 2,
            DeviceWeights::Int8 => 1,
        };
        let in_turn = |even: &[u8], odd: &[u8], bytes: usize| -> Vec<u8> {
            let rows = even.chunks_exact(bytes).zip(odd.chunks_exact(bytes));
            rows.flat_map(|(even, odd)| [even, odd].concat()).collect()
        };
        let rows = MatrixBytes {
            rows: in_turn(&even.rows, &odd.rows, value_bytes * width),
            factors: in_turn(&even.factors, &odd.factors, 4),
        };
        self.matrix(&rows, form)
    }

    fn matrix(&mut self, bytes: &MatrixBytes, form: DeviceWeights) -> Result<Matrix, DeviceError> {
        let rows = self.put(&bytes.rows)?;
        let factors = match form {
            DeviceWeights::Bf16 => None,
            DeviceWeights::Int8 => Some(self.put(&bytes.factors)?),
        };
        Ok(Matrix { rows, factors })
    }

    fn vector(&mut self, parts: Vec<Values>) -> Result<Address, DeviceError> {
        self.floats(parts.into_iter().flat_map(Values::into_f32))
    }

    fn floats(&mut self, values: impl Iterator<Item = f32>) -> Result<Address, DeviceError> {
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        self.put(&bytes)
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<Address, DeviceError> {
        let at = self.places.take(bytes.len());
        let address = self.region.checked(at, bytes.len())?;
        for (part, bytes) in bytes.chunks(STAGED).enumerate() {
            let (at, len) = (at + part * STAGED, bytes.len());
            self.staged.bytes()?[..len].copy_from_slice(bytes);
            self.driver.write(Stream::Upload, &self.region, at, &mut self.staged, len)?;
            self.driver.finish(&self.driver.record(Stream::Upload)?)?;
        }
        Ok(address)
    }
}

/// Rows of a matrix as a device has them, and their factors where they have any.
#[derive(Default)]
struct MatrixBytes {
    rows: Vec<u8>,
    /// f32 each.
    factors: Vec<u8>,
}

impl MatrixBytes {
    fn new(values: Values, form: DeviceWeights, width: usize) -> Self {
        if form == DeviceWeights::Bf16 {
            return Self { rows: bf16_bytes(values), factors: Vec::new() };
        }
        let (mut bytes, mut integers) = (Self::default(), vec![0; width]);
        for row in values.into_f32().chunks_exact(width) {
            let factor = round_to_int8(row, &mut integers);
            bytes.rows.extend(integers.iter().map(|integer| integer.to_le_bytes()[0]));
            bytes.factors.extend(factor.to_le_bytes());
        }
        bytes
    }

    fn extend(&mut self, below: Self) {
        self.rows.extend(below.rows);
        self.factors.extend(below.factors);
    }
}

/// Bytes of values in bfloat16.
pub(crate) fn bf16_bytes(values: Values) -> Vec<u8> {
    values.into_bf16().into_iter().flat_map(u16::to_le_bytes).collect()
}
