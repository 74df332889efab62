//! Fixed texts around a call, found whatever white space stands in them.

use palmette_grammar::frontends::structural_tag::{CALL_ID, NAME, NUMBER, ToolFormat};

use super::progress::MAX_NAME;

/// Comparison of a text with a mark at its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// The mark is not there.
    No,
    /// All of the text is a beginning of the mark.
    Begun,
    /// The mark is there, in this many bytes.
    Whole(usize),
}

/// A part of a mark.
#[derive(Clone, Copy, PartialEq)]
enum MarkPart {
    Character(char),
    /// A number, at least one digit.
    Digits,
    /// An id, at least one letter or digit.
    Id,
    /// A name, which may be left out.
    Name,
}

impl MarkPart {
    /// True for a character of which there may be several.
    fn repeats(self, character: char) -> bool {
        match self {
            Self::Character(_) => false,
            Self::Digits => character.is_ascii_digit(),
            Self::Id => character.is_ascii_alphanumeric(),
            Self::Name => ToolFormat::is_in_bare_name(character),
        }
    }
}

/// The parts of a mark that are no white space.
fn wanted(mark: &str) -> impl Iterator<Item = MarkPart> {
    let mut rest = mark;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let words = [(NUMBER, MarkPart::Digits), (CALL_ID, MarkPart::Id), (NAME, MarkPart::Name)];
        for (word, part) in words {
            if let Some(after) = rest.strip_prefix(word) {
                rest = after;
                return Some(part);
            }
        }
        let character = rest.chars().next()?;
        rest = &rest[character.len_utf8()..];
        Some(MarkPart::Character(character))
    })
}

/// Looks for a mark at the beginning of a text. White space is skipped in both, but not before the
/// first character: models put blanks and line ends where a format has others.
pub(super) fn at_start(text: &str, mark: &str) -> Match {
    compared(text, wanted(mark))
}

/// Looks for a mark with somebody's name in it, in which no word stands for another.
pub(super) fn as_it_is_at_start(text: &str, mark: &str) -> Match {
    let characters = mark.chars().filter(|character| !character.is_whitespace());
    compared(text, characters.map(MarkPart::Character))
}

fn compared(text: &str, mut parts: impl Iterator<Item = MarkPart>) -> Match {
    let Some(mut next) = parts.next() else { return Match::Whole(0) };
    let (mut is_first, mut repeated) = (true, 0);
    for (place, found) in text.char_indices() {
        if found.is_whitespace() && !is_first {
            // A name is one word.
            if next == MarkPart::Name && repeated > 0 {
                return Match::No;
            }
            continue;
        }
        is_first = false;
        if !matches!(next, MarkPart::Character(_)) {
            if next.repeats(found) && repeated < MAX_NAME {
                repeated += 1;
                continue;
            }
            next = match parts.next() {
                _ if repeated == 0 && next != MarkPart::Name => return Match::No,
                Some(after) => after,
                None => return Match::Whole(place),
            };
        }
        if next != MarkPart::Character(found) {
            return Match::No;
        }
        next = match parts.next() {
            Some(part) => part,
            None => return Match::Whole(place + found.len_utf8()),
        };
        repeated = 0;
    }
    Match::Begun
}

/// The first place at which one of the marks stands, or where the text ends in a beginning of one.
pub(super) fn first_of<'m>(text: &str, marks: &[&'m str]) -> Option<(usize, MarkPlace<'m>)> {
    text.char_indices().find_map(|(place, _)| {
        let rest = &text[place..];
        let matches = || marks.iter().map(|&mark| (mark, at_start(rest, mark)));
        let whole = matches().find_map(|(mark, found)| match found {
            Match::Whole(len) if len > 0 => Some(MarkPlace::Whole { mark, len }),
            _ => None,
        });
        let begun =
            || matches().any(|(_, found)| found == Match::Begun).then_some(MarkPlace::Begun);
        Some((place, whole.or_else(begun)?))
    })
}

/// A mark that was found, whole or begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkPlace<'m> {
    Begun,
    Whole { mark: &'m str, len: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_does_not_count_within_a_mark() {
        let mark = "<tool_call>\n{\"name\": \"";
        assert_eq!(at_start("<tool_call>\n{\"name\": \"x", mark), Match::Whole(22));
        assert_eq!(at_start("<tool_call>{ \"name\":\"x", mark), Match::Whole(21));
        assert_eq!(at_start("<tool_call>\n\n", mark), Match::Begun);
        assert_eq!(at_start("", mark), Match::Begun);
        assert_eq!(at_start(" <tool_call>", mark), Match::No);
        assert_eq!(at_start("<tool_call>[", mark), Match::No);
        assert_eq!(at_start("abc", ""), Match::Whole(0));
        let numbered = ":NUMBER<x>";
        assert_eq!(at_start(":12<x>", numbered), Match::Whole(6));
        assert_eq!(at_start(":12", numbered), Match::Begun);
        assert_eq!(at_start(":", numbered), Match::Begun);
        assert_eq!(at_start(":<x>", numbered), Match::No);
        let named = "NAME<x>";
        assert_eq!(at_start("get_it<x>", named), Match::Whole(9));
        assert_eq!(at_start("<x>", named), Match::Whole(3));
        assert_eq!(at_start("get", named), Match::Begun);
        assert_eq!(at_start("get it<x>", named), Match::No);
        assert_eq!(at_start("[I]a1B[x]", "[I]CALLID[x]"), Match::Whole(9));
        assert_eq!(at_start("[I][x]", "[I]CALLID[x]"), Match::No);
        assert_eq!(as_it_is_at_start(numbered, numbered), Match::Whole(10));
        assert_eq!(as_it_is_at_start(":NUM", numbered), Match::Begun);
        assert_eq!(as_it_is_at_start(":12<x>", numbered), Match::No);
    }

    #[test]
    fn the_first_mark_counts_and_a_beginning_at_the_end() {
        let found = |text| first_of(text, &["<a>", "<ab>", "[x]"]);
        assert_eq!(found("1<ab>2<a>"), Some((1, MarkPlace::Whole { mark: "<ab>", len: 4 })));
        assert_eq!(found("1<a"), Some((1, MarkPlace::Begun)));
        assert_eq!(found("1<c"), None);
        assert_eq!(found("<<a>"), Some((1, MarkPlace::Whole { mark: "<a>", len: 3 })));
        assert_eq!(found("é[x"), Some((2, MarkPlace::Begun)));
        assert_eq!(first_of("", &["<a>"]), None);
    }
}
