//! Bodies of `/v1/targets` and `/v1/models`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A pair under an alias.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TargetEntry {
    /// Name by which requests ask for it.
    pub alias: String,
    /// The model.
    pub model: String,
    /// The catalog.
    pub catalog: String,
}

/// List of targets, by alias.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Targets {
    /// Alias of the target that requests ask for which name none; null where there are several and
    /// none was chosen.
    pub default: Option<String>,
    /// In order of alias.
    pub targets: Vec<TargetEntry>,
}

/// Pair for an alias that is in the path.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Name of a model that is loaded.
    pub model: String,
    /// Name of a catalog that is loaded.
    pub catalog: String,
}

/// Changes that are made together, or not at all.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetChanges {
    /// In order; a later one sees the earlier.
    pub actions: Vec<TargetAction>,
}

/// Change of a target.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetAction {
    /// Points an alias at a pair.
    Set(SetTarget),
    /// Removes an alias.
    Delete(DeleteTarget),
    /// Makes an alias the default, which requests ask for that name none.
    Default(DefaultTarget),
}

/// An alias and its pair.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetTarget {
    /// The alias, new or not.
    pub alias: String,
    /// Name of a model that is loaded.
    pub model: String,
    /// Name of a catalog that is loaded.
    pub catalog: String,
}

/// An alias that goes.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteTarget {
    /// The alias.
    pub alias: String,
}

/// An alias that becomes the default.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultTarget {
    /// The alias.
    pub alias: String,
}

/// A model that is loaded.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    /// Name of it.
    pub name: String,
    /// Weights in all.
    pub parameters: u64,
    /// Tokens of its vocabulary.
    pub vocab_size: usize,
    /// Codes of each level of a semantic ID.
    pub codes_per_level: Vec<u32>,
    /// The most items of a history that it reads.
    pub max_history_items: usize,
    /// True with a draft head: mode `draft`.
    pub has_draft_head: bool,
    /// Device that computes it: `cpu`, or the name of an accelerator.
    #[schema(example = "cpu")]
    pub device: String,
    /// True while it is in memory: while a target needs it.
    pub in_memory: bool,
}

/// List of models, by name. `object` and `data` are what OpenAI's clients read.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Models {
    /// `list`.
    pub object: &'static str,
    /// Text models, in order of name.
    pub data: Vec<TextModelEntry>,
    /// Models of recommendations, in order of name.
    pub models: Vec<ModelEntry>,
}

/// A text model that is loaded.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TextModelEntry {
    /// Name of it.
    pub id: String,
    /// `model`.
    pub object: &'static str,
    /// Seconds since 1970 at which it was loaded.
    pub created: u64,
    /// `palmette`.
    pub owned_by: &'static str,
    /// Tokens of a prompt and its answer together, at most.
    pub max_model_len: usize,
    /// Weights in all.
    pub parameters: u64,
    /// Device that computes it: `cpu`, or the name of an accelerator.
    #[schema(example = "cpu")]
    pub device: String,
    /// True with a chat template: `/v1/chat/completions`.
    pub has_chat_template: bool,
    /// Way of calling tools, where it has one.
    pub tool_format: Option<&'static str>,
}

/// A model to load.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadModel {
    /// Name for it; a model of that name is replaced, and targets keep the one they have.
    pub name: String,
    /// Directory of the model, below `models` in the server's data directory.
    #[schema(example = "shop-12")]
    pub path: String,
}
