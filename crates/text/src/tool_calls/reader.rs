//! Words, reasoning and calls, told apart as the text streams.

use palmette_grammar::frontends::structural_tag::{ArgumentStyle, ToolFormat};

use super::json_value::{Extent, JsonValue};
use super::kinds::ArgumentKinds;
use super::marks::{MarkPlace, Match, at_start, first_of};
use super::notated::NotatedReader;
use super::parameters::ParameterReader;
use super::progress::{MAX_NAME, Progress, take};
use crate::request::SpecialText;

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words.
    Text(String),
    /// Reasoning before the answer.
    Reasoning(String),
    /// A call begins.
    CallBegin {
        /// The number of the call, from 0.
        index: usize,
        /// The tool's name.
        name: String,
    },
    /// More of the arguments of the call that has begun, as JSON text.
    Arguments(String),
    /// The call has ended.
    CallEnd {
        /// False where the text ended before its arguments did.
        is_whole: bool,
    },
}

/// Finds calls in a model's text as it streams: words before and after them, reasoning, names,
/// arguments. Arguments are given as JSON, however the format writes them.
///
/// Text is held back as long as it may be the beginning of a mark. White space in marks may differ
/// from the format's. What looks like a call and is none stays text. The special tokens of the
/// format must be in the text ([`special_text`](Self::special_text)).
#[derive(Clone, Debug)]
pub struct ToolCallReader {
    format: ToolFormat,
    kinds: ArgumentKinds,
    /// Around the name: the text before it and after it.
    begin: (&'static str, &'static str),
    state: State,
    /// The arguments that are being read.
    arguments: Arguments,
    /// Text that is not decided.
    buffer: String,
    /// Calls so far.
    calls: usize,
    /// Words have begun, so that blanks in front of them count.
    has_words: bool,
    /// True where words may stand: within the marks of an answer, where a format has them.
    is_in_answer: bool,
    /// True between what begins and what ends all calls.
    is_in_group: bool,
    /// No more text comes.
    is_over: bool,
}

/// A reader of the arguments of one call.
#[derive(Clone, Debug)]
enum Arguments {
    Json(JsonValue),
    Parameters(ParameterReader),
    Notated(NotatedReader),
}

impl Arguments {
    fn new(format: &ToolFormat, tool: &str, kinds: &ArgumentKinds) -> Self {
        let notation = format.arguments.notation();
        match format.arguments {
            ArgumentStyle::Json => Self::Json(JsonValue::default()),
            ArgumentStyle::Parameters(style) => {
                Self::Parameters(ParameterReader::new(style, format.end, tool, kinds))
            }
            ArgumentStyle::Keywords => Self::Notated(NotatedReader::keywords(notation)),
            ArgumentStyle::Notated(_) => Self::Notated(NotatedReader::object(notation)),
        }
    }

    /// Reads on in `buffer`, of which it takes what it has read.
    fn read(&mut self, buffer: &mut String, is_over: bool, out: &mut String) -> Progress {
        let value = match self {
            Self::Parameters(reader) => return reader.read(buffer, is_over, out),
            Self::Notated(reader) => return reader.read(buffer, out),
            Self::Json(value) => value,
        };
        if !value.has_begun() {
            let blanks = buffer.len() - buffer.trim_start().len();
            take(buffer, blanks);
        }
        let (len, progress) = match value.read(buffer) {
            Extent::All => (buffer.len(), Progress::Waiting),
            Extent::Ended(len) => (len, Progress::Ended),
        };
        out.push_str(&take(buffer, len));
        progress
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Words, in which calls may begin.
    Words,
    Reasoning,
    /// The text before a name takes this many bytes of the buffer.
    Name(usize),
    Arguments,
    /// After the arguments of a call, before what ends it.
    Ending,
    /// After a call, where another may follow.
    Between,
}

impl ToolCallReader {
    /// Reads an answer in this format, calls by the kinds of their tools' parameters.
    pub fn new(format: ToolFormat, kinds: ArgumentKinds) -> Self {
        let begin = format.around_name();
        let is_begun = format.reasoning.is_some_and(|(begin, _)| begin.is_empty());
        let state = if is_begun { State::Reasoning } else { State::Words };
        let arguments = Arguments::new(&format, "", &kinds);
        Self {
            begin,
            state,
            arguments,
            buffer: String::new(),
            calls: 0,
            has_words: false,
            is_in_answer: format.answer.0.is_empty(),
            is_in_group: false,
            is_over: false,
            format,
            kinds,
        }
    }

