//! Parameters between marks as a JSON object, while they stream.
//!
//! A value is read by one rule. Where the marks say what it is, they decide; else the schema of the
//! tool does. Where only a string may be, it is the text as it is, but for the padding of the
//! style. Elsewhere it is JSON, if the JSON value at its beginning is of a kind that may be and the
//! closing mark follows it; if not, it is the text as it is. A text in quotes is JSON only where no
//! string may be, and there every JSON value is taken as it is.

use palmette_grammar::frontends::structural_tag::ParameterStyle;
use serde_json::Value;

use super::json_escapes::{push_escaped, push_string};
use super::json_value::{Extent, JsonValue};
use super::kinds::{ArgumentKinds, Kinds};
use super::marks::{MarkPlace, Match, at_start, first_of};
use super::progress::{MAX_NAME, Progress, take};

/// Types of values that a style may name before them.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "array", "object", "string"];

/// A reader of the parameters of one call.
#[derive(Clone, Debug)]
pub(super) struct ParameterReader {
    style: &'static ParameterStyle,
    /// The text that ends the call.
    end: &'static str,
    tool: String,
    kinds: ArgumentKinds,
    place: Place,
    /// Parameters so far.
    count: usize,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Start,
    /// Before a parameter, or before the end.
    Between,
    Name,
    /// Before the text that is before a value.
    Before(Kinds),
    /// At a value of these kinds, of which so many bytes were looked at.
    Value(Kinds, JsonValue, usize),
    /// At the beginning of a text, and in it.
    TextStart,
    Text,
}

impl ParameterReader {
    pub(super) fn new(
        style: &'static ParameterStyle,
        end: &'static str,
        tool: &str,
        kinds: &ArgumentKinds,
    ) -> Self {
        let (tool, kinds) = (tool.to_owned(), kinds.clone());
        Self { style, end, tool, kinds, place: Place::Start, count: 0 }
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
        match (at_start(buffer, self.style.begin), at_start(buffer, self.end.trim_start())) {
            (Match::Whole(len), _) => {
                take(buffer, len);
                self.place = Place::Name;
                Progress::More
            }
            (_, Match::Whole(_)) => {
                out.push('}');
                Progress::Ended
            }
            (Match::Begun, _) | (_, Match::Begun) => Progress::Waiting,
            (Match::No, Match::No) => Progress::Broken,
        }
    }

    fn name(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let style = self.style;
        let types = TYPES.map(|name| style.before_type(name));
        let types = types.iter().map(String::as_str).filter(|_| style.tells_types());
        let marks: Vec<&str> =
            [style.before_text, style.before_json].into_iter().chain(types).collect();
        let (place, mark, len) = match first_of(buffer, &marks) {
            Some((place, MarkPlace::Whole { mark, len })) => (place, mark, len),
            _ if buffer.len() > MAX_NAME => return Progress::Broken,
            _ => return Progress::Waiting,
        };
        let name = &buffer[..place];
        let kinds = match style.before_text == style.before_json {
            true => self.kinds.kinds(&self.tool, name),
            false if mark == style.before_text => Kinds::STRING,
            false => Kinds::NO_STRING,
        };
        out.push_str(if self.count > 0 { ", " } else { "" });
        push_string(out, name);
        out.push_str(": ");
        self.count += 1;
        take(buffer, place + len);
        self.place = match style.before_value {
            "" => Self::at_value(kinds),
            _ => Place::Before(kinds),
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
        let Some(first) = buffer.trim_start().chars().next() else { return Progress::Waiting };
        if !kinds.may_begin(first) {
            self.place = Place::TextStart;
            return Progress::More;
        }
        let len = match value.read(&buffer[looked..]) {
            Extent::Ended(len) => looked + len,
            Extent::All if is_over && buffer.contains(self.style.end) => {
                self.place = Place::TextStart;
                return Progress::More;
            }
            Extent::All => {
                self.place = Place::Value(kinds, value, buffer.len());
                return Progress::Waiting;
            }
        };
        let after = buffer[len..].trim_start();
        if !after.starts_with(self.style.end) {
            let is_cut = is_over && !buffer.contains(self.style.end);
            if is_cut || !is_over && self.style.end.starts_with(after) {
                return Progress::Waiting;
            }
            self.place = Place::TextStart;
            return Progress::More;
        }
        let text = buffer[..len].trim();
        match serde_json::from_str::<Value>(text) {
            Ok(read) if kinds.admits(&read) => {
                out.push_str(text);
                let len = buffer.len() - after.len() + self.style.end.len();
                take(buffer, len);
                self.place = Place::Between;
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
        let (end, padding) = (self.style.end, self.style.padding);
        if let Some(len) = buffer.find(end) {
            let text = &buffer[..len];
            push_escaped(out, text.strip_suffix(padding).unwrap_or(text));
            out.push('"');
            take(buffer, len + end.len());
            self.place = Place::Between;
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
