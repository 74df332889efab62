//! Reads escapes and classes of the dialects of Python and ECMAScript.

use super::{
    classes,
    error::RegexError,
    java,
    notation::Dialect,
    reader::{Member, Reader},
};
use crate::CharClass;

impl Reader<'_> {
    pub(super) fn member(&mut self, start: usize) -> Result<Member, RegexError> {
        let at = self.at;
        match self.next() {
            None => Err(self.error(
                start,
                "this class has no end; close it with `]`, or write `\\[` for the character",
            )),
            Some('\\') => self.escaped(at, true),
            Some(other) => Ok(Member::Point(other as u32)),
        }
    }

    pub(super) fn member_class(&self, member: Member) -> CharClass {
        match member {
            Member::Point(point) => self.fold(&points(point, point)),
            Member::Class(class) => class,
        }
    }

    /// The class that an escape stands for, `\` already read.
    pub(super) fn escaped_class(
        &mut self,
        start: usize,
        in_class: bool,
    ) -> Result<CharClass, RegexError> {
        let member = self.escaped(start, in_class)?;
        Ok(self.member_class(member))
    }

    fn escaped(&mut self, start: usize, in_class: bool) -> Result<Member, RegexError> {
        let python = self.dialect == Dialect::Python;
        let Some(next) = self.next() else {
            return Err(
                self.error(start, "`\\` ends the expression; write `\\\\` for the character")
            );
        };
        let point = match next {
            'd' | 'w' | 's' => {
                return Ok(Member::Class(classes::by_letter(next, self.dialect, self.flags)));
            }
            'D' | 'W' | 'S' => {
                let lower = next.to_ascii_lowercase();
                let class = classes::by_letter(lower, self.dialect, self.flags);
                return Ok(Member::Class(class.complement()));
            }
            // Python's module `re` does not know them; module `regex`, which lark may use, does.
            'p' | 'P' => return self.property(start, next == 'P').map(Member::Class),
            'b' if in_class => 8,
            'a' if python => 7,
            // Java's and Perl's, which neither dialect has.
            'e' => 0x1B,
            'h' | 'H' => {
                let class = classes::horizontal_space();
                let class = if next == 'H' { class.complement() } else { class };
                return Ok(Member::Class(class));
            }
            // Perl's characters by number.
            'o' if self.peek() == Some('{') => self.braced(start, next, 8)?,
            'N' if self.rest().starts_with("{U+") => {
                self.at += 2;
                self.braced(start, next, 16)?
            }
            // Rust's code points in braces, which are an error in Python and strict ECMAScript.
            'x' | 'u' | 'U' if self.peek() == Some('{') => self.braced(start, next, 16)?,
            'f' => 0xC,
            'n' => 0xA,
            'r' => 0xD,
            't' => 0x9,
            'v' => 0xB,
            'x' => self.hex(start, 2)?,
            'u' if !python => self.ecma_unicode(start)?,
            'u' => self.hex(start, 4)?,
            'U' if python => self.hex(start, 8)?,
            'N' if python => {
                return Err(
                    self.error(start, "characters by name are not known here; write `\\uXXXX`")
                );
            }
            'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => letter as u32 % 32,
                _ => {
                    return Err(self.error(
                        start,
                        "`\\c` is followed by a letter; write `\\\\c` for the characters",
                    ));
                }
            },
            'k' if !python => return Err(self.backreference(start)),
            '0'..='9' => self.numbered(start, next, in_class)?,
            other if other.is_ascii_alphabetic() => {
                let dialect = if python { "Python" } else { "ECMAScript" };
                let message = format!(
                    "{dialect} has no escape `\\{other}`; write `{other}` for the character"
                );
                return Err(self.error(start, &message));
            }
            other => other as u32,
        };
        if point > char::MAX as u32 {
            let message = format!("there is no character {point:#X}; the last is 0x10FFFF");
            return Err(self.error(start, &message));
        }
        Ok(Member::Point(point))
    }

    /// `\0`, and in Python characters by octal number.
    fn numbered(&mut self, start: usize, first: char, in_class: bool) -> Result<u32, RegexError> {
        let octal = |c: &char| c.is_digit(8);
        let digits: String = self.rest().chars().take(2).take_while(octal).collect();
        if self.dialect == Dialect::Ecma {
            let more = self.peek().is_some_and(|next| next.is_ascii_digit());
            return match first {
                '0' if !more => Ok(0),
                '0' => Err(self
                    .error(start, "characters by octal number are not known here; write `\\xHH`")),
                _ if in_class => Err(self
                    .error(start, "a class holds no backreference; write `\\xHH` for a character")),
                _ => Err(self.backreference(start)),
            };
        }
        let is_octal = first == '0' || (octal(&first) && (digits.len() == 2 || in_class));
        if !is_octal {
            return Err(self.backreference(start));
        }
        self.at += digits.len();
        let number = u32::from_str_radix(&format!("{first}{digits}"), 8).unwrap_or(u32::MAX);
        if number > 0o377 {
            return Err(self
                .error(start, "the greatest octal number of a character is 377; write `\\uXXXX`"));
        }
        Ok(number)
    }

    /// `\uHHHH`, or two of them for a character past U+FFFF.
    fn ecma_unicode(&mut self, start: usize) -> Result<u32, RegexError> {
        let high = self.hex(start, 4)?;
        if (0xD800..0xDC00).contains(&high) && self.rest().starts_with("\\u") {
            let before = self.at;
            self.at += 2;
            if let Ok(low) = self.hex(start, 4)
                && (0xDC00..0xE000).contains(&low)
            {
                return Ok(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
            }
            self.at = before;
        }
        Ok(high)
    }

    /// `{H…}` after `\x`, `\u` or `\U`, and numbers to another base.
    fn braced(&mut self, start: usize, letter: char, base: u32) -> Result<u32, RegexError> {
        self.next();
        let len = self.rest().find('}');
        let digits = len.map(|len| self.rest()[..len].trim());
        let sound = |digits: &&str| digits.chars().all(|digit| digit.is_digit(base));
        let number = digits.filter(sound).and_then(|digits| u32::from_str_radix(digits, base).ok());
        let (Some(len), Some(number)) = (len, number) else {
            let message = format!(
                "`\\{letter}{{` is followed by digits to the base {base}, up to {}, and `}}`",
                if base == 8 { "4177777" } else { "10FFFF" }
            );
            return Err(self.error(start, &message));
        };
        self.at += len + 1;
        Ok(number)
    }

    fn hex(&mut self, start: usize, len: usize) -> Result<u32, RegexError> {
        let digits = self.rest().get(..len);
        let sound = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(number) = sound.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            let message =
                format!("this escape has {len} hexadecimal digits; fill up with zeros on the left");
            return Err(self.error(start, &message));
        };
        self.at += len;
        Ok(number)
    }

    fn property(&mut self, start: usize, negated: bool) -> Result<CharClass, RegexError> {
        let rest = self.rest();
        let len = match rest.starts_with('{') {
            true => rest.find('}'),
            // `\pL`, as in Rust and Java.
            false => rest.starts_with(|letter: char| letter.is_ascii_uppercase()).then_some(0),
        };
        let Some(len) = len else {
            return Err(
                self.error(start, "`\\p` is followed by a property in braces, such as `\\p{L}`")
            );
        };
        let query = if len == 0 { &rest[..1] } else { &rest[1..len] };
        let (inverse, name) = match query.strip_prefix('^') {
            Some(name) => (true, name),
            None => (false, query),
        };
        let posix = java::by_posix_name(name).filter(|_| self.dialect == Dialect::Ecma);
        if posix.is_some() {
            let message = format!(
                "`\\p{{{name}}}` is read as Java's, of ASCII; ECMAScript has no property of this spelling, and Unicode's has other characters"
            );
            self.note(start, message);
        }
        let class = posix.or_else(|| classes::by_property(name));
        let Some(class) = class.or_else(|| java::by_property(name)) else {
            let message = format!(
                "there is no property `{query}`; write such as `\\p{{L}}` or `\\p{{Script=Greek}}`"
            );
            return Err(self.error(start, &message));
        };
        self.at += len + 1;
        let class = self.fold(&class);
        Ok(if negated != inverse { class.complement() } else { class })
    }
}

/// The characters from one code point to another: surrogates are none.
pub(super) fn points(low: u32, high: u32) -> CharClass {
    let up = (low..=0xE000).find_map(char::from_u32).or(char::from_u32(low));
    let down = (0xD7FF..=high).rev().find_map(char::from_u32).or(char::from_u32(high));
    CharClass::new(up.zip(down))
}