    /// The special tokens that must be in the text.
    pub fn special_text(format: &ToolFormat) -> SpecialText {
        let texts = format.texts().into_iter();
        SpecialText::Within(texts.map(str::to_owned).collect())
    }

    /// True within the reasoning.
    pub fn is_reasoning(&self) -> bool {
        matches!(self.state, State::Reasoning)
    }

    /// Calls that have begun so far.
    pub fn calls(&self) -> usize {
        self.calls
    }

    /// Reads more text, and gives what is decided by now.
    pub fn push(&mut self, text: &str) -> Vec<Piece> {
        self.buffer.push_str(text);
        let mut pieces = Vec::new();
        while self.step(&mut pieces) {}
        pieces
    }

    /// Text that was held back: there is no more text.
    ///
    /// A beginning of a mark is words as long as words may end so, and none once a special token of
    /// the mark is there: what a cut leaves of a call is told as a call where its name is known,
    /// and else not at all.
    pub fn finish(mut self) -> Vec<Piece> {
        self.is_over = true;
        let mut pieces = self.push("");
        let rest = std::mem::take(&mut self.buffer);
        let cut = match self.state {
            State::Name(begun) => self.cut_name(&rest[begun..]).map(str::to_owned),
            _ => None,
        };
        if let Some(name) = cut {
            pieces.push(Piece::CallBegin { index: self.calls, name });
            pieces.push(Piece::CallEnd { is_whole: false });
            return pieces;
        }
        match self.state {
            State::Reasoning | State::Words if self.is_mark_told(&rest) => {}
            State::Reasoning => add(&mut pieces, Piece::Reasoning, rest),
            // A text that may be the beginning of a mark is none of the arguments.
            State::Arguments => pieces.push(Piece::CallEnd { is_whole: false }),
            // A beginning of what ends a call is no words.
            State::Ending => {}
            // Nor is one of what begins a call, where that is certain.
            State::Name(begun) if self.is_call_certain(&rest, begun) => {}
            State::Between if rest.trim() == self.format.after_calls => {}
            State::Between if self.is_mark_begun(rest.trim_start()) => {}
            State::Between => self.words(&mut pieces, rest.trim_start().to_owned()),
            State::Words | State::Name(_) => self.words(&mut pieces, rest),
        }
        pieces
    }

    /// Decides some of the buffer; false where more text is needed.
    fn step(&mut self, pieces: &mut Vec<Piece>) -> bool {
        match self.state {
            State::Words => self.step_words(pieces),
            State::Reasoning => self.step_reasoning(pieces),
            State::Name(begun) => self.step_name(begun, pieces),
            State::Arguments => self.step_arguments(pieces),
            State::Ending => self.step_ending(),
            State::Between => self.step_between(),
        }
    }

    fn step_words(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let ToolFormat { reasoning, group, answer, message_end, calls_stand_alone, .. } =
            self.format;
        // Where calls stand together, what begins them all comes first; a call's own text may be
        // plain JSON.
        let begin = group.map_or(self.begin.0, |(begin, _)| begin);
        if calls_stand_alone && !self.has_words {
            let blanks = self.buffer.len() - self.buffer.trim_start().len();
            take(&mut self.buffer, blanks);
            match at_start(&self.buffer, begin) {
                Match::Whole(len) => {
                    self.state = State::Name(len);
                    return true;
                }
                Match::Begun => return false,
                Match::No => {}
            }
        }
        let mut marks = if calls_stand_alone { Vec::new() } else { vec![begin] };
        let others = reasoning.map(|(begin, _)| begin).into_iter();
        let others = others.chain([answer.0, answer.1, message_end]);
        marks.extend(others.filter(|mark| !mark.is_empty()));
        let found = first_of(&self.buffer, &marks);
        let place = found.map_or(self.buffer.len(), |(place, _)| place);
        let before = take(&mut self.buffer, place);
        self.words(pieces, before);
        let Some((_, MarkPlace::Whole { mark, len })) = found else { return false };
        let is_group = group.is_some_and(|(begin, _)| mark == begin);
        self.is_in_group |= is_group;
        if mark == answer.0 {
            self.is_in_answer = true;
        } else if mark == answer.1 {
            self.is_in_answer = false;
        }
        self.state = match () {
            () if is_group => State::Between,
            () if mark == self.begin.0 => State::Name(len),
            () if reasoning.is_some_and(|(begin, _)| mark == begin) => State::Reasoning,
            () => State::Words,
        };
        if !matches!(self.state, State::Name(_)) {
            take(&mut self.buffer, len);
        }
        true
    }

