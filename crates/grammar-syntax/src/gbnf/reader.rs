//! Reads the text of a grammar.

use std::rc::Rc;

use hashbrown::HashSet;

use super::{
    GbnfError,
    syntax::{Definition, Expression, Kind},
};
use crate::{Budget, CharClass, MemberSpelling, Slot, Span, TokenPattern};
use crate::{catalog_references, substring_references, token_references};

/// Beginning of a reference to a catalog.
const CATALOG: &str = "<catalog:";
/// Beginning of a reference to substrings of documents.
const SUBSTRING: &str = "<substring:";
/// Limit on the nesting of parentheses.
const MAX_NESTING: usize = 200;
/// Bounds of a repetition.
const MAX_STACKED: usize = 4;
/// The longest source that is read, in bytes.
const MAX_LEN: usize = 1 << 24;

/// Cost of an element.
const UNITS_PER_ELEMENT: u64 = 16;

pub(super) fn read(source: &str, budget: &mut Budget<'_>) -> Result<Vec<Definition>, GbnfError> {
    let defined = Rc::new(defined_names(source));
    let mut reader = Reader { source, at: 0, depth: 0, defined, budget: budget.split_off() };
    if source.len() > MAX_LEN {
        let message = format!("the grammar has {} bytes; at most {MAX_LEN} are read", source.len());
        return Err(reader.error((0, 0), &message));
    }
    let mut rules = Vec::new();
    reader.skip_blanks();
    while reader.peek().is_some() {
        rules.push(reader.definition()?);
    }
    budget.join(&reader.budget);
    Ok(rules)
}

pub(super) struct Reader<'a> {
    source: &'a str,
    pub(super) at: usize,
    depth: usize,
    /// Names of rules. Points may be in them, as XGrammar allows; elsewhere a point is any
    /// character.
    defined: Rc<HashSet<&'a str>>,
    pub(super) budget: Budget<'a>,
}

impl<'a> Reader<'a> {
    fn definition(&mut self) -> Result<Definition, GbnfError> {
        let start = self.at;
        let name = self.name().to_owned();
        let place = (start, self.at);
        if name.is_empty() {
            return Err(self.unexpected(
                "a rule begins with its name: letters, digits, `-`, `_` and points between them, then `::=`",
            ));
        }
        self.skip_blanks();
        if !self.eat("::=") {
            return Err(self.unexpected("after a rule's name comes `::=`"));
        }
        self.skip_blanks();
        let body = self.choice()?;
        if self.peek() == Some(')') {
            return Err(self.unexpected(
                "it closes nothing; leave it out, or write `\")\"` for the character",
            ));
        }
        Ok(Definition { name, place, body })
    }

    fn choice(&mut self) -> Result<Expression, GbnfError> {
        let start = self.at;
        let mut options = vec![self.sequence()?];
        while self.eat("|") {
            self.skip_blanks();
            options.push(self.sequence()?);
        }
        if options.len() == 1 {
            return Ok(options.remove(0));
        }
        let end = options.last().map_or(start, |last| last.place.1);
        Ok(Expression { kind: Kind::Choice(options), place: (start, end) })
    }

    fn sequence(&mut self) -> Result<Expression, GbnfError> {
        let start = self.at;
        let mut end = start;
        let mut parts: Vec<Expression> = Vec::new();
        while let Some(next) = self.peek() {
            if matches!(next, '|' | ')') || self.at_definition() {
                break;
            }
            let part_at = self.at;
            if let Some((min, max)) = self.times()? {
                let Some(last) = parts.pop() else {
                    return Err(self.error((part_at, self.at), "there is nothing before this repetition; put it after what is repeated, or quote it"));
                };
                if repeat_depth(&last) >= MAX_STACKED {
                    let message =
                        format!("more than {MAX_STACKED} repetitions of one another; write fewer");
                    return Err(self.error((part_at, self.at), &message));
                }
                let place = (last.place.0, self.at);
                parts.push(Expression { kind: Kind::Repeat(Box::new(last), min, max), place });
            } else {
                let kind = self.element(next)?;
                parts.push(Expression { kind, place: (part_at, self.at) });
            }
            end = self.at;
            self.skip_blanks();
        }
        if parts.len() == 1 {
            return Ok(parts.remove(0));
        }
        Ok(Expression { kind: Kind::Sequence(parts), place: (start, end) })
    }

