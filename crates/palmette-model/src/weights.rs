//! Weights from Hugging Face safetensors files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use palmette_core::TokenId;
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::config::ModelConfig;
use crate::error::LoadError;
use crate::kernels::{Matrix, PackedMatrix};

/// All weights of a model, matrices packed as `[in, out]`.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// `[V, D]` row-major; `None` when the head's columns serve as embeddings.
    embedding: Option<Vec<f32>>,
    pub(crate) layers: Vec<LayerWeights>,
    /// `[D]`
    pub(crate) final_norm: Vec<f32>,
    /// Turns hidden states into logits: `[D, V]`
    pub(crate) head: PackedMatrix,
}

#[derive(Clone, Debug)]
pub(crate) struct LayerWeights {
    /// `[D]`
    pub(crate) attention_norm: Vec<f32>,
    /// `[D, H C]`
    pub(crate) queries: Matrix,
    /// Keys and values in one matrix, so that they are one product: `[D, 2 G C]`
    pub(crate) keys_values: Matrix,
    /// `[C]`
    pub(crate) query_norm: Vec<f32>,
    /// `[C]`
    pub(crate) key_norm: Vec<f32>,
    /// `[H C, D]`
    pub(crate) attention_out: Matrix,
    /// `[D]`
    pub(crate) mlp_norm: Vec<f32>,
    /// `[D, F]`
    pub(crate) gate: Matrix,
    /// `[D, F]`
    pub(crate) up: Matrix,
    /// `[F, D]`
    pub(crate) down: Matrix,
}

impl Weights {
    /// Reads `model.safetensors`, or the shards that `model.safetensors.index.json` names.
    pub(crate) fn read(dir: &Path, config: &ModelConfig) -> Result<Self, LoadError> {
        Self::assemble(TensorFiles::open(dir)?, config)
    }

    /// Reads the bytes of one safetensors file; `name` stands for the path in errors.
    pub(crate) fn from_bytes(
        name: &Path,
        bytes: Vec<u8>,
        config: &ModelConfig,
    ) -> Result<Self, LoadError> {
        Self::assemble(TensorFiles::single(name.to_owned(), bytes)?, config)
    }

    fn assemble(mut files: TensorFiles, config: &ModelConfig) -> Result<Self, LoadError> {
        let weights = Self::from_tensors(config, |name, shape| files.take(name, shape))?;
        if config.tie_word_embeddings {
            files.skip("lm_head.weight");
        }
        files.finish()?;
        Ok(weights)
    }

    /// Asks `take` for each tensor that the configuration has, by its Hugging Face name and shape, `[out, in]`.
    pub(crate) fn from_tensors(
        config: &ModelConfig,
        mut take: impl FnMut(&str, &[usize]) -> Result<Vec<f32>, LoadError>,
    ) -> Result<Self, LoadError> {
        let (d, f, c) = (config.hidden_size, config.intermediate_size, config.head_dim);
        let (queries, keys) = (config.query_width(), config.key_value_width());
        let embedding = take("model.embed_tokens.weight", &[config.vocab_size, d])?;
        // Grown as tensors are found: the number in `config` is not to be trusted with memory.
        let mut layers = Vec::new();
        for layer in 0..config.num_hidden_layers {
            let mut take = |name: &str, shape: &[usize]| {
                take(&format!("model.layers.{layer}.{name}.weight"), shape)
            };
            let packed = |rows: &[f32], depth| Matrix::F32(PackedMatrix::transposed(rows, depth));
            layers.push(LayerWeights {
                attention_norm: take("input_layernorm", &[d])?,
                queries: packed(&take("self_attn.q_proj", &[queries, d])?, d),
                keys_values: packed(
                    &[take("self_attn.k_proj", &[keys, d])?, take("self_attn.v_proj", &[keys, d])?]
                        .concat(),
                    d,
                ),
                query_norm: take("self_attn.q_norm", &[c])?,
                key_norm: take("self_attn.k_norm", &[c])?,
                attention_out: packed(&take("self_attn.o_proj", &[d, queries])?, queries),
                mlp_norm: take("post_attention_layernorm", &[d])?,
                gate: packed(&take("mlp.gate_proj", &[f, d])?, d),
                up: packed(&take("mlp.up_proj", &[f, d])?, d),
                down: packed(&take("mlp.down_proj", &[d, f])?, f),
            });
        }
        let final_norm = take("model.norm.weight", &[d])?;
        let (embedding, head) = if config.tie_word_embeddings {
            (None, embedding)
        } else {
            (Some(embedding), take("lm_head.weight", &[config.vocab_size, d])?)
        };
        Ok(Self { embedding, layers, final_norm, head: PackedMatrix::transposed(&head, d) })
    }

