//! Formats of tool calls: the texts around a call, as families of models write them.

use super::known_tool_formats::TOOL_FORMATS;
use crate::json_schema::ArgumentStyle;
use crate::misspelling::meant;

/// The texts around the calls of tools, as a family of models writes them.
///
/// `NAME` stands for the tool's name, `NUMBER` for the call's number in digits, `CALLID` for nine
/// letters and digits by which the model knows the call again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ToolFormat {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The models that write so.
    pub models: &'static str,
    /// The marks by which a chat template shows it, in any of these ways.
    pub shown: &'static [TemplateMarks],
    /// The text that begins a call, whatever the tool.
    pub trigger: &'static str,
    /// Around all calls of an answer, where they stand together: elsewhere there is no call.
    pub group: Option<(&'static str, &'static str)>,
    /// Text before the arguments of a call. The name may stand in it twice: as a header, which is
    /// read where it is left out, too, and in what comes after it.
    pub begin: &'static str,
    /// Text after them.
    pub end: &'static str,
    /// Between two calls.
    pub separator: &'static str,
    /// Text that may stand after the last call: the name of the token by which the model ends.
    pub after_calls: &'static str,
    /// True where an answer has one call at most.
    pub has_one_call: bool,
    /// True where calls are all of an answer, and words do not begin as they do.
    pub calls_stand_alone: bool,
    /// True where tools that are no functions are called in ways of their own, which are not known.
    pub has_own_tools: bool,
    /// Around the reasoning that may come first. Where its beginning is empty the prompt has begun
    /// it, and it comes first always.
    pub reasoning: Option<(&'static str, &'static str)>,
    /// Around an answer in words, where it is marked.
    pub answer: (&'static str, &'static str),
    /// True where an answer in words, perhaps an empty one, stands before calls; otherwise an
    /// answer that is marked has none.
    pub answer_is_first: bool,
    /// Text after all of it.
    pub message_end: &'static str,
    /// The way in which arguments are written.
    pub arguments: ArgumentStyle,
}

/// Marks in a chat template by which it shows a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TemplateMarks {
    /// Texts that are all in it.
    pub by: &'static [&'static str],
    /// Texts of which none is.
    pub not_by: &'static [&'static str],
}

impl ToolFormat {
    /// The format of the answer to a prompt: one that ends in the mark of reasoning, or in that of
    /// an answer, has begun it, as chat templates of some models do.
    #[must_use]
    pub fn after_prompt(self, prompt: &str) -> Self {
        let is_begun = |begin: &str| !begin.is_empty() && prompt.trim_end().ends_with(begin.trim());
        match (self.reasoning, self.answer) {
            (Some((begin, end)), _) if is_begun(begin) => {
                Self { reasoning: Some(("", end)), ..self }
            }
            (_, (begin, end)) if is_begun(begin) => {
                Self { reasoning: None, answer: ("", end), ..self }
            }
            _ => self,
        }
    }

    /// The text before the arguments of a call.
    pub fn call_begin(&self, name: &str, number: usize) -> String {
        // The number first: a name may hold the word.
        let begin = self.begin.replace(NUMBER, &number.to_string());
        begin.replace(CALL_ID, &format!("{number:09}")).replace(NAME, name)
    }

    /// The text before the arguments of any call, cut where its number or its id stands.
    pub(super) fn call_begin_parts(&self, name: &str) -> (String, Option<(CallMark, String)>) {
        let named = |text: &str| text.replace(NAME, name);
        let marks = [(NUMBER, CallMark::Number), (CALL_ID, CallMark::Id)];
        let cut = |(word, mark)| Some((self.begin.split_once(word)?, mark));
        match marks.into_iter().find_map(cut) {
            None => (named(self.begin), None),
            Some(((before, after), mark)) => (named(before), Some((mark, named(after)))),
        }
    }

