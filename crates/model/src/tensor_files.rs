//! Tensors from Hugging Face safetensors files, by name, each checked as it is taken.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use half::f16;
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, SafeTensors};
use serde::Deserialize;

use crate::error::LoadError;
use crate::kernels::{Bf16, Values};

/// Name of the embeddings.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
/// Name of an output head that is not the embeddings.
pub(crate) const HEAD: &str = "lm_head.weight";

/// The tensors of one or several safetensors files, by name.
pub(crate) struct TensorFiles {
    /// Name of the whole set in errors.
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
    /// Offset of the tensors' bytes.
    data_start: usize,
    /// Tensors not yet taken.
    num_left: usize,
}

/// Place of a tensor.
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
    /// Tensors of `model.safetensors`, or of the shards that `model.safetensors.index.json` names.
    pub(crate) fn open(dir: &Path) -> Result<Self, LoadError> {
        refuse_other_forms(dir)?;
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

    /// Adds the `model.` that names lack in a model that was saved without its output head.
    pub(crate) fn name_as_in_whole_models(&mut self) {
        let (whole, bare) = (self.left.contains_key(EMBEDDING), EMBEDDING.strip_prefix("model."));
        if whole || !bare.is_some_and(|bare| self.left.contains_key(bare)) {
            return;
        }
        let renamed = std::mem::take(&mut self.left).into_iter().map(|(name, entry)| {
            let head = name.starts_with("lm_head.");
            (if head { name } else { format!("model.{name}") }, entry)
        });
        self.left = renamed.collect();
    }

    /// True where a tensor of this name has not been taken.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    /// Leaves one tensor where a tied head is stored beside the embeddings.
    pub(crate) fn tie_head(&mut self, to: &str) -> Result<(), LoadError> {
        self.tie(
            HEAD,
            to,
            "although `tie_word_embeddings` says that they are one: transformers 4 computes logits with the embeddings, \
             transformers 5 with the head; set `tie_word_embeddings` to false in config.json where the head is meant, else \
             remove it from the file",
        )
    }

    /// Leaves one tensor of two that are to be the same, under the second's name. `but` continues
    /// the sentence that they are not.
    pub(crate) fn tie(&mut self, name: &str, to: &str, but: &str) -> Result<(), LoadError> {
        if !self.left.contains_key(to) {
            if let Some(entry) = self.left.remove(name) {
                self.left.insert(to.to_owned(), entry);
            }
            return Ok(());
        }
        let (Some(one), Some(other)) = (self.left.get(name), self.left.get(to)) else {
            return Ok(());
        };
        let same = one.info.dtype == other.info.dtype
            && one.info.shape == other.info.shape
            && self.data(one).is_some_and(|data| Some(data) == self.data(other));
        if !same {
            let reason = format!("holds {name} beside {to} with other values, {but}");
            return Err(LoadError::weights(&self.shards[one.shard].path, reason));
        }
        if let Some(entry) = self.left.remove(name) {
            self.shards[entry.shard].tensor_is_done();
        }
        Ok(())
    }

    fn data(&self, entry: &Entry) -> Option<&[u8]> {
        let shard = &self.shards[entry.shard];
        let (start, end) = entry.info.data_offsets;
        shard.bytes.get(shard.data_start..)?.get(start..end)
    }

    /// The values of a tensor, which must have this shape, as f32.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        Ok(self.take_stored(name, shape)?.into_f32())
    }

    /// The values of a tensor, which must have this shape, bfloat16 as such.
    pub(crate) fn take_stored(&mut self, name: &str, shape: &[usize]) -> Result<Values, LoadError> {
        self.take_where(name, shape, |found| found == shape)
    }

    /// The first rows of a matrix that may have more, bfloat16 as such.
    pub(crate) fn take_stored_rows(
        &mut self,
        name: &str,
        shape: &[usize],
    ) -> Result<Values, LoadError> {
        let mut values = self.take_where(name, shape, |found| {
            found.len() == shape.len() && found[0] >= shape[0] && found[1..] == shape[1..]
        })?;
        values.truncate(shape.iter().product());
        Ok(values)
    }

    fn take_where(
        &mut self,
        name: &str,
        shape: &[usize],
        fits: impl Fn(&[usize]) -> bool,
    ) -> Result<Values, LoadError> {
        let Some(entry) = self.left.remove(name) else {
            let way_out = match name {
                HEAD => {
                    "without it there are no logits: save the model with its head (AutoModelForCausalLM), or set \
                     `tie_word_embeddings` to true where the embeddings are the head"
                }
                _ => {
                    "nothing can stand in for it: save the whole model again, or correct config.json where it asks for \
                     more than the model has"
                }
            };
            let reason = format!("lacks the tensor {name} {shape:?}; {way_out}");
            return Err(LoadError::weights(&self.path, reason));
        };
        let path = &self.shards[entry.shard].path;
        let error = |reason: String| LoadError::weights(path, reason);
        let Entry { info, .. } = &entry;
        if !fits(&info.shape) {
            let found = &info.shape;
            return Err(error(format!(
                "tensor {name} is {found:?}; the configuration makes it {shape:?}: take config.json and weights from the \
                 same checkpoint"
            )));
        }
        let data = self
            .data(&entry)
            .ok_or_else(|| error(format!("tensor {name} lies outside the file")))?;
        let values = read(info.dtype, data).ok_or_else(|| {
            let dtype = info.dtype;
            error(format!(
                "tensor {name} is {dtype:?}; F32, BF16 and F16 can be read, and numbers that are meant with a scale would \
                 come out as others: save the model dequantised, in bfloat16 say"
            ))
        })?;
        if let Some((place, value)) = values.first_not_finite() {
            let index = index_of(place, &info.shape);
            let cause = match info.dtype {
                Dtype::F16 => {
                    "it was too large for F16 when it was saved, or training has diverged"
                }
                _ => "training has diverged, or the file is damaged",
            };
            return Err(error(format!(
                "tensor {name} holds {value} at {index:?}, which makes logits NaN: {cause}; take an earlier \
                 checkpoint, or save it anew in bfloat16 or float32"
            )));
        }
        self.shards[entry.shard].tensor_is_done();
        Ok(values)
    }

    /// A tensor left over (a bias, say) means that the file is of another architecture, whose
    /// logits would come out wrong.
    pub(crate) fn finish(mut self) -> Result<(), LoadError> {
        // Both are known and not needed: frequencies are computed, and cross-attention has no
        // biases of distances, though T5's published files hold some.
        let unused = ["rotary_emb.inv_freq", "EncDecAttention.relative_attention_bias.weight"];
        self.left.retain(|name, _| !unused.iter().any(|end| name.ends_with(end)));
        match self.left.pop_first() {
            Some((name, entry)) => {
                let reason = format!(
                    "holds the tensor {name}, which this architecture lacks: {}",
                    left_out(&name)
                );
                Err(LoadError::weights(&self.shards[entry.shard].path, reason))
            }
            None => Ok(()),
        }
    }
}

