//! The reader of regular expressions against the crate `regex` and against tables.

use palmette_grammar_regex::parse::{
    Dialect, Flags, Reading, RegexError, parse, parse_noting, parse_search, parse_text,
};
use palmette_grammar_regex::{Budget, Regex};
use palmette_testkit::grammar::regex::matches;
use proptest::prelude::*;

use crate::python_table;

/// Expressions with anchors and word boundaries in all places.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        8 => prop::sample::select(vec!["a", "b", "ab", "-", r"\n", "[ab]", "[^a]", ".", r"\w", r"\W", "(?i:A)"]),
        3 => prop::sample::select(vec!["^", "$", r"\b", r"\B", "(?m:^)", "(?m:$)", r"\b{start}", r"\b{end-half}", ""]),
    ];
    leaf.prop_map(|leaf| format!("(?:{leaf})")).prop_recursive(4, 14, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"]))
                .prop_map(|(inner, times)| format!("(?:{inner}){times}")),
        ]
    })
}

/// All texts of up to four of these characters.
fn texts() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..4 {
        let until = all.len();
        for at in from..until {
            for next in ["a", "b", "-", "\n"] {
                all.push(format!("{}{next}", all[at]));
            }
        }
        from = until;
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_the_crate_regex(pattern in pattern()) {
        let whole = regex::Regex::new(&format!(r"\A(?:{pattern})\z")).expect("sound");
        let search = regex::Regex::new(&pattern).expect("sound");
        let too_much = |message: &str| ["more than"].iter().any(|words| message.contains(words));
        let ours = parse_text(&pattern, Dialect::Rust, Flags::default());
        match ours {
            Ok(ours) => for text in texts() {
                prop_assert_eq!(matches(&ours, &text), whole.is_match(&text), "{:?} on {:?}: {:?}", pattern, text, ours);
            },
            Err(error) => prop_assert!(too_much(&error.message), "{}", error),
        }
        match parse_search(&pattern, Dialect::Rust, Flags::default()) {
            Ok(ours) => for text in texts() {
                prop_assert_eq!(matches(&ours, &text), search.is_match(&text), "search {:?} on {:?}: {:?}", pattern, text, ours);
            },
            Err(error) => prop_assert!(too_much(&error.message), "{}", error),
        }
        match parse(&pattern, Dialect::Rust, Flags::default()) {
            Ok(ours) => for text in texts() {
                prop_assert_eq!(matches(&ours, &text), whole.is_match(&text), "lexeme {:?} on {:?}: {:?}", pattern, text, ours);
            },
            Err(error) => prop_assert!(too_much(&error.message), "{}", error),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever is intersected or taken away.
    #[test]
    fn texts_begin_with_the_first_bytes(
        patterns in prop::collection::vec(pattern(), 1..4),
        is_union in any::<bool>(),
        but in prop::option::of(pattern()),
    ) {
        let read = |pattern: &String| parse_text(pattern, Dialect::Rust, Flags::default()).ok();
        let parts: Vec<_> = patterns.iter().filter_map(read).collect();
        let whole = if is_union { Regex::alternate(parts) } else { Regex::and(parts) };
        let but = but.as_ref().and_then(read).map(Regex::complement);
        let whole = Regex::and([whole].into_iter().chain(but));
        let first = whole.first_bytes();
        for text in texts().iter().filter(|text| !text.is_empty() && matches(&whole, text)) {
            prop_assert!(first.contains(text.as_bytes()[0]), "{:?} of {:?}", text, whole);
        }
    }
}

/// Bytes of encodings, and no more where nothing is intersected.
#[test]
fn first_bytes_of_characters() {
    for (pattern, bytes) in [
        ("[a-c]x", vec![b'a', b'b', b'c']),
        ("a?(b|-)*", vec![b'-', b'a', b'b']),
        ("[é-ſ]", vec![0xC3, 0xC4, 0xC5]),
        ("(?:€|𝄞|a?)x", vec![b'a', b'x', 0xE2, 0xF0]),
        (r"[^\x00-\x7f]", (0xC2..=0xF4).collect()),
        ("[a&&b]", vec![]),
    ] {
        let regex = parse_text(pattern, Dialect::Rust, Flags::default()).expect(pattern);
        assert_eq!(regex.first_bytes().iter().collect::<Vec<_>>(), bytes, "{pattern}");
    }
}

#[test]
fn agrees_with_python() {
    for (pattern, whole, found) in python_table::CASES {
        let ours = parse_text(pattern, Dialect::Python, Flags::default());
        check_table(pattern, ours, whole);
        let ours = parse_search(pattern, Dialect::Python, Flags::default());
        check_table(pattern, ours, found);
    }
}

#[track_caller]
fn check_table(pattern: &str, ours: Result<Regex, RegexError>, expected: &[usize]) {
    let ours = ours.unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
    for (at, text) in python_table::TEXTS.iter().enumerate() {
        assert_eq!(
            matches(&ours, text),
            expected.contains(&at),
            "{pattern:?} on {text:?}: {ours:?}"
        );
    }
}

#[test]
fn what_python_refuses_or_no_automaton_does_is_refused() {
    for pattern in python_table::REFUSED {
        for ask in [parse, parse_text, parse_search] {
            let error = ask(pattern, Dialect::Python, Flags::default()).expect_err(pattern);
            assert!(error.offset <= pattern.len(), "{error}");
        }
    }
}

/// An expression of ECMAScript, texts that contain a match, and texts that do not.
const ECMA: &[(&str, &[&str], &[&str])] = &[
    (r"^\d+$", &["1", "42"], &["", "\u{0663}", "1a", "1\n"]),
    (r"\w", &["a", "é_"], &["é", "-"]),
    (r"^\s$", &[" ", "\u{FEFF}", "\u{2029}", "\u{3000}"], &["\u{85}", "\u{1C}", "a"]),
    (r"^.$", &["a", "\u{85}", "\u{1F600}"], &["\n", "\r", "\u{2028}"]),
    (r"^\cA\cz$", &["\u{1}\u{1A}"], &["A"]),
    (r"^\x41\u0042\u{43}$", &["ABC"], &["abc"]),
    (r"^\uD83D\uDE00$", &["\u{1F600}"], &["\u{1F601}"]),
    (r"^[\uD83D\uDE00-\uD83D\uDE02]$", &["\u{1F601}"], &["\u{1F603}"]),
    (r"^[^\ud800-\udfff]$", &["a", "\u{1F600}"], &["ab"]),
    (r"^\p{L}\P{Lu}$", &["éa", "ßß"], &["éA", "1a"]),
    (r"^\p{Script=Greek}+$", &["αβγ"], &["abc"]),
    (r"^[\p{Ll}_]+$", &["a_b"], &["A"]),
    (r"^[^]$", &["\n", "a"], &[""]),
    (r"[]", &[], &["", "a"]),
    (r"^a{$", &["a{"], &["a"]),
    (r"^a{,3}$", &["a{,3}"], &["a", ""]),
    (r"^{a}$", &["{a}"], &["a"]),
    (r"^]}$", &["]}"], &[]),
    (r"^a{2,3}$", &["aa", "aaa"], &["a", "aaaa"]),
    (r"^(?<year>[0-9]{4})-\d\d$", &["2026-11"], &["206-11"]),
    (r"^[\w-]+$", &["a-b"], &["a b"]),
    (r"^[\w-.]+$", &["a-.b"], &["a b"]),
    (r"^[+--]$", &["+", ",", "-"], &["."]),
    (r"^[\b]$", &["\u{8}"], &["b"]),
    (r"^\-\_\@\/\:$", &["-_@/:"], &[]),
    (r"^\0$", &["\0"], &["0"]),
    ("foo|^bar|baz$", &["xfoox", "barx", "xbaz"], &["xbar", "bazx"]),
    ("^(a|b$)", &["ax", "b"], &["bx", "xa"]),
    ("^(?:a|^b)*$", &["", "b", "baa", "aa"], &["ab", "c"]),
    (r"^(?!.*--)[a-z-]+$", &["a-b"], &["a--b", ""]),
    (r"^(?=.*\d)(?=.*[a-z]).{3,}$", &["a1b", "1ab"], &["abc", "1a"]),
    (r"^((?!foo).)*$", &["", "fo", "oof"], &["foo", "afoob"]),
    (r"^(?:(?!foo)[a-z]){1,5}$", &["fo", "abcde"], &["foo", "abcdef", "", "xfoo"]),
    (r"^(?!foo$|bar$)[a-z]+$", &["foox", "ba"], &["foo", "bar", ""]),
    (r"^a(?!b)", &["a", "ac"], &["ab", "ba"]),
    (r"a(?=b|$)", &["xab", "a"], &["ac"]),
    (r"\bcat\b", &["a cat.", "cat"], &["cats", "_cat"]),
    (r"^\b\w+\b(?:\s\b\w+\b)*$", &["a bc d"], &["a  b", ""]),
    (r"(?<=^|,)x(?=,|$)", &["x", "a,x,b"], &["ax", "xa"]),
    (r"(?<!\d)\d{2}(?!\d)", &["a12b", "12"], &["123", "1"]),
    (r"^(?i:straSSe|k)$", &["STRASSE", "K", "\u{212A}"], &["x"]),
    (r"(?m:^a$)", &["b\na\nb"], &["ba"]),
    // Lookarounds within what is repeated, and for more than a character.
    (
        r"^([a-z\d]|[a-z\d]([a-z\d-](?!--))*[a-z\d])$",
        &["a", "a-b", "ab1", "a--b"],
        &["-a", "a-", "a---b", ""],
    ),
    (r"^((?!foo).)*x$", &["abx", "x", "fox"], &["foox", "afoobx", "ab"]),
    (r"^<!--(?:(?!-->)[^])*-->$", &["<!---->", "<!-- a - -->"], &["<!-- --> -->", "<!--"]),
    (r"^(?:a(?=b|$)|b(?!b))*$", &["", "a", "ab", "aba", "bab"], &["bb", "aa", "abb"]),
    (r"(?<=ab)c", &["abc", "xabc"], &["ac", "c"]),
    (r"^(?:(?<!ab)c|[ab])*$", &["cab", "cc", "bac"], &["abc", "cabcc"]),
    (r"^(?:\b\w+\b[ -]?){2,}$", &["a b", "a-b c"], &["a", "a  b"]),
    // Java's.
    (r"^\p{Print}+$", &["ab c", "~"], &["\u{1}", "é", "\u{7F}"]),
    (r"^\p{Graph}\p{Alnum}\p{XDigit}\p{Blank}$", &["!0f\t", "~zA "], &[" 0f ", "!0g "]),
    (r"^\p{javaLetter}\p{InGreek}\P{Print}$", &["éα\n"], &["1α\n", "aa\n"]),
    (r"(?i)^ab(?-i)c$", &["ABc", "abc"], &["ABC"]),
    (r"^(?:(?i)a|b)c$", &["Bc", "Ac", "bc"], &["AC"]),
    (r"^(?s:.)(?-s:.)$", &["\na"], &["a\n"]),
    (r"^\Qa.b\E+$", &["a.b", "a.bbb"], &["axb", "a.ba.b"]),
    (r"\Aab\z", &["ab"], &["abc", "xab"]),
    (r"^\R\h\e$", &["\r\n \u{1B}", "\n\u{A0}\u{1B}"], &["a \u{1B}"]),
    // Rust's.
    (r"^\x{41}[\u{1F600}-\u{1F64F}]\U{43}$", &["A\u{1F600}C"], &["Aa"]),
    (r"^\pL\PL\p{^L}$", &["a11"], &["aa1", "a1a"]),
    (r"^(?P<n>a)$", &["a"], &["b"]),
    (r"^[a-z&&[^aeiou]]+$", &["bcd"], &["a", "b]", "&"]),
    (r"^[\w--\d]+$", &["ab_"], &["a1"]),
    (r"^[[a-c]&&[b-d]]$", &["b", "c"], &["a", "d"]),
    (r"^[a-z~~[x-z0]]$", &["a", "0"], &["x"]),
    (r"^[^a-z--[x-z]]$", &["x", "1"], &["a"]),
    (r"^[[:alpha:]_]+$", &["aZ_"], &["a1", ":"]),
    (r"^[^[:^digit:]]$", &["1"], &["a"]),
    (r"^[&&|]$", &["&", "|"], &["a"]),
    (r"^[[]$", &["["], &["]"]),
];

#[test]
fn ecma_patterns_are_searched() {
    for (pattern, found, missed) in ECMA {
        let ours = parse_search(pattern, Dialect::Ecma, Flags::default());
        let ours = ours.unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
        assert!(!has_look(&ours), "{pattern:?}: {ours:?}");
        for (texts, expected) in [(found, true), (missed, false)] {
            for text in *texts {
                assert_eq!(matches(&ours, text), expected, "{pattern:?} on {text:?}: {ours:?}");
            }
        }
    }
}

fn has_look(regex: &Regex) -> bool {
    match regex {
        Regex::Look { .. } => true,
        Regex::Repeat { inner, .. } | Regex::Not(inner) => has_look(inner),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(has_look)
        }
        _ => false,
    }
}

#[test]
fn errors_name_the_place_the_construct_and_the_way_out() {
    let cases: &[(&str, usize, &str, &str)] = &[
        (r"(a)\1", 3, "backreference", "write the group's expression again"),
        (r"x\k<n>", 1, "backreference", "again"),
        ("(?>a|ab)", 0, "atomic", "(?:…)"),
        ("a**", 2, "two quantifiers", "(?:…)"),
        ("*", 0, "nothing before", "escape"),
        ("{2}", 0, "nothing before", "escape"),
        ("(a", 0, "no end", "close"),
        ("a)", 1, "closes no group", r"\)"),
        ("[b-a]", 1, "ends before it begins", "swap"),
        ("a{3,2}", 1, "greater", "swap"),
        ("a{99999999999}", 2, "4294967295", "at most"),
        (r"\y", 0, r"no escape `\y`", "write `y`"),
        ("(?q)a", 2, "unknown flag 'q'", "there are"),
        ("(?q:a)", 0, "no such group", "(?<name>…)"),
        ("[a&&[b]", 0, "no end", "close"),
        (r"\x{zz}", 0, r"`\x{` is followed by", "10FFFF"),
        (r"\p{Nope}", 0, "no property `Nope`", "such as"),
        (r"\u{110000}", 0, "0x110000", "0x10FFFF"),
    ];
    for (pattern, offset, construct, way_out) in cases {
        let error = parse_search(pattern, Dialect::Ecma, Flags::default()).expect_err(pattern);
        assert_eq!(error.offset, *offset, "{pattern}: {error}");
        assert!(error.message.contains(construct), "{pattern}: {error}");
        assert!(error.message.contains(way_out), "{pattern}: {error}");
    }
}

#[test]
fn limits_are_errors() {
    let nested = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    let classes = format!("[{}a{}", "[a&&".repeat(100_000), "]".repeat(100_001));
    for dialect in [Dialect::Python, Dialect::Ecma, Dialect::Rust] {
        for pattern in [&nested, &classes] {
            let error = parse_text(pattern, dialect, Flags::default()).expect_err(pattern);
            assert!(!error.message.is_empty());
        }
    }
}

/// Conditions beyond what is worked into a tree are looked at as a text is read.
#[test]
fn many_conditions_are_read() {
    let many = "\\b".repeat(1000);
    let repeated = r"(\ba\b ){200}".to_owned();
    for dialect in [Dialect::Python, Dialect::Ecma, Dialect::Rust] {
        for (pattern, text, is_in) in
            [(&many, "", false), (&repeated, &"a ".repeat(200), true), (&repeated, "a ", false)]
        {
            let read = parse_text(pattern, dialect, Flags::default()).expect("read");
            assert_eq!(matches(&read, text), is_in, "{pattern}");
        }
    }
}

/// What Python or ECMAScript take for other texts is told where it is read as Rust and Java do, and
/// what they would read otherwise.
#[test]
fn what_dialects_read_differently_is_noted() {
    for (pattern, offset, words) in [
        (r"[a-z&&[^aeiou]]+", Some(4), "`&&` in a class is an operation"),
        (r"x[\w--\d]", Some(4), "`--` in a class is an operation"),
        (r"[[:alpha:]]", Some(1), "POSIX"),
        (r"[0-9--4]", Some(4), "read as characters"),
        (r"[&&]", None, ""),
        (r"[+--]", None, ""),
        (r"[a-z]&&[a]", None, ""),
        (r"[[a]", None, ""),
    ] {
        let (mut budget, mut notes) = (Budget::unlimited(), Vec::new());
        let into = (&mut budget, &mut notes);
        let read = parse_noting(pattern, Dialect::Python, Flags::default(), Reading::Lexeme, into);
        assert!(read.is_ok(), "{pattern}: {read:?}");
        assert_eq!(notes.first().map(|note| note.offset), offset, "{pattern}: {notes:?}");
        assert!(notes.first().is_none_or(|note| note.message.contains(words)), "{notes:?}");
    }
}

#[test]
fn a_terminal_keeps_what_looks_beyond_it() {
    let lexeme = |pattern| parse(pattern, Dialect::Python, Flags::default()).expect(pattern);
    assert_eq!(lexeme("^ab$"), Regex::literal("ab"));
    assert!(has_look(&lexeme(r"if(?!\w)")));
    assert!(has_look(&lexeme(r"if\b")));
    assert!(has_look(&lexeme(r"\bif")));
    assert!(has_look(&lexeme(r"a(?=bc)")));
    assert_eq!(lexeme("a^b"), Regex::Never);
    assert!(matches!(lexeme("a*?"), Regex::Repeat { reluctant: true, .. }));
}

fn searched(pattern: &str, dialect: Dialect) -> (Regex, Vec<String>) {
    let mut notes = Vec::new();
    let into = (&mut Budget::unlimited(), &mut notes);
    let read = parse_noting(pattern, dialect, Flags::default(), Reading::Search, into);
    let regex = read.unwrap_or_else(|error| panic!("{pattern}: {error}"));
    (regex, notes.into_iter().map(|note| note.message).collect())
}

/// Possessive quantifiers of one class against their meaning: what is taken is as much as can be.
#[test]
fn possessive_quantifiers_give_nothing_back() {
    for (pattern, meaning) in [
        ("^a++b$", "^a+b$"),
        ("^a*+a$", "^b&&c$"),
        ("^[ab]?+a$", "^[ab]a$"),
        ("^a{1,2}+b$", "^a{1,2}b$"),
        ("^a{1,2}+a$", "^aaa$"),
        ("^a{2}+a$", "^aaa$"),
        ("^(?>a+)b$", "^a+b$"),
        ("^(?>[ab]*)b$", "^b&&c$"),
        ("^(?:a)++-$", "^a+-$"),
    ] {
        for dialect in [Dialect::Ecma, Dialect::Python] {
            let (ours, _) = searched(pattern, dialect);
            let whole = regex::Regex::new(meaning).expect("sound");
            for text in texts().iter().filter(|text| !text.ends_with('\n')) {
                assert_eq!(matches(&ours, text), whole.is_match(text), "{pattern} on {text:?}");
            }
        }
    }
    for pattern in ["(?:ab)++c", "(?>a|ab)c", r"(a)\1", "(a)?(?(1)b|c)"] {
        for dialect in [Dialect::Ecma, Dialect::Python] {
            let error = parse_search(pattern, dialect, Flags::default()).expect_err(pattern);
            assert!(error.is_irregular, "{pattern}: {error}");
        }
    }
}

#[test]
fn names_that_only_java_writes_so_are_javas() {
    for (pattern, inside, outside, is_noted) in [
        (r"^\p{Punct}$", "$", "a", true),
        (r"^\p{Digit}$", "3", "\u{663}", true),
        (r"^\p{digit}$", "\u{663}", "a", false),
        (r"^\P{Cntrl}$", "a", "\u{1}", true),
        (r"^\p{javaWhitespace}$", "\u{2028}", "\u{A0}", false),
        (r"^\p{javaJavaIdentifierStart}$", "$", "1", false),
        (r"^\p{L1}$", "\u{E9}", "\u{100}", false),
        (r"^\o{101}\N{U+42}$", "AB", "A", false),
    ] {
        let (regex, notes) = searched(pattern, Dialect::Ecma);
        assert!(matches(&regex, inside), "{pattern} matches {inside:?}");
        assert!(!matches(&regex, outside), "{pattern} does not match {outside:?}");
        assert_eq!(!notes.is_empty(), is_noted, "{pattern}: {notes:?}");
    }
}

#[test]
fn classes_within_classes_are_read_where_a_bracket_would_be_left_over() {
    for (pattern, inside, outside, words) in [
        ("^[a-c[x-z]]+$", "ax", "m", "a class within a class"),
        ("^[[ab][xy]]$", "y", "[", "a class within a class"),
        ("^[^[ab]]$", "c", "a", "a class within a class"),
        ("^[a-z&&[^aeiou]]$", "b", "a", "is an operation on sets"),
        ("^[a-z&&b-d]$", "&", "-", "`&&` in a class is read as characters"),
    ] {
        let (regex, notes) = searched(pattern, Dialect::Ecma);
        assert!(matches(&regex, inside) && !matches(&regex, outside), "{pattern}");
        assert!(notes.len() == 1 && notes[0].contains(words), "{pattern}: {notes:?}");
    }
    for pattern in ["^[^[]]$", r"^[\[a]]$", "^[[a]$", "[!#$%&'*+/=?^_`{|}~-]"] {
        let (_, notes) = searched(pattern, Dialect::Ecma);
        assert!(notes.is_empty(), "{pattern}: {notes:?}");
    }
    let (regex, notes) = searched("^[a[b]]$", Dialect::Python);
    assert!(matches(&regex, "[]") && notes[0].contains("as Python does"), "{notes:?}");
}

#[test]
fn an_expression_between_slashes_is_refused_where_it_matches_nothing() {
    for pattern in ["/^abc$/", "/^abc$/i"] {
        for dialect in [Dialect::Ecma, Dialect::Python, Dialect::Rust] {
            let error = parse_search(pattern, dialect, Flags::default()).expect_err(pattern);
            assert!(error.message.contains("leave the slashes out"), "{error}");
        }
    }
    assert!(parse_search("/v1/", Dialect::Ecma, Flags::default()).is_ok());
}
