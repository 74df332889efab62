//! String formats, from the documents that define them.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use palmette_grammar_regex::parse::{Dialect, Flags, parse_text};

use crate::Regex;

/// The strings of the format `name`; `None` when it is not enforced. Made once in a process.
pub(super) fn regex(name: &str) -> Option<Regex> {
    static MADE: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let known = MADE.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
    known.or_else(|| {
        let made = make(name)?;
        let mut all = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned(), made.clone());
        Some(made)
    })
}

fn make(name: &str) -> Option<Regex> {
    let source = match name {
        "date" => date(),
        "time" => time(),
        "date-time" => format!("{}[Tt]{}", date(), time()),
        "duration" => duration(),
        "email" => email(ATOM, ""),
        "idn-email" => email(&format!("{ATOM}\\u{{80}}-\\u{{10FFFF}}"), r"\u{80}-\u{10FFFF}"),
        "hostname" => hostname(),
        "ipv4" => ipv4(),
        "ipv6" => ipv6(),
        "uri" => uri(&Alphabet::ascii()),
        "uri-reference" => uri_reference(&Alphabet::ascii()),
        "iri" => uri(&Alphabet::unicode()),
        "iri-reference" => uri_reference(&Alphabet::unicode()),
        "uri-template" => uri_template(),
        "uuid" => "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}".into(),
        "json-pointer" => JSON_POINTER.into(),
        "relative-json-pointer" => {
            format!("(?:0|[1-9][0-9]*)(?:[+-][1-9][0-9]*)?(?:#|{JSON_POINTER})")
        }
        "regex" => pattern(),
        _ => return None,
    };
    let regex = parsed(&source);
    Some(match name {
        // RFC 1123, section 2.1: 255 octets with the lengths of the labels; 253 characters as
        // written.
        "hostname" => {
            let short = Regex::Class(crate::CharClass::any()).repeat(1, Some(253));
            Regex::and([regex, short])
        }
        _ => regex,
    })
}

/// Language of a regular expression of ours.
pub(super) fn parsed(source: &str) -> Regex {
    let regex = parse_text(&format!("(?:{source})"), Dialect::Ecma, Flags::default());
    regex.expect("the formats' regular expressions are tested")
}

/// True when the format `name` is known and yet nothing that a regular expression could enforce (or
/// says nothing on strings), so that it stays an annotation.
pub(super) fn is_annotation(name: &str) -> bool {
    let is_hint = matches!(name, "float" | "double" | "password" | "binary" | "enum");
    is_hint || integers(name).is_some()
}

/// The least and the greatest of the integers of a format of numbers: OpenAPI's and those that
/// Rust's schemars writes.
pub(super) fn integers(name: &str) -> Option<(i128, i128)> {
    let signed = |bits: u32| (-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
    Some(match name {
        "int8" => signed(8),
        "int16" => signed(16),
        "int32" => signed(32),
        "int64" | "int" => signed(64),
        "uint8" => (0, u8::MAX.into()),
        "uint16" => (0, u16::MAX.into()),
        "uint32" => (0, u32::MAX.into()),
        "uint64" | "uint" => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// Reason that no regular expression tells the strings of the format `name` from all others.
pub(super) fn not_regular(name: &str) -> Option<&'static str> {
    Some(match name {
        "idn-hostname" => "how long a label may be depends on its code in Punycode",
        "hostname" => "which labels in Punycode there are depends on what they encode",
        "regex" => "groups nest without bound, and backreferences name them",
        _ => return None,
    })
}

/// RFC 3339: `full-date`, with the lengths of the months and leap years.
fn date() -> String {
    let long = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])";
    let short = "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)";
    let february = "02-(?:0[1-9]|1[0-9]|2[0-8])";
    // Divisible by four: the last two digits are, and are not 00 unless the first two are.
    let leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)";
    format!("(?:[0-9]{{4}}-(?:{long}|{short}|{february})|{leap}-02-29)")
}

/// RFC 3339: `full-time`. A leap second ends a day of UTC; it is known by its offset zero.
fn time() -> String {
    let fraction = r"(?:\.[0-9]+)?";
    let hour = "(?:[01][0-9]|2[0-3])";
    let offset = format!("(?:[Zz]|[+-]{hour}:[0-5][0-9])");
    let zero = "(?:[Zz]|[+-]00:00)";
    format!(
        "(?:{hour}:[0-5][0-9]:[0-5][0-9]{fraction}{offset}|23:59:60{fraction}{zero}|{})",
        leap_seconds(fraction)
    )
}

