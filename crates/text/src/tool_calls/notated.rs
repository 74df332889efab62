//! Values in a notation like JSON's as JSON, while they stream: Python's keywords, Gemma's objects.
//!
//! Strings, names and words are translated, punctuation stays what it is. No schema is needed: a
//! string has marks around it.

use palmette_grammar::frontends::structural_tag::ValueNotation;

use super::json_escapes::{push_escaped, push_string};
use super::progress::{MAX_NAME, Progress, take};

/// A reader of the arguments of one call: keywords up to a bracket, or one object.
#[derive(Clone, Debug)]
pub(super) struct NotatedReader {
    notation: &'static ValueNotation,
    /// Brackets that are open.
    open: Vec<Bracket>,
    place: Place,
    /// A comma was read, and what follows it was not.
    has_comma: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bracket {
    /// Keywords of a call.
    Call,
    Object,
    /// A list, or a tuple.
    Array,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    /// Before a name without quotes, or a closing bracket.
    Name,
    /// Before a value, or a closing bracket.
    Value,
    After,
    /// Within a string that is written as it is.
    Raw,
    /// Within a string with escapes, up to this character.
    Escaped(char),
}

impl NotatedReader {
    /// A reader of keywords.
    pub(super) fn keywords(notation: &'static ValueNotation) -> Self {
        Self { notation, open: vec![Bracket::Call], place: Place::Start, has_comma: false }
    }

    /// A reader of one object.
    pub(super) fn object(notation: &'static ValueNotation) -> Self {
        Self { notation, open: Vec::new(), place: Place::Value, has_comma: false }
    }

    /// Reads on in `buffer`, of which it takes what it has read.
    pub(super) fn read(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        loop {
            let progress = match self.place {
                Place::Start => {
                    out.push('{');
                    self.place = Place::Name;
                    Progress::More
                }
                Place::Name | Place::Value | Place::After => self.outside(buffer, out),
                Place::Raw => self.raw(buffer, out),
                Place::Escaped(quote) => self.escaped(quote, buffer, out),
            };
            if progress != Progress::More {
                return progress;
            }
        }
    }

    /// The place before the first or the next part of the innermost bracket.
    fn before_next(&self) -> Place {
        match self.open.last() {
            Some(Bracket::Call) => Place::Name,
            Some(Bracket::Object) if self.notation.bare_names => Place::Name,
            _ => Place::Value,
        }
    }

    fn outside(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let blanks = buffer.len() - buffer.trim_start().len();
        take(buffer, blanks);
        let Some(first) = buffer.chars().next() else { return Progress::Waiting };
        match (self.place, first) {
            (_, '}' | ']' | ')') => self.close(first, buffer, out),
            (_, _) if self.open.is_empty() && first != '{' => Progress::Broken,
            (Place::After, ',') => {
                take(buffer, 1);
                self.has_comma = true;
                self.place = self.before_next();
                Progress::More
            }
            (Place::After, ':') if self.open.last() == Some(&Bracket::Object) => {
                take(buffer, 1);
                out.push_str(": ");
                self.place = Place::Value;
                Progress::More
            }
            (Place::Name, _) => self.name(buffer, out),
            (Place::Value, _) => self.value(first, buffer, out),
            _ => Progress::Broken,
        }
    }

    fn comma(&mut self, out: &mut String) {
        if std::mem::take(&mut self.has_comma) {
            out.push_str(", ");
        }
    }

    fn close(&mut self, bracket: char, buffer: &mut String, out: &mut String) -> Progress {
        let (is_fit, json) = match self.open.last() {
            Some(Bracket::Call) => (bracket == ')', '}'),
            Some(Bracket::Object) => (bracket == '}', '}'),
            Some(Bracket::Array) => (bracket != '}', ']'),
            None => (false, ' '),
        };
        if !is_fit {
            return Progress::Broken;
        }
        // A comma before the end is none of JSON.
        self.has_comma = false;
        out.push(json);
        let closed = self.open.pop();
        self.place = Place::After;
        if closed != Some(Bracket::Call) {
            take(buffer, 1);
        }
        if self.open.is_empty() { Progress::Ended } else { Progress::More }
    }

    fn name(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let is_call = self.open.last() == Some(&Bracket::Call);
        let mark = if is_call { '=' } else { ':' };
        let Some(len) = buffer.find(mark) else {
            return if buffer.len() > MAX_NAME { Progress::Broken } else { Progress::Waiting };
        };
        self.comma(out);
        push_string(out, buffer[..len].trim_end());
        out.push_str(": ");
        take(buffer, len + 1);
        self.place = Place::Value;
        Progress::More
    }

    fn value(&mut self, first: char, buffer: &mut String, out: &mut String) -> Progress {
        let quote = self.notation.quote;
        if !quote.is_empty() && buffer.starts_with(quote) {
            take(buffer, quote.len());
            self.comma(out);
            out.push('"');
            self.place = Place::Raw;
            return Progress::More;
        }
        if !quote.is_empty() && quote.starts_with(buffer.as_str()) {
            return Progress::Waiting;
        }
        let bracket = match first {
            '{' => Some((Bracket::Object, '{')),
            '[' | '(' => Some((Bracket::Array, '[')),
            _ => None,
        };
        if let Some((bracket, json)) = bracket {
            take(buffer, 1);
            self.comma(out);
            out.push(json);
            self.open.push(bracket);
            self.place = self.before_next();
            return Progress::More;
        }
        if matches!(first, '"' | '\'') {
            take(buffer, 1);
            self.comma(out);
            out.push('"');
            self.place = Place::Escaped(first);
            return Progress::More;
        }
        let is_in_word = |c: char| c.is_alphanumeric() || "+-._".contains(c);
        match buffer.find(|c: char| !is_in_word(c)) {
            Some(0) => Progress::Broken,
            // A word at the end may go on.
            None => Progress::Waiting,
            Some(len) => {
                let word = take(buffer, len);
                self.comma(out);
                self.word(&word, out);
                self.place = Place::After;
                Progress::More
            }
        }
    }

