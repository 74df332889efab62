//! Bodies about catalogs and their generations.

use palmette_catalog_live::{KeptGeneration, LiveStatus, SegmentStatus};
use palmette_catalog_replica::ReplicaStatus;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::GenerationName;
use crate::own_paths;

/// List of catalogs.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Catalogs {
    /// Catalogs by name.
    pub catalogs: Vec<CatalogEntry>,
}

/// A catalog.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CatalogEntry {
    /// Name of it.
    pub name: String,
    /// Kind of it.
    pub kind: CatalogKind,
    /// The newest generation; null where it is frozen.
    pub generation: Option<u64>,
    /// Items in all.
    pub num_items: u64,
    /// Codes of the longest semantic ID.
    pub num_levels: usize,
    /// Size of each level's codebook; null where nothing binds codes.
    pub codes_per_level: Option<Vec<u32>>,
    /// Attributes that an item has or had.
    pub attributes: Vec<AttributeEntry>,
    /// Aliases of the targets that recommend from it.
    pub targets: Vec<String>,
    /// Segments, log and work in the background; null where it is frozen.
    pub live: Option<LiveNumbers>,
    /// Progress with the log that it follows; left out where it follows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogNumbers>,
}

/// A catalog that follows a shared log, at a moment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LogNumbers {
    /// Identity of the log.
    pub identity: String,
    /// Seconds since it had everything that the log has; null where it never had.
    pub lag_seconds: Option<f64>,
    /// Reason why it does not go on; null where it does.
    pub problem: Option<String>,
    /// Frames that this process added.
    pub appended: u64,
    /// Frames that others added first.
    pub conflicts: u64,
    /// Generation of the last base that this process made; 0 where it made none.
    pub base: u64,
}

impl From<ReplicaStatus> for LogNumbers {
    fn from(status: ReplicaStatus) -> Self {
        Self {
            identity: status.identity.to_string(),
            lag_seconds: status.lag.map(|lag| lag.as_secs_f64()),
            problem: status.problem.as_deref().map(without_paths),
            appended: status.appended,
            conflicts: status.conflicts,
            base: status.base,
        }
    }
}

fn without_paths(text: &str) -> String {
    own_paths::without(text).into_owned()
}

/// Kind of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatalogKind {
    /// This process changes it.
    Live,
    /// Another process changes it, this one follows.
    Reader,
    /// A catalog that never changes.
    Frozen,
}

/// An attribute.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AttributeEntry {
    /// Name of it.
    pub name: String,
    /// Kind of its values, which decides what a filter may ask: keyword, number, boolean,
    /// timestamp, keywords or json.
    #[schema(example = "number")]
    pub kind: String,
}

/// A live catalog at a moment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LiveNumbers {
    /// Items that are gone and still take room.
    pub num_tombstones: u64,
    /// The oldest first.
    pub segments: Vec<SegmentEntry>,
    /// Items of the memory segment.
    pub memory_items: u64,
    /// Generations that can be gone back to.
    pub kept: Vec<KeptEntry>,
    /// Bytes of the log that a restart has to replay.
    pub wal_bytes: u64,
    /// Bytes of a batch that was not acknowledged, cut off when the catalog was opened.
    pub torn_bytes: u64,
    /// Merges that are running.
    pub merges_running: usize,
    /// Merges since the catalog was opened.
    pub merges_done: u64,
    /// Items that these wrote.
    pub items_merged: u64,
    /// Checkpoints since it was opened.
    pub checkpoints_done: u64,
    /// Batches that had to wait for merges to make room.
    pub waits: u64,
    /// Reason why the last work in the background failed; null where it did not.
    pub background_error: Option<String>,
    /// Error of the last change that could not be written; null once one could be.
    pub write_error: Option<String>,
}

impl From<LiveStatus> for LiveNumbers {
    fn from(status: LiveStatus) -> Self {
        Self {
            num_tombstones: status.num_tombstones,
            segments: status.segments.into_iter().map(SegmentEntry::from).collect(),
            memory_items: status.memory_items,
            kept: status.kept.into_iter().map(KeptEntry::from).collect(),
            wal_bytes: status.wal_bytes,
            torn_bytes: status.torn_bytes,
            merges_running: status.merges_running,
            merges_done: status.merges_done,
            items_merged: status.items_merged,
            checkpoints_done: status.checkpoints_done,
            waits: status.waits,
            background_error: status.background_error.as_deref().map(without_paths),
            write_error: status.write_error.as_deref().map(without_paths),
        }
    }
}

/// A segment.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SegmentEntry {
    /// Items in it.
    pub num_items: u64,
    /// Items that are there.
    pub num_live: u64,
    /// Bytes of index, ids and attributes.
    pub bytes: u64,
    /// True where it is in a file.
    pub is_written: bool,
    /// True while it is being merged.
    pub is_merging: bool,
}

impl From<SegmentStatus> for SegmentEntry {
    fn from(status: SegmentStatus) -> Self {
        let SegmentStatus { num_items, num_live, bytes, is_written, is_merging, .. } = status;
        Self { num_items, num_live, bytes, is_written, is_merging }
    }
}

/// Generations of a catalog.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Generations {
    /// The newest; null where the catalog is frozen.
    pub newest: Option<u64>,
    /// Generations that are kept, in the order in which they were.
    pub kept: Vec<KeptEntry>,
}

/// A generation that is kept.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct KeptEntry {
    /// Number of it.
    pub generation: u64,
    /// Name of it, where it has one.
    pub name: Option<String>,
    /// Items it has.
    pub num_items: u64,
}

impl From<KeptGeneration> for KeptEntry {
    fn from(kept: KeptGeneration) -> Self {
        let KeptGeneration { generation, name, num_items } = kept;
        Self { generation, name, num_items }
    }
}

/// The newest generation, to be kept.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepGeneration {
    /// A name for it.
    #[schema(example = "opening")]
    pub name: Option<String>,
}

/// A generation to go back to.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollback {
    /// Generation that is kept, by number or name.
    pub to: GenerationName,
}

/// A new generation with the items of an old one.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct RolledBack {
    /// The new one.
    pub generation: u64,
    /// The one whose items it has.
    pub restored: u64,
}

/// The generation to read.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct GenerationParam {
    /// The newest without it, or one that is kept, by number or name.
    pub generation: Option<String>,
}

impl GenerationParam {
    /// Digits are a number.
    pub(crate) fn name(self) -> Option<GenerationName> {
        self.generation.map(|text| match text.parse() {
            Ok(number) => GenerationName::Number(number),
            Err(_) => GenerationName::Name(text),
        })
    }
}

/// Rules for the items of a new catalog.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct NewCatalogParams {
    /// A model: items keep to the codes that it spells.
    pub model: Option<String>,
    /// Size of each level's codebook, as `256,256,256`; the largest codes of the items bind later
    /// ones without it.
    pub codes_per_level: Option<String>,
    /// Kinds of attributes, as `published=timestamp,price=number`: keyword, number, boolean,
    /// timestamp, keywords or json. Those that are not declared have the kind of their first
    /// values.
    pub columns: Option<String>,
}
