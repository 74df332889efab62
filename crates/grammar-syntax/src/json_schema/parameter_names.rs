//! Names of parameters that stand without JSON's quotes: which can be written, and read back.
//!
//! A name that cannot is refused where it is declared; of names that a schema leaves open it is
//! none. Cost: a look at the name's characters.

use std::sync::Arc;

use super::parameter_styles::ParameterStyle;
use super::strings::StringSet;
use crate::{CharClass, Regex};

/// A place of names that have no quotes of JSON's around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamePlace {
    /// Marks of a style.
    Marks(&'static ParameterStyle),
    /// A call's keywords, as in Python, or an object in a notation with bare names.
    Bare,
}

impl NamePlace {
    /// The rule that a name breaks here; `None` where it can be written.
    pub(super) fn broken_rule(self, name: &str) -> Option<&'static str> {
        let is_in_marks = |character: char| character.is_control() || "<>\"".contains(character);
        match self {
            _ if name.is_empty() => Some("a name there is not empty"),
            Self::Marks(style) if style.escapes_names => None,
            Self::Marks(_) => (name.trim() != name || name.contains(is_in_marks)).then_some(
                "a name between marks has no blanks at its ends, and no quotes (\"), angle brackets (< >) or control characters",
            ),
            Self::Bare => (!is_bare(name)).then_some(
                "a name without quotes has no blanks and none of < > \" ' = / ｜ : , ( ) [ ] { } \\",
            ),
        }
    }

    /// Regular expression of the names of a set that can be written bare; `None` where there is
    /// none.
    pub(super) fn bare_names(names: &StringSet) -> Option<Regex> {
        match names {
            StringSet::All { .. } => {
                let bare = Regex::Class(CharClass::any().difference(&no_bare_name()));
                Some(Regex::and([names.regex(), bare.repeat(1, None)]))
            }
            StringSet::OneOf(listed) => {
                let can_be = |name: &&Arc<str>| is_bare(name);
                let bare: Vec<_> = listed.iter().filter(can_be).collect();
                let texts = || Regex::alternate(bare.iter().map(|name| Regex::literal(name)));
                (!bare.is_empty()).then(texts)
            }
        }
    }
}

fn is_bare(name: &str) -> bool {
    let outside = no_bare_name();
    !name.is_empty() && !name.chars().any(|character| outside.contains(character))
}

/// Characters that marks and punctuation are made of, and blanks.
fn no_bare_name() -> CharClass {
    let marks = "<>\"'=/｜:,()[]{}\\".chars().map(|mark| (mark, mark));
    let blanks = "\u{1680}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}".chars().map(|it| (it, it));
    let ranges = [('\0', ' '), ('\u{7f}', '\u{a0}'), ('\u{2000}', '\u{200a}')];
    CharClass::new(marks.chain(blanks).chain(ranges))
}
