//! Reads escapes and classes of the dialects of Python and ECMAScript.

use super::{Dialect, RegexError, classes, reader::Reader};
use crate::CharClass;

/// A member of a class in brackets: one code point (a surrogate may end a range), or a class.
enum Member {
    Point(u32),
    Class(CharClass),
}

impl Reader<'_> {
    /// A class in brackets, `[` already read.
    pub(super) fn class(&mut self, start: usize) -> Result<CharClass, RegexError> {
        let negated = self.eat('^');
        let mut class = CharClass::new([]);
        // In Python a `]` that comes first is a character; in ECMAScript `[]` is empty.
        let mut first = self.dialect == Dialect::Python;
        loop {
            let member_at = self.at;
            if !first && self.eat(']') {
                break;
            }
            first = false;
            let low = self.member(start)?;
            let is_range = self.rest().starts_with('-') && !self.rest().starts_with("-]");
            if !is_range || self.rest() == "-" {
                class = class.union(&self.member_class(low));
                continue;
            }
            self.next();
            let high = self.member(start)?;
            match (low, high) {
                (Member::Point(low), Member::Point(high)) if low <= high => {
                    class = class.union(&self.fold(&points(low, high)));
                }
                (Member::Point(_), Member::Point(_)) => {
                    return Err(
                        self.error(member_at, "this range ends before it begins; swap its ends")
                    );
                }
                // Where ECMAScript is not strict, the `-` is a character then.
                (low, high) if self.dialect == Dialect::Ecma => {
                    for member in [low, Member::Point('-' as u32), high] {
                        class = class.union(&self.member_class(member));
                    }
                }
                _ => {
                    return Err(self.error(
                        member_at,
                        "a class cannot be an end of a range; write `\\-` for the character",
                    ));
                }
            }
        }
        Ok(if negated { class.complement() } else { class })
    }

    fn member(&mut self, start: usize) -> Result<Member, RegexError> {
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

    fn member_class(&self, member: Member) -> CharClass {
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
            'c' if !python => match self.next() {
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

    /// `\uHHHH`, two of them for a character past U+FFFF, or `\u{H…}`.
    fn ecma_unicode(&mut self, start: usize) -> Result<u32, RegexError> {
        if self.eat('{') {
            let len = self.rest().find('}');
            let digits = len.map(|len| &self.rest()[..len]);
            let hex = |digits: &&str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            let number = digits.filter(hex).and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let (Some(len), Some(number)) = (len, number) else {
                return Err(self.error(
                    start,
                    "`\\u{` is followed by hexadecimal digits up to 10FFFF and `}`",
                ));
            };
            self.at += len + 1;
            return Ok(number);
        }
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
        let len = rest.find('}').filter(|_| rest.starts_with('{'));
        let Some(len) = len else {
            return Err(
                self.error(start, "`\\p` is followed by a property in braces, such as `\\p{L}`")
            );
        };
        let query = &rest[1..len];
        let Some(class) = classes::by_property(query) else {
            let message = format!(
                "there is no property `{query}`; write such as `\\p{{L}}` or `\\p{{Script=Greek}}`"
            );
            return Err(self.error(start, &message));
        };
        self.at += len + 1;
        let class = self.fold(&class);
        Ok(if negated { class.complement() } else { class })
    }
}

/// The characters from one code point to another: surrogates are none.
fn points(low: u32, high: u32) -> CharClass {
    let up = (low..=0xE000).find_map(char::from_u32).or(char::from_u32(low));
    let down = (0xD7FF..=high).rev().find_map(char::from_u32).or(char::from_u32(high));
    CharClass::new(up.zip(down))
}
