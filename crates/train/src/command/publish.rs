//! Publication of a model in OUT: written beside it, then moved file by file.
//!
//! At every moment OUT holds no weights or a whole model. The weights are the last to be moved, and
//! where a file beside them changes, the old ones are the first to go. Within a run those files do
//! not change but for a draft head, so from the first model on, exchanging one without is a single
//! rename.

use std::path::{Path, PathBuf};

use anyhow::Context;
use palmette_model::draft::DraftHead;
use palmette_recommend::PromptFormat;
use palmette_train::{ExportDtype, Params, export, replace_text};

const WEIGHTS: &str = "model.safetensors";
const BESIDE_THE_WEIGHTS: [&str; 3] =
    ["config.json", "generation_config.json", PromptFormat::FILE_NAME];

/// A model in a directory of its own inside OUT.
#[derive(Debug)]
pub(crate) struct Candidate {
    dir: PathBuf,
}

impl Candidate {
    /// Writes a model, over what an interrupted run may have left.
    pub(crate) fn write(
        out: &Path,
        params: &Params,
        dtype: ExportDtype,
        format: &PromptFormat,
    ) -> anyhow::Result<Self> {
        Self::remove_leftover(out)?;
        let dir = out.join("candidate");
        export(&dir, params, dtype)?;
        replace_text(&dir.join(PromptFormat::FILE_NAME), &format.to_json())?;
        Ok(Self { dir })
    }

    /// Removes the candidate of a run that was interrupted, if there is one.
    pub(crate) fn remove_leftover(out: &Path) -> anyhow::Result<()> {
        let dir = out.join("candidate");
        ignoring_absence(std::fs::remove_dir_all(&dir))
            .with_context(|| format!("removing {}", dir.display()))
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes this the model of OUT.
    pub(crate) fn publish(&self, out: &Path) -> anyhow::Result<()> {
        let read = |dir: &Path, name: &str| std::fs::read(dir.join(name)).ok();
        let is_same = |name: &&str| read(&self.dir, name) == read(out, name);
        if !BESIDE_THE_WEIGHTS.iter().chain(&[DraftHead::FILE_NAME]).all(is_same) {
            // A head of the old weights must not be left beside the new.
            for name in [WEIGHTS, DraftHead::FILE_NAME] {
                let path = out.join(name);
                ignoring_absence(std::fs::remove_file(&path))
                    .with_context(|| format!("removing {}", path.display()))?;
            }
            for name in BESIDE_THE_WEIGHTS {
                self.rename(name, out)?;
            }
            if self.dir.join(DraftHead::FILE_NAME).exists() {
                self.rename(DraftHead::FILE_NAME, out)?;
            }
        }
        self.rename(WEIGHTS, out)
    }

    fn rename(&self, name: &str, out: &Path) -> anyhow::Result<()> {
        std::fs::rename(self.dir.join(name), out.join(name))
            .with_context(|| format!("moving {name} to {}", out.display()))
    }
}

fn ignoring_absence(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}
