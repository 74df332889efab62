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

use super::companions::{Companions, DECIDING};

const WEIGHTS: &str = "model.safetensors";

/// A model in a directory of its own inside OUT.
#[derive(Debug)]
pub(crate) struct Candidate {
    dir: PathBuf,
    /// Names of its files but for the weights.
    beside: Vec<String>,
}

impl Candidate {
    /// Writes a model with its companions, over what an interrupted run may have left.
    pub(crate) fn write(
        out: &Path,
        params: &Params,
        dtype: ExportDtype,
        format: &PromptFormat,
        companions: &Companions,
    ) -> anyhow::Result<Self> {
        Self::remove_leftover(out)?;
        let dir = out.join("candidate");
        export(&dir, params, dtype)?;
        companions.write(&dir)?;
        replace_text(&dir.join(PromptFormat::FILE_NAME), &format.to_json())?;
        let beside = names(&dir).with_context(|| dir.display().to_string())?;
        Ok(Self { dir, beside })
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
        let is_same = |name: &str| read(&self.dir, name) == read(out, name);
        // Files of a model that OUT held before, by which this one would be read.
        let has = |name: &str| self.beside.iter().any(|own| own == name);
        let foreign = DECIDING.into_iter().chain([DraftHead::FILE_NAME]).filter(|name| !has(name));
        let foreign: Vec<&str> = foreign.filter(|name| out.join(name).exists()).collect();
        if !foreign.is_empty() || !self.beside.iter().all(|name| is_same(name)) {
            // A head of the old weights must not be left beside the new.
            for name in [WEIGHTS, DraftHead::FILE_NAME].into_iter().chain(foreign) {
                let path = out.join(name);
                ignoring_absence(std::fs::remove_file(&path))
                    .with_context(|| format!("removing {}", path.display()))?;
            }
            for name in &self.beside {
                self.rename(name, out)?;
            }
        }
        self.rename(WEIGHTS, out)
    }

    fn rename(&self, name: &str, out: &Path) -> anyhow::Result<()> {
        std::fs::rename(self.dir.join(name), out.join(name))
            .with_context(|| format!("moving {name} to {}", out.display()))
    }
}

/// Names of a directory's files but for the weights, sorted.
fn names(dir: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend((name != WEIGHTS).then_some(name));
    }
    names.sort();
    Ok(names)
}

fn ignoring_absence(result: std::io::Result<()>) -> std::io::Result<()> {
    result.or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}
