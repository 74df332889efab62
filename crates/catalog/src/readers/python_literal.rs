//! Literals of Python, as files have them that were written by `print` and `str`, of NumPy's arrays
//! too.

use serde_json::{Map, Number, Value};

/// Depth to which literals may nest.
const MAX_DEPTH: usize = 64;

/// Reads a literal of Python as JSON: lists, tuples, dicts, texts, numbers, `True`, `False` and
/// `None`.
///
/// Between the elements of a list blanks do for commas, as NumPy prints arrays: `[3 1]`, `['a'
/// 'b']`.
///
/// # Errors
/// A sentence with the place where the text is none, or where a dict has a key twice.
pub fn parse_literal(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.skip_blanks();
    match reader.rest() {
        "" => Ok(value),
        _ => Err(reader.error("something follows the literal")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, reason: &str) -> String {
        let before = self.text[..self.at].chars().count();
        format!("{reason}, at character {}", before + 1)
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Passes over blanks and then this character, if it comes next.
    fn take(&mut self, char: char) -> bool {
        self.skip_blanks();
        let is_next = self.rest().starts_with(char);
        self.at += if is_next { char.len_utf8() } else { 0 };
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(self.error("it is nested too deep"));
        }
        self.skip_blanks();
        match self.rest().chars().next() {
            Some('[') => self.list('[', ']', depth),
            Some('(') => self.list('(', ')', depth),
            Some('{') => self.dict(depth),
            Some('\'' | '"') => Ok(self.text()?.into()),
            Some('u' | 'U' | 'b' | 'B')
                if matches!(self.rest().as_bytes().get(1), Some(b'\'' | b'"')) =>
            {
                self.at += 1;
                Ok(self.text()?.into())
            }
            _ => self.word(),
        }
    }

    fn list(&mut self, open: char, close: char, depth: usize) -> Result<Value, String> {
        self.take(open);
        let mut values = Vec::new();
        // Whether commas part the elements; those of NumPy's arrays are parted by blanks alone.
        let mut has_commas = open != '[';
        while !self.take(close) {
            values.push(self.value(depth + 1)?);
            let has_blank = self.rest().starts_with(char::is_whitespace);
            if self.take(',') {
                if values.len() > 1 && !has_commas {
                    return Err(self.error("commas part some elements and blanks others"));
                }
                has_commas = true;
            } else if !self.rest().starts_with(close) && (has_commas || !has_blank) {
                return Err(self.error("a comma is missing"));
            }
        }
        Ok(values.into())
    }

    fn dict(&mut self, depth: usize) -> Result<Value, String> {
        self.take('{');
        let mut members = Map::new();
        while !self.take('}') {
            let name = match self.value(depth + 1)? {
                Value::String(name) => name,
                Value::Number(number) => number.to_string(),
                _ => return Err(self.error("a key is neither a text nor a number")),
            };
            if !self.take(':') {
                return Err(self.error("a colon is missing"));
            }
            if members.contains_key(&name) {
                return Err(self.error(&format!("the key {name:?} stands twice")));
            }
            members.insert(name, self.value(depth + 1)?);
            if !self.take(',') && !self.rest().starts_with('}') {
                return Err(self.error("a comma is missing"));
            }
        }
        Ok(Value::Object(members))
    }

    /// A number, or the name of a constant.
    fn word(&mut self) -> Result<Value, String> {
        let is_part = |char: char| char.is_ascii_alphanumeric() || "+-._".contains(char);
        let rest = self.rest();
        let word = &rest[..rest.find(|char| !is_part(char)).unwrap_or(rest.len())];
        let value = match word {
            "True" => Some(true.into()),
            "False" => Some(false.into()),
            "None" => Some(Value::Null),
            "..." => {
                return Err(self.error("it was cut off when it was printed, where ... stands"));
            }
            _ => number(word),
        };
        let value = value.ok_or_else(|| self.error("here is no literal of Python"))?;
        self.at += word.len();
        Ok(value)
    }

    /// The text between quotes.
    fn text(&mut self) -> Result<String, String> {
        let quote = self.rest().chars().next().expect("a quote comes next");
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(char) = self.rest().chars().next() else {
                return Err(self.error("a quote is not closed"));
            };
            self.at += char.len_utf8();
            match char {
                '\\' => text.extend(self.escape()?),
                _ if char == quote => return Ok(text),
                _ => text.push(char),
            }
        }
    }

    /// Character that an escape means; none for one that ends a line.
    fn escape(&mut self) -> Result<Option<char>, String> {
        let Some(char) = self.rest().chars().next() else {
            return Err(self.error("a quote is not closed"));
        };
        self.at += char.len_utf8();
        Ok(Some(match char {
            '\n' => return Ok(None),
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'x' => self.code(2)?,
            'u' => self.code(4)?,
            'U' => self.code(8)?,
            '0' => '\0',
            '\\' | '\'' | '"' => char,
            _ => return Err(self.error("an escape is not known")),
        }))
    }

    /// Character spelled by `digits` hexadecimal digits.
    fn code(&mut self, digits: usize) -> Result<char, String> {
        let code =
            self.rest().get(..digits).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
        let char = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        let char = char.ok_or_else(|| self.error("an escape names no character"))?;
        self.at += digits;
        Ok(char)
    }
}

fn number(word: &str) -> Option<Value> {
    let digits = word.strip_suffix('L').unwrap_or(word);
    let whole = digits.parse::<u64>().ok().map(Number::from);
    let whole = whole.or_else(|| digits.parse::<i64>().ok().map(Number::from));
    // `inf` and `nan` are names that were never assigned.
    let is_number = word.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    let float = || word.parse::<f64>().ok().filter(|_| is_number).and_then(Number::from_f64);
    whole.or_else(float).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: Option<Value>) {
        assert_eq!(parse_literal(text).ok(), expected, "{text}");
    }

    #[test]
    fn literals() {
        check(
            "{u'hours': 0.1, 'ids': ['a', \"it's\", 'b\\'c'], u\"x\": None, 7: True}",
            Some(json!({"hours": 0.1, "ids": ["a", "it's", "b'c"], "x": null, "7": true})),
        );
        check(" ( 1, -2 , 3L,) ", Some(json!([1, -2, 3])));
        check(
            "['caf\\xe9 \\u2603 \\U0001F600 \\\\ \\n']",
            Some(json!(["caf\u{e9} \u{2603} \u{1F600} \\ \n"])),
        );
        check("[]", Some(json!([])));
        check("{}", Some(json!({})));
        check("['a',]", Some(json!(["a"])));
        check("['a' 'b'\n \"c\"]", Some(json!(["a", "b", "c"])));
        check("[ 3  1 12]", Some(json!([3, 1, 12])));
        check("[[1 2]\n [3 4]]", Some(json!([[1, 2], [3, 4]])));
        for none in [
            "",
            "['a'",
            "['a''b']",
            "['a' 'b', 'c']",
            "['a', 'b' 'c']",
            "('a' 'b')",
            "[1 2 ... 8 9]",
            "[1, 2, ...]",
            "{'a': 1, 'a': 2}",
            "[a]",
            "['a]",
            "[1.5x]",
            "[,]",
            "{'a' 1}",
            "{1}",
            "{None: 1}",
            "'a' b",
            "['\\q']",
            "['\\xg0']",
            "nan",
            "[inf]",
        ] {
            check(none, None);
        }
        let deep = "[".repeat(100_000);
        assert!(parse_literal(&deep).unwrap_err().contains("nested too deep"));
    }
}