    /// Copies a token's embedding to `out`, `[D]`.
    pub(crate) fn embed(&self, token: TokenId, out: &mut [f32]) {
        match &self.embedding {
            Some(rows) => out.copy_from_slice(&rows[token.index() * out.len()..][..out.len()]),
            None => self.head.copy_column(token.index(), out),
        }
    }

    /// Rounds the layers' matrices to 8 bits; embeddings, head and norms stay as they are.
    pub(crate) fn round_layers(&mut self) {
        self.layers.iter_mut().for_each(LayerWeights::round);
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        let embedding = self.embedding.as_ref().map_or(0, |values| size_of_val(&**values));
        let layers: usize = self.layers.iter().map(LayerWeights::bytes).sum();
        embedding + layers + size_of_val(&*self.final_norm) + self.head.bytes()
    }

    /// Number of parameters, tied ones counted once.
    pub(crate) fn num_parameters(&self) -> usize {
        let layer = |l: &LayerWeights| {
            let norms = [&l.attention_norm, &l.query_norm, &l.key_norm, &l.mlp_norm];
            norms.iter().map(|norm| norm.len()).sum::<usize>() + l.num_matrix_values()
        };
        self.embedding.as_ref().map_or(0, Vec::len)
            + self.layers.iter().map(layer).sum::<usize>()
            + self.final_norm.len()
            + self.head.num_values()
    }
}

impl LayerWeights {
    /// Values of the matrices, each of which takes two operations a row.
    pub(crate) fn num_matrix_values(&self) -> usize {
        let Self { queries, keys_values, attention_out, gate, up, down, .. } = self;
        let matrices = [queries, keys_values, attention_out, gate, up, down];
        matrices.into_iter().map(Matrix::num_values).sum()
    }

    /// Rounds the matrices to 8 bits.
    fn round(&mut self) {
        let Self { queries, keys_values, attention_out, gate, up, down, .. } = self;
        let matrices = [queries, keys_values, attention_out, gate, up, down];
        matrices.into_iter().for_each(Matrix::round);
    }

    fn bytes(&self) -> usize {
        let Self { queries, keys_values, attention_out, gate, up, down, .. } = self;
        let matrices = [queries, keys_values, attention_out, gate, up, down];
        let norms = [&self.attention_norm, &self.query_norm, &self.key_norm, &self.mlp_norm];
        let norms = norms.into_iter().map(|norm| size_of_val(&**norm));
        matrices.into_iter().map(Matrix::bytes).chain(norms).sum()
    }
}

/// The tensors of one or several safetensors files, by name.
pub(crate) struct TensorFiles {
    /// What errors about the whole set name.
    path: PathBuf,
    shards: Vec<Shard>,
    /// The tensors not yet taken.
    left: BTreeMap<String, Entry>,
}

/// One file, its header apart: [`Entry`]s hold what that says.
struct Shard {
    path: PathBuf,
    /// The whole file; empty once all its tensors have been taken, so that loading needs little
    /// more than the files and the f32 values together.
    bytes: Vec<u8>,
    /// Where the tensors' bytes begin.
    data_start: usize,
    /// Tensors not yet taken.
    num_left: usize,
}

/// Where a tensor lies.
struct Entry {
    /// Place in [`TensorFiles::shards`].
    shard: usize,
    /// Offsets count from [`Shard::data_start`].
    info: TensorInfo,
}

#[derive(Deserialize)]
struct ShardIndex {
    weight_map: BTreeMap<String, String>,
}

impl TensorFiles {
    fn open(dir: &Path) -> Result<Self, LoadError> {
        let read = |path: &Path| std::fs::read(path).map_err(|e| LoadError::io(path, e));
        let (single, index) =
            (dir.join("model.safetensors"), dir.join("model.safetensors.index.json"));
        if single.exists() || !index.exists() {
            let bytes = read(&single)?;
            return Self::single(single, bytes);
        }
        let parsed: ShardIndex = serde_json::from_slice(&read(&index)?)
            .map_err(|e| LoadError::weights(&index, format!("is no shard index: {e}")))?;
        let names: BTreeSet<&String> = parsed.weight_map.values().collect();
        let mut shards = BTreeMap::new();
        for name in names {
            if Path::new(name).components().count() != 1 {
                let reason = format!("names the shard {name:?}, which is not a plain file name");
                return Err(LoadError::weights(&index, reason));
            }
            let path = dir.join(name);
            let bytes = read(&path)?;
            shards.insert(path, bytes);
        }
        let files = Self::index(index, shards)?;
        let absent = parsed.weight_map.keys().find(|name| !files.left.contains_key(*name));
        match absent {
            Some(name) => {
                let reason = format!("names the tensor {name}, which no shard holds");
                Err(LoadError::weights(&files.path, reason))
            }
            None => Ok(files),
        }
    }

