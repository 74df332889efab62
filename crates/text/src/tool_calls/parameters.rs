//! Parameters between marks as a JSON object, while they stream.
//!
//! A value is read by one rule. Where the marks say what it is, they decide; else the schema of the
//! tool does. Where only a string may be, it is the text as it is, but for the padding of the
//! style. Elsewhere it is JSON, if the JSON value at its beginning is of a kind that may be and the
//! closing mark follows it; if not, it is the text as it is. A text in quotes is JSON only where no
//! string may be, and there every JSON value is taken as it is. Lists and objects that a style
//! writes in marks are opened and closed as these come.

use palmette_grammar::frontends::structural_tag::{ITEM, ParameterStyle};
use serde_json::Value;

use super::json_escapes::{push_escaped, push_string};
use super::json_value::{Extent, JsonValue};
use super::kinds::{ArgumentKinds, Kinds, Step};
use super::marks::{MarkPlace, Match, as_it_is_at_start, at_start, first_of};
use super::progress::{MAX_NAME, Progress, take};

/// Types of values that a style may name before them.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "array", "object", "string"];

/// A reader of the parameters of one call.
#[derive(Clone, Debug)]
pub(super) struct ParameterReader {
    style: &'static ParameterStyle,
    tool: String,
    kinds: ArgumentKinds,
    place: Place,
    /// Parts that are open: the call, and lists and objects in it where the style writes these in
    /// marks.
    open: Vec<OpenPart>,
    /// The steps to the value that is being read, one for each that is open.
    steps: Vec<Step>,
    /// The text that ends that value.
    value_end: String,
}

/// A call, or a list or an object in it, of which parts are being read.
#[derive(Clone, Debug)]
struct OpenPart {
    is_list: bool,
    /// Parameters or items so far.
    count: usize,
    end: String,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Start,
    /// Before a parameter or an item, or before the end of what is open.
    Between,
    Name,
    /// Before the text that is before a value.
    Before(Kinds),
    /// Before a value that is written in marks if it is a list or an object.
    Unmarked(Kinds),
    /// At a value of these kinds, of which so many bytes were looked at.
    Value(Kinds, JsonValue, usize),
    /// At the beginning of a text, and in it.
    TextStart,
    Text,
}

/// Meaning of the mark before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueMark {
    Text,
    Json,
    List,
    Object,
    Nothing,
}

impl ParameterReader {
    pub(super) fn new(
        style: &'static ParameterStyle,
        end: &'static str,
        tool: &str,
        kinds: &ArgumentKinds,
    ) -> Self {
        let (tool, kinds) = (tool.to_owned(), kinds.clone());
        let call = OpenPart { is_list: false, count: 0, end: end.trim_start().to_owned() };
        let (open, steps, value_end) = (vec![call], Vec::new(), String::new());
        Self { style, tool, kinds, place: Place::Start, open, steps, value_end }
    }

    /// Reads on in `buffer`, of which it takes what it has read; `is_over` where no text follows.
    pub(super) fn read(
        &mut self,
        buffer: &mut String,
        is_over: bool,
        out: &mut String,
    ) -> Progress {
        loop {
            let decided = match self.place {
                Place::Start => {
                    out.push('{');
                    self.place = Place::Between;
                    Progress::More
                }
                Place::Between => self.between(buffer, out),
                Place::Name => self.name(buffer, out),
                Place::Before(kinds) => self.before(buffer, kinds),
                Place::Unmarked(kinds) => self.unmarked(buffer, kinds, out),
                Place::Value(kinds, value, looked) => {
                    self.value(buffer, is_over, (kinds, value, looked), out)
                }
                Place::TextStart => self.text_start(buffer, is_over, out),
                Place::Text => self.text(buffer, out),
            };
            if decided != Progress::More {
                return decided;
            }
        }
    }

    fn between(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let blanks = buffer.len() - buffer.trim_start().len();
        take(buffer, blanks);
        let Some(open) = self.open.last() else { return Progress::Ended };
        // A mark that begins a parameter may be the beginning of the one at the end.
        let end = as_it_is_at_start(buffer, &open.end);
        if let Match::Whole(len) = end {
            out.push(if open.is_list { ']' } else { '}' });
            self.open.pop();
            if self.open.is_empty() {
                return Progress::Ended;
            }
            take(buffer, len);
            self.steps.pop();
            return Progress::More;
        }
        if open.is_list {
            return self.item(buffer, end, out);
        }
        match at_start(buffer, self.style.begin) {
            _ if end == Match::Begun => Progress::Waiting,
            Match::Whole(len) => {
                take(buffer, len);
                self.place = Place::Name;
                Progress::More
            }
            Match::Begun => Progress::Waiting,
            Match::No => Progress::Broken,
        }
    }

