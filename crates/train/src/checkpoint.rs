//! A run on disk: one directory that is replaced as a whole.
//!
//! `state.json` holds the counters, the options and the model's shape; `weights.safetensors`,
//! `adam_first.safetensors`, `adam_second.safetensors` and, when there is a moving average,
//! `average.safetensors` hold the arrays in f32. The order of examples and what dropout drops are
//! functions of seed and step, so nothing else is needed to go on bit for bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palmette_model::ModelConfig;
use palmette_model::draft::{DraftForm, DraftShape};
use safetensors::Dtype;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{TrainError, TrainErrorKind};
use crate::optimizer::AdamW;
use crate::options::TrainOptions;
use crate::params::{Layout, Params, check_trainable};
use crate::tensor_file;

/// The layout of the directory; a reader refuses another.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CheckpointState {
    format: u32,
    /// Steps taken.
    pub(crate) step: u64,
    /// The data's size, to notice other data.
    pub(crate) num_examples: usize,
    pub(crate) config: ModelConfig,
    #[serde(flatten)]
    trained: Trained,
    pub(crate) options: TrainOptions,
}

/// Trained parts beside a decoder, or in its place.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Trained {
    draft: Option<DraftState>,
    /// True if the decoder stands still.
    #[serde(default)]
    head_only: bool,
}

/// A draft head, in plain data.
#[derive(Debug, Serialize, Deserialize)]
struct DraftState {
    form: DraftForm,
    /// First token and number of codes of each level.
    levels: Vec<(u32, u32)>,
}

impl CheckpointState {
    /// State of a run after `step` steps; of a head alone if `head_only`.
    pub(crate) fn new(
        step: u64,
        num_examples: usize,
        layout: &Layout,
        head_only: bool,
        options: &TrainOptions,
    ) -> Self {
        let (config, trained) = (layout.config().clone(), Trained::new(layout, head_only));
        Self { format: FORMAT, step, num_examples, config, trained, options: options.clone() }
    }

    /// # Errors
    /// Naming the first field in which the saved run differs; `threads` may.
    pub(crate) fn check_agrees(
        &self,
        dir: &Path,
        layout: &Layout,
        head_only: bool,
        options: &TrainOptions,
    ) -> Result<(), TrainError> {
        let options = TrainOptions { threads: self.options.threads, ..options.clone() };
        compare(dir, &self.trained, &Trained::new(layout, head_only))?;
        compare(dir, &self.config, layout.config())?;
        compare(dir, &self.options, &options)
    }

    /// # Errors
    /// When the run trained a head alone.
    pub(crate) fn check_trains_all(&self, dir: &Path) -> Result<(), TrainError> {
        match self.trained.head_only {
            true => Err(disagreement(dir, "head_only", &true.into(), &false.into())),
            false => Ok(()),
        }
    }

    /// # Errors
    /// When the data has another number of examples.
    pub(crate) fn check_data(&self, dir: &Path, num_examples: usize) -> Result<(), TrainError> {
        if self.num_examples == num_examples {
            return Ok(());
        }
        let saved = Value::from(self.num_examples);
        Err(disagreement(dir, "num_examples", &saved, &Value::from(num_examples)))
    }

    /// Checks a file that may not have been written by [`write`].
    fn check_shape(&self) -> Result<(), String> {
        check_trainable(&self.config)?;
        let vocab = self.config.vocab_size as u64;
        let levels = self.trained.draft.iter().flat_map(|draft| &draft.levels);
        for &(first, count) in levels {
            let end = u64::from(first) + u64::from(count);
            if count == 0 || end > vocab {
                return Err(format!(
                    "a level of the draft head has the tokens from {first} to below {end}; there must be some, below \
                     `vocab_size`, {vocab}"
                ));
            }
        }
        Ok(())
    }

    fn layout(&self) -> Layout {
        match &self.trained.draft {
            None => Layout::new(&self.config),
            Some(DraftState { form, levels }) => {
                Layout::with_draft(&self.config, *form, &DraftShape { levels: levels.clone() })
            }
        }
    }
}

impl Trained {
    fn new(layout: &Layout, head_only: bool) -> Self {
        let draft = layout.draft.as_ref();
        let draft =
            draft.map(|draft| DraftState { form: draft.form, levels: draft.shape().levels });
        Self { draft, head_only }
    }
}

/// Compares two structs field by field in their serialised form, which knows the fields' names.
///
/// Through text: there an f32 of 0.2 is "0.2", while as a JSON value it is 0.20000000298.
fn compare<T: Serialize>(dir: &Path, saved: &T, wanted: &T) -> Result<(), TrainError> {
    let fields = |value: &T| {
        serde_json::to_string(value)
            .and_then(|text| serde_json::from_str::<Value>(&text))
            .map_err(|error| TrainError::file(dir, error.to_string()))
    };
    let (saved, wanted) = (fields(saved)?, fields(wanted)?);
    for (name, saved) in saved.as_object().into_iter().flatten() {
        if *saved != wanted[name] {
            return Err(disagreement(dir, name, saved, &wanted[name]));
        }
    }
    Ok(())
}