    fn step_reasoning(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let end = self.format.reasoning.map_or("", |(_, end)| end);
        let found = first_of(&self.buffer, &[end]);
        let place = found.map_or(self.buffer.len(), |(place, _)| place);
        let before = take(&mut self.buffer, place);
        add(pieces, Piece::Reasoning, before);
        let Some((_, MarkPlace::Whole { len, .. })) = found else { return false };
        take(&mut self.buffer, len);
        self.state = State::Words;
        true
    }

    fn step_name(&mut self, begun: usize, pieces: &mut Vec<Piece>) -> bool {
        match self.name_end(&self.buffer[begun..]) {
            NameEnd::Waiting => return false,
            NameEnd::Found { name, len } if self.is_name(&self.buffer[begun..begun + name]) => {
                let name = self.buffer[begun..begun + name].trim().to_owned();
                self.arguments = Arguments::new(&self.format, &name, &self.kinds);
                pieces.push(Piece::CallBegin { index: self.calls, name });
                self.calls += 1;
                take(&mut self.buffer, begun + len);
                self.state = State::Arguments;
            }
            // No call: its first character is text, and what comes after it is looked at again.
            _ => {
                let first = self.buffer.chars().next().map_or(0, char::len_utf8);
                let first = take(&mut self.buffer, first);
                self.words(pieces, first);
                self.state = State::Words;
            }
        }
        true
    }

    /// True where what is held at the end, the beginning of a mark, is no text: outside of an
    /// answer's marks, and where it goes so far that no text does.
    fn is_mark_told(&self, held: &str) -> bool {
        if held.is_empty() || matches!(self.state, State::Words) && !self.is_in_answer {
            return true;
        }
        let ToolFormat { reasoning, group, answer, message_end, trigger, .. } = self.format;
        let reasoning = reasoning.unwrap_or_default();
        let marks = match self.state {
            State::Reasoning => vec![reasoning.1],
            _ => vec![
                group.map_or(self.begin.0, |(begin, _)| begin),
                reasoning.0,
                answer.0,
                answer.1,
                message_end,
            ],
        };
        let mut told = marks.into_iter().filter_map(first_special);
        told.any(|begin| matches!(at_start(held, begin), Match::Whole(_)))
            || matches!(at_start(held, trigger), Match::Whole(_))
    }

    /// True where what is held at the end, a call up to its name, is no text: another call was
    /// there, a known tool's name begins so, or what may be a name comes after what begins all
    /// calls or after a special token.
    fn is_call_certain(&self, held: &str, begun: usize) -> bool {
        let name = &held[begun..];
        let told = || {
            let told = first_special(self.begin.0);
            self.is_in_group
                || told.is_some_and(|begin| matches!(at_start(held, begin), Match::Whole(_)))
        };
        self.calls > 0 || self.kinds.begins_tool(name.trim()) || told() && self.may_be_name(name)
    }

    /// True for a text that may go on to be a name and the mark after it.
    fn may_be_name(&self, text: &str) -> bool {
        let is_after = |place: &usize| {
            let is_begun = |mark: &&str| at_start(&text[*place..], mark) == Match::Begun;
            self.marks_after_name().iter().any(is_begun)
        };
        let end = text.char_indices().map(|(place, _)| place).find(is_after);
        let name = &text[..end.unwrap_or(text.len())];
        !name.contains(|c: char| c.is_control() || "\"\\<>[]".contains(c))
    }

    /// True for texts that may be a tool's name. Where nothing marks calls, it is one word, right
    /// before the arguments.
    fn is_name(&self, text: &str) -> bool {
        let is_word = || text.trim_start().chars().all(ToolFormat::is_in_bare_name);
        !text.trim().is_empty() && (!self.format.calls_stand_alone || is_word())
    }

