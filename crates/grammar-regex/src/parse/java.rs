//! Properties that Java has and Unicode's tables do not: POSIX names, methods of `Character`,
//! blocks.

use super::{class_sets::posix, classes};
use crate::CharClass;

/// Blocks that expressions ask for, by their names without blanks and hyphens.
const BLOCKS: [(&str, (char, char)); 24] = [
    ("basiclatin", ('\0', '\u{7F}')),
    ("latin1supplement", ('\u{80}', '\u{FF}')),
    ("latinextendeda", ('\u{100}', '\u{17F}')),
    ("latinextendedb", ('\u{180}', '\u{24F}')),
    ("ipaextensions", ('\u{250}', '\u{2AF}')),
    ("combiningdiacriticalmarks", ('\u{300}', '\u{36F}')),
    ("greek", ('\u{370}', '\u{3FF}')),
    ("greekandcoptic", ('\u{370}', '\u{3FF}')),
    ("cyrillic", ('\u{400}', '\u{4FF}')),
    ("armenian", ('\u{530}', '\u{58F}')),
    ("hebrew", ('\u{590}', '\u{5FF}')),
    ("arabic", ('\u{600}', '\u{6FF}')),
    ("devanagari", ('\u{900}', '\u{97F}')),
    ("thai", ('\u{E00}', '\u{E7F}')),
    ("hanguljamo", ('\u{1100}', '\u{11FF}')),
    ("generalpunctuation", ('\u{2000}', '\u{206F}')),
    ("currencysymbols", ('\u{20A0}', '\u{20CF}')),
    ("letterlikesymbols", ('\u{2100}', '\u{214F}')),
    ("hiragana", ('\u{3040}', '\u{309F}')),
    ("katakana", ('\u{30A0}', '\u{30FF}')),
    ("cjkunifiedideographs", ('\u{4E00}', '\u{9FFF}')),
    ("hangulsyllables", ('\u{AC00}', '\u{D7AF}')),
    ("halfwidthandfullwidthforms", ('\u{FF00}', '\u{FFEF}')),
    ("cjksymbolsandpunctuation", ('\u{3000}', '\u{303F}')),
];

/// Methods of `Character`, `\p{javaLowerCase}`, and the properties that they ask for.
const METHODS: [(&str, &[&str]); 16] = [
    ("javaLowerCase", &["Lowercase"]),
    ("javaUpperCase", &["Uppercase"]),
    ("javaTitleCase", &["Lt"]),
    ("javaAlphabetic", &["Alphabetic"]),
    ("javaIdeographic", &["Ideographic"]),
    ("javaLetter", &["L"]),
    ("javaDigit", &["Nd"]),
    ("javaLetterOrDigit", &["L", "Nd"]),
    ("javaDefined", &["Assigned"]),
    ("javaISOControl", &["Cc"]),
    ("javaSpaceChar", &["Z"]),
    ("javaJavaIdentifierStart", &["L", "Nl", "Sc", "Pc"]),
    ("javaJavaIdentifierPart", &["L", "Nl", "Sc", "Pc", "Nd", "Mn", "Mc", "Cf"]),
    ("javaUnicodeIdentifierStart", &["ID_Start"]),
    ("javaUnicodeIdentifierPart", &["ID_Continue", "Cf"]),
    ("javaMirrored", &["Bidi_Mirrored"]),
];

/// Names of Java's that other dialects have for other characters in another case: `\p{digit}` is
/// every digit of Unicode.
const POSIX_NAMES: [&str; 4] = ["Cntrl", "Digit", "Punct", "Space"];

/// Class of a name that only Java writes so.
pub(super) fn by_posix_name(query: &str) -> Option<CharClass> {
    POSIX_NAMES.contains(&query).then(|| posix(&query.to_ascii_lowercase())).flatten()
}

/// `Character.isWhitespace`: separators that break lines, and controls that do.
fn white_space() -> Option<CharClass> {
    let fixed = ['\u{A0}', '\u{2007}', '\u{202F}'].map(|c| (c, c));
    let breaking = classes::by_property("Z")?.difference(&CharClass::new(fixed));
    Some(breaking.union(&CharClass::new([('\t', '\r'), ('\u{1C}', '\u{1F}')])))
}

/// Class of `\p{query}` in Java, where Unicode has no such property: `Print`, `Graph`,
/// `javaLetter`, `InGreek`.
pub(super) fn by_property(query: &str) -> Option<CharClass> {
    if let Some((_, properties)) = METHODS.iter().find(|(name, _)| *name == query) {
        let classes = properties.iter().filter_map(|name| classes::by_property(name));
        return classes.reduce(|all, class| all.union(&class));
    }
    match query {
        "javaWhitespace" => return white_space(),
        "L1" => return Some(CharClass::new([('\0', '\u{FF}')])),
        "all" => return Some(CharClass::any()),
        _ => {}
    }
    let folded = query.to_ascii_lowercase();
    if let Some(class) = posix(&folded).filter(|_| folded != "word") {
        return Some(class);
    }
    let name: String = folded.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = ["in", "block", "blk", "is"].iter().find_map(|prefix| name.strip_prefix(prefix))?;
    let (_, range) = BLOCKS.iter().find(|(known, _)| *known == name)?;
    Some(CharClass::new([*range]))
}