/// The leap seconds as clocks show them that are off by whole and half hours.
fn leap_seconds(fraction: &str) -> String {
    let mut options = Vec::new();
    for half_hours in (1..48).chain(-47..0i32) {
        let minutes = (23 * 60 + 59 + half_hours * 30).rem_euclid(24 * 60);
        let (sign, off) = (if half_hours > 0 { r"\+" } else { "-" }, half_hours.abs());
        options.push(format!(
            "{:02}:{:02}:60{fraction}{sign}{:02}:{:02}",
            minutes / 60,
            minutes % 60,
            off / 2,
            off % 2 * 30
        ));
    }
    options.join("|")
}

/// RFC 3339, appendix A. RFC 3339, appendix A, and a fraction of seconds, which it lacks and ISO
/// 8601, Pydantic and zod write.
fn duration() -> String {
    let units = |names: [&str; 3]| {
        let [first, second, third] = names.map(|name| format!("[0-9]+{name}"));
        format!("(?:{first}(?:{second}(?:{third})?)?|{second}(?:{third})?|{third})")
    };
    let (date, time) = (units(["Y", "M", "D"]), units(["H", "M", r"(?:\.[0-9]+)?S"]));
    format!("P(?:{date}(?:T{time})?|T{time}|[0-9]+W)")
}

/// Characters of an atom of RFC 5322, within brackets.
const ATOM: &str = r"A-Za-z0-9!#$%&'*+\/=?^_`{|}~\-";

