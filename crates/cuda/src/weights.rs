//! Weights of a decoder on a device: matrices as rows of outputs in bfloat16, vectors in f32.
//!
//! Queries, keys and values are stacked to one matrix; gate and up are interleaved by row, so that
//! the two values of a SwiGLU lie in one thread. One region holds everything; tensors begin at
//! multiples of 256 bytes. Values that are stored as f32 or f16 are rounded once, to nearest even.

use palmette_model::{ModelConfig, ModelTensors, Values};

use crate::error::CudaError;
use crate::sizes::Sizes;
use crate::{Address, DeviceError, Driver, Pinned, Region, RegionPlan, Stream};

/// Bytes at which tensors begin.
const ALIGNMENT: usize = 256;
/// Bytes of host memory that uploads go through.
const STAGED: usize = 16 << 20;

/// Addresses of a layer's tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    /// `[D]`
    pub(crate) attention_norm: Address,
    /// `[(H + 2 G) C, D]`
    pub(crate) qkv: Address,
    /// `[(H + 2 G) C]`, or null
    pub(crate) qkv_bias: Address,
    /// `[C]`, or null
    pub(crate) query_norm: Address,
    /// `[C]`, or null
    pub(crate) key_norm: Address,
    /// `[D, H C]`
    pub(crate) attention_out: Address,
    /// `[D]`
    pub(crate) mlp_norm: Address,
    /// `[2 F, D]`, row `2 i` of the gate and `2 i + 1` of up
    pub(crate) gate_up: Address,
    /// `[D, F]`
    pub(crate) down: Address,
}

/// Weights of a model on a device.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(crate) layers: Vec<Layer>,
    /// `[V, D]`
    pub(crate) embeddings: Address,
    /// `[V, D]`; the embeddings where they are one.
    pub(crate) head: Address,
    /// `[D]`
    pub(crate) final_norm: Address,
    /// `[positions, C / 2]`
    pub(crate) cosines: Address,
    /// `[positions, C / 2]`
    pub(crate) sines: Address,
    region: Region,
}

/// Bytes of a plan, handed out one after another.
#[derive(Debug, Default)]
struct Places {
    end: usize,
}

impl Places {
    fn take(&mut self, bytes: usize) -> usize {
        let at = self.end.next_multiple_of(ALIGNMENT);
        self.end = at + bytes;
        at
    }
}

/// Plan of the region, without any weights.
pub(crate) fn planned(config: &ModelConfig, sizes: &Sizes) -> RegionPlan {
    let mut places = Places::default();
    let (d, f, c) = (sizes.hidden, sizes.inner, sizes.head_width);
    let mut of = |values: usize, width: usize| {
        places.take(values * width);
    };
    of(sizes.vocab * d, 2);
    if !config.tie_word_embeddings {
        of(sizes.vocab * d, 2);
    }
    of(d, 4);
    let positions = config.max_position_embeddings;
    of(positions * c / 2, 4);
    of(positions * c / 2, 4);
    for _ in 0..sizes.layers {
        of(d, 4);
        of(sizes.qkv_width() * d, 2);
        if config.architecture.query_key_value_biases {
            of(sizes.qkv_width(), 4);
        }
        if config.architecture.query_key_norms {
            of(c, 4);
            of(c, 4);
        }
        of(d * sizes.query_width(), 2);
        of(d, 4);
        of(2 * f * d, 2);
        of(d * f, 2);
    }
    RegionPlan { name: "weights", bytes: places.end }
}

impl Weights {
    /// Uploads the tensors of a model's files.
    pub(crate) fn upload(
        driver: &dyn Driver,
        config: &ModelConfig,
        sizes: &Sizes,
        mut tensors: ModelTensors,
        region: Region,
    ) -> Result<Self, CudaError> {
        let staged = driver.pinned(STAGED.min(region.bytes()))?;
        let mut to = Upload { driver, region, places: Places::default(), staged };
        let (d, f, c) = (sizes.hidden, sizes.inner, sizes.head_width);
        let embeddings =
            to.matrix(tensors.take("model.embed_tokens.weight", &[sizes.vocab, d])?)?;
        let head = match tensors.has_own_head() {
            true => to.matrix(tensors.take("lm_head.weight", &[sizes.vocab, d])?)?,
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
            let qkv = to.stacked(rows)?;
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
                attention_out: to.matrix(take("self_attn.o_proj.weight", &[d, queries])?)?,
                mlp_norm: to.vector(vec![take("post_attention_layernorm.weight", &[d])?])?,
                gate_up: {
                    let gate = take("mlp.gate_proj.weight", &[f, d])?;
                    to.interleaved(gate, take("mlp.up_proj.weight", &[f, d])?, d)?
                },
                down: to.matrix(take("mlp.down_proj.weight", &[d, f])?)?,
            });
        }
        tensors.finish()?;
        let region = to.region;
        Ok(Self { layers, embeddings, head, final_norm, cosines, sines, region })
    }

    /// Bytes on the device.
    pub(crate) fn bytes(&self) -> usize {
        self.region.bytes()
    }
}

/// Tensors on their way to the region.
struct Upload<'a> {
    driver: &'a dyn Driver,
    region: Region,
    places: Places,
    /// Host memory that every tensor goes through.
    staged: Pinned,
}

impl Upload<'_> {
    fn matrix(&mut self, values: Values) -> Result<Address, DeviceError> {
        self.put(&bf16_bytes(values))
    }

    /// Rows of matrices one after another.
    fn stacked(&mut self, parts: Vec<Values>) -> Result<Address, DeviceError> {
        let bytes: Vec<u8> = parts.into_iter().flat_map(bf16_bytes).collect();
        self.put(&bytes)
    }

    /// Rows of two matrices in turn.
    fn interleaved(
        &mut self,
        even: Values,
        odd: Values,
        width: usize,
    ) -> Result<Address, DeviceError> {
        let (even, odd) = (bf16_bytes(even), bf16_bytes(odd));
        let rows = even.chunks_exact(2 * width).zip(odd.chunks_exact(2 * width));
        let bytes: Vec<u8> = rows.flat_map(|(even, odd)| [even, odd].concat()).collect();
        self.put(&bytes)
    }

    fn vector(&mut self, parts: Vec<Values>) -> Result<Address, DeviceError> {
        self.floats(parts.into_iter().flat_map(Values::into_f32))
    }

    fn floats(&mut self, values: impl Iterator<Item = f32>) -> Result<Address, DeviceError> {
        let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
        self.put(&bytes)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<Address, DeviceError> {
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

/// Bytes of values in bfloat16.
fn bf16_bytes(values: Values) -> Vec<u8> {
    values.into_bf16().into_iter().flat_map(u16::to_le_bytes).collect()
}
