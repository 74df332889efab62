//! Files beside a model's weights: tokenizer, template, configuration, licence.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, ensure};
use palmette_recommend::{PromptFormat, TemplateFile};
use palmette_train::replace_text;
use serde_json::Value;

use super::log::LOGS;

/// Name of the tokenizer in a model's directory.
pub(crate) const TOKENIZER: &str = "tokenizer.json";

/// Files by which a model is read besides its weights, shape and semantic IDs: one that is left of
/// another model would give this one another's prompts.
pub(crate) const DECIDING: [&str; 5] = [
    TemplateFile::FILE_NAME,
    TOKENIZER,
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
];

const CONFIG: &str = "config.json";

/// Endings of names of weights, in whatever format.
const WEIGHTS: [&str; 11] = [
    ".safetensors",
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".gguf",
    ".onnx",
    ".h5",
    ".msgpack",
    ".npz",
    ".index.json",
];

/// Vocabularies that other programs read in place of [`TOKENIZER`].
const OTHER_VOCABULARIES: [&str; 6] = [
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "added_tokens.json",
    "tokenizer.model",
    "spiece.model",
];

/// Limit on one file.
const MAX_BYTES: u64 = 256 << 20;

/// The files that a model's directory has beside its weights, by name, held in memory.
///
/// A run takes them along, so that what it leaves is read as the model that it began with: by the
/// same template, the same tokenizer, the same end of texts. Left out are weights, what a run
/// writes of its own (`semantic_ids.json`, logs), directories and hidden files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Companions {
    files: BTreeMap<String, Vec<u8>>,
}

impl Companions {
    /// Reads the files of a model's directory.
    ///
    /// # Errors
    /// When one cannot be read, or is larger than what lies beside weights.
    pub(crate) fn read(dir: &Path) -> anyhow::Result<Self> {
        let mut all = Self::default();
        let entries = std::fs::read_dir(dir).with_context(|| dir.display().to_string())?;
        for entry in entries {
            let path = entry.with_context(|| dir.display().to_string())?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let is_weights = WEIGHTS.iter().any(|ending| name.ends_with(ending));
            let is_own = name == PromptFormat::FILE_NAME || LOGS.contains(&name);
            if is_weights || is_own || name.starts_with('.') || !path.is_file() {
                continue;
            }
            let bytes = path.metadata().with_context(|| path.display().to_string())?.len();
            ensure!(
                bytes <= MAX_BYTES,
                "{}: it has {bytes} bytes, and files beside the weights are taken along up to {MAX_BYTES}; move it out of the \
                 model's directory",
                path.display()
            );
            let content = std::fs::read(&path).with_context(|| path.display().to_string())?;
            all.insert(name, content);
        }
        Ok(all)
    }

    /// Adds a file, in place of one of its name.
    pub(crate) fn insert(&mut self, name: &str, content: impl Into<Vec<u8>>) {
        self.files.insert(name.to_owned(), content.into());
    }

    /// Lets go of vocabularies that say no more what the tokenizer says.
    pub(crate) fn remove_other_vocabularies(&mut self) {
        self.files.retain(|name, _| !OTHER_VOCABULARIES.contains(&name.as_str()));
    }

    /// Names and contents, by name.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(name, content)| (name.as_str(), &content[..]))
    }

    /// Writes them into a directory. What its `config.json` has stays, and gets the members that
    /// only this one has, such as the tokens that end a text.
    ///
    /// # Errors
    /// When a file cannot be written, or a `config.json` is no object.
    pub(crate) fn write(&self, dir: &Path) -> anyhow::Result<()> {
        for (name, content) in self.files() {
            let path = dir.join(name);
            let shown = || path.display().to_string();
            if name == CONFIG && path.exists() {
                let written = std::fs::read(&path).with_context(shown)?;
                let whole = overlaid(content, &written).with_context(shown)?;
                replace_text(&path, &whole)?;
                continue;
            }
            let file = std::fs::File::create(&path);
            let written = file.and_then(|mut file| {
                file.write_all(content)?;
                // Before it is moved to where it is read.
                file.sync_all()
            });
            written.with_context(shown)?;
        }
        Ok(())
    }
}

/// A configuration with the members of another over it.
fn overlaid(below: &[u8], above: &[u8]) -> anyhow::Result<String> {
    let mut whole: serde_json::Map<String, Value> = serde_json::from_slice(below)?;
    let above: serde_json::Map<String, Value> = serde_json::from_slice(above)?;
    // The number format of weights that are not written again, by either of its names.
    whole.remove("dtype");
    whole.extend(above);
    Ok(format!("{:#}\n", Value::Object(whole)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_weights_and_logs_is_taken_along() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = |name: &str, text: &str| std::fs::write(from.path().join(name), text).unwrap();
        for name in ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"] {
            file(name, "weights");
        }
        for name in ["draft.json", "training.json", "semantic_ids.json", ".gitattributes"] {
            file(name, "own");
        }
        file("tokenizer.json", "{}");
        file("LICENSE", "free");
        file("config.json", r#"{"vocab_size": 5, "eos_token_id": 3, "dtype": "bfloat16"}"#);
        std::fs::create_dir(from.path().join("checkpoint")).unwrap();
        let written = r#"{"vocab_size": 9, "torch_dtype": "float32"}"#;
        std::fs::write(to.path().join("config.json"), written).unwrap();

        let companions = Companions::read(from.path()).unwrap();
        companions.write(to.path()).unwrap();
        let entries = std::fs::read_dir(to.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["LICENSE", "config.json", "tokenizer.json"]);
        let config = std::fs::read(to.path().join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        let whole =
            serde_json::json!({"vocab_size": 9, "eos_token_id": 3, "torch_dtype": "float32"});
        assert_eq!(config, whole);
    }
}
