//! Types of bodies, as they are read and written; the OpenAPI document is made from them.

mod recommend;

pub use recommend::{
    AnsweredItem, Beam, GenerationName, HistoryEntry, HistoryNote, ModeName, Priority,
    RecommendAnswer, RecommendBody, Shortfall, ShortfallReason, TargetName, Timings, UnknownItems,
};
