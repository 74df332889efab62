//! The classes that dialects name, by the tables of crate `regex-syntax`.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::notation::{Dialect, Flags};
use crate::CharClass;

static UNICODE_WORD: LazyLock<CharClass> =
    LazyLock::new(|| property(r"L").union(&property(r"N")).union(&CharClass::single('_')));
static UNICODE_DIGIT: LazyLock<CharClass> = LazyLock::new(|| property("Nd"));
static UNICODE_SPACE: LazyLock<CharClass> =
    LazyLock::new(|| property("White_Space").union(&CharClass::new([('\u{1C}', '\u{1F}')])));
static PERL_WORD: LazyLock<CharClass> =
    LazyLock::new(|| table_of(r"\w").expect("a class of the crate `regex`"));
static ECMA_SPACE: LazyLock<CharClass> = LazyLock::new(|| {
    let others = ['\t', '\n', '\u{B}', '\u{C}', '\r', '\u{2028}', '\u{2029}', '\u{FEFF}'];
    property("Zs").union(&CharClass::new(others.map(|c| (c, c))))
});

/// `\w` of crate `regex`.
pub(super) fn perl_word() -> CharClass {
    PERL_WORD.clone()
}

/// The class of `\d`, `\w` or `\s` by its lower-case letter.
pub(super) fn by_letter(letter: char, dialect: Dialect, flags: Flags) -> CharClass {
    let unicode = dialect == Dialect::Python && !flags.ascii;
    match (letter, unicode) {
        ('d', true) if !flags.ascii_digits => UNICODE_DIGIT.clone(),
        ('d', _) => CharClass::new([('0', '9')]),
        ('w', true) => UNICODE_WORD.clone(),
        ('w', false) => {
            let word = CharClass::new([('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]);
            let folds = dialect == Dialect::Ecma && flags.ignore_case;
            if folds { fold(&word, dialect, flags) } else { word }
        }
        (_, true) => UNICODE_SPACE.clone(),
        (_, false) if dialect == Dialect::Ecma => ECMA_SPACE.clone(),
        (_, false) => CharClass::new([('\t', '\r'), (' ', ' ')]),
    }
}

/// The blanks of one line: Java's `\h`.
pub(super) fn horizontal_space() -> CharClass {
    property("Zs").union(&CharClass::new([('\t', '\t'), ('\u{180E}', '\u{180E}')]))
}

/// The class of `.`.
pub(super) fn dot(dialect: Dialect, flags: Flags) -> CharClass {
    let breaks: &[char] = match dialect {
        _ if flags.dot_all => &[],
        Dialect::Ecma => &['\n', '\r', '\u{2028}', '\u{2029}'],
        _ => &['\n'],
    };
    CharClass::new(breaks.iter().map(|&c| (c, c))).complement()
}

/// The class of `\p{query}`, if there is one.
pub(super) fn by_property(query: &str) -> Option<CharClass> {
    let sound = |c: char| c.is_ascii_alphanumeric() || "_=-. :".contains(c);
    if query.is_empty() || !query.chars().all(sound) {
        return None;
    }
    table_of(&format!(r"\p{{{query}}}"))
}

/// The class with the other cases of its characters, where `i` is set.
pub(super) fn fold(class: &CharClass, dialect: Dialect, flags: Flags) -> CharClass {
    if !flags.ignore_case {
        return class.clone();
    }
    if dialect == Dialect::Python && flags.ascii {
        let flip = |(low, high): (char, char)| {
            let both = [(('a', 'z'), -32), (('A', 'Z'), 32)];
            both.map(|((from, to), by): ((char, char), i32)| {
                let moved = |c: char| char::from_u32((c as i32 + by) as u32).unwrap_or(c);
                let (low, high) = (low.max(from), high.min(to));
                if low <= high { (moved(low), moved(high)) } else { ('1', '0') }
            })
        };
        let flipped = class.ranges().iter().copied().flat_map(flip);
        return CharClass::new(class.ranges().iter().copied().chain(flipped));
    }
    let ranges = class.ranges().iter().map(|&(low, high)| ClassUnicodeRange::new(low, high));
    let mut table = ClassUnicode::new(ranges);
    let folded = table.try_case_fold_simple();
    debug_assert!(folded.is_ok(), "the tables are compiled in");
    let mut folded = from_table(&table);
    // Python takes the dotted and the dotless i of Turkish for cases of "i" as well.
    let dots = CharClass::new(['i', 'I', '\u{130}', '\u{131}'].map(|c| (c, c)));
    if dialect == Dialect::Python && !folded.intersection(&dots).is_empty() {
        folded = folded.union(&dots);
    }
    folded
}

fn table_of(class: &str) -> Option<CharClass> {
    match regex_syntax::parse(class).ok()?.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(from_table(class)),
        // A class of one character is a literal there.
        HirKind::Literal(only) => {
            let text = std::str::from_utf8(&only.0).ok()?;
            Some(CharClass::new(text.chars().map(|c| (c, c))))
        }
        _ => None,
    }
}

/// Class in our type.
pub(super) fn from_table(class: &ClassUnicode) -> CharClass {
    CharClass::new(class.iter().map(|range| (range.start(), range.end())))
}

fn property(query: &str) -> CharClass {
    by_property(query).expect("a property of Unicode")
}