    fn element(&mut self, next: char) -> Result<Kind, GbnfError> {
        let start = self.at;
        self.spend(start)?;
        match next {
            '"' => self.literal().map(Kind::Literal),
            '[' => self.class().map(Kind::Class),
            '.' => {
                self.at += 1;
                Ok(Kind::Class(CharClass::any()))
            }
            '(' => {
                self.at += 1;
                if self.peek() == Some('=') {
                    return Err(self.error((start, self.at + 1), "a lookahead `(= …)` is not known here; leave it out: it does not change which texts are sound"));
                }
                self.depth += 1;
                if self.depth > MAX_NESTING {
                    let message = format!(
                        "parentheses nest deeper than {MAX_NESTING}; make rules of the inner ones"
                    );
                    return Err(self.error((start, self.at), &message));
                }
                self.skip_blanks();
                let inner = self.choice()?;
                if !self.eat(")") {
                    return Err(
                        self.error((start, start + 1), "this parenthesis is not closed; add `)`")
                    );
                }
                self.depth -= 1;
                Ok(inner.kind)
            }
            '<' if self.rest().starts_with(CATALOG) => {
                let rule = "a catalog is written `<catalog:name>` or `<catalog:name.field>`";
                self.members(CATALOG, rule, catalog_references::from_label).map(Kind::Members)
            }
            '<' if self.rest().starts_with(SUBSTRING) => {
                let rule = "substrings are written `<substring:name>` or `<substring:name.unit>`";
                self.members(SUBSTRING, rule, substring_references::from_label).map(Kind::Members)
            }
            '<' | '!' => self.tokens().map(Kind::Tokens),
            _ => {
                let name = self.name();
                if name.is_empty() {
                    return Err(self.unexpected("here may stand a rule's name, a literal in `\"`, a class in `[]`, `.`, a group in `()`, or a repetition"));
                }
                match self.at_macro(name) {
                    true => self.macro_call(name, start),
                    false => Ok(Kind::Reference(name.to_owned())),
                }
            }
        }
    }

    /// Takes an element off the budget.
    pub(super) fn spend(&mut self, start: usize) -> Result<(), GbnfError> {
        let step = self.budget.spend(UNITS_PER_ELEMENT);
        step.map_err(|why| GbnfError::stopped(self.source, (start, start), why))
    }

    /// True when a rule has this name.
    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// `<catalog:shop.title>`, `<substring:doc.words>`.
    fn members(
        &mut self,
        begin: &str,
        rule: &str,
        from_label: fn(&str, MemberSpelling, Option<Span>) -> Result<Slot, String>,
    ) -> Result<Slot, GbnfError> {
        let start = self.at;
        let line = self.rest().lines().next().unwrap_or_default();
        let Some(length) = line.find('>') else {
            return Err(self.error((start, start + 1), rule));
        };
        let label = &line[begin.len()..length];
        let span = Some(Span::locate(self.source, start, start + length + 1));
        let slot = from_label(label, MemberSpelling::Raw, span);
        let slot = slot.map_err(|rule| self.error((start, start + length + 1), &rule))?;
        self.at += length + 1;
        Ok(slot)
    }

    /// `<name>`, `<[7]>`, and with `!` before it all other tokens.
    fn tokens(&mut self) -> Result<TokenPattern, GbnfError> {
        let start = self.at;
        let negated = self.eat("!");
        let read = match self.rest().starts_with('<') {
            true => token_references::read(self.rest()),
            false => Err("after `!` stands a token, `!<name>` or `!<[7]>`".to_owned()),
        };
        let (tokens, length) = read.map_err(|rule| self.error((start, start + 1), &rule))?;
        self.at += length;
        Ok(TokenPattern { negated: tokens.negated != negated, ..tokens })
    }

