//! Spellings of strings, whitespace and punctuation in JSON.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use hashbrown::HashMap;

use super::argument_styles::{JSON, ValueNotation};
use super::enumeration::enumeration;
use super::framing::Framing;
use super::options::{Escapes, Whitespace};
use crate::free_text::without;
use crate::{CharClass, Regex};

/// The choices of spelling.
#[derive(Debug)]
pub(super) struct Spelling {
    whitespace: Whitespace,
    escapes: Escapes,
    notation: &'static ValueNotation,
    /// The quote around strings.
    quote: char,
    /// At most so many blanks in a row, whatever the policy.
    max_blanks: Option<u32>,
    /// Classes of characters that were spelled before. The same few are in most strings of a
    /// schema.
    classes: RefCell<HashMap<CharClass, Regex>>,
}

impl Spelling {
    /// A speller with these choices.
    pub(super) fn new(whitespace: Whitespace, escapes: Escapes) -> Self {
        let classes = RefCell::default();
        Self { whitespace, escapes, notation: &JSON, quote: '"', max_blanks: None, classes }
    }

    /// This speller for values that are a part of another text.
    pub(super) fn within(self, framing: Framing) -> Self {
        Self { max_blanks: framing.max_blanks, notation: framing.style.notation(), ..self }
    }

