//! Calls of tools as formats: the texts around them, and what stands in them.

use super::format::{
    Caller, Delimiter, EmbeddedGrammar, Format, Language, Part, Schema, Separated, Tag, Triggered,
};
use super::members::Members;
use super::tool::{Input, Tool};
use super::tool_formats::ToolFormat;
use crate::json_schema::source::JsonId;
use crate::json_schema::{ArgumentStyle, Framing};

/// Tools that may be called, and how.
pub(super) struct Calls<'f> {
    pub(super) format: &'f ToolFormat,
    pub(super) root: JsonId,
    pub(super) tools: Vec<Tool>,
    pub(super) parallel: bool,
    /// The order of members and the blanks in arguments.
    pub(super) layout: &'f Schema,
}

/// A whole answer: reasoning where a model writes it first, then words, calls or both.
pub(super) fn whole(
    members: &Members<'_>,
    calls: &Calls<'_>,
    answer: Option<Part>,
    must: bool,
) -> Part {
    let Calls { format, root, .. } = *calls;
    let is_free = answer.is_none();
    let words = calls.answered(answer.unwrap_or_else(|| Part::words(root)));
    let is_marked = format.answer != ("", "");
    let answer = match (calls.tools.is_empty(), must) {
        (true, _) => words,
        (false, _) if format.answer_is_first => {
            let content = Box::new(calls.alone(members));
            let called = Format::Repeated { content, min: must.into(), max: Some(1) };
            Part::new(root, Format::Sequence(vec![words, Part::new(root, called)]))
        }
        (false, true) => calls.alone(members),
        (false, false) if format.calls_stand_alone && is_free => {
            let words = Part::written(root, Language::Regex, &no_beginning(format.trigger));
            Part::new(root, Format::Or(vec![words, calls.alone(members)]))
        }
        (false, false) if !is_free || is_marked => {
            Part::new(root, Format::Or(vec![words, calls.alone(members)]))
        }
        (false, false) => calls.within_words(members),
    };
    let mut parts = Vec::new();
    if let Some((begin, end)) = format.reasoning {
        let thought = Part::tag(root, begin, Part::words(root), end);
        let is_begun = begin.is_empty();
        // An answer that nothing ends is a message among others, each with a mark of its own.
        let are_messages = is_marked && format.answer.1.is_empty();
        let max = (is_begun || !are_messages).then_some(1);
        let content = Box::new(thought);
        parts.push(Part::new(root, Format::Repeated { content, min: is_begun.into(), max }));
    }
    parts.push(answer);
    if !format.message_end.is_empty() {
        parts.push(Part::fixed(root, format.message_end));
    }
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => Part::new(root, Format::Sequence(parts)),
    }
}