    /// A word or a number; any other is a string.
    fn word(&self, word: &str, out: &mut String) {
        let known = self.notation.words.iter().position(|known| *known == word);
        match known {
            Some(at) => out.push_str(["null", "true", "false"][at]),
            None if serde_json::from_str::<serde_json::Value>(word).is_ok() => out.push_str(word),
            None => push_string(out, word),
        }
    }

    fn raw(&mut self, buffer: &mut String, out: &mut String) -> Progress {
        let quote = self.notation.quote;
        if let Some(len) = buffer.find(quote) {
            push_escaped(out, &buffer[..len]);
            out.push('"');
            take(buffer, len + quote.len());
            self.place = Place::After;
            return Progress::More;
        }
        let last = buffer.len().saturating_sub(quote.len());
        let mut places = buffer.char_indices().map(|(place, _)| place);
        let held = places.find(|&place| place >= last && quote.starts_with(&buffer[place..]));
        let len = held.unwrap_or(buffer.len());
        push_escaped(out, &buffer[..len]);
        take(buffer, len);
        Progress::Waiting
    }

    /// A string with JSON's escapes, and those of Python's that JSON lacks.
    fn escaped(&mut self, quote: char, buffer: &mut String, out: &mut String) -> Progress {
        let len = buffer.find(['\\', quote]).unwrap_or(buffer.len());
        push_escaped(out, &take(buffer, len));
        let mut characters = buffer.chars();
        match (characters.next(), characters.next()) {
            (None, _) | (Some('\\'), None) => Progress::Waiting,
            (Some('\\'), Some(escaped)) => self.escape(escaped, buffer, out),
            (Some(_), _) => {
                take(buffer, 1);
                out.push('"');
                self.place = Place::After;
                Progress::More
            }
        }
    }

    fn escape(&mut self, escaped: char, buffer: &mut String, out: &mut String) -> Progress {
        let mut len = 1 + escaped.len_utf8();
        match escaped {
            '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u' => {
                out.push('\\');
                out.push(escaped);
            }
            '\'' => out.push('\''),
            // A line that goes on in the next.
            '\n' => {}
            'x' => match buffer.get(2..4) {
                Some(digits) if digits.chars().all(|c| c.is_ascii_hexdigit()) => {
                    out.push_str("\\u00");
                    out.push_str(digits);
                    len += 2;
                }
                None if buffer.len() < 4 => return Progress::Waiting,
                _ => push_escaped(out, "\\x"),
            },
            _ => push_escaped(out, &buffer[..len]),
        }
        take(buffer, len);
        Progress::More
    }
}

#[cfg(test)]
mod tests {
    use palmette_grammar::frontends::structural_tag::{ArgumentStyle, ToolFormat};

    use super::*;

    /// The JSON of arguments in a format, in one piece and character by character, and how it
    /// ended.
    #[track_caller]
    fn check(format: &str, text: &str, json: &str, ended: Progress) {
        let style = ToolFormat::named(format).unwrap().arguments;
        for len in [text.len().max(1), 1] {
            let mut reader = match style {
                ArgumentStyle::Keywords => NotatedReader::keywords(style.notation()),
                _ => NotatedReader::object(style.notation()),
            };
            let (mut buffer, mut out) = (String::new(), String::new());
            let mut progress = Progress::Waiting;
            for characters in text.chars().collect::<Vec<_>>().chunks(len) {
                buffer.extend(characters);
                progress = reader.read(&mut buffer, &mut out);
                if progress != Progress::Waiting {
                    break;
                }
            }
            assert_eq!((out.as_str(), progress), (json, ended), "{text}");
        }
    }

    #[test]
    fn keywords_are_translated() {
        let calls = r#"city="Köln", near='M\'s "x"', n=-1.5e3, ok=True, none=None, l=[1, (2,), {"a": False}],)"#;
        let json = r#"{"city": "Köln", "near": "M's \"x\"", "n": -1.5e3, "ok": true, "none": null, "l": [1, [2], {"a": false}]}"#;
        check("llama4", calls, json, Progress::Ended);
        check("llama4", ")", "{}", Progress::Ended);
        let escapes = r#"{"a": "\u00e9\u0041\\q\n"}"#;
        check("llama4", r#"a="\u00e9\x41\q\n")"#, escapes, Progress::Ended);
        check("llama4", "a=b]", r#"{"a": "b""#, Progress::Broken);
        check("llama4", "a=1, ", r#"{"a": 1"#, Progress::Waiting);
        check("llama4", "a=1 2)", r#"{"a": 1"#, Progress::Broken);
    }

    #[test]
    fn objects_of_gemma_are_translated() {
        let text = r#"{city:<|"|>a "b" <|x<|"|>,days:3,more:{at:[<|"|><|"|>,true],no:null}}<"#;
        let json = r#"{"city": "a \"b\" <|x", "days": 3, "more": {"at": ["", true], "no": null}}"#;
        check("gemma4", text, json, Progress::Ended);
        check("gemma4", "{}", "{}", Progress::Ended);
        check("gemma4", "x", "", Progress::Broken);
        check("function_gemma", "{a:<escape>1<escape>}", r#"{"a": "1"}"#, Progress::Ended);
    }
}