    /// The notation of strings, names and words.
    pub(super) fn notation(&self) -> &'static ValueNotation {
        self.notation
    }

    /// A token of JSON: `core` after what may precede every token.
    ///
    /// Whitespace belongs to the token that it precedes, so that a text is cut in one way only.
    pub(super) fn token(&self, core: Regex) -> Regex {
        if let Some(max) = self.max_blanks {
            return Regex::concat([blank().repeat(0, Some(max)), core]);
        }
        match self.whitespace {
            Whitespace::Bounded => Regex::concat([layout(), core]),
            Whitespace::Flexible => Regex::concat([blanks(), core]),
            Whitespace::Compact | Whitespace::Spaced | Whitespace::Separators(_) => core,
        }
    }

    /// Blanks that may stand after the whole text.
    pub(super) fn trailing(&self) -> Option<Regex> {
        (self.whitespace == Whitespace::Flexible).then(|| blank().repeat(1, self.max_blanks))
    }

    /// Blanks between marks, one at least; where there is to be none in JSON, models still write
    /// these.
    pub(super) fn some_layout(&self) -> Regex {
        let some = Regex::Class(CharClass::any()).repeat(1, None);
        match (self.max_blanks, self.whitespace) {
            (Some(max), _) => blank().repeat(1, Some(max.max(1))),
            (None, Whitespace::Flexible) => blank().repeat(1, None),
            (None, _) => Regex::and([layout(), some]),
        }
    }

    pub(super) fn comma(&self) -> Regex {
        self.token(Regex::literal(self.whitespace.comma()))
    }

    /// A member's name and the colon after it.
    pub(super) fn name(&self, name: Regex) -> Regex {
        let colon = Regex::literal(self.whitespace.colon());
        Regex::concat([self.token(name), self.token(colon)])
    }

    /// A string of JSON, quotes included, whose value is a text of `texts`.
    ///
    /// A string is a sequence of spellings of characters, and no spelling begins another; so set
    /// operations on texts are the same set operations on spelled texts, if complements are taken
    /// within these. Half a surrogate pair (`\ud800` alone) is no character and spells nothing.
    pub(super) fn quoted(&self, texts: &Regex) -> Regex {
        let mark = self.notation.quote;
        if !mark.is_empty() {
            let inside = Regex::and([texts.clone(), without(&[mark], &[mark])]);
            return Regex::concat([Regex::literal(mark), inside, Regex::literal(mark)]);
        }
        let quotes = if self.notation.single_quotes { &['"', '\''][..] } else { &['"'] };
        Regex::alternate(quotes.iter().map(|&quote| self.between(quote, texts)))
    }

    fn between(&self, quote: char, texts: &Regex) -> Regex {
        let escapes = if is_free(texts) { Escapes::Any } else { self.escapes };
        let spelled = match (escapes, quote) == (self.escapes, self.quote) {
            true => self.spelled(texts),
            false => Self { quote, ..Self::new(self.whitespace, escapes) }.spelled(texts),
        };
        let mark = Regex::literal(quote.encode_utf8(&mut [0; 4]));
        Regex::concat([mark.clone(), spelled, mark])
    }

    pub(super) fn spelled(&self, texts: &Regex) -> Regex {
        let all = |parts: &Arc<[Regex]>| -> Vec<Regex> {
            parts.iter().map(|part| self.spelled(part)).collect()
        };
        match texts {
            // No text is a token asked for by name or number.
            Regex::Never | Regex::Tokens(_) => Regex::Never,
            Regex::Empty => Regex::Empty,
            Regex::Literal(text) => self.literal(text),
            Regex::Multiple(_) => texts.clone(),
            Regex::Class(class) => self.class(class),
            Regex::Concat(parts) => Regex::concat(all(parts)),
            Regex::Alternate(options) => self.alternate(options),
            Regex::Repeat { inner, min, max, .. } => self.spelled(inner).repeat(*min, *max),
            Regex::And(parts) => Regex::and(all(parts)),
            Regex::Not(inner) => {
                let any = self.class(&CharClass::any()).repeat(0, None);
                Regex::and([any, Regex::complement(self.spelled_open(inner))])
            }
            Regex::Whole(inner) => Regex::Whole(Arc::new(self.spelled(inner))),
            Regex::Look { inner, behind, negated } => Regex::Look {
                inner: Arc::new(self.spelled(inner)),
                behind: *behind,
                negated: *negated,
            },
        }
    }

    /// The union of options: listed texts by their beginnings, unless all of them are spelled as
    /// they are, which need no tree.
    fn alternate(&self, options: &[Regex]) -> Regex {
        let (mut texts, mut spelled) = (Vec::new(), Vec::new());
        for option in options {
            match option {
                Regex::Literal(text) => texts.push(Arc::clone(text)),
                _ => spelled.push(self.spelled(option)),
            }
        }
        let as_it_is = |text: &Arc<str>| self.is_plain(text);
        let tree = || enumeration(&texts, &|class| self.one_of(class));
        let listed = match if texts.iter().all(as_it_is) { None } else { tree() } {
            Some(tree) => vec![tree],
            None => texts.iter().map(|text| self.literal(text)).collect(),
        };
        Regex::alternate(spelled.into_iter().chain(listed))
    }

    /// True when a text is spelled in one way, as it is.
    pub(super) fn is_plain(&self, text: &str) -> bool {
        text.chars().all(|character| self.is_literal(character))
    }

    /// True when a character is spelled in one way, as it is.
    fn is_literal(&self, character: char) -> bool {
        self.escapes == Escapes::Needed
            && matches!(character, ' '..='[' | ']'..='~')
            && ![self.quote, '/'].contains(&character)
    }

    /// Characters that need no escape.
    fn printable(&self) -> CharClass {
        let quote = CharClass::single(self.quote);
        CharClass::new([(' ', '['), (']', '~')]).difference(&quote)
    }

    /// A character of a class.
    fn one_of(&self, class: &CharClass) -> Regex {
        match class.ranges() {
            &[(low, high)] if low == high => self.literal(low.encode_utf8(&mut [0; 4])),
            _ => self.class(class),
        }
    }

    /// [`spelled`](Self::spelled), among spelled texts: where any text may come last, whatever may.
    /// That a complement of it is empty is then plain.
    fn spelled_open(&self, texts: &Regex) -> Regex {
        let anything = Regex::anything();
        let all = |parts: &Arc<[Regex]>| -> Vec<Regex> {
            parts.iter().map(|part| self.spelled_open(part)).collect()
        };
        match texts {
            Regex::Concat(parts) if parts.last() == Some(&anything) => {
                let before = parts[..parts.len() - 1].iter().map(|part| self.spelled(part));
                Regex::concat(before.chain([anything]))
            }
            Regex::Alternate(options) => Regex::alternate(all(options)),
            Regex::And(parts) => Regex::and(all(parts)),
            _ => self.spelled(texts),
        }
    }

    fn literal(&self, text: &str) -> Regex {
        let mut parts = Vec::new();
        let mut plain = String::new();
        for character in text.chars() {
            if self.is_literal(character) {
                plain.push(character);
            } else {
                parts.push(Regex::literal(&std::mem::take(&mut plain)));
                parts.push(self.class(&CharClass::single(character)));
            }
        }
        parts.push(Regex::literal(&plain));
        Regex::concat(parts)
    }

    fn class(&self, class: &CharClass) -> Regex {
        if let Some(known) = self.classes.borrow().get(class) {
            return known.clone();
        }
        let spelled = self.spelled_class(class);
        self.classes.borrow_mut().insert(class.clone(), spelled.clone());
        spelled
    }

    fn spelled_class(&self, class: &CharClass) -> Regex {
        let quote = CharClass::single(self.quote);
        let raw = CharClass::new([(' ', '['), (']', char::MAX)]).difference(&quote);
        let mut options = Vec::new();
        let raw = class.intersection(&raw);
        if !raw.is_empty() {
            options.push(Regex::Class(raw));
        }
        let own = [(self.quote, self.quote)];
        let short = own.iter().chain(&SHORT_ESCAPES).filter_map(|&(character, letter)| {
            class.contains(character).then_some((letter, letter))
        });
        let short = CharClass::new(short);
        let escaped = match self.escapes {
            Escapes::Any => class.clone(),
            Escapes::Needed => class.difference(&self.printable()),
        };
        let mut after = Vec::new();
        if !short.is_empty() {
            after.push(Regex::Class(short));
        }
        let units = code_units(&escaped);
        if units != Regex::Never {
            after.push(Regex::concat([Regex::literal("u"), units]));
        }
        if !after.is_empty() {
            options.push(Regex::concat([Regex::literal("\\"), Regex::alternate(after)]));
        }
        Regex::alternate(options)
    }
}

