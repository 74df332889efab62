//! JSON as it is written: every value with its place, objects in their order, numbers as text.

use std::{fmt::Write, sync::Arc};

use super::error::{JsonSchemaError, Kind};
use crate::{Budget, Span};

/// A value's place in [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct JsonId(pub(crate) u32);

/// All values of the schema and of the resources given with it.
///
/// Documents are appended; a value's children have higher ids than itself.
#[derive(Debug, Default)]
pub(crate) struct Source {
    values: Vec<Value>,
    documents: Vec<Document>,
    /// Values of members whose name comes again later, which count for nothing.
    repeated: Vec<JsonId>,
}

#[derive(Debug)]
struct Document {
    /// The URI by which it is known; `None` for the schema itself.
    uri: Option<String>,
    text: Arc<str>,
    root: JsonId,
}

#[derive(Debug)]
struct Value {
    json: Json,
    offset: usize,
    /// End of its text.
    end: usize,
    parent: Option<(JsonId, Step)>,
}

#[derive(Clone, Debug)]
enum Step {
    Name(Arc<str>),
    Index(usize),
}

/// One JSON value; children by id.
#[derive(Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// Text as written.
    Number(Arc<str>),
    String(Arc<str>),
    Array(Vec<JsonId>),
    Object(Object),
}

/// Members in the order written; of a repeated name the last one counts.
#[derive(Debug, Default)]
pub(crate) struct Object {
    members: Vec<(Arc<str>, JsonId)>,
    /// Places in `members`, sorted by name.
    by_name: Vec<u32>,
}

impl Object {
    /// The object of these members; those whose name comes again are added to `repeated`.
    fn new(mut members: Vec<(Arc<str>, JsonId)>, repeated: &mut Vec<JsonId>) -> Self {
        let mut by_name: Vec<u32> = (0..members.len() as u32).collect();
        by_name.sort_by(|&a, &b| members[a as usize].0.cmp(&members[b as usize].0));
        if by_name.windows(2).any(|two| members[two[0] as usize].0 == members[two[1] as usize].0) {
            let mut last = std::collections::HashMap::new();
            for (at, (name, _)) in members.iter().enumerate() {
                last.insert(name.clone(), at);
            }
            let mut at = 0;
            members.retain(|&(ref name, value)| {
                at += 1;
                let is_last = last[name] == at - 1;
                repeated.extend((!is_last).then_some(value));
                is_last
            });
            return Self::new(members, repeated);
        }
        Self { members, by_name }
    }

    pub(crate) fn members(&self) -> &[(Arc<str>, JsonId)] {
        &self.members
    }

    pub(crate) fn get(&self, name: &str) -> Option<JsonId> {
        let found = self
            .by_name
            .binary_search_by(|&at| self.members[at as usize].0.as_ref().cmp(name))
            .ok()?;
        Some(self.members[self.by_name[found] as usize].1)
    }
}

impl Source {
    /// Reads `text`; returns its outermost value.
    pub(crate) fn add(
        &mut self,
        uri: Option<String>,
        text: &str,
        max_depth: usize,
        budget: &mut Budget<'_>,
    ) -> Result<JsonId, JsonSchemaError> {
        // A byte order mark, as files from Windows begin.
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let root = JsonId(self.values.len() as u32);
        self.documents.push(Document { uri: uri.clone(), text: text.into(), root });
        let mut reader = Reader { text, at: 0, depth: 0, max_depth, source: self, budget };
        let read = reader.document();
        let at = reader.at;
        read.map_err(|kind| {
            let mut at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            JsonSchemaError::new(uri, String::new(), Some(Span::locate(text, at, at)), kind)
        })
    }

    pub(crate) fn json(&self, id: JsonId) -> &Json {
        &self.values[id.0 as usize].json
    }

