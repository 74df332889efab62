//! Types of bodies, as they are read and written; the OpenAPI document is made from them.

mod batch;
mod catalogs;
mod items;
mod operations;
mod recommend;
mod targets;

pub(crate) use batch::MAX_REQUESTS;
pub use batch::{BatchAnswer, BatchBody, BatchResult};
pub use catalogs::{
    AttributeEntry, CatalogEntry, CatalogKind, Catalogs, GenerationParam, Generations,
    KeepGeneration, KeptEntry, LiveNumbers, LogNumbers, NewCatalogParams, Rollback, RolledBack,
    SegmentEntry,
};
pub use items::{ItemEntry, ItemPage, ItemQuery, ItemsApplied};
pub use operations::{Operation, OperationProgress, OperationState, Operations};
pub use recommend::{
    AnsweredItem, Beam, ExplainItems, GenerationName, HistoryEntry, HistoryNote, ModeName,
    Priority, RecommendAnswer, RecommendBody, Shortfall, ShortfallReason, TargetName, Timings,
    UnknownItems,
};
pub use targets::{
    DeleteTarget, LoadModel, ModelEntry, Models, Pair, SetTarget, TargetAction, TargetChanges,
    TargetEntry, Targets,
};