/// A character and the letter that escapes it, but for the quote.
const SHORT_ESCAPES: [(char, char); 7] = [
    ('\\', '\\'),
    ('/', '/'),
    ('\u{8}', 'b'),
    ('\u{c}', 'f'),
    ('\n', 'n'),
    ('\r', 'r'),
    ('\t', 't'),
];

fn blank() -> Regex {
    Regex::Class(CharClass::new([' ', '\t', '\n', '\r'].map(|blank| (blank, blank))))
}

/// White space of JSON, at least one character of it.
pub(super) fn some_blanks() -> Regex {
    blank().repeat(1, None)
}

fn blanks() -> Regex {
    blank().repeat(0, None)
}

/// Blanks within a line, or a line break and indentation.
fn layout() -> Regex {
    LAYOUT.clone()
}

/// PERF: it stands before every terminal, and is made and compiled once.
static LAYOUT: LazyLock<Regex> = LazyLock::new(|| {
    let blanks =
        |max| Regex::Class(CharClass::new([(' ', ' '), ('\t', '\t')])).repeat(0, Some(max));
    let line_break = Regex::concat([Regex::literal("\r").optional(), Regex::literal("\n")]);
    Regex::alternate([
        blanks(Whitespace::MAX_BLANKS),
        Regex::concat([line_break, blanks(Whitespace::MAX_INDENTATION)]),
    ])
});

/// True when texts may hold any characters.
fn is_free(texts: &Regex) -> bool {
    matches!(texts, Regex::Repeat { inner, .. } if **inner == Regex::Class(CharClass::any()))
}

/// Digits after `\u` for a character of `class`: four, or for a character beyond the basic plane a
/// surrogate pair.
fn code_units(class: &CharClass) -> Regex {
    let mut options = Vec::new();
    for &(low, high) in class.ranges() {
        for (from, to) in [(0, 0xD7FF), (0xE000, 0xFFFF)] {
            let (low, high) = ((low as u32).max(from), (high as u32).min(to));
            if low <= high {
                options.push(hexadecimal(low, high, 4));
            }
        }
        let (low, high) = ((low as u32).max(0x10000), high as u32);
        if low <= high {
            options.extend(surrogate_pairs(low - 0x10000, high - 0x10000));
        }
    }
    Regex::alternate(options)
}

/// The pairs for `low..=high`, both less 0x10000.
fn surrogate_pairs(low: u32, high: u32) -> Vec<Regex> {
    let pairs = |first: (u32, u32), second: (u32, u32)| {
        Regex::concat([
            hexadecimal(0xD800 + first.0, 0xD800 + first.1, 4),
            Regex::literal("\\u"),
            hexadecimal(0xDC00 + second.0, 0xDC00 + second.1, 4),
        ])
    };
    let ((low_first, low_second), (high_first, high_second)) =
        ((low >> 10, low & 0x3FF), (high >> 10, high & 0x3FF));
    if low_first == high_first {
        return vec![pairs((low_first, low_first), (low_second, high_second))];
    }
    let mut options = Vec::new();
    let (mut from, mut to) = (low_first, high_first);
    if low_second > 0 {
        options.push(pairs((low_first, low_first), (low_second, 0x3FF)));
        from += 1;
    }
    if high_second < 0x3FF {
        options.push(pairs((high_first, high_first), (0, high_second)));
        to -= 1;
    }
    if from <= to {
        options.push(pairs((from, to), (0, 0x3FF)));
    }
    options
}

