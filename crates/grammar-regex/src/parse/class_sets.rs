//! Classes in brackets with what other dialects have in them: operations on sets, nested classes,
//! POSIX names.
//!
//! Rust's and Java's `[a-z&&[^aeiou]]` is an intersection; to Python's `re` it is the class
//! `[a-z&[^aeiou]` and a bracket after it. ECMAScript with the flag `u` refuses the bracket. Who
//! writes an operation before another class means the operation, so it is read as that, with a
//! note. What only Rust would take for one (`[+--]`) is read as the dialect does.

use super::{
    error::RegexError,
    notation::Dialect,
    reader::{Member, Reader},
};
use crate::CharClass;

/// Operation between two sets in brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Intersection,
    Difference,
    SymmetricDifference,
}

const OPERATIONS: [(&str, Operation); 3] = [
    ("&&", Operation::Intersection),
    ("--", Operation::Difference),
    ("~~", Operation::SymmetricDifference),
];

/// POSIX names of classes.
const POSIX: [(&str, &[(char, char)]); 14] = [
    ("alnum", &[('0', '9'), ('A', 'Z'), ('a', 'z')]),
    ("alpha", &[('A', 'Z'), ('a', 'z')]),
    ("ascii", &[('\0', '\x7F')]),
    ("blank", &[('\t', '\t'), (' ', ' ')]),
    ("cntrl", &[('\0', '\x1F'), ('\x7F', '\x7F')]),
    ("digit", &[('0', '9')]),
    ("graph", &[('!', '~')]),
    ("lower", &[('a', 'z')]),
    ("print", &[(' ', '~')]),
    ("punct", &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')]),
    ("space", &[('\t', '\r'), (' ', ' ')]),
    ("upper", &[('A', 'Z')]),
    ("word", &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
    ("xdigit", &[('0', '9'), ('A', 'F'), ('a', 'f')]),
];

/// A POSIX class by its name.
pub(super) fn posix(name: &str) -> Option<CharClass> {
    let (_, ranges) = POSIX.iter().find(|(known, _)| *known == name)?;
    Some(CharClass::new(ranges.iter().copied()))
}

impl Reader<'_> {
    /// A class in brackets, `[` already read.
    pub(super) fn class(&mut self, start: usize) -> Result<CharClass, RegexError> {
        if let Some(at) = self.operation_ahead() {
            let operation = &self.source[at..at + 2];
            let plain = if self.dialect == Dialect::Python { "Python" } else { "ECMAScript" };
            let message = format!(
                "`{operation}` in a class is an operation on sets, as in the dialects of Rust and Java; {plain} takes it for characters: \
                 escape it where these are meant"
            );
            self.note(at, message);
            self.nest(start)?;
            let set = self.set(start);
            self.unnest();
            return set;
        }
        if let Some(at) = self.nested_ahead() {
            let is_ecma = self.dialect == Dialect::Ecma;
            let reading = match is_ecma {
                true => "is read as a class within a class, as in the dialects of Rust and Java",
                false => {
                    "is read as a character, as Python does; in the dialects of Rust and Java a class begins there"
                }
            };
            self.note(
                at,
                format!("`[` in a class {reading}: escape it where the character is meant"),
            );
            if is_ecma {
                self.nest(start)?;
                let set = self.set(start);
                self.unnest();
                return set;
            }
        }
        self.plain_class(start)
    }

    /// A class of the dialect itself, with POSIX names.
    fn plain_class(&mut self, start: usize) -> Result<CharClass, RegexError> {
        let negated = self.eat('^');
        let mut class = CharClass::new([]);
        // In Python a `]` that comes first is a character; in ECMAScript `[]` is empty.
        let mut first = self.dialect == Dialect::Python;
        loop {
            if !first && self.eat(']') {
                break;
            }
            if !first {
                self.note_operator();
            }
            first = false;
            class = class.union(&self.item(start)?);
        }
        Ok(if negated { class.complement() } else { class })
    }

    /// A class of sets and operations, which go from left to right as in Rust; `[` already read.
    fn set(&mut self, start: usize) -> Result<CharClass, RegexError> {
        let negated = self.eat('^');
        let mut set = self.union(start)?;
        while let Some((text, operation)) = self.operation() {
            self.at += text.len();
            let other = self.union(start)?;
            set = match operation {
                Operation::Intersection => set.intersection(&other),
                Operation::Difference => set.difference(&other),
                Operation::SymmetricDifference => {
                    set.difference(&other).union(&other.difference(&set))
                }
            };
        }
        self.next();
        Ok(if negated { set.complement() } else { set })
    }

    /// Members up to an operation or the closing bracket.
    fn union(&mut self, start: usize) -> Result<CharClass, RegexError> {
        let mut union = CharClass::new([]);
        loop {
            if self.operation().is_some() || self.peek() == Some(']') {
                return Ok(union);
            }
            let is_nested = self.peek() == Some('[') && self.posix_ahead().is_none();
            let at = self.at;
            let more = match is_nested {
                true => {
                    self.next();
                    self.nest(at)?;
                    let nested = self.set(at)?;
                    self.unnest();
                    nested
                }
                false => self.item(start)?,
            };
            union = union.union(&more);
        }
    }

    /// One member: a POSIX class, a class, a character, or a range.
    fn item(&mut self, start: usize) -> Result<CharClass, RegexError> {
        let at = self.at;
        if let Some((class, len)) = self.posix_ahead() {
            self.at += len;
            let name = self.source[at..self.at].to_owned();
            self.note(
                at,
                format!("`{name}` in a class is read as the POSIX class, as in Rust's dialect"),
            );
            return Ok(self.fold(&class));
        }
        let low = self.member(start)?;
        let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
        if !is_range || self.rest() == "-" || self.set_depth > 0 && self.operation().is_some() {
            return Ok(self.member_class(low));
        }
        self.next();
        let high = self.member(start)?;
        match (low, high) {
            (Member::Point(low), Member::Point(high)) if low <= high => {
                Ok(self.fold(&super::escapes::points(low, high)))
            }
            (Member::Point(_), Member::Point(_)) => {
                Err(self.error(at, "this range ends before it begins; swap its ends"))
            }
            // Where ECMAScript is not strict, the `-` is a character then.
            (low, high) if self.dialect == Dialect::Ecma => {
                let members =
                    [low, Member::Point('-' as u32), high].map(|one| self.member_class(one));
                Ok(members.iter().fold(CharClass::new([]), |all, one| all.union(one)))
            }
            _ => Err(self
                .error(at, "a class cannot be an end of a range; write `\\-` for the character")),
        }
    }

    /// `[:name:]` or `[:^name:]`, if that is next, with its length.
    fn posix_ahead(&self) -> Option<(CharClass, usize)> {
        let name = self.rest().strip_prefix("[:")?;
        let name = &name[..name.find(":]")?];
        let len = name.len() + 4;
        match name.strip_prefix('^') {
            Some(name) => Some((posix(name)?.complement(), len)),
            None => Some((posix(name)?, len)),
        }
    }

    /// Operation that is next.
    fn operation(&self) -> Option<(&'static str, Operation)> {
        OPERATIONS.into_iter().find(|(text, _)| self.rest().starts_with(text))
    }

    /// Place of a class within the class that begins here, where brackets are balanced: a `]` would
    /// be left over otherwise, which strict ECMAScript refuses.
    fn nested_ahead(&self) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let mut at = self.at + usize::from(bytes.get(self.at) == Some(&b'^'));
        // In Python a `]` that comes first is a character.
        at += usize::from(self.dialect == Dialect::Python && bytes.get(at) == Some(&b']'));
        let (mut nested, mut open) = (None, Vec::new());
        loop {
            match *bytes.get(at)? {
                b'\\' => at += 1,
                b'[' if self.source[at..].starts_with("[:") => return None,
                b'[' => open.push(at),
                b']' => match open.pop() {
                    None => return nested,
                    // An empty class is none that anybody writes.
                    Some(begin) if begin + 1 == at => return None,
                    Some(begin) => nested = Some(begin),
                },
                _ => {}
            }
            at += 1;
        }
    }

    /// Place of an operation before another class, in the class that begins here.
    fn operation_ahead(&self) -> Option<usize> {
        let bytes = self.source.as_bytes();
        let operation_at = |at: usize| {
            let rest = &self.source[at..];
            let after = OPERATIONS.iter().find_map(|(text, _)| rest.strip_prefix(text))?;
            let is_class = after.starts_with('[')
                || after
                    .strip_prefix('\\')
                    .is_some_and(|next| next.starts_with(['d', 'w', 's', 'p', 'D', 'W', 'S', 'P']));
            is_class.then_some(at)
        };
        let mut at = self.at + usize::from(bytes.get(self.at) == Some(&b'^'));
        // A nested class at the beginning, and an operation after it.
        if bytes.get(at) == Some(&b'[') {
            let close = nested_end(&self.source[at..])? + at;
            if let Some(found) = operation_at(close) {
                return Some(found);
            }
        }
        let begin = at;
        loop {
            match *bytes.get(at)? {
                b'\\' => at += 2,
                b']' if at > begin => return None,
                byte => {
                    if at > begin
                        && byte.is_ascii()
                        && let Some(found) = operation_at(at)
                    {
                        return Some(found);
                    }
                    at += 1;
                }
            }
        }
    }

    /// Notes an operator that the dialect takes for characters.
    fn note_operator(&mut self) {
        let Some((text, operation)) = self.operation() else { return };
        let is_python = self.dialect == Dialect::Python;
        // Java has this one alone.
        if !is_python && operation != Operation::Intersection {
            return;
        }
        let dialect = if is_python { "Python" } else { "ECMAScript" };
        let after = &self.rest()[text.len()..];
        if !after.is_empty() && !after.starts_with(']') {
            let message = format!(
                "`{text}` in a class is read as characters, as {dialect} does; in the dialects of Rust and Java it is an operation on sets: \
                 escape it"
            );
            self.note(self.at, message);
        }
    }
}

/// Length of a class without others in it, `[` included.
fn nested_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'\\' => at += 2,
            b']' if at > 1 => return Some(at + 1),
            _ => at += 1,
        }
    }
}
