//! Formats as they were read: what a text consists of, each part with its place in the document.

use std::num::NonZeroU32;

use std::sync::Arc;

use super::tool_formats::CallMark;
use crate::TokenPattern;
use crate::json_schema::source::JsonId;
use crate::json_schema::{Framing, PropertyOrder};

/// A part of a text, and what asks for it.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The value in the user's document.
    pub(super) at: JsonId,
    pub(super) format: Format,
}

/// Texts of a part.
#[derive(Clone, Debug)]
pub(super) enum Format {
    /// This text, in which names of tokens may be these tokens.
    Fixed(String),
    /// Values of a schema.
    Schema(Schema),
    /// A structural tag in a JSON string.
    Document(String),
    /// Texts of a grammar in another language.
    EmbeddedGrammar(EmbeddedGrammar),
    /// Any text without these.
    AnyText {
        excludes: Vec<String>,
        max_chars: Option<u64>,
        max_tokens: Option<NonZeroU32>,
    },
    Sequence(Vec<Part>),
    Or(Vec<Part>),
    Repeated {
        content: Box<Part>,
        min: u64,
        max: Option<u64>,
    },
    Tag(Box<Tag>),
    Triggered(Triggered),
    Separated(Separated),
    /// One of these tokens.
    Token(TokenPattern),
}

/// A schema, and how its values are written.
#[derive(Clone, Debug, Default)]
pub(super) struct Schema {
    /// Text of the schema; `None` where the part's place is the schema itself.
    pub(super) text: Option<String>,
    pub(super) framing: Framing,
    /// The tool whose arguments its values are.
    pub(super) caller: Option<Caller>,
    /// Order of members, where the document asks for one.
    pub(super) order: Option<PropertyOrder>,
    /// Schemas that it refers to, by URI.
    pub(super) resources: Vec<(Arc<str>, JsonId)>,
    /// True when the document asks for JSON without blanks.
    pub(super) is_compact: bool,
    /// True when the document asks for no members beside the declared ones.
    pub(super) is_closed: bool,
}

/// A tool by its name, and the name of the format in which it is called.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) tool: Arc<str>,
    pub(super) format: &'static str,
}

/// A grammar in another language.
#[derive(Clone, Debug)]
pub(super) struct EmbeddedGrammar {
    pub(super) language: Language,
    pub(super) text: String,
    /// True when its texts are the contents of a JSON string.
    pub(super) quoted: bool,
}

/// A language of grammars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Gbnf,
    Lark,
    Regex,
}

/// A text that begins a part, what is in it, and texts that end it.
#[derive(Clone, Debug)]
pub(super) struct Tag {
    pub(super) at: JsonId,
    pub(super) begin: Delimiter,
    pub(super) content: Part,
    pub(super) ends: Vec<Delimiter>,
}

/// The beginning or end of a tag.
#[derive(Clone, Debug)]
pub(super) enum Delimiter {
    Text(String),
    /// A text, what tells a call from others, and another text.
    Marked(String, CallMark, String),
    Token(TokenPattern),
}

/// Free text in which tags stand, each where one of the triggers does.
#[derive(Clone, Debug)]
pub(super) struct Triggered {
    pub(super) triggers: Vec<String>,
    pub(super) tags: Vec<Tag>,
    pub(super) excludes: Vec<String>,
    pub(super) at_least_one: bool,
    pub(super) stop_after_first: bool,
}

/// Tags and what stands between two of them.
#[derive(Clone, Debug)]
pub(super) struct Separated {
    pub(super) tags: Vec<Tag>,
    pub(super) separator: String,
    pub(super) at_least_one: bool,
    pub(super) stop_after_first: bool,
}

impl Part {
    pub(super) fn new(at: JsonId, format: Format) -> Self {
        Self { at, format }
    }

    pub(super) fn fixed(at: JsonId, text: &str) -> Self {
        Self::new(at, Format::Fixed(text.to_owned()))
    }

    /// Words of any kind.
    pub(super) fn words(at: JsonId) -> Self {
        Self::new(at, Format::AnyText { excludes: Vec::new(), max_chars: None, max_tokens: None })
    }

    /// The values of the schema at a place.
    pub(super) fn schema(at: JsonId) -> Self {
        Self::new(at, Format::Schema(Schema::default()))
    }

    /// The values of a schema that the document does not write out.
    pub(super) fn made_schema(at: JsonId, text: &str) -> Self {
        let text = Some(text.to_owned());
        Self::new(at, Format::Schema(Schema { text, ..Schema::default() }))
    }

    pub(super) fn written(at: JsonId, language: Language, text: &str) -> Self {
        let text = text.to_owned();
        Self::new(at, Format::EmbeddedGrammar(EmbeddedGrammar { language, text, quoted: false }))
    }

    /// A part between two texts.
    pub(super) fn tag(at: JsonId, begin: &str, content: Part, end: &str) -> Self {
        Self::new(at, Format::Tag(Box::new(Tag::new(at, begin, content, end))))
    }
}

impl Tag {
    pub(super) fn new(at: JsonId, begin: &str, content: Part, end: &str) -> Self {
        let text = |text: &str| Delimiter::Text(text.to_owned());
        Self { at, begin: text(begin), content, ends: vec![text(end)] }
    }
}