    /// The text before a tool's name and the one after it; before the last, where a header has the
    /// name first.
    pub fn around_name(&self) -> (&'static str, &'static str) {
        self.begin.rsplit_once(NAME).unwrap_or((self.begin, ""))
    }

    /// True where a tool's name stands without quotes around it, so that it ends where something
    /// else begins.
    pub fn has_bare_names(&self) -> bool {
        let mut parts = self.begin.split(NAME);
        let mut before = parts.next().unwrap_or_default();
        parts.any(|after| {
            let is_quoted =
                ['"', '\''].iter().any(|&mark| before.ends_with(mark) && after.starts_with(mark));
            before = after;
            !is_quoted
        })
    }

    /// True for characters of names that stand without quotes.
    pub fn is_in_bare_name(character: char) -> bool {
        character.is_alphanumeric() || "_-.:/".contains(character)
    }

    /// Texts of the format in which names of special tokens may stand.
    pub fn texts(&self) -> Vec<&'static str> {
        let (group, reasoning) =
            (self.group.unwrap_or_default(), self.reasoning.unwrap_or_default());
        let mut texts = vec![self.trigger, group.0, group.1, self.begin, self.end, self.separator];
        texts.push(self.after_calls);
        texts.extend([reasoning.0, reasoning.1, self.answer.0, self.answer.1, self.message_end]);
        texts.push(self.arguments.notation().quote);
        if let Some(style) = self.arguments.parameters() {
            texts.extend([style.begin, style.before_text, style.before_json, style.before_value]);
            texts.push(style.end);
        }
        texts.retain(|text| !text.is_empty());
        texts
    }

    /// The format in which a model writes calls, by marks in its chat template.
    pub fn of_template(template: &str) -> Option<&'static Self> {
        let has = |mark: &&str| template.contains(mark);
        let shows =
            |shown: &TemplateMarks| shown.by.iter().all(has) && !shown.not_by.iter().any(has);
        TOOL_FORMATS.iter().find(|format| format.shown.iter().any(shows))
    }

    /// The names of all formats in order, for messages.
    pub fn names() -> String {
        let mut names: Vec<&str> = TOOL_FORMATS.iter().map(|format| format.name).collect();
        names.sort_unstable();
        names.join(", ")
    }

    /// The format of a name, in which `-` and `_` are alike, and capitals.
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain = |name: &str| name.replace('-', "_").to_ascii_lowercase();
        TOOL_FORMATS.iter().find(|format| plain(format.name) == plain(name))
    }

    /// The format of a [name](Self::named) that somebody asked for.
    ///
    /// # Errors
    /// When there is none.
    pub fn of_name(name: &str) -> Result<&'static Self, UnknownToolFormat> {
        Self::named(name).ok_or_else(|| {
            let known: Vec<&str> = TOOL_FORMATS.iter().map(|format| format.name).collect();
            let (name, near) = (name.to_owned(), meant(name, &known).map(str::to_owned));
            UnknownToolFormat { name, near }
        })
    }
}

/// A name that no format of tool calls has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is no format of tool calls{}; there are {}",
    near.as_ref().map_or(String::new(), |near| format!(" (did you mean {near:?}?)")),
    ToolFormat::names()
)]
pub struct UnknownToolFormat {
    /// The name.
    pub name: String,
    /// The name that may be meant.
    pub near: Option<String>,
}

/// Mark by which calls of an answer are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallMark {
    /// Digits.
    Number,
    /// Nine letters and digits.
    Id,
}

/// Stand-in for a tool's name.
pub const NAME: &str = "NAME";

/// Stand-in for the number of a call.
pub const NUMBER: &str = "NUMBER";

/// Stand-in for the id of a call.
pub const CALL_ID: &str = "CALLID";

impl serde::Serialize for ToolFormat {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

impl<'de> serde::Deserialize<'de> for ToolFormat {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::of_name(&name).copied().map_err(serde::de::Error::custom)
    }
}