    pub(crate) fn object(&self, id: JsonId) -> Option<&Object> {
        match self.json(id) {
            Json::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn string(&self, id: JsonId) -> Option<&Arc<str>> {
        match self.json(id) {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// True when a keyword's value is null, as programs write what is not set; of `const` null is a
    /// value.
    pub(super) fn is_absent(&self, keyword: &str, at: JsonId) -> bool {
        keyword != "const" && matches!(self.json(at), Json::Null)
    }

    /// Members whose name comes again later in their object.
    pub(crate) fn repeated(&self) -> &[JsonId] {
        &self.repeated
    }

    pub(crate) fn parent(&self, id: JsonId) -> Option<JsonId> {
        self.values[id.0 as usize].parent.as_ref().map(|(parent, _)| *parent)
    }

    /// `id`'s place in its document, as a JSON pointer.
    pub(crate) fn pointer(&self, mut id: JsonId) -> String {
        let mut steps = Vec::new();
        while let Some((parent, step)) = &self.values[id.0 as usize].parent {
            steps.push(match step {
                Step::Name(name) => name.replace('~', "~0").replace('/', "~1"),
                Step::Index(index) => index.to_string(),
            });
            id = *parent;
        }
        steps.iter().rev().fold(String::new(), |mut pointer, step| {
            let _ = write!(pointer, "/{step}");
            pointer
        })
    }

    /// The first place at which a schema declares a member of this name: in `properties`, or else
    /// in `required`.
    pub(super) fn declaring(&self, name: &str) -> Option<JsonId> {
        let under = |id: JsonId, keyword: &str| match &self.values[id.0 as usize].parent {
            Some((_, Step::Name(step))) => **step == *keyword,
            _ => false,
        };
        let of = |keyword: &'static str| {
            self.values.iter().zip(0..).find_map(|(value, at)| {
                let (parent, step) = value.parent.as_ref()?;
                let is_name = match (step, &value.json) {
                    (Step::Name(step), _) => **step == *name,
                    (Step::Index(_), Json::String(text)) => **text == *name,
                    _ => false,
                };
                (is_name && under(*parent, keyword)).then_some(JsonId(at))
            })
        };
        of("properties").or_else(|| of("required"))
    }

    /// The value to which the JSON pointer `pointer` leads from `from`.
    pub(crate) fn follow(&self, from: JsonId, pointer: &str) -> Option<JsonId> {
        if pointer.is_empty() {
            return Some(from);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(from, |at, step| match self.json(at) {
            Json::Object(object) => object.get(&step.replace("~1", "/").replace("~0", "~")),
            Json::Array(items) => items.get(step.parse::<usize>().ok()?).copied(),
            _ => None,
        })
    }

    pub(super) fn error(&self, at: JsonId, kind: Kind) -> JsonSchemaError {
        let document = self.document(at);
        JsonSchemaError::new(document.uri.clone(), self.pointer(at), Some(self.span(at)), kind)
    }

    pub(crate) fn span(&self, at: JsonId) -> Span {
        let offset = self.values[at.0 as usize].offset;
        Span::locate(&self.document(at).text, offset, offset)
    }

    /// The place of a part of a value's text.
    pub(crate) fn span_within(&self, at: JsonId, part: Span) -> Span {
        let offset = self.values[at.0 as usize].offset;
        Span::locate(&self.document(at).text, offset + part.start, offset + part.end)
    }

    /// A value as it is written.
    pub(crate) fn text(&self, id: JsonId) -> &str {
        let value = &self.values[id.0 as usize];
        &self.document(id).text[value.offset..value.end]
    }

    fn document(&self, id: JsonId) -> &Document {
        let after = self.documents.partition_point(|document| document.root <= id);
        &self.documents[after - 1]
    }
}

/// The length of the value that `text` begins with.
pub(crate) fn value_length(
    text: &str,
    max_depth: usize,
    budget: &mut Budget<'_>,
) -> Result<usize, JsonSchemaError> {
    let mut source = Source::default();
    let mut reader = Reader { text, at: 0, depth: 0, max_depth, source: &mut source, budget };
    let read = reader.value(None);
    let mut at = reader.at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let error =
        |kind| JsonSchemaError::new(None, String::new(), Some(Span::locate(text, at, at)), kind);
    read.map(|_| at).map_err(error)
}

/// A recursive-descent reader; the depth is bounded.
struct Reader<'a, 'b> {
    text: &'a str,
    at: usize,
    depth: usize,
    max_depth: usize,
    source: &'a mut Source,
    budget: &'a mut Budget<'b>,
}

impl Reader<'_, '_> {
    fn document(&mut self) -> Result<JsonId, Kind> {
        let root = self.value(None)?;
        self.skip();
        if self.at < self.text.len() {
            return Err(Kind::Syntax("something follows the value".into()));
        }
        Ok(root)
    }

    fn value(&mut self, parent: Option<(JsonId, Step)>) -> Result<JsonId, Kind> {
        self.skip();
        let id = JsonId(self.source.values.len() as u32);
        self.source.values.push(Value { json: Json::Null, offset: self.at, end: self.at, parent });
        let json = match self.peek() {
            Some(b'{') => self.nested(|reader| reader.object(id))?,
            Some(b'[') => self.nested(|reader| reader.array(id))?,
            Some(b'"') => Json::String(self.string()?.into()),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        let value = &mut self.source.values[id.0 as usize];
        (value.json, value.end) = (json, self.at);
        self.budget.spend(8)?;
        Ok(id)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Json, Kind>) -> Result<Json, Kind> {
        self.depth += 1;
        if self.depth > self.max_depth {
            let why = ": the schema is nested more deeply".into();
            return Err(Kind::Limit { limit: "max_depth", value: self.max_depth, why });
        }
        self.at += 1;
        let json = read(self)?;
        self.depth -= 1;
        Ok(json)
    }

    fn object(&mut self, id: JsonId) -> Result<Json, Kind> {
        let mut members = Vec::new();
        self.skip();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(Object::default()));
        }
        loop {
            self.skip();
            if self.peek() != Some(b'"') {
                return Err(Kind::Syntax("a member's name in quotes is missing".into()));
            }
            let name: Arc<str> = self.string()?.into();
            self.expect(b':')?;
            let value = self.value(Some((id, Step::Name(name.clone()))))?;
            members.push((name, value));
            self.skip();
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.expect(b'}')?;
        Ok(Json::Object(Object::new(members, &mut self.source.repeated)))
    }

    fn array(&mut self, id: JsonId) -> Result<Json, Kind> {
        let mut items = Vec::new();
        self.skip();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(Some((id, Step::Index(items.len()))))?);
            self.skip();
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => break,
            }
        }
        self.expect(b']')?;
        Ok(Json::Array(items))
    }

    fn string(&mut self) -> Result<String, Kind> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(['"', '\\']).ok_or_else(|| {
                Kind::Syntax("a string that begins before this place does not end".into())
            })?;
            if rest[..plain].bytes().any(|byte| byte < 0x20) {
                return Err(Kind::Syntax("a control character in a string".into()));
            }
            self.budget.spend(2 + plain as u64 / 8)?;
            text.push_str(&rest[..plain]);
            self.at += plain + 1;
            if rest.as_bytes()[plain] == b'"' {
                return Ok(text);
            }
            let escape = self.peek();
            self.at += 1;
            text.push(match escape {
                Some(b'n') => '\n',
                Some(b't') => '\t',
                Some(b'r') => '\r',
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(plain @ (b'"' | b'\\' | b'/')) => plain as char,
                Some(b'u') => self.code_point()?,
                _ => return Err(Kind::Syntax("an escape that JSON does not know".into())),
            });
        }
    }

    fn code_point(&mut self) -> Result<char, Kind> {
        let high = self.code_unit()?;
        if !(0xD800..0xE000).contains(&high) {
            return Ok(char::from_u32(high).expect("not a surrogate"));
        }
        let paired = high < 0xDC00 && self.text[self.at..].starts_with("\\u");
        if paired {
            self.at += 2;
            let low = self.code_unit()?;
            if (0xDC00..0xE000).contains(&low) {
                let point = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return Ok(char::from_u32(point).expect("above the surrogates"));
            }
        }
        Err(Kind::Syntax("half a surrogate pair, which is no character".into()))
    }

    fn code_unit(&mut self) -> Result<u32, Kind> {
        let digits = self.text.get(self.at..self.at + 4);
        let unit = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        unit.ok_or_else(|| Kind::Syntax("four hexadecimal digits are missing".into()))
    }

    fn number(&mut self) -> Result<Json, Kind> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.at;
        let mut well = self.digits() > 0;
        well &= self.text.as_bytes().get(first) != Some(&b'0') || self.at == first + 1;
        if self.peek() == Some(b'.') {
            self.at += 1;
            well &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            well &= self.digits() > 0;
        }
        if !well {
            return Err(Kind::Syntax("a number that JSON does not know".into()));
        }
        Ok(Json::Number(self.text[start..self.at].into()))
    }

    fn digits(&mut self) -> usize {
        let digits = self.text.as_bytes()[self.at..].iter();
        let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn word(&mut self) -> Result<Json, Kind> {
        for (word, json) in
            [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(json);
            }
        }
        Err(Kind::Syntax("a value is missing".into()))
    }

    fn expect(&mut self, byte: u8) -> Result<(), Kind> {
        self.skip();
        if self.peek() != Some(byte) {
            return Err(Kind::Syntax(format!("{:?} is missing", byte as char)));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}