    /// Before an item of a list; `end` is how far its end has begun.
    fn item(&mut self, buffer: &mut String, end: Match, out: &mut String) -> Progress {
        let mut is_begun = end == Match::Begun;
        for (told, mark) in self.marks() {
            match at_start(buffer, &self.style.before_item(&mark)) {
                Match::Whole(len) => {
                    take(buffer, len);
                    self.comma(out);
                    self.steps.push(Step::Item);
                    self.value_end = self.style.end_of(ITEM);
                    return self.begin_value(told, out);
                }
                Match::Begun => is_begun = true,
                Match::No => {}
            }
        }
        if is_begun { Progress::Waiting } else { Progress::Broken }
    }

    /// Marks before a value, and what they tell of it.
    fn marks(&self) -> Vec<(ValueMark, String)> {
        let style = self.style;
        if style.before_text == style.before_json {
            return vec![(ValueMark::Nothing, style.before_text.to_owned())];
        }
        let mut marks = vec![(ValueMark::Text, style.before_text.to_owned())];
        if !style.tells_types() {
            marks.push((ValueMark::Json, style.before_json.to_owned()));
            return marks;
        }
        marks.extend(TYPES.map(|name| {
            let told = match name {
                "array" if style.is_nested() => ValueMark::List,
                "object" if style.is_nested() => ValueMark::Object,
                _ => ValueMark::Json,
            };
            (told, style.before_type(name))
        }));
        marks
    }

    fn comma(&mut self, out: &mut String) {
        if let Some(open) = self.open.last_mut() {
            out.push_str(if open.count > 0 { ", " } else { "" });
            open.count += 1;
        }
    }

    fn name(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let told = self.marks();
        let marks: Vec<&str> = told.iter().map(|(_, mark)| mark.as_str()).collect();
        let (place, mark, len) = match first_of(buffer, &marks) {
            Some((place, MarkPlace::Whole { mark, len })) => (place, mark, len),
            _ if buffer.len() > MAX_NAME => return Progress::Broken,
            _ => return Progress::Waiting,
        };
        let name = self.style.read_name(&buffer[..place]);
        let told =
            told.iter().find(|(_, known)| known == mark).map_or(ValueMark::Nothing, |it| it.0);
        self.comma(out);
        push_string(out, &name);
        out.push_str(": ");
        take(buffer, place + len);
        self.value_end = self.style.end_of(&name);
        self.steps.push(Step::Member(name));
        self.begin_value(told, out)
    }

    /// Steps on to what comes after the mark before a value.
    fn begin_value(&mut self, told: ValueMark, out: &mut String) -> Progress {
        let kinds = match told {
            ValueMark::List | ValueMark::Object => {
                self.open_value(told == ValueMark::List, out);
                return Progress::More;
            }
            ValueMark::Text => Kinds::STRING,
            ValueMark::Json => Kinds::NO_STRING,
            ValueMark::Nothing => self.kinds.kinds_within(&self.tool, &self.steps),
        };
        self.place = match self.style.before_value {
            "" if told == ValueMark::Nothing && self.style.is_nested() => Place::Unmarked(kinds),
            "" => Self::at_value(kinds),
            _ => Place::Before(kinds),
        };
        Progress::More
    }

    /// A list or an object begins, whose parts stand in marks.
    fn open_value(&mut self, is_list: bool, out: &mut String) {
        out.push(if is_list { '[' } else { '{' });
        let end = std::mem::take(&mut self.value_end);
        self.open.push(OpenPart { is_list, count: 0, end });
        self.place = Place::Between;
    }

    /// A value has ended.
    fn end_value(&mut self) {
        self.steps.pop();
        self.place = Place::Between;
    }