/// The numbers `low..=high` with `digits` hexadecimal digits, of either case.
fn hexadecimal(low: u32, high: u32, digits: u32) -> Regex {
    if digits == 0 {
        return Regex::Empty;
    }
    let unit = 1 << (4 * (digits - 1));
    let (first, last) = (low / unit, high / unit);
    if low.is_multiple_of(unit) && high % unit == unit - 1 {
        let rest = Regex::Class(digit_class(0, 15)).repeat(digits - 1, Some(digits - 1));
        return Regex::concat([Regex::Class(digit_class(first, last)), rest]);
    }
    let with = |digit: u32, low: u32, high: u32| {
        let rest = hexadecimal(low, high, digits - 1);
        Regex::concat([Regex::Class(digit_class(digit, digit)), rest])
    };
    if first == last {
        return with(first, low % unit, high % unit);
    }
    let mut options = vec![with(first, low % unit, unit - 1)];
    if first + 1 < last {
        options.push(hexadecimal((first + 1) * unit, last * unit - 1, digits));
    }
    options.push(with(last, 0, high % unit));
    Regex::alternate(options)
}

fn digit_class(low: u32, high: u32) -> CharClass {
    CharClass::new((low..=high).flat_map(|digit| {
        let lower = char::from_digit(digit, 16).expect("below 16");
        [lower, lower.to_ascii_uppercase()].map(|spelled| (spelled, spelled))
    }))
}

#[cfg(test)]
mod tests {
    use super::{super::matching::matches, *};

    fn spelling(escapes: Escapes) -> Spelling {
        Spelling::new(Whitespace::Flexible, escapes)
    }

    /// Every spelling of `character` as a string's content: raw, by a letter, by code units in
    /// three mixtures of case.
    fn spellings(character: char) -> Vec<String> {
        let mut units = [0; 2];
        let units: String = character
            .encode_utf16(&mut units)
            .iter()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect();
        let upper = units.to_uppercase().replace('U', "u");
        let short = SHORT_ESCAPES.iter().filter(|escape| escape.0 == character);
        let mut all = vec![units, upper];
        all.extend(short.map(|escape| format!("\\{}", escape.1)));
        if character >= ' ' && character != '"' && character != '\\' {
            all.push(character.to_string());
        }
        all
    }

    #[test]
    fn classes_are_spelled_in_every_way() {
        let probes = "\0\n\u{1f} !\"/09AZ[\\]az~\u{7f}\u{80}\u{7ff}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{103ff}\
                      \u{10400}\u{1f600}\u{10fbff}\u{10fc00}\u{10ffff}";
        let probes: Vec<char> = probes.chars().collect();
        for (at, &low) in probes.iter().enumerate() {
            for &high in &probes[at..] {
                let class = CharClass::new([(low, high)]);
                let regex = spelling(Escapes::Any).quoted(&Regex::Class(class.clone()));
                for &probe in &probes {
                    for spelled in spellings(probe) {
                        let found = matches(&regex, &format!("\"{spelled}\""));
                        assert_eq!(found, class.contains(probe), "{spelled} in {class:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn printable_characters_need_no_escape_where_texts_are_told() {
        let spelling = spelling(Escapes::Needed);
        let free = spelling.quoted(&Regex::anything());
        assert!(matches(&free, r#""\u0061\u003c""#) && !matches(&free, r#""\ud83d""#));
        let regex = spelling.quoted(&Regex::complement(Regex::literal("zz")));
        for inside in [r#""""#, r#""a\n\u00e9é\ud83d\ude00😀\/""#, r#""\u000A\u007f""#] {
            assert!(matches(&regex, inside), "{inside}");
        }
        for outside in [r#""\u0061""#, r#""\ud83d""#, r#"""""#, "\"\n\"", r#""\x""#] {
            assert!(!matches(&regex, outside), "{outside}");
        }
    }

    #[test]
    fn a_complement_is_taken_within_the_strings() {
        let regex = spelling(Escapes::Any).quoted(&Regex::complement(Regex::literal("a/")));
        for inside in [r#""a""#, r#""\u0062""#, r#""a\/x""#] {
            assert!(matches(&regex, inside), "{inside}");
        }
        for outside in [r#""a/""#, r#""\u0061\/""#, r#""\q""#, r#""""""#] {
            assert!(!matches(&regex, outside), "{outside}");
        }
    }
}