    /// The name in a text that ends before the arguments of a call do begin: the mark after it has
    /// begun, or it is a tool's.
    fn cut_name<'t>(&self, text: &'t str) -> Option<&'t str> {
        let after = self.begin.1;
        let ends = |place: &usize| {
            let rest = match after.starts_with(char::is_whitespace) {
                true => text[*place..].trim_start(),
                false => &text[*place..],
            };
            let mut marks = self.marks_after_name().into_iter();
            !rest.is_empty() && marks.any(|mark| at_start(rest, mark) == Match::Begun)
        };
        let name = match text.char_indices().map(|(place, _)| place).find(ends) {
            Some(place) => text[..place].trim(),
            None => Some(text.trim()).filter(|name| self.kinds.has_tool(name))?,
        };
        (!name.is_empty()
            && name.len() <= MAX_NAME
            && name.chars().all(ToolFormat::is_in_bare_name))
        .then_some(name)
    }

    /// Texts of which one comes after a name: the format's, or where there is none the beginning of
    /// the arguments.
    fn marks_after_name(&self) -> [&'static str; 2] {
        let after = self.begin.1;
        match self.format.arguments {
            _ if !after.trim().is_empty() => [after, after],
            ArgumentStyle::Parameters(style) => [style.begin, self.format.end],
            _ => ["{", "("],
        }
    }

    /// The end of a name at the beginning of a text: before the text that follows names, or where
    /// there is none before the arguments.
    fn name_end(&self, text: &str) -> NameEnd {
        let (after, marks) = (self.begin.1, self.marks_after_name());
        for (place, character) in text.char_indices() {
            if place > MAX_NAME {
                return NameEnd::No;
            }
            let start = match after.starts_with(char::is_whitespace) {
                true => text.len() - text[place..].trim_start().len(),
                false => place,
            };
            let mut is_begun = start == text.len();
            for mark in marks {
                match at_start(&text[start..], mark) {
                    Match::Whole(len) => {
                        let len = if after.trim().is_empty() { start } else { start + len };
                        return NameEnd::Found { name: place, len };
                    }
                    Match::Begun => is_begun = true,
                    Match::No => {}
                }
            }
            match character.is_control() {
                _ if is_begun => return NameEnd::Waiting,
                true if after.is_empty() => return NameEnd::Found { name: place, len: place },
                true => return NameEnd::No,
                false => {}
            }
        }
        NameEnd::Waiting
    }

    fn step_arguments(&mut self, pieces: &mut Vec<Piece>) -> bool {
        let mut text = String::new();
        let progress = self.arguments.read(&mut self.buffer, self.is_over, &mut text);
        add(pieces, Piece::Arguments, text);
        let is_whole = match progress {
            Progress::More | Progress::Waiting => return false,
            Progress::Ended => true,
            Progress::Broken => false,
        };
        pieces.push(Piece::CallEnd { is_whole });
        self.state = if is_whole { State::Ending } else { State::Words };
        true
    }

    fn step_ending(&mut self) -> bool {
        let blanks = self.buffer.len() - self.buffer.trim_start().len();
        match at_start(&self.buffer[blanks..], self.format.end.trim_start()) {
            Match::Begun => return false,
            Match::Whole(len) => drop(take(&mut self.buffer, blanks + len)),
            // It ended otherwise; the call is whole all the same.
            Match::No => {}
        }
        self.state = State::Between;
        true
    }

    /// Blanks and separators between calls are no words.
    fn step_between(&mut self) -> bool {
        let blanks = self.buffer.len() - self.buffer.trim_start().len();
        take(&mut self.buffer, blanks);
        if self.buffer.is_empty() {
            return false;
        }
        let whole = self.marks_between().find_map(|mark| match at_start(&self.buffer, mark) {
            Match::Whole(len) => Some((mark, len)),
            _ => None,
        });
        match whole {
            Some((mark, len)) if mark == self.begin.0 => self.state = State::Name(len),
            Some((mark, len)) => {
                self.is_in_group &= self.format.group.is_none_or(|(_, end)| mark != end);
                take(&mut self.buffer, len);
            }
            None if self.is_mark_begun(&self.buffer) => return false,
            // A call that begins with its name.
            None if self.begin.0.is_empty() => self.state = State::Name(0),
            None => {
                self.is_in_group = false;
                self.state = State::Words;
            }
        }
        true
    }

    /// Texts that may follow a call.
    fn marks_between(&self) -> impl Iterator<Item = &'static str> {
        let group_end = self.format.group.map_or("", |(_, end)| end);
        let marks = [self.begin.0, self.format.separator.trim(), group_end];
        marks.into_iter().filter(|mark| !mark.is_empty())
    }

    /// True where a text is the beginning of one of them.
    fn is_mark_begun(&self, text: &str) -> bool {
        self.marks_between().any(|mark| at_start(text, mark) == Match::Begun)
    }

    /// Words; blanks before the first are left out where something else came before.
    fn words(&mut self, pieces: &mut Vec<Piece>, text: String) {
        let text = match self.has_words {
            true => text,
            false => text.trim_start().to_owned(),
        };
        self.has_words |= !text.is_empty();
        add(pieces, Piece::Text, text);
    }
}

