//! Question documents: all that a text may be asked for, on every surface.
//!
//! A [`ChatQuestion`] or a [`CompletionQuestion`] is what a client, a user of the command or a
//! program writes down, in the words of OpenAI and vLLM; [`ChatMembers`], [`CompletionMembers`] and
//! [`TextMembers`], which both have, are the only list of its members. In a [`TextBody`] it stands
//! beside a [`TextEnvelope`], which a server reads. [Checked](ChatQuestion::check) by the
//! [`TextSettings`] of a surface it becomes a [`CheckedText`], the requests to an engine, or it
//! gives all its [faults](palmette_document::Faults), each with its place.
//!
//! A member that would change the answer and is not computed is none of these types: it is refused
//! by its name.

mod binding;
mod call_ledger;
mod catalogs;
mod chat;
mod check;
mod completion;
mod envelope;
mod finish;
mod forms;
mod grammar;
mod members;
mod prompt;
#[cfg(feature = "schema")]
mod schema;
mod settings;
mod tools;

use serde_json::{Value, json};

pub use call_ledger::{CallError, CallLedger};
pub use catalogs::CatalogMembers;
pub use chat::{ChatMembers, Thinking, ThinkingKind};
pub use check::{CheckError, CheckedText, Refusal};
pub use completion::{CompletionMembers, Prompts};
pub use envelope::{OwnMembers, StreamOptions, TextBody, TextEnvelope};
pub use finish::{FinishMember, FinishReport};
pub use forms::{
    ItemSearchMembers, JsonFormMembers, JsonWhitespace, MemberOrder, StructuredOutputs,
};
pub use grammar::{AnswerForm, NamedGrammar};
pub use members::{OneOrMany, TextMembers};
pub use settings::{CatalogError, NamedCatalogs, TextDefaults, TextLimits, TextSettings};
pub use tools::Calling;

/// A question of one kind: its own members, and those that all have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextQuestion<Own> {
    /// Members of its kind.
    pub own: Own,
    /// Members of all kinds.
    pub text: TextMembers,
}

/// A conversation whose next message is asked for.
pub type ChatQuestion = TextQuestion<ChatMembers>;

/// A text, or several, to go on with.
pub type CompletionQuestion = TextQuestion<CompletionMembers>;

/// A chat and its envelope.
pub type ChatBody = TextBody<ChatMembers>;

/// A completion and its envelope.
pub type CompletionBody = TextBody<CompletionMembers>;

impl ChatQuestion {
    /// A chat of these messages, with the defaults of all else.
    pub fn new(messages: Vec<Value>) -> Self {
        Self { own: ChatMembers::new(messages), text: TextMembers::default() }
    }

    /// A chat of one message of the user's.
    pub fn from_user(words: &str) -> Self {
        Self::new(vec![json!({"role": "user", "content": words})])
    }
}

impl CompletionQuestion {
    /// A prompt, with the defaults of all else.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { own: CompletionMembers::new(prompt), text: TextMembers::default() }
    }
}
