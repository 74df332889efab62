//! Reads the structure of the dialects of Python and ECMAScript: sequences, groups, quantifiers.

use super::{
    classes,
    error::{Note, RegexError},
    notation::{Dialect, Flags},
    syntax::{MAX_NESTING, Node},
};
use crate::{Budget, CharClass};

/// The longest text that is read, in bytes.
const MAX_LEN: usize = 1 << 20;

pub(super) fn read(
    source: &str,
    dialect: Dialect,
    flags: Flags,
    (budget, notes): (&mut Budget<'_>, &mut Vec<Note>),
) -> Result<Node, RegexError> {
    if source.len() > MAX_LEN {
        let message = format!("{} bytes; at most {MAX_LEN} are read", source.len());
        return Err(RegexError::new(0, message));
    }
    if dialect == Dialect::Ecma && (flags.verbose || flags.ascii) {
        let message = "flags x and a are Python's; ECMAScript has i, m and s";
        return Err(RegexError::new(0, message));
    }
    let (depth, budget_left) = (0, budget.split_off());
    let mut reader = Reader {
        source,
        at: 0,
        dialect,
        flags,
        depth,
        set_depth: 0,
        budget: budget_left,
        notes: Vec::new(),
    };
    let node = reader.whole();
    budget.join(&reader.budget);
    notes.append(&mut reader.notes);
    node
}

pub(super) struct Reader<'a> {
    pub(super) source: &'a str,
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    pub(super) flags: Flags,
    depth: usize,
    /// Depth of nested classes in brackets.
    pub(super) set_depth: usize,
    budget: Budget<'a>,
    notes: Vec<Note>,
}

/// A member of a class in brackets: one code point (a surrogate may end a range), or a class.
pub(super) enum Member {
    Point(u32),
    Class(CharClass),
}

/// Atom: what may stand before a quantifier.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    Repeatable,
    /// An anchor, a word boundary, or in ECMAScript a lookbehind.
    Assertion,
    Repeated,
}

/// Cost of reading an atom.
const UNITS_PER_ATOM: u64 = 16;

impl<'a> Reader<'a> {
    fn whole(&mut self) -> Result<Node, RegexError> {
        let node = self.alternatives()?;
        match self.peek() {
            None => Ok(node),
            Some(_) => {
                Err(self.error(self.at, "`)` closes no group; write `\\)` for the character"))
            }
        }
    }

    /// `(?i)` and `(?i-s)`: flags for what follows in the group, as in Rust and Java; Python has
    /// them at the beginning only, ECMAScript not at all.
    fn flags_for_the_rest(&mut self) -> Result<bool, RegexError> {
        let Some(letters) = self.rest().strip_prefix("(?") else { return Ok(false) };
        let is_flag = |c: &char| c.is_ascii_alphabetic() || *c == '-';
        let len = letters.chars().take_while(is_flag).count();
        if len == 0 || letters.as_bytes().get(len) != Some(&b')') {
            return Ok(false);
        }
        let (mut to, begin) = (true, self.at + 2);
        for (offset, letter) in letters[..len].char_indices() {
            match letter {
                '-' => to = false,
                _ => self.flags.set(letter, to, begin + offset)?,
            }
        }
        self.at = begin + len + 1;
        Ok(true)
    }

    fn alternatives(&mut self) -> Result<Node, RegexError> {
        let mut options = vec![self.sequence()?];
        while self.eat('|') {
            options.push(self.sequence()?);
        }
        Ok(if options.len() == 1 { options.remove(0) } else { Node::Alternate(options) })
    }