    /// `*`, `+`, `?`, `{m}`, `{m,}`, `{m,n}`.
    fn times(&mut self) -> Result<Option<(u32, Option<u32>)>, GbnfError> {
        let start = self.at;
        let simple = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.at += 1;
                self.skip_blanks();
                let min = self.number()?;
                let max = if self.eat(",") {
                    self.skip_blanks();
                    let endless = self.peek() == Some('}');
                    if endless { None } else { Some(self.number()?) }
                } else {
                    Some(min)
                };
                if !self.eat("}") {
                    return Err(self.unexpected("a repetition is written `{m}`, `{m,}` or `{m,n}`"));
                }
                if max.is_some_and(|max| max < min) {
                    return Err(self.error(
                        (start, self.at),
                        "the least number of times is greater than the greatest; swap them",
                    ));
                }
                return Ok(Some((min, max)));
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(simple))
    }

    pub(super) fn number(&mut self) -> Result<u32, GbnfError> {
        let len = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 {
            return Err(self.unexpected("a repetition is written `{m}`, `{m,}` or `{m,n}` with numbers; `{0,n}` for at most n"));
        }
        let digits = &self.rest()[..len];
        let number = digits.parse().map_err(|_| {
            let message = format!("{digits} times; a repetition counts to {} at most", u32::MAX);
            self.error((self.at, self.at + len), &message)
        })?;
        self.at += len;
        self.skip_blanks();
        Ok(number)
    }

    pub(super) fn literal(&mut self) -> Result<String, GbnfError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let at = self.at;
            match self.next() {
                Some('"') => return Ok(text),
                None | Some('\n' | '\r') => {
                    return Err(self.error((start, at), "this literal does not end on its line; close it with `\"`, and write a line break as `\\n`"));
                }
                Some('\\') => {
                    let point = self.escape(at)?;
                    let found = char::from_u32(point);
                    text.push(found.ok_or_else(|| self.error((at, self.at), "this number is no character's: half of a surrogate pair, or past 10FFFF; write the character's own number with `\\U`"))?);
                }
                Some(other) => text.push(other),
            }
        }
    }

    fn class(&mut self) -> Result<CharClass, GbnfError> {
        let start = self.at;
        self.at += 1;
        let negated = self.eat("^");
        let mut ranges = Vec::new();
        while !self.eat("]") {
            let at = self.at;
            let low = self.member(start)?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            let high = if is_range {
                self.at += 1;
                self.member(start)?
            } else {
                low
            };
            if high < low {
                return Err(
                    self.error((at, self.at), "this range ends before it begins; swap its ends")
                );
            }
            ranges.extend(char::from_u32(low).zip(char::from_u32(high)));
            if char::from_u32(low).is_none() || char::from_u32(high).is_none() {
                return Err(self.error((at, self.at), "this number is no character's: half of a surrogate pair, or past 10FFFF; write the character's own number with `\\U`"));
            }
        }
        if ranges.is_empty() && !negated {
            return Err(self.error((start, self.at), "this class has no character; write `\"\"` for the empty text, or `\\]` for the character"));
        }
        let class = CharClass::new(ranges);
        Ok(if negated { class.complement() } else { class })
    }

    fn member(&mut self, start: usize) -> Result<u32, GbnfError> {
        let at = self.at;
        match self.next() {
            None => {
                Err(self.error((start, start + 1), "this class does not end; close it with `]`"))
            }
            Some('\\') => self.escape(at),
            Some(other) => Ok(other as u32),
        }
    }

    /// The code point of an escape, `\` already read.
    fn escape(&mut self, start: usize) -> Result<u32, GbnfError> {
        let digits = match self.next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('t') => return Ok(0x9),
            Some('n') => return Ok(0xA),
            Some('r') => return Ok(0xD),
            Some('a') => return Ok(0x7),
            Some('b') => return Ok(0x8),
            Some('f') => return Ok(0xC),
            Some('v') => return Ok(0xB),
            Some('0') => return Ok(0),
            Some('e') => return Ok(0x1B),
            Some(other) if other.is_ascii_punctuation() => return Ok(other as u32),
            _ => return Err(self.error((start, self.at), "there is no such escape; there are \\n \\r \\t \\a \\b \\f \\v \\e \\0, \\xHH, \\uHHHH, \\UHHHHHHHH, and `\\` before punctuation")),
        };
        let hex =
            self.rest().get(..digits).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let number = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let Some(number) = number else {
            let message = format!(
                "this escape has {digits} hexadecimal digits; fill up with zeros on the left"
            );
            return Err(self.error((start, self.at), &message));
        };
        self.at += digits;
        Ok(number)
    }

    /// True when the next rule begins here.
    fn at_definition(&self) -> bool {
        let budget = self.budget.split_off();
        let defined = Rc::clone(&self.defined);
        let mut ahead = Reader { source: self.source, at: self.at, depth: 0, defined, budget };
        if ahead.name().is_empty() {
            return false;
        }
        ahead.skip_blanks();
        ahead.rest().starts_with("::=")
    }

    pub(super) fn name(&mut self) -> &'a str {
        let len = match dotted_length(self.rest()) {
            len if self.is_defined(&self.rest()[..len]) => len,
            _ => self.rest().bytes().take_while(is_word).count(),
        };
        let name = &self.rest()[..len];
        self.at += len;
        name
    }

    /// Blanks, line breaks and comments.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r') => self.at += 1,
                Some('#') => {
                    let line = self.rest();
                    self.at += line.find(['\n', '\r']).unwrap_or(line.len());
                }
                _ => return,
            }
        }
    }

    pub(super) fn unexpected(&self, rule: &str) -> GbnfError {
        match self.peek() {
            None => self.error((self.at, self.at), &format!("the grammar ends here; {rule}")),
            Some(next) => {
                let place = (self.at, self.at + next.len_utf8());
                self.error(place, &format!("unexpected {next:?}; {rule}"))
            }
        }
    }

    pub(super) fn error(&self, (start, end): (usize, usize), message: &str) -> GbnfError {
        let span = Span::locate(self.source, start, end);
        GbnfError { span, message: message.to_owned(), interrupted: None }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// The length of the name that a text begins with, points between other characters of names
/// included.
fn dotted_length(text: &str) -> usize {
    let mut len = 0;
    for part in text.split('.') {
        let word = part.bytes().take_while(is_word).count();
        if word == 0 {
            break;
        }
        len += usize::from(len > 0) + word;
        if word < part.len() {
            break;
        }
    }
    len
}

/// The names that stand before `::=`.
fn defined_names(source: &str) -> HashSet<&str> {
    let is_part = |character: char| {
        u8::try_from(character).is_ok_and(|byte| is_word(&byte)) || character == '.'
    };
    let before = source.match_indices("::=").map(|(at, _)| source[..at].trim_end());
    let names = before.map(|before| &before[before.trim_end_matches(is_part).len()..]);
    names.filter(|name| !name.is_empty() && dotted_length(name) == name.len()).collect()
}

/// Number of repetitions of repetitions that an expression is.
fn repeat_depth(expression: &Expression) -> usize {
    let mut depth = 0;
    let mut inner = expression;
    while let Kind::Repeat(next, ..) = &inner.kind {
        depth += 1;
        inner = next;
    }
    depth
}
