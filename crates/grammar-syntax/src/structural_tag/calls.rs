//! Calls of tools as formats: the texts around them, and what stands in them.

use super::format::{EmbeddedGrammar, Format, Language, Part, Schema, Separated, Tag, Triggered};
use super::members::Members;
use super::tool::{Input, Tool};
use super::tool_formats::ToolFormat;
use crate::json_schema::Framing;
use crate::json_schema::source::JsonId;

/// Tools that may be called, and how.
pub(super) struct Calls<'f> {
    pub(super) format: &'f ToolFormat,
    pub(super) root: JsonId,
    pub(super) tools: Vec<Tool>,
    pub(super) parallel: bool,
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
    let answer = match (calls.tools.is_empty(), must) {
        (true, _) => words,
        (false, true) => calls.alone(members),
        (false, false) if !is_free || !format.answer.is_empty() => {
            Part::new(root, Format::Or(vec![words, calls.alone(members)]))
        }
        (false, false) => calls.within_words(members),
    };
    let Some((begin, end)) = format.reasoning else { return answer };
    let thought = Part::tag(root, begin, Part::words(root), end);
    let is_begun = begin.is_empty();
    let max = (is_begun || format.answer.is_empty()).then_some(1);
    let thoughts = Format::Repeated { content: Box::new(thought), min: is_begun.into(), max };
    Part::new(root, Format::Sequence(vec![Part::new(root, thoughts), answer]))
}

impl Calls<'_> {
    /// One call or several.
    fn alone(&self, members: &Members<'_>) -> Part {
        let list = Format::Separated(Separated {
            tags: self.tags(members),
            separator: self.format.separator.to_owned(),
            at_least_one: true,
            stop_after_first: !self.parallel,
        });
        let list = Part::new(self.root, list);
        match self.format.group {
            None => list,
            Some((begin, end)) => Part::tag(self.root, begin, list, end),
        }
    }

    /// Words in which calls may stand.
    fn within_words(&self, members: &Members<'_>) -> Part {
        // Calls that stand together are one region.
        let (tags, stop_after_first) = match self.format.group {
            None => (self.tags(members), !self.parallel),
            Some(_) => match self.alone(members).format {
                Format::Tag(group) => (vec![*group], true),
                _ => unreachable!("calls that stand together are a tag"),
            },
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

    /// An answer with the mark before it.
    fn answered(&self, content: Part) -> Part {
        match self.format.answer {
            "" => content,
            mark => {
                let mark = Part::fixed(self.root, mark);
                Part::new(self.root, Format::Sequence(vec![mark, content]))
            }
        }
    }

    fn tags(&self, members: &Members<'_>) -> Vec<Tag> {
        let one = |tool: &Tool| {
            let begin = self.format.begin.replace("NAME", &tool.name);
            Tag::new(tool.at, &begin, self.arguments(members, tool), self.format.end)
        };
        self.tools.iter().map(one).collect()
    }

    /// The arguments of a call: an object whatever the schema says, none where there is no schema.
    fn arguments(&self, members: &Members<'_>, tool: &Tool) -> Part {
        let framing = Framing { objects: true, style: self.format.style, ..Framing::default() };
        let schema = |at, text: Option<&str>| {
            let text = text.map(str::to_owned);
            Part::new(at, Format::Schema(Schema { text, framing, ..Schema::default() }))
        };
        match tool.input {
            Input::Nothing => schema(tool.at, Some(NOTHING)),
            Input::Object(at) => schema(at, None),
            Input::Text => schema(tool.at, Some(INPUT)),
            Input::EmbeddedGrammar(language, at) => {
                let text = members.json.string(at).map_or("", |text| &**text);
                self.written(at, language, text)
            }
        }
    }

    /// A text of a grammar, as the argument `input`.
    fn written(&self, at: JsonId, language: Language, text: &str) -> Part {
        let (begin, quoted, end) = match self.format.style {
            None => ("{\"input\": \"".to_owned(), true, "\"}".to_owned()),
            Some(style) => {
                let begin =
                    format!("{}input{}{}", style.begin, style.before_text, style.before_value);
                (format!("\n{begin}\n"), false, format!("\n{}", style.end))
            }
        };
        let text = text.to_owned();
        let content =
            Part::new(at, Format::EmbeddedGrammar(EmbeddedGrammar { language, text, quoted }));
        let parts = vec![Part::fixed(at, &begin), content, Part::fixed(at, &end)];
        Part::new(at, Format::Sequence(parts))
    }
}

/// The schema of no arguments.
const NOTHING: &str = "{\"type\":\"object\",\"additionalProperties\":false}";

/// The schema of any text as an argument.
const INPUT: &str = "{\"type\":\"object\",\"properties\":{\"input\":{\"type\":\"string\"}},\"required\":[\"input\"],\
                     \"additionalProperties\":false}";