    fn sequence(&mut self) -> Result<Node, RegexError> {
        let mut parts: Vec<Node> = Vec::new();
        let mut last = None;
        loop {
            self.skip_blanks();
            let start = self.at;
            let Some(next) = self.peek() else { break };
            if matches!(next, '|' | ')') {
                break;
            }
            if let Some((min, max)) = self.quantifier()? {
                let Some(kind) = last else {
                    return Err(self.error(
                        start,
                        "there is nothing before this quantifier to repeat; escape it with `\\`",
                    ));
                };
                self.check_repeatable(kind, start)?;
                let reluctant = self.eat('?');
                let inner = Box::new(parts.pop().expect("a part before"));
                let repeat = Node::Repeat { inner, min, max, reluctant, offset: start };
                let is_possessive = !reluctant && self.eat('+');
                parts.push(if is_possessive { self.committed(repeat, start)? } else { repeat });
                last = Some(Atom::Repeated);
                continue;
            }
            if self.rest().starts_with("(?#") && self.dialect == Dialect::Python {
                let Some(len) = self.rest().find(')') else {
                    return Err(self.error(start, "this comment has no end; close it with `)`"));
                };
                self.at += len + 1;
                continue;
            }
            if self.flags_for_the_rest()? {
                last = None;
                continue;
            }
            if let Some(quoted) = self.quoted() {
                last = (!quoted.is_empty()).then_some(Atom::Repeatable);
                parts.extend(quoted);
                continue;
            }
            let (node, kind) = self.atom()?;
            parts.push(node);
            last = Some(kind);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Node::Concat(parts) })
    }

    /// An expression that gives back nothing of what it has taken, as in possessive quantifiers and
    /// atomic groups.
    ///
    /// Characters of one class are taken as long as there are any: no other follows, or no more may
    /// be taken.
    fn committed(&self, node: Node, start: usize) -> Result<Node, RegexError> {
        let is_class = |node: &Node| matches!(node, Node::Class(_));
        match node {
            Node::Class(_) => Ok(node),
            Node::Concat(ref parts) if parts.iter().all(is_class) => Ok(node),
            Node::Repeat { inner, min, max, reluctant: false, offset } if is_class(&inner) => {
                let times = |min, max| {
                    let inner = inner.clone();
                    Node::Repeat { inner, min, max, reluctant: false, offset }
                };
                let none_more = || {
                    let inner = inner.clone();
                    Node::Look { inner, behind: false, negated: true, offset: start }
                };
                Ok(match max {
                    None => Node::Concat(vec![times(min, None), none_more()]),
                    Some(max) if max > min => {
                        let fewer = Node::Concat(vec![times(min, Some(max - 1)), none_more()]);
                        Node::Alternate(vec![times(max, Some(max)), fewer])
                    }
                    _ => times(min, max),
                })
            }
            _ => Err(self.irregular(
                start,
                "possessive quantifiers and atomic groups do not backtrack, which no finite automaton does but for one class of characters, \
                 `[a-z]++`; leave out the `+`, or write `(?:…)`",
            )),
        }
    }

    /// Characters between `\Q` and `\E`, as in Java.
    fn quoted(&mut self) -> Option<Vec<Node>> {
        let quoted = self.rest().strip_prefix("\\Q")?;
        let len = quoted.find("\\E").unwrap_or(quoted.len());
        let nodes = quoted[..len].chars().map(|c| Node::Class(self.fold(&CharClass::single(c))));
        let nodes = nodes.collect();
        self.at = (self.at + 2 + len + 2).min(self.source.len());
        Some(nodes)
    }

    fn check_repeatable(&self, kind: Atom, start: usize) -> Result<(), RegexError> {
        match kind {
            Atom::Repeatable => Ok(()),
            Atom::Assertion => Err(self.error(start, "an anchor, a word boundary or a lookbehind cannot be repeated; leave out the quantifier")),
            Atom::Repeated => Err(self.error(start, "two quantifiers in a row; put what is repeated twice in `(?:…)`")),
        }
    }

    fn atom(&mut self) -> Result<(Node, Atom), RegexError> {
        let start = self.at;
        self.budget.spend(UNITS_PER_ATOM)?;
        let next = self.next().expect("a character");
        let node = match next {
            '(' => return self.group(start),
            '[' => {
                let class = self.class(start)?;
                Node::Class(class)
            }
            '.' => Node::Class(classes::dot(self.dialect, self.flags)),
            '^' => return Ok((Node::start(self.flags.multi_line), Atom::Assertion)),
            '$' => return Ok((self.dollar(start), Atom::Assertion)),
            '\\' => return self.escape(start),
            other => Node::Class(self.fold(&CharClass::single(other))),
        };
        Ok((node, Atom::Repeatable))
    }

    /// Python's `$` also matches before a line break that ends the text.
    fn dollar(&self, start: usize) -> Node {
        let end = Node::end(self.flags.multi_line);
        if self.dialect == Dialect::Ecma || self.flags.multi_line {
            return end;
        }
        let line_break = Node::Class(CharClass::single('\n'));
        let last_line = Node::look_ahead(Node::Concat(vec![line_break, end.clone()]), start);
        Node::Alternate(vec![end, last_line])
    }

    fn escape(&mut self, start: usize) -> Result<(Node, Atom), RegexError> {
        let word = || classes::by_letter('w', self.dialect, self.flags);
        let place = match self.peek() {
            Some('b') => Node::word_boundary(&word(), false),
            Some('B') => Node::word_boundary(&word(), true),
            Some('A') => Node::start(false),
            Some('Z' | 'z') => Node::end(false),
            Some('R') => {
                self.next();
                return Ok((line_end(), Atom::Repeatable));
            }
            _ => {
                let class = self.escaped_class(start, false)?;
                return Ok((Node::Class(class), Atom::Repeatable));
            }
        };
        self.next();
        Ok((place, Atom::Assertion))
    }

    fn group(&mut self, start: usize) -> Result<(Node, Atom), RegexError> {
        let outer_flags = self.flags;
        let is_atomic = self.eat_text("?>");
        let look = if is_atomic { None } else { self.group_head(start)? };
        self.depth += 1;
        if self.depth > MAX_NESTING {
            let message = format!("groups nest deeper than {MAX_NESTING}; nest them less");
            return Err(self.error(start, &message));
        }
        let inner = self.alternatives()?;
        self.depth -= 1;
        if !self.eat(')') {
            return Err(self.error(
                start,
                "this group has no end; close it with `)`, or write `\\(` for the character",
            ));
        }
        self.flags = outer_flags;
        match look {
            None if is_atomic => Ok((self.committed(inner, start)?, Atom::Repeatable)),
            None => {
                // A group keeps its parts together: a quantifier after it repeats them all.
                Ok((inner, Atom::Repeatable))
            }
            Some((behind, negated)) => {
                let kind = match behind && self.dialect == Dialect::Ecma {
                    true => Atom::Assertion,
                    false => Atom::Repeatable,
                };
                let inner = Box::new(inner);
                Ok((Node::Look { inner, behind, negated, offset: start }, kind))
            }
        }
    }

    /// Kind of a group, by what follows `(`; for a lookaround, whether it looks behind and whether
    /// it is negated.
    fn group_head(&mut self, start: usize) -> Result<Option<(bool, bool)>, RegexError> {
        if !self.eat('?') {
            return Ok(None);
        }
        for (head, look) in [
            ("<=", (true, false)),
            ("<!", (true, true)),
            ("=", (false, false)),
            ("!", (false, true)),
        ] {
            if self.eat_text(head) {
                return Ok(Some(look));
            }
        }
        if self.eat(':') {
            return Ok(None);
        }
        if self.rest().starts_with("P=") {
            return Err(self.backreference(start));
        }
        if self.rest().starts_with('(') {
            return Err(self.irregular(start, "a group that depends on another having matched is not regular; write both cases out"));
        }
        if self.rest().starts_with("P<") || self.rest().starts_with('<') {
            let len = self.rest().find('>');
            let name_at = self.at + if self.rest().starts_with('P') { 2 } else { 1 };
            let name = len.map(|len| &self.source[name_at..self.at + len]);
            let word = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
            let sound = |name: &&str| {
                name.starts_with(|c: char| word(c) && !c.is_numeric()) && name.chars().all(word)
            };
            let Some(name) = name.filter(sound) else {
                return Err(self.error(start, "a group's name is letters, digits and `_`, not a digit first, and ends with `>`"));
            };
            self.at = name_at + name.len() + 1;
            return Ok(None);
        }
        self.group_flags(start)?;
        Ok(None)
    }

    /// `(?i:`, `(?-i:`, `(?i-s:`.
    fn group_flags(&mut self, start: usize) -> Result<(), RegexError> {
        let mut to = true;
        let mut any = false;
        loop {
            let offset = self.at;
            match self.next() {
                Some(':') if any => return Ok(()),
                Some('-') if to => to = false,
                Some(letter) if letter.is_ascii_alphabetic() => {
                    let known = self.dialect == Dialect::Python || "imsxu".contains(letter);
                    if !known {
                        return Err(self.error(start, "ECMAScript has no such group; it has `(?:…)`, `(?<name>…)`, `(?=…)`, `(?!…)`, `(?<=…)`, `(?<!…)` and the flags i, m, s and x"));
                    }
                    self.flags.set(letter, to, offset)?;
                    any = true;
                }
                _ => {
                    return Err(self.error(
                        start,
                        "no group begins like this; write `(?:…)`, or `\\(` for the character",
                    ));
                }
            }
        }
    }

    /// The least and greatest number of times, where a quantifier is next.
    fn quantifier(&mut self) -> Result<Option<(u32, Option<u32>)>, RegexError> {
        let start = self.at;
        let bounds = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let Some(bounds) = self.counted()? else {
                    self.at = start;
                    return Ok(None);
                };
                if bounds.1.is_some_and(|max| max < bounds.0) {
                    return Err(self.error(
                        start,
                        "the least number of times is greater than the greatest; swap them",
                    ));
                }
                return Ok(Some(bounds));
            }
            _ => return Ok(None),
        };
        self.next();
        Ok(Some(bounds))
    }

    /// `{m}`, `{m,}`, `{m,n}`, in Python `{,n}`; `None` where the brace is a character.
    fn counted(&mut self) -> Result<Option<(u32, Option<u32>)>, RegexError> {
        self.next();
        if self.peek() == Some('}') {
            return Ok(None);
        }
        let min = self.number()?;
        let comma = self.eat(',');
        let max = if comma { self.number()? } else { min };
        if !self.eat('}') || (min.is_none() && (self.dialect == Dialect::Ecma || !comma)) {
            return Ok(None);
        }
        Ok(Some((min.unwrap_or(0), max)))
    }

    fn number(&mut self) -> Result<Option<u32>, RegexError> {
        let len = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let digits = &self.rest()[..len];
        if len == 0 {
            return Ok(None);
        }
        let number = digits.parse().map_err(|_| {
            let message = format!("{digits} times; a repetition counts to {} at most", u32::MAX);
            self.error(self.at, &message)
        })?;
        self.at += len;
        Ok(Some(number))
    }

    /// Blanks and comments of verbose expressions.
    fn skip_blanks(&mut self) {
        while self.flags.verbose {
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r' | '\u{B}' | '\u{C}') => _ = self.next(),
                Some('#') => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    pub(super) fn backreference(&self, start: usize) -> RegexError {
        self.irregular(start, "a backreference repeats what a group matched, which is not regular; write the group's expression again")
    }

    /// A nested class in brackets begins.
    pub(super) fn nest(&mut self, start: usize) -> Result<(), RegexError> {
        self.set_depth += 1;
        if self.set_depth > MAX_NESTING {
            let message = format!("classes nest deeper than {MAX_NESTING}; nest them less");
            return Err(self.error(start, &message));
        }
        Ok(())
    }

    pub(super) fn unnest(&mut self) {
        self.set_depth -= 1;
    }

    pub(super) fn note(&mut self, offset: usize, message: String) {
        self.notes.push(Note { offset, message });
    }

    pub(super) fn fold(&self, class: &CharClass) -> CharClass {
        classes::fold(class, self.dialect, self.flags)
    }

    pub(super) fn error(&self, offset: usize, message: &str) -> RegexError {
        RegexError::new(offset, message)
    }

    /// An error about what no finite automaton does.
    fn irregular(&self, offset: usize, message: &str) -> RegexError {
        RegexError { is_irregular: true, ..self.error(offset, message) }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn eat_text(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }
}

/// `\R`: an end of a line.
fn line_end() -> Node {
    let both = ['\r', '\n'].map(|c| Node::Class(CharClass::single(c)));
    let one = CharClass::new([('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')]);
    Node::Alternate(vec![Node::Concat(both.into()), Node::Class(one)])
}