impl Calls<'_> {
    /// One call or several, without what stands around them all.
    fn list(&self, members: &Members<'_>) -> Part {
        let list = Format::Separated(Separated {
            tags: self.tags(members),
            separator: self.format.separator.to_owned(),
            at_least_one: true,
            stop_after_first: !self.parallel,
        });
        Part::new(self.root, list)
    }

    /// One call or several.
    fn alone(&self, members: &Members<'_>) -> Part {
        let list = self.list(members);
        let list = match self.format.group {
            None => list,
            Some((begin, end)) => Part::tag(self.root, begin, list, end),
        };
        if self.format.after_calls.is_empty() {
            return list;
        }
        let content = Box::new(Part::fixed(self.root, self.format.after_calls));
        let end = Part::new(self.root, Format::Repeated { content, min: 0, max: Some(1) });
        Part::new(self.root, Format::Sequence(vec![list, end]))
    }

    /// Words in which calls may stand.
    fn within_words(&self, members: &Members<'_>) -> Part {
        // Calls that stand together are one region.
        let (tags, stop_after_first) = match self.format.group {
            None => (self.tags(members), !self.parallel),
            Some((begin, end)) => {
                let tag = Tag::new(self.root, begin, self.list(members), end);
                (vec![tag], true)
            }
        };
        let triggered = Triggered {
            triggers: vec![self.format.trigger.to_owned()],
            tags,
            excludes: Vec::new(),
            at_least_one: false,
            stop_after_first,
        };
        Part::new(self.root, Format::Triggered(triggered))
    }

    /// An answer between its marks.
    fn answered(&self, content: Part) -> Part {
        match self.format.answer {
            ("", "") => content,
            (mark, "") => {
                let mark = Part::fixed(self.root, mark);
                Part::new(self.root, Format::Sequence(vec![mark, content]))
            }
            (begin, end) => Part::tag(self.root, begin, content, end),
        }
    }

    fn tags(&self, members: &Members<'_>) -> Vec<Tag> {
        let one = |tool: &Tool| {
            let (begin, marked) = self.format.call_begin_parts(&tool.name);
            let mut tag = Tag::new(tool.at, &begin, self.arguments(members, tool), self.format.end);
            if let Some((mark, after)) = marked {
                tag.begin = Delimiter::Marked(begin, mark, after);
            }
            tag
        };
        self.tools.iter().map(one).collect()
    }

    /// The arguments of a call: an object whatever the schema says, none where there is no schema.
    fn arguments(&self, members: &Members<'_>, tool: &Tool) -> Part {
        let style = self.format.arguments;
        let framing = Framing { objects: true, style, ..self.layout.framing };
        let schema = |at, text: Option<&str>| {
            let text = text.map(str::to_owned);
            let caller = Some(Caller { tool: tool.name.as_str().into(), format: self.format.name });
            Part::new(at, Format::Schema(Schema { text, framing, caller, ..self.layout.clone() }))
        };
        match tool.input {
            Input::Nothing => schema(tool.at, Some(NOTHING)),
            Input::Object(at) => schema(at, None),
            Input::AnyObject => schema(tool.at, Some(ANY_OBJECT)),
            Input::Text => schema(tool.at, Some(INPUT)),
            Input::EmbeddedGrammar(language, at) => {
                let text = members.json.string(at).map_or("", |text| &**text);
                self.written(at, language, text)
            }
        }
    }

    /// A text of a grammar, as the argument `input`.
    fn written(&self, at: JsonId, language: Language, text: &str) -> Part {
        let (begin, quoted, end) = match self.format.arguments {
            ArgumentStyle::Json => ("{\"input\": \"".to_owned(), true, "\"}".to_owned()),
            ArgumentStyle::Keywords => ("input=\"".to_owned(), true, "\"".to_owned()),
            ArgumentStyle::Parameters(style) => {
                let begin =
                    format!("{}input{}{}", style.begin, style.before_text, style.before_value);
                let pad = style.padding;
                let begin = format!("{}{begin}{pad}", style.before);
                (begin, false, format!("{pad}{}", style.end_of("input")))
            }
            ArgumentStyle::Notated(notation) => {
                let quote = notation.quote;
                (format!("{{input:{quote}"), false, format!("{quote}}}"))
            }
        };
        let text = text.to_owned();
        let content =
            Part::new(at, Format::EmbeddedGrammar(EmbeddedGrammar { language, text, quoted }));
        let parts = vec![Part::fixed(at, &begin), content, Part::fixed(at, &end)];
        Part::new(at, Format::Sequence(parts))
    }
}

/// A pattern of texts that do not begin with the first character of `text`, blanks aside.
fn no_beginning(text: &str) -> String {
    let first = text.chars().next().map_or(0, u32::from);
    format!(r"\s*([^\s\u{{{first:x}}}][\s\S]*)?")
}

/// The schema of no arguments.
const NOTHING: &str = "{\"type\":\"object\",\"additionalProperties\":false}";

/// The schema of any arguments.
const ANY_OBJECT: &str = "{\"type\":\"object\",\"additionalProperties\":true}";

/// The schema of any text as an argument.
const INPUT: &str = "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\"required\":[\"input\"],\
                     \"additionalProperties\":false}";
