//! Types of bodies, as they are read and written; the OpenAPI document is made from them.

mod batch;
mod catalogs;
mod items;
mod operations;
mod recommend;
mod responses;
mod targets;
mod text;

pub use batch::{BatchAnswer, BatchBody, BatchResult};
pub use catalogs::{
    AttributeEntry, CatalogEntry, CatalogKind, Catalogs, GenerationParam, Generations,
    KeepGeneration, KeptEntry, LiveNumbers, LogNumbers, NewCatalogParams, Rollback, RolledBack,
    SegmentEntry,
};
pub use items::{ItemEntry, ItemPage, ItemQuery, ItemsApplied};
pub use operations::{Operation, OperationProgress, OperationState, Operations};
pub use palmette_recommend::{
    ExplainItems, GenerationName, ItemId, ModeName, Priority, RecommendBody, RecommendQuestion,
    UnknownItems, schema as filter,
};
pub use recommend::{
    AnsweredItem, Beam, HistoryNote, RecommendAnswer, Shortfall, ShortfallReason, TargetName,
    Timings,
};
pub use responses::{Reasoning, ResponseBody, ResponseMembers, TextForm};
pub use targets::{
    DefaultTarget, DeleteTarget, LoadModel, ModelEntry, Models, Pair, SetTarget, TargetAction,
    TargetChanges, TargetEntry, Targets, TextModelEntry,
};
pub use text::{
    ChatBody, ChatChoice, ChatChunk, ChatCompletion, ChatLogprobs, ChatMembers, ChatMessage,
    ChunkChoice, Completion, CompletionBody, CompletionChoice, CompletionLogprobs,
    CompletionMembers, CustomCall, Delta, DeltaCall, DeltaFunction, Detokenize, Detokenized,
    FinishName, FunctionCall, JsonFormMembers, JsonWhitespace, MaskAnswer, MaskBody, MaskMembers,
    MaskToken, MemberOrder, OneOrMany, OpenAiError, OpenAiErrorBody, Prompts, StreamOptions,
    StructuredOutputs, TextMembers, TextUsage, Thinking, ThinkingKind, TokenLogprob, Tokenize,
    Tokenized, ToolCall,
};
pub(crate) use text::{INSTEAD, NEUTRAL, WITHOUT_MEANING, members};