/// RFC 5321: `Mailbox`; with `more` characters in names for RFC 6531.
fn email(atom: &str, more: &str) -> String {
    let dotted = format!(r"[{atom}]+(?:\.[{atom}]+)*");
    let quoted = format!(r#""(?:[ !#-\[\]-~{more}]|\\[ -~])*""#);
    let label = format!("[A-Za-z0-9{more}](?:[A-Za-z0-9\\-{more}]*[A-Za-z0-9{more}])?");
    let literal = format!(r"\[(?:{}|[Ii][Pp][Vv]6:{})\]", ipv4(), ipv6());
    format!(r"(?:{dotted}|{quoted})@(?:{label}(?:\.{label})*|{literal})")
}

fn hostname() -> String {
    let label = hostname_label();
    format!(r"{label}(?:\.{label})*")
}

/// RFC 1123 with RFC 5890: hyphens in the third and fourth place only after `xn`.
pub(super) fn hostname_label() -> String {
    let end = "[A-Za-z0-9]";
    let any = r"[A-Za-z0-9\-]";
    let tail = |max: usize| format!("(?:{any}{{0,{max}}}{end})?");
    // Up to three characters; longer ones by what stands in the third and fourth place.
    let short = format!("{end}(?:{any}?{end})?");
    let plain = format!("{end}{any}(?:{end}{any}|-{end}){}", tail(58));
    let plain_end = format!("{end}{any}{any}{end}");
    let encoded = format!("[Xx][Nn]--{end}{}", tail(57));
    let label = format!("(?:{short}|{plain_end}|{plain}|{encoded})");
    // A label does not end with a hyphen: `plain` may, where nothing follows.
    format!("(?:{label})(?<!-)")
}

fn ipv4() -> String {
    let octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    format!(r"{octet}(?:\.{octet}){{3}}")
}

/// RFC 3986, appendix A: `IPv6address`.
fn ipv6() -> String {
    let piece = "[0-9A-Fa-f]{1,4}";
    let last = format!("(?:{piece}:{piece}|{})", ipv4());
    let mut options =
        vec![format!("(?:{piece}:){{6}}{last}"), format!("::(?:{piece}:){{5}}{last}")];
    for before in 0..5 {
        let after = 4 - before;
        let left = format!("(?:(?:{piece}:){{0,{before}}}{piece})?");
        options.push(format!("{left}::(?:{piece}:){{{after}}}{last}"));
    }
    options.push(format!("(?:(?:{piece}:){{0,5}}{piece})?::{piece}"));
    options.push(format!("(?:(?:{piece}:){{0,6}}{piece})?::"));
    format!("(?:{})", options.join("|"))
}

/// The characters that differ between URIs and IRIs, within brackets.
struct Alphabet {
    unreserved: String,
    private: &'static str,
}

impl Alphabet {
    fn ascii() -> Self {
        Self { unreserved: r"A-Za-z0-9\-._~".into(), private: "" }
    }

    /// RFC 3987.
    fn unicode() -> Self {
        let mut unreserved =
            String::from(r"A-Za-z0-9\-._~\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}");
        for plane in 1..=14 {
            let first = if plane == 14 { 0x1000 } else { 0 };
            unreserved += &format!("\\u{{{:X}}}-\\u{{{plane:X}FFFD}}", plane * 0x10000 + first);
        }
        Self { unreserved, private: r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}" }
    }

    /// One character of a path segment, with `more` beside.
    fn path(&self, more: &str) -> String {
        format!("(?:[{}!$&'()*+,;={more}]|%[0-9A-Fa-f]{{2}})", self.unreserved)
    }
}

/// RFC 3986, appendix A: `URI`.
fn uri(alphabet: &Alphabet) -> String {
    let (authority, path, tail) = (authority(alphabet), alphabet.path(":@"), tail(alphabet));
    let absolute = format!(r"\/(?:{path}+(?:\/{path}*)*)?");
    let rootless = format!(r"{path}+(?:\/{path}*)*");
    format!(
        r"[A-Za-z][A-Za-z0-9+\-.]*:(?:\/\/{authority}(?:\/{path}*)*|{absolute}|{rootless})?{tail}"
    )
}

/// RFC 3986, appendix A: `URI-reference`.
fn uri_reference(alphabet: &Alphabet) -> String {
    let (authority, path, tail) = (authority(alphabet), alphabet.path(":@"), tail(alphabet));
    let absolute = format!(r"\/(?:{path}+(?:\/{path}*)*)?");
    let no_colon = alphabet.path("@");
    let relative =
        format!(r"(?:\/\/{authority}(?:\/{path}*)*|{absolute}|{no_colon}+(?:\/{path}*)*)?{tail}");
    format!("(?:{}|{relative})", uri(alphabet))
}

fn authority(alphabet: &Alphabet) -> String {
    let (user, name) = (alphabet.path(":"), alphabet.path(""));
    let future = r"[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+";
    format!(r"(?:{user}*@)?(?:\[(?:{}|{future})\]|{name}*)(?::[0-9]*)?", ipv6())
}

fn tail(alphabet: &Alphabet) -> String {
    let query = alphabet.path(&format!(r":@\/?{}", alphabet.private));
    let fragment = alphabet.path(r":@\/?");
    format!(r"(?:\?{query}*)?(?:#{fragment}*)?")
}

/// RFC 6570 with its erratum 6937.
fn uri_template() -> String {
    let private = Alphabet::unicode();
    let literal = format!(
        r"(?:[!#$&'(-;=?-\[\]_a-z~{}{}]|%[0-9A-Fa-f]{{2}})",
        &private.unreserved[r"A-Za-z0-9\-._~".len()..],
        private.private
    );
    let character = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
    let name = format!(r"{character}(?:\.?{character})*");
    let variable = format!(r"{name}(?::[1-9][0-9]{{0,3}}|\*)?");
    format!(r"(?:{literal}|\{{[+#.\/;?&=,!@|]?{variable}(?:,{variable})*\}})*")
}

/// RFC 6901.
const JSON_POINTER: &str = r"(?:\/(?:[^~\/]|~[01])*)*";

/// Limit on the nesting of groups in a string of the format `regex`.
const MAX_GROUPS: usize = 12;

/// ECMA-262: `Pattern`, as far as a finite automaton can tell: groups to a depth, no check that
/// what a backreference names is there nor that ranges ascend. Lone `]`, `{` and `}` are let
/// through, as engines do without the flag `u`.
fn pattern() -> String {
    let hex = "[0-9A-Fa-f]";
    let escape = format!(
        r"\\(?:[dDwWsSbBfnrtv0-9]|c[A-Za-z]|x{hex}{{2}}|u{hex}{{4}}|u\{{{hex}+\}}|[pP]\{{[A-Za-z0-9_=]+\}}|k<[^<>]+>|[^A-Za-z0-9])"
    );
    let class = format!(r"\[(?:[^\]\\]|{escape})*\]");
    let quantifier = r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??";
    let plain = r"[^\^$\\*+?()\[|]";
    let mut inner = String::new();
    for depth in 0..=MAX_GROUPS {
        let group = if depth == 0 {
            String::new()
        } else {
            format!(r"|\((?:\?(?:[:=!]|<[=!]|<[A-Za-z_$][A-Za-z0-9_$]*>))?{inner}\)")
        };
        let atom = format!("(?:{plain}|{escape}|{class}{group})");
        inner = format!(r"(?:{atom}(?:{quantifier})?|[\^$|])*");
    }
    inner
}