/// The beginning of a mark up to the end of the first special token that it names; `None` where it
/// names none.
fn first_special(mark: &str) -> Option<&str> {
    mark.find(['>', ']']).map(|end| &mark[..=end])
}

/// Place at which a name ends, within a text that begins with one.
enum NameEnd {
    /// The name has so many bytes, and with the text after it so many.
    Found {
        name: usize,
        len: usize,
    },
    Waiting,
    No,
}

/// Adds a piece of text, to the one before where that is of its kind.
fn add(pieces: &mut Vec<Piece>, kind: fn(String) -> Piece, text: String) {
    if text.is_empty() {
        return;
    }
    let piece = kind(text);
    match (pieces.last_mut(), &piece) {
        (Some(Piece::Text(last)), Piece::Text(text))
        | (Some(Piece::Reasoning(last)), Piece::Reasoning(text))
        | (Some(Piece::Arguments(last)), Piece::Arguments(text)) => last.push_str(text),
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use palmette_grammar::frontends::structural_tag::TOOL_FORMATS;
    use proptest::prelude::*;

    use super::*;

    fn read(mut reader: ToolCallReader, pieces: &[&str]) -> Vec<Piece> {
        let mut all: Vec<Piece> = Vec::new();
        let mut merge = |piece: Piece| match piece {
            Piece::Text(text) => add(&mut all, Piece::Text, text),
            Piece::Reasoning(text) => add(&mut all, Piece::Reasoning, text),
            Piece::Arguments(text) => add(&mut all, Piece::Arguments, text),
            other => all.push(other),
        };
        for piece in pieces {
            reader.push(piece).into_iter().for_each(&mut merge);
        }
        reader.finish().into_iter().for_each(&mut merge);
        all
    }

    fn call(index: usize, name: &str, arguments: &str) -> Vec<Piece> {
        let name = name.to_owned();
        let begin = Piece::CallBegin { index, name };
        vec![begin, Piece::Arguments(arguments.to_owned()), Piece::CallEnd { is_whole: true }]
    }

    fn words(text: &str) -> Vec<Piece> {
        vec![Piece::Text(text.to_owned())]
    }

    /// A text in a format, in one piece and character by character.
    #[track_caller]
    fn check(format: &str, text: &str, expected: Vec<Vec<Piece>>) {
        let kinds = ArgumentKinds::default;
        let reader = || ToolCallReader::new(*ToolFormat::named(format).unwrap(), kinds());
        let expected = expected.concat();
        assert_eq!(read(reader(), &[text]), expected, "{text}");
        let characters: Vec<String> = text.chars().map(String::from).collect();
        let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
        assert_eq!(read(reader(), &characters), expected, "{text}");
    }

    #[test]
    fn calls_are_found_in_every_format() {
        let arguments = r#"{"city": "Köln }", "n": [1, 2]}"#;
        let is_json = |format: &&ToolFormat| format.arguments == ArgumentStyle::Json;
        for format in TOOL_FORMATS.iter().filter(is_json) {
            let one = |name: &str| format.call_begin(name, 7) + arguments + format.end;
            let both = one("get_weather") + format.separator + &one("now");
            let group = format.group.unwrap_or_default();
            let all = [group.0, &both, group.1].concat();
            let calls = vec![call(0, "get_weather", arguments), call(1, "now", arguments)];
            check(format.name, &all, calls.clone());
            let (begin, end) = format.answer;
            if begin.is_empty() {
                let with_words = [vec![words("One moment. ")], calls].concat();
                check(format.name, &format!("One moment. {all}"), with_words);
            }
            let answer = format!("{begin}It is < 5 \"°C\".{end}");
            let Some((begin, end)) = format.reasoning else {
                check(format.name, &answer, vec![words("It is < 5 \"°C\".")]);
                continue;
            };
            let thought = vec![Piece::Reasoning("Let me see.".to_owned())];
            let text = format!("{begin}Let me see.{end}\n\n{answer}");
            check(format.name, &text, vec![thought.clone(), words("It is < 5 \"°C\".")]);
            assert_eq!(format.after_prompt("assistant\n"), *format);
            let begun = format.after_prompt(&format!("assistant\n{begin}\n"));
            let text = format!("Let me see.{end}{answer}");
            let pieces = read(ToolCallReader::new(begun, ArgumentKinds::default()), &[&text]);
            assert_eq!(pieces, [thought, words("It is < 5 \"°C\".")].concat());
        }
    }

    #[test]
    fn parameters_stream_as_json() {
        let begin = "<tool_call>\n<function=f>\n<parameter=";
        let end = "\n</parameter>\n</function>\n</tool_call>";
        for (inside, json) in [
            ("a>\nx\ny\n", r#"{"a": "x\ny\n"}"#),
            ("a>x</b>", r#"{"a": "x</b>"}"#),
            ("a>3", r#"{"a": 3}"#),
            ("a> [1, \"</parameter>\"] ", r#"{"a": [1, "</parameter>"]}"#),
            ("a>[1, 2", r#"{"a": "[1, 2"}"#),
            ("a>nullable", r#"{"a": "nullable"}"#),
            ("a>\"q\"", r#"{"a": "\"q\""}"#),
            ("a></parameter><parameter=b>\n\n", r#"{"a": "", "b": "\n"}"#),
        ] {
            let text = format!("{begin}{inside}{end} Done.");
            check("qwen_xml", &text, vec![call(0, "f", json), words("Done.")]);
        }
        check("glm_xml", "<tool_call>now</tool_call>", vec![call(0, "now", "{}")]);
        let broken = |json: &str| {
            let begin = Piece::CallBegin { index: 0, name: "f".to_owned() };
            let arguments = Piece::Arguments(json.to_owned());
            vec![begin, arguments, Piece::CallEnd { is_whole: false }]
        };
        check("qwen_xml", &format!("{begin}a>\nx</para"), vec![broken("{\"a\": \"x")]);
        check("qwen_xml", &format!("{begin}a>12"), vec![broken("{\"a\": ")]);
        let junk = "<tool_call>\n<function=f>\nJunk.";
        check("qwen_xml", junk, vec![broken("{"), words("Junk.")]);
    }

    #[test]
    fn blanks_may_differ_and_what_is_no_call_is_text() {
        let spaced = "<tool_call>{\"name\":\"f\",\n \"arguments\" : {} }</tool_call>\n\nDone.";
        check("hermes", spaced, vec![call(0, "f", "{}"), words("Done.")]);
        for none in [
            "<tool_call>\n{\"name\": \"f\", \"args\": {}}",
            "<tool_call>\n{\"name\": \"\", \"arguments\": {}}",
            "a <b> c {\"name\": ",
        ] {
            check("hermes", none, vec![words(none)]);
        }
        let long = format!("{{\"name\": \"{}", "x".repeat(300));
        check("llama3", &long, vec![words(&long)]);
        check("llama3", "{\"name\": \"f\", \"parameters\": 7}", vec![call(0, "f", "7")]);
    }

    #[test]
    fn a_call_that_is_cut_off_says_so() {
        let begin = Piece::CallBegin { index: 0, name: "f".to_owned() };
        let arguments = Piece::Arguments("{\"a\": [1".to_owned());
        let end = Piece::CallEnd { is_whole: false };
        let cut = vec![begin.clone(), arguments, end.clone()];
        check("mistral", "[TOOL_CALLS]f[ARGS]{\"a\": [1", vec![cut]);
        // Cut right after its name.
        for (format, text) in [
            ("mistral", "[TOOL_CALLS]f[AR"),
            ("hermes", "<tool_call>\n{\"name\": \"f\", \"argum"),
            ("hermes", "<tool_call>\n{\"name\": \"f\""),
            ("glm_xml", "<tool_call>f<arg_"),
            ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool"),
            ("llama3", "{\"name\": \"f\", \"par"),
        ] {
            check(format, text, vec![vec![begin.clone(), end.clone()]]);
        }
        // In it, where it may be a longer one, and before it.
        for (format, text) in [
            ("mistral", "[TOOL_CALLS]f"),
            ("hermes", "<tool_call>\n{\"nam"),
            ("gigachat", "<|function_call|>{\"na"),
            ("inkling", "<|content_invoke_tool_json|>{\"na"),
            ("minimax_xml", "<minimax:tool_call>\n<invoke name=\"f"),
            ("openpangu", "<|tool_call_start|>\n"),
            ("minicpm_xml", "<function name="),
        ] {
            check(format, text, Vec::new());
            let (begin, end) = ToolFormat::named(format).unwrap().answer;
            check(format, &format!("{begin}One.{end}{text}"), vec![words("One.")]);
        }
        // Words may end so.
        for text in ["1 <", "See <tool_ca", "<"] {
            check("hermes", text, vec![words(text)]);
        }
        let tools = [serde_json::json!({"name": "now"})];
        let mistral = *ToolFormat::named("mistral").unwrap();
        let reader = ToolCallReader::new(mistral, ArgumentKinds::of_tools(&tools, false));
        let begin = Piece::CallBegin { index: 0, name: "now".to_owned() };
        assert_eq!(read(reader, &["[TOOL_CALLS]now"]), vec![begin, end]);
    }

    #[test]
    fn calls_that_nothing_marks_are_all_of_an_answer() {
        check("pythonic", " [f(a=1), g()]", vec![call(0, "f", "{\"a\": 1}"), call(1, "g", "{}")]);
        for none in ["[1, 2]", "See [f(a=1)].", "[see (a)]", "[", "[f"] {
            check("pythonic", none, vec![words(none)]);
        }
    }

    #[test]
    fn calls_of_a_list_stand_in_it_alone() {
        let list = "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": [1]}}, {\"name\": \"g\", \"arguments\": {}}]";
        check("mistral-list", list, vec![call(0, "f", "{\"a\": [1]}"), call(1, "g", "{}")]);
        let words_alone = "Such as {\"name\": \"f\", \"arguments\": {}}.";
        check("mistral-list", words_alone, vec![words(words_alone)]);
    }

    #[test]
    fn special_tokens_of_a_format_are_those_of_its_texts() {
        let SpecialText::Within(texts) =
            ToolCallReader::special_text(ToolFormat::named("hermes").unwrap())
        else {
            panic!("some");
        };
        for name in ["<tool_call>", "</tool_call>", "<think>", "</think>"] {
            assert!(super::super::names_in(&texts, name), "{name}");
        }
        assert!(!super::super::names_in(&texts, "<|im_end|>"));
    }

    proptest! {
        /// Pieces do not depend on the cuts, whatever comes.
        #[test]
        fn pieces_do_not_depend_on_how_the_text_is_cut(
            parts in prop::collection::vec(prop_oneof![
                Just("<tool_call>"), Just("</tool_call>"), Just("\n"), Just("{\"name\": \""), Just("f"),
                Just("\", \"arguments\": "), Just("{"), Just("}"), Just("<think>"), Just("</think>"), Just("\"a\""), Just(" "),
            ], 0..14),
            cuts in prop::collection::vec(1_usize..5, 0..60),
        ) {
            let text: String = parts.concat();
            let hermes = *ToolFormat::named("hermes").unwrap();
            let reader = || ToolCallReader::new(hermes, ArgumentKinds::default());
            let mut cut = Vec::new();
            let mut rest = text.as_str();
            for len in cuts {
                let (piece, after) = rest.split_at(len.min(rest.len()));
                cut.push(piece);
                rest = after;
            }
            cut.push(rest);
            prop_assert_eq!(read(reader(), &cut), read(reader(), &[&text]));
        }
    }
}
