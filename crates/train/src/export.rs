//! Models as Hugging Face directories: `config.json`, `model.safetensors`,
//! `generation_config.json`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use palmette_model::ModelConfig;
use palmette_model::draft::DraftHead;
use safetensors::Dtype;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;
use crate::params::{Layout, Params, check_trainable};
use crate::tensor_file;

/// Number format of exported weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExportDtype {
    /// 4 bytes each, exact.
    #[default]
    Float32,
    /// 2 bytes each, 8 bits of precision.
    Bfloat16,
    /// 2 bytes each, 11 bits of precision; values beyond 65504 overflow.
    Float16,
}

impl ExportDtype {
    /// Name by which `torch_dtype` spells it in `config.json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Bfloat16 => "bfloat16",
            Self::Float16 => "float16",
        }
    }

    fn stored(self) -> Dtype {
        match self {
            Self::Float32 => Dtype::F32,
            Self::Bfloat16 => Dtype::BF16,
            Self::Float16 => Dtype::F16,
        }
    }
}

/// Writes a model that `transformers`, and inference here, can load; makes `dir` if need be. A
/// draft head goes to a file of its own, [`DraftHead::FILE_NAME`], and in f32.
///
/// Each file is written beside its place and renamed, weights first; other files in `dir`, such as
/// a tokenizer, are left alone.
///
/// # Errors
/// When a file cannot be written.
pub fn export(dir: &Path, params: &Params, dtype: ExportDtype) -> Result<(), TrainError> {
    fs::create_dir_all(dir).map_err(|error| TrainError::io(dir, error))?;
    let (decoder, _) = params.layout().parts();
    tensor_file::replace_file(&dir.join("model.safetensors"), |path| {
        let dtype = dtype.stored();
        tensor_file::write_tensors(path, decoder, params.values(), dtype, tensor_file::PYTORCH)
    })?;
    export_draft_head(dir, params)?;
    let generation = serde_json::json!({ "_from_model_config": true });
    let config = params.config().to_hugging_face(dtype.name());
    for (name, value) in [("generation_config.json", generation), ("config.json", config)] {
        tensor_file::replace_text(&dir.join(name), &format!("{value:#}\n"))?;
    }
    Ok(())
}

/// Writes the draft head of a model, if it has one, in f32, beside the decoder that it was trained
/// for.
///
/// # Errors
/// When the file cannot be written.
pub fn export_draft_head(dir: &Path, params: &Params) -> Result<(), TrainError> {
    let Some(draft) = &params.layout().draft else { return Ok(()) };
    let (_, tensors) = params.layout().parts();
    let form = serde_json::to_string(&draft.form).expect("plain data can be written as JSON");
    let metadata = (DraftHead::FORM_KEY, form.as_str());
    tensor_file::replace_file(&dir.join(DraftHead::FILE_NAME), |path| {
        tensor_file::write_tensors(path, tensors, params.values(), Dtype::F32, metadata)
    })
}

impl Params {
    /// Reads a Hugging Face directory with one `model.safetensors` in f32, bf16 or f16.
    ///
    /// # Errors
    /// When `config.json` or the weights cannot be read, or do not fit each other.
    pub fn load(dir: &Path) -> Result<Self, TrainError> {
        let config = ModelConfig::read(&dir.join("config.json"))
            .map_err(|error| TrainError::file(dir, format!("is not a usable model: {error}")))?;
        check_trainable(&config).map_err(|reason| TrainError::file(dir, reason))?;
        let layout = Arc::new(Layout::new(&config));
        let values = tensor_file::read(&dir.join("model.safetensors"), &layout)?;
        Ok(Self::from_values(layout, values))
    }
}

#[cfg(test)]
mod tests {
    use palmette_model::{Architecture, Family};

    use super::*;
    use crate::network::testing::tiny_config;

    #[test]
    fn an_exported_model_reads_back() {
        for tied in [true, false] {
            let params = Params::init(&tiny_config(tied), 1);
            let dir = tempfile::tempdir().unwrap();
            let dir = dir.path().join("new").join("model");
            for (dtype, precision) in [
                (ExportDtype::Float32, 0.0),
                (ExportDtype::Bfloat16, 1.0 / 256.0),
                (ExportDtype::Float16, 1.0 / 2048.0),
            ] {
                export(&dir, &params, dtype).unwrap();
                let again = Params::load(&dir).unwrap();
                assert_eq!(again.config(), params.config());
                for (a, b) in again.values().iter().zip(params.values()) {
                    assert!((a - b).abs() <= b.abs() * precision + 1e-7, "{dtype:?}: {a} {b}");
                }
                let text = fs::read_to_string(dir.join("config.json")).unwrap();
                assert!(text.contains(dtype.name()));
            }
            let mut names: Vec<_> =
                fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, ["config.json", "generation_config.json", "model.safetensors"]);
        }
    }

    #[test]
    fn weights_of_another_shape_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let message = |exported: &ModelConfig, config: &ModelConfig| {
            export(dir.path(), &Params::init(exported, 1), ExportDtype::Float32).unwrap();
            let text = config.to_hugging_face("float32").to_string();
            fs::write(dir.path().join("config.json"), text).unwrap();
            Params::load(dir.path()).unwrap_err().to_string()
        };
        let (tied, untied) = (tiny_config(true), tiny_config(false));
        assert!(message(&tied, &untied).contains("lacks `lm_head.weight`"));
        let wider = ModelConfig { intermediate_size: 9, ..tied.clone() };
        let text = message(&tied, &wider);
        assert!(text.contains("gate_proj.weight` has shape [7, 6]"), "{text}");
        let shallower = ModelConfig { num_hidden_layers: 1, ..tied.clone() };
        let text = message(&tied, &shallower);
        assert!(text.contains("holds `model.layers.1."), "{text}");
        for family in [Family::Gemma3, Family::T5] {
            let mut other = tied.clone();
            other.architecture = Architecture::of(family, other.hidden_size);
            let (text, named) =
                (message(&tied, &other), format!("`model_type` is {}", family.name()));
            assert!(text.contains(&named) && text.contains("plain qwen3"), "{text}");
        }
    }
}