    /// One file that holds all tensors.
    pub(crate) fn single(path: PathBuf, bytes: Vec<u8>) -> Result<Self, LoadError> {
        Self::index(path.clone(), BTreeMap::from([(path, bytes)]))
    }

    fn index(path: PathBuf, files: BTreeMap<PathBuf, Vec<u8>>) -> Result<Self, LoadError> {
        let (mut shards, mut left) = (Vec::new(), BTreeMap::new());
        for (path, bytes) in files {
            let (header_len, header) = SafeTensors::read_metadata(&bytes)
                .map_err(|e| LoadError::weights(&path, format!("is no safetensors file: {e}")))?;
            let names = header.offset_keys();
            let num_left = names.len();
            for name in names {
                let Some(info) = header.info(&name).cloned() else { continue };
                if left.contains_key(&name) {
                    let reason = format!("holds the tensor {name}, as another shard does");
                    return Err(LoadError::weights(&path, reason));
                }
                left.insert(name, Entry { shard: shards.len(), info });
            }
            let data_start = size_of::<u64>() + header_len;
            shards.push(Shard { path, bytes, data_start, num_left });
        }
        Ok(Self { path, shards, left })
    }

    /// The values of a tensor, which must have this shape.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let Some(Entry { shard, info }) = self.left.remove(name) else {
            let reason = format!("lacks the tensor {name} {shape:?}");
            return Err(LoadError::weights(&self.path, reason));
        };
        let shard = &mut self.shards[shard];
        let error = |reason: String| LoadError::weights(&shard.path, reason);
        if info.shape != shape {
            let found = info.shape;
            return Err(error(format!(
                "tensor {name} is {found:?}; the configuration makes it {shape:?}"
            )));
        }
        let (start, end) = info.data_offsets;
        let data = shard.bytes[shard.data_start..]
            .get(start..end)
            .ok_or_else(|| error(format!("tensor {name} lies outside the file")))?;
        let values = to_f32(info.dtype, data).ok_or_else(|| {
            let dtype = info.dtype;
            error(format!("tensor {name} is {dtype:?}; F32, BF16 and F16 can be read"))
        })?;
        shard.tensor_is_done();
        Ok(values)
    }

    fn skip(&mut self, name: &str) {
        if let Some(entry) = self.left.remove(name) {
            self.shards[entry.shard].tensor_is_done();
        }
    }

    /// A tensor left over (a bias, say) means that the file is of another architecture, whose
    /// logits would come out wrong.
    pub(crate) fn finish(mut self) -> Result<(), LoadError> {
        self.left.retain(|name, _| !name.ends_with("rotary_emb.inv_freq"));
        match self.left.pop_first() {
            Some((name, entry)) => {
                let reason = format!("holds the tensor {name}, which this architecture lacks");
                Err(LoadError::weights(&self.shards[entry.shard].path, reason))
            }
            None => Ok(()),
        }
    }
}

impl Shard {
    fn tensor_is_done(&mut self) {
        self.num_left -= 1;
        if self.num_left == 0 {
            self.bytes = Vec::new();
        }
    }
}

/// The values as f32, exactly; `None` for a type that is not one of the three.
fn to_f32(dtype: Dtype, data: &[u8]) -> Option<Vec<f32>> {
    // By bytes: some files place tensors at odd offsets.
    let pairs = || data.chunks_exact(2).map(|b| [b[0], b[1]]);
    match dtype {
        Dtype::F32 => Some(
            data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        ),
        Dtype::BF16 => Some(pairs().map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        Dtype::F16 => Some(pairs().map(|b| f16::from_le_bytes(b).to_f32()).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_dropped_with_its_last_tensor() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/untied_sharded");
        let mut files = TensorFiles::open(&dir).unwrap();
        assert_eq!(files.shards.len(), 4);
        let tensors: Vec<(String, usize, Vec<usize>)> = files
            .left
            .iter()
            .map(|(name, entry)| (name.clone(), entry.shard, entry.info.shape.clone()))
            .collect();
        for (place, (name, shard, shape)) in tensors.iter().enumerate() {
            assert!(!files.shards[*shard].bytes.is_empty(), "{name}");
            assert_eq!(files.take(name, shape).unwrap().len(), shape.iter().product::<usize>());
            let more = tensors[place + 1..].iter().any(|(_, later, _)| later == shard);
            assert_eq!(!files.shards[*shard].bytes.is_empty(), more, "{name}");
        }
        files.finish().unwrap();
    }
}