    /// A list or an object shows by the mark in it, or in an empty text by the schema.
    fn unmarked(&mut self, buffer: &mut str, kinds: Kinds, out: &mut String) -> Progress {
        let text = buffer.trim_start();
        let at = |mark: &str| as_it_is_at_start(text, mark);
        let (is_list, is_object) = (kinds.has(Kinds::ARRAY), kinds.has(Kinds::OBJECT));
        let item = self.style.before_item(self.style.before_text);
        let marks = [self.value_end.as_str(), self.style.begin, &item].map(at);
        let is_begun = kinds != Kinds::STRING && marks.contains(&Match::Begun);
        self.place = match marks {
            _ if !is_list && !is_object => Self::at_value(kinds),
            [Match::Whole(_), ..] if kinds.has(Kinds::STRING) => Self::at_value(kinds),
            [Match::Whole(_), ..] => {
                self.open_value(is_list, out);
                return Progress::More;
            }
            _ if is_begun => return Progress::Waiting,
            [_, Match::Whole(_), item] => {
                self.open_value(is_list && (!is_object || item != Match::No), out);
                return Progress::More;
            }
            _ => Self::at_value(kinds),
        };
        Progress::More
    }

    fn before(&mut self, buffer: &mut String, kinds: Kinds) -> Progress {
        let blanks = buffer.len() - buffer.trim_start().len();
        take(buffer, blanks);
        match at_start(buffer, self.style.before_value) {
            Match::Whole(len) => {
                take(buffer, len);
                self.place = Self::at_value(kinds);
                Progress::More
            }
            Match::Begun => Progress::Waiting,
            Match::No => Progress::Broken,
        }
    }

    fn at_value(kinds: Kinds) -> Place {
        match kinds == Kinds::STRING {
            true => Place::TextStart,
            false => Place::Value(kinds, JsonValue::default(), 0),
        }
    }

    fn value(
        &mut self,
        buffer: &mut String,
        is_over: bool,
        (kinds, mut value, looked): (Kinds, JsonValue, usize),
        out: &mut String,
    ) -> Progress {
        let end = self.value_end.as_str();
        let Some(first) = buffer.trim_start().chars().next() else { return Progress::Waiting };
        if !kinds.may_begin(first) {
            self.place = Place::TextStart;
            return Progress::More;
        }
        let len = match value.read(&buffer[looked..]) {
            Extent::Ended(len) => looked + len,
            Extent::All if is_over && buffer.contains(end) => {
                self.place = Place::TextStart;
                return Progress::More;
            }
            Extent::All => {
                self.place = Place::Value(kinds, value, buffer.len());
                return Progress::Waiting;
            }
        };
        let after = buffer[len..].trim_start();
        if !after.starts_with(end) {
            let is_cut = is_over && !buffer.contains(end);
            if is_cut || !is_over && end.starts_with(after) {
                return Progress::Waiting;
            }
            self.place = Place::TextStart;
            return Progress::More;
        }
        let text = buffer[..len].trim();
        match serde_json::from_str::<Value>(text) {
            Ok(read) if kinds.admits(&read) => {
                out.push_str(text);
                let len = buffer.len() - after.len() + end.len();
                take(buffer, len);
                self.end_value();
            }
            _ => self.place = Place::TextStart,
        }
        Progress::More
    }

    fn text_start(&mut self, buffer: &mut String, is_over: bool, out: &mut String) -> Progress {
        let padding = self.style.padding;
        if buffer.starts_with(padding) {
            take(buffer, padding.len());
        } else if padding.starts_with(buffer.as_str()) && !is_over {
            return Progress::Waiting;
        }
        out.push('"');
        self.place = Place::Text;
        Progress::More
    }

    fn text(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let (end, padding) = (self.value_end.as_str(), self.style.padding);
        if let Some(len) = buffer.find(end) {
            let text = &buffer[..len];
            push_escaped(out, text.strip_suffix(padding).unwrap_or(text));
            out.push('"');
            take(buffer, len + end.len());
            self.end_value();
            return Progress::More;
        }
        let held = begun_at(buffer, end, padding);
        push_escaped(out, &buffer[..held]);
        take(buffer, held);
        Progress::Waiting
    }
}

/// The place from which a text may be the beginning of its end: of the padding and the mark.
fn begun_at(text: &str, end: &str, padding: &str) -> usize {
    let is_begun = |rest: &str| {
        end.starts_with(rest)
            || padding.starts_with(rest)
            || rest.strip_prefix(padding).is_some_and(|rest| end.starts_with(rest))
    };
    let mut places = text.char_indices().map(|(place, _)| place);
    let last = text.len().saturating_sub(end.len() + padding.len());
    places.find(|&place| place >= last && is_begun(&text[place..])).unwrap_or(text.len())
}