/// Refuses the directory of an adapter, which may or may not have a configuration and weights of
/// its base model.
pub(crate) fn refuse_adapter(dir: &Path) -> Result<(), LoadError> {
    let adapter = dir.join("adapter_config.json");
    if adapter.exists() {
        let reason = "makes this an adapter (LoRA, say), whose changes to the base model would be left out; merge it \
                      (peft: `merge_and_unload`), save the result, and take that directory";
        return Err(LoadError::weights(&adapter, reason.into()));
    }
    Ok(())
}

/// Refuses directories whose weights lie in another form than safetensors files.
fn refuse_other_forms(dir: &Path) -> Result<(), LoadError> {
    let (single, index) = (dir.join("model.safetensors"), dir.join("model.safetensors.index.json"));
    if single.exists() || index.exists() {
        return Ok(());
    }
    for (other, way_out) in [
        ("pytorch_model.bin", RESAVE),
        ("pytorch_model.bin.index.json", RESAVE),
        ("tf_model.h5", RESAVE),
        ("flax_model.msgpack", RESAVE),
        (
            "consolidated.safetensors",
            "its tensors have other names; take the checkpoint in the form of transformers",
        ),
    ] {
        let path = dir.join(other);
        if path.exists() {
            let reason = format!(
                "is the only form of the weights here, and cannot be read; model.safetensors is needed: {way_out}"
            );
            return Err(LoadError::weights(&path, reason));
        }
    }
    Ok(())
}

const RESAVE: &str = "load it with transformers (AutoModelForCausalLM.from_pretrained) and save it again (save_pretrained)";

/// The loss if a tensor were left out, by its name, and the way out.
fn left_out(name: &str) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    if has(&["lora_", "adapter"]) {
        "the adapter's changes would be left out; merge it (peft: `merge_and_unload`) and save the result"
    } else if has(&["weight_scale", "qweight", "qzeros", "scales", "g_idx", "absmax"]) {
        "weights are stored with scales and would be read without them; save the model dequantised"
    } else if has(&["experts", "router", "shared_expert"]) {
        "the choice among experts would be left out; take a dense checkpoint"
    } else if has(&["vision", "visual", "audio"]) {
        "input other than text would not be read; save the text model alone"
    } else if name.ends_with(".bias") {
        "a bias would be left out of every sum; look whether `model_type` and `attention_bias` are right"
    } else if has(&["norm"]) {
        "values would go on without a norm; look whether `model_type` is right"
    } else {
        "what it adds to the logits would be left out; look whether config.json is this model's (`model_type`, \
         `num_hidden_layers`), or remove the tensor where logits do not depend on it"
    }
}

/// The index of a value in a row-major tensor.
fn index_of(mut place: usize, shape: &[usize]) -> Vec<usize> {
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let at = place % size.max(1);
            place /= size.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}

impl Shard {
    fn tensor_is_done(&mut self) {
        self.num_left -= 1;
        if self.num_left == 0 {
            self.bytes = Vec::new();
        }
    }
}

/// The values, exactly; `None` for a type that is not one of the three.
fn read(dtype: Dtype, data: &[u8]) -> Option<Values> {
    // By bytes: some files place tensors at odd offsets.
    let pairs = || data.chunks_exact(2).map(|b| [b[0], b[1]]);
    match dtype {
        Dtype::F32 => Some(Values::F32(
            data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        )),
        Dtype::BF16 => Some(Values::Bf16(pairs().map(Bf16::from_le_bytes).collect())),
        Dtype::F16 => Some(Values::F32(pairs().map(|b| f16::from_le_bytes(b).to_f32()).collect())),
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