fn disagreement(dir: &Path, field: &str, saved: &Value, wanted: &Value) -> TrainError {
    TrainErrorKind::Disagrees {
        path: dir.to_owned(),
        field: field.to_owned(),
        saved: saved.to_string(),
        wanted: wanted.to_string(),
    }
    .into()
}

/// The arrays of a run.
#[derive(Debug)]
pub(crate) struct CheckpointArrays {
    pub(crate) params: Params,
    pub(crate) adam: AdamW,
    pub(crate) average: Option<Vec<f32>>,
}

/// Writes a neighbour of `dir` and puts it in `dir`'s place.
///
/// Should the process end between the two renames, the old checkpoint is at `.<name>.previous`,
/// where [`read_state`] finds it.
pub(crate) fn write(
    dir: &Path,
    state: &CheckpointState,
    arrays: &CheckpointArrays,
) -> Result<(), TrainError> {
    let (partial, previous) =
        (tensor_file::neighbour(dir, "partial"), tensor_file::neighbour(dir, "previous"));
    remove_dir(&partial)?;
    fs::create_dir_all(&partial).map_err(|error| TrainError::io(&partial, error))?;
    let layout = arrays.params.layout();
    for (path, values) in array_files(&partial, arrays) {
        tensor_file::write(&path, layout, values, Dtype::F32)?;
    }
    let text = serde_json::to_string_pretty(state)
        .map_err(|error| TrainError::file(&partial, error.to_string()))?;
    tensor_file::write_text(&partial.join("state.json"), &text)?;
    let rename =
        |from: &Path, to: &Path| fs::rename(from, to).map_err(|error| TrainError::io(to, error));
    if dir.exists() {
        remove_dir(&previous)?;
        rename(dir, &previous)?;
    }
    rename(&partial, dir)?;
    remove_dir(&previous)
}

/// Reads the counters and options, and says where the checkpoint really is.
pub(crate) fn read_state(dir: &Path) -> Result<(PathBuf, CheckpointState), TrainError> {
    let previous = tensor_file::neighbour(dir, "previous");
    let dir = if !dir.exists() && previous.exists() { previous } else { dir.to_owned() };
    let path = dir.join("state.json");
    let text = fs::read_to_string(&path).map_err(|error| TrainError::io(&path, error))?;
    let state: CheckpointState = serde_json::from_str(&text).map_err(|error| {
        TrainError::file(&path, format!("is not a checkpoint's state: {error}"))
    })?;
    if state.format != FORMAT {
        let found = state.format;
        return Err(TrainError::file(
            &path,
            format!("`format` is {found}; this program reads {FORMAT}: use the one that wrote it"),
        ));
    }
    state.check_shape().map_err(|reason| TrainError::file(&path, reason))?;
    Ok((dir, state))
}

/// Reads the arrays that belong to `state`.
pub(crate) fn read_arrays(
    dir: &Path,
    state: &CheckpointState,
) -> Result<CheckpointArrays, TrainError> {
    let layout = Arc::new(state.layout());
    let read = |name: &str| tensor_file::read(&dir.join(name), &layout);
    let adam = AdamW { first: read(FIRST)?, second: read(SECOND)? };
    let average = if state.options.average_decay > 0.0 { Some(read(AVERAGE)?) } else { None };
    let params = Params::from_values(Arc::clone(&layout), read(WEIGHTS)?);
    Ok(CheckpointArrays { params, adam, average })
}

const WEIGHTS: &str = "weights.safetensors";
const FIRST: &str = "adam_first.safetensors";
const SECOND: &str = "adam_second.safetensors";
const AVERAGE: &str = "average.safetensors";

fn array_files<'a>(
    dir: &'a Path,
    arrays: &'a CheckpointArrays,
) -> impl Iterator<Item = (PathBuf, &'a [f32])> {
    let always = [
        (WEIGHTS, arrays.params.values()),
        (FIRST, &arrays.adam.first),
        (SECOND, &arrays.adam.second),
    ];
    let average = arrays.average.as_deref().map(|values| (AVERAGE, values));
    always.into_iter().chain(average).map(|(name, values)| (dir.join(name), values))
}

/// True if `dir` holds a checkpoint, or its neighbour does after an interrupted write.
pub fn has_checkpoint(dir: &Path) -> bool {
    dir.exists() || tensor_file::neighbour(dir, "previous").exists()
}

/// Removes the checkpoint in `dir`, if there is one, with what an interrupted writer left beside
/// it.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove_checkpoint(dir: &Path) -> Result<(), TrainError> {
    // The neighbours first: `.previous` alone would be found again.
    for neighbour in ["previous", "partial"] {
        remove_dir(&tensor_file::neighbour(dir, neighbour))?;
    }
    remove_dir(dir)
}

fn remove_dir(dir: &Path) -> Result<(), TrainError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(TrainError::io(dir, error))
        }
        _ => Ok(()),
    }
}
