//! Types of bodies, as they are read and written; the OpenAPI document is made from them.

mod batch;
mod catalogs;
mod items;
mod messages;
mod operations;
mod places;
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
pub use messages::{
    MessageError, MessageErrorBody, MessageMembers, MessageThinking, MessageThinkingKind,
    MessageTokens, MessageToolChoice, OutputConfig, ToolChoiceKind,
};
pub use operations::{Operation, OperationProgress, OperationState, Operations};
pub use palmette_recommend::{
    ExplainItems, GenerationName, ItemId, ModeName, Priority, RecommendBody, RecommendQuestion,
    UnknownItems, schema as filter,
};
pub use palmette_text::question::{
    CatalogMembers, ChatBody, ChatMembers, CompletionBody, CompletionMembers, FinishMember,
    FinishReport, ItemSearchMembers, JsonFormMembers, JsonWhitespace, MemberOrder, OneOrMany,
    Prompts, StreamOptions, StructuredOutputs, TextBody, TextEnvelope, TextMembers, Thinking,
    ThinkingKind,
};
pub use places::{
    CharacterRange, MembersHere, PlaceAnswer, PlaceMembers, RefusedText, WritableMember,
};
pub use recommend::{
    AnsweredItem, Beam, HistoryNote, RecommendAnswer, Shortfall, ShortfallReason, TargetName,
    Timings,
};
pub use responses::{Reasoning, ResponseMembers, TextForm};
pub use targets::{
    DefaultTarget, DeleteTarget, LoadModel, ModelEntry, Models, Pair, SetTarget, TargetAction,
    TargetChanges, TargetEntry, Targets, TextModelEntry,
};
pub use text::{
    AlternativeItem, BoundCatalog, ChatChoice, ChatChunk, ChatCompletion, ChatLogprobs,
    ChatMessage, ChunkChoice, Completion, CompletionChoice, CompletionLogprobs, CustomCall, Delta,
    DeltaCall, DeltaFunction, Detokenize, Detokenized, FinishName, FunctionCall, MaskAnswer,
    MaskMembers, MaskToken, OpenAiError, OpenAiErrorBody, TextMember, TextUsage, TokenLogprob,
    Tokenize, Tokenized, ToolCall,
};

/// A conversation whose next message is asked for.
pub type MessageBody = TextBody<MessageMembers>;
/// A question about a mask.
pub type MaskBody = TextBody<MaskMembers>;
/// A question about a place in a text.
pub type PlaceBody = TextBody<PlaceMembers>;

/// A conversation to go on with.
pub type ResponseBody = TextBody<ResponseMembers>;
