//! Grammars in GBNF: what they accept and refuse, by the definition of the language, and what is an
//! error.

use palmette_grammar_parser::{Grammar, TerminalKind};
use palmette_grammar_syntax::gbnf::{GbnfOptions, parse};
use palmette_testkit::grammar::regex::matches;
use proptest::prelude::*;

use crate::naive::is_sentence;

const JSON: &str = r#"
# A JSON document.
root   ::= ws value
value  ::= (object | array | string | number | "true" | "false" | "null") ws
object ::= "{" ws ( member ("," ws member)* )? "}"
member ::= string ws ":" ws value
array  ::= "[" ws ( value ("," ws value)* )? "]"
string ::= "\"" ( [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}) )* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
ws     ::= ([ \t\n\r] ws)?
"#;

const ARITHMETIC: &str = r#"
root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] term)*
term ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num ::= [0-9]+ ws
ws ::= [ \t\n]*
"#;

const CHESS: &str = r#"
root ::= (
    # The first move has its number spelled.
    "1. " move " " move "\n"
    ([1-9] [0-9]? ". " move " " move "\n")+
)
move ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle ::= "O-O" "-O"?
"#;

const LIST: &str = "root ::= item+\r\n# Bullets.\r\nitem ::= \"- \" [^\\r\\n]+ \"\\n\"\r\n";

#[track_caller]
fn grammar(source: &str) -> Grammar {
    parse(source, &GbnfOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn check(source: &str, accepted: &[&str], refused: &[&str]) {
    let grammar = grammar(source);
    for text in accepted {
        assert!(is_sentence(&grammar, text), "{text:?} is refused by {grammar:#?}");
    }
    for text in refused {
        assert!(!is_sentence(&grammar, text), "{text:?} is accepted by {grammar:#?}");
    }
    for terminal in grammar.terminals() {
        assert!(!matches(&terminal.regex, ""), "{terminal:?}");
    }
}

#[test]
fn classic_grammars() {
    check(
        JSON,
        &["{}", " [1, -0.5e+3,\n \"a\\u00e9\\n\", {\"b\" : [null, true]} ] ", "0", "\"\""],
        &["", "{", "01", "[1,]", "{\"a\" 1}", "\"\n\"", "nul"],
    );
    check(ARITHMETIC, &["1 +(x_1*2)= 3\n", "a=b\nc=d\n"], &["", "1+=2\n", "(1=1\n"]);
    check(
        CHESS,
        &["1. e4 e5\n2. Nf3 Nc6\n", "1. e4 O-O\n2. exd8=Q+ O-O-O#\n"],
        &["1. e4 e5\n", "1. e9 e5\n2. a1 a1\n"],
    );
    check(LIST, &["- a\n", "- a\n- b c\n"], &["", "-a\n", "- \n", "- a"]);
}

/// XGrammar's names have points; in llama.cpp's a point is any character.
#[test]
fn points_are_a_part_of_names_that_are_defined_so() {
    let dotted =
        "root ::= root.item (\",\" root.item)* a.b\nroot.item ::= [0-9]+\na ::= \"a\"\nb ::= \"b\"";
    check(dotted, &["1,23a.b", "4a\u{e9}b"], &["1,ab", "root.item", "1,"]);
}

/// Definition of whole free text with `<a` before "x" or "yy" and `<<` before "z": what stands
/// first, a trigger or `!`, decides.
fn is_dispatched(text: &str, loops: bool) -> bool {
    let tags = [("<a", &["x", "yy"][..]), ("<<", &["z"])];
    let begins = |at: usize| tags.iter().find(|(tag, _)| text[at..].starts_with(tag));
    let Some(at) = (0..text.len()).find(|&at| begins(at).is_some() || text[at..].starts_with('!'))
    else {
        return true;
    };
    let Some((tag, values)) = begins(at) else { return false };
    let after = &text[at + tag.len()..];
    values.iter().filter_map(|value| after.strip_prefix(value)).any(|rest| match loops {
        true => is_dispatched(rest, loops),
        false => rest.is_empty(),
    })
}

proptest! {
    #[test]
    fn dispatches_agree_with_their_definition(text in "[<axyz!]{0,9}", loops: bool) {
        let source = format!(
            "root ::= TagDispatch((\"<a\", a), (\"<<\", b), excludes=(\"!\",), loop_after_dispatch={loops})
             a ::= \"x\" | \"yy\"
             b ::= \"z\""
        );
        prop_assert_eq!(is_sentence(&grammar(&source), &text), is_dispatched(&text, loops));
    }

    #[test]
    fn substrings_agree_with_their_definition(
        chunks in prop::collection::vec("[ab]{0,2}", 0..5),
        text in "[ab]{0,6}",
    ) {
        let listed = chunks.iter().map(|chunk| format!("{chunk:?}")).collect::<Vec<_>>().join(", ");
        let found = (0..=chunks.len())
            .any(|from| (from..=chunks.len()).any(|to| chunks[from..to].concat() == text));
        let grammar = grammar(&format!("root ::= \"(\" Substring({listed}) \")\""));
        prop_assert_eq!(is_sentence(&grammar, &format!("({text})")), found);
    }
}

#[test]
fn macros_are_read_among_other_elements() {
    check(
        "root ::= Regex(\"[0-9]+\") | \"x\" Regex(\"a|\") \"y\"",
        &["12", "xy", "xay"],
        &["", "x"],
    );
    check("root ::= Regex(\".\")", &["a", "\n"], &["", "ab"]);
    check("root ::= Regex(\"a.\", flags=\"i\")", &["ab", "AB"], &["a\n"]);
    check("root ::= Regex(\"a.\", flags = \"is\")", &["A\n"], &["b"]);
    check("root ::= Regex(\".+\", json_string=true)", &["ab é"], &["\"", "\\", "\n"]);
    check("root ::= Substring() | TagDispatch()", &["", "any text"], &[]);
    // A rule of a macro's name is that rule.
    check("root ::= Token (\"a\")\nToken ::= \"b\"", &["ba"], &["a"]);
    let tokens = grammar("root ::= TokenTagDispatch((7, a), excludes=(9,))\na ::= Token(1, 2)");
    let tokens: Vec<String> =
        tokens.token_terminals().map(|(_, tokens)| tokens.to_string()).collect();
    assert_eq!(tokens.len(), 3, "{tokens:?}");
}

#[test]
fn regular_rules_are_one_terminal() {
    let chess = grammar(CHESS);
    assert_eq!((chess.terminals().len(), chess.rules().len()), (1, 1));
    let json = grammar(JSON);
    assert!(json.terminals().len() < 16, "{:?}", json.terminals());
    let names: Vec<_> = json.nonterminals().iter().map(|n| &*n.name).collect();
    for regular in ["string", "number", "ws"] {
        assert!(!names.contains(&regular), "{names:?}");
    }
    let kinds = grammar(r#"root ::= "(" root ")" | [a-z]"#);
    let kinds: Vec<_> = kinds.terminals().iter().map(|t| (&*t.name, t.kind)).collect();
    assert!(kinds.contains(&("\"(\"", TerminalKind::Literal)), "{kinds:?}");
    assert!(kinds.contains(&("[a-z]", TerminalKind::Pattern)), "{kinds:?}");
}

#[test]
fn counts_of_rules_grow_with_the_logarithm() {
    let rules = |times: &str| {
        grammar(&format!("root ::= x{times}\nx ::= \"a\" | \"(\" x \")\"")).rules().len()
    };
    assert!(rules("{1000000}") < 60, "{}", rules("{1000000}"));
    assert!(rules("{5,1000000}") < 300, "{}", rules("{5,1000000}"));
    assert!(rules("{4294967295,}") < 80, "{}", rules("{4294967295,}"));
}

#[test]
fn counts_are_exact() {
    for (min, max) in [(0, 1), (3, 3), (0, 70), (17, 17), (2, 69), (18, 150), (65, 129), (20, 20)] {
        let source = format!("root ::= x{{{min},{max}}}\nx ::= \"a\" | \"(\" x \")\"");
        let grammar = grammar(&source);
        for times in [0, 1, min, min.max(1) - 1, min + 1, max - 1, max, max + 1, (min + max) / 2] {
            let expected = (min..=max).contains(&times);
            assert_eq!(is_sentence(&grammar, &"a".repeat(times)), expected, "{source} on {times}");
        }
    }
}

#[test]
fn large_and_doubling_rules_stay_small() {
    let mut doubling = "root ::= a0\n".to_owned();
    (0..60).for_each(|n| doubling += &format!("a{n} ::= a{} a{}\n", n + 1, n + 1));
    doubling += "a60 ::= \"x\"";
    assert!(grammar(&doubling).rules().len() < 200);
    let mut chain = "root ::= a0\n".to_owned();
    (0..20_000).for_each(|n| chain += &format!("a{n} ::= \"x\" a{}?\n", n + 1));
    chain += "a20000 ::= \"x\"";
    assert!(grammar(&chain).rules().len() > 20);
    let many: Vec<_> = (0..30_000).map(|n| format!("\"{n}\"")).collect();
    assert!(grammar(&format!("root ::= {}", many.join(" | "))).terminals().len() < 10);
}

#[test]
fn errors_name_the_place_the_rule_and_the_way_out() {
    let cases: &[(&str, &str)] = &[
        ("", "line 1, column 1: there is no rule `root`"),
        (
            "a ::= \"x\"",
            "line 1, column 1: there is no rule `root`, which is the whole text's; define it, or start at another (there are: `a`)",
        ),
        ("root ::= b", "line 1, column 10: there is no rule `b`; define it"),
        (
            "root ::= \"a\"\nroot ::= \"b\"",
            "line 2, column 1: rule `root` is defined a second time (first at line 1, column 1)",
        ),
        ("root = \"a\"", "line 1, column 6: unexpected '='; after a rule's name comes `::=`"),
        ("root ::= \"a", "line 1, column 10: this literal does not end"),
        ("root ::= [a", "line 1, column 10: this class does not end"),
        ("root ::= (\"a\"", "line 1, column 10: this parenthesis is not closed"),
        ("root ::= \"a\")", "line 1, column 13: unexpected ')'"),
        ("root ::= *", "line 1, column 10: there is nothing before this repetition"),
        ("root ::= \"a\"{3,2}", "line 1, column 13: the least number"),
        ("root ::= \"a\"{,2}", "line 1, column 14: unexpected ','; a repetition is written"),
        ("root ::= \"a\"{99999999999}", "99999999999 times; a repetition counts to 4294967295"),
        ("root ::= \"\\q\"", "line 1, column 11: there is no such escape"),
        ("root ::= \"\\xg0\"", "this escape has 2 hexadecimal digits"),
        ("root ::= \"\\ud800\"", "line 1, column 11: this number is no character's"),
        ("root ::= [b-a]", "line 1, column 11: this range ends before"),
        ("root ::= []", "line 1, column 10: this class has no character"),
        ("root ::= <think", "line 1, column 10: a token is written `<name>`"),
        ("root ::= !root", "line 1, column 10: after `!` stands a token"),
        ("root ::= \"a\" (=\"b\")", "line 1, column 14: a lookahead"),
        ("root ::= TagDispatch", "line 1, column 10: there is no rule `TagDispatch`; define it"),
        ("root ::= TagDispatch((\"a\", b))", "there is no rule `b`; define it"),
        ("root ::= TagDispatch((\"\", root))", "a tag is a pair of a text that is not empty"),
        ("root ::= TagDispatch(excludes=\"a\")", "excludes is a tuple"),
        ("root ::= TagDispatch((\"ab\", root), excludes=(\"a\",))", "begins a tag"),
        ("root ::= TagDispatch(loop_after_dispatch=1)", "`true` or `false` stands here"),
        ("root ::= TagDispatch(stop_str=1)", "no argument named stop_str; there are: excludes"),
        ("root ::= TokenTagDispatch((1, root), excludes=(1,))", "could not be written"),
        ("root ::= Token()", "Token has the number of one token at least"),
        ("root ::= Token(\"a\")", "a token is its number here"),
        ("root ::= Regex(\"a\", \"b\")", "Regex has one text"),
        ("root ::= Regex(\"a\", flags=\"m\")", "the flag 'm' is not known"),
        ("root ::= Regex(\"(\")", "in this expression: "),
        ("root ::= Substring(1)", "a text stands here"),
        ("root ::= Substring(\"a\" \"b\")", "arguments are between parentheses, with commas"),
        ("root ::= Substring(((\"a\",),))", "an argument is a text, a number"),
        ("é ::= \"a\"", "line 1, column 1: unexpected 'é'; a rule begins with its name"),
    ];
    for (source, expected) in cases {
        let error = parse(source, &GbnfOptions::default()).expect_err(source).to_string();
        assert!(error.contains(expected), "{source:?}: {error}");
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("root ::= {}\"a\"{}", "(".repeat(100_000), ")".repeat(100_000));
    let stacked = format!("root ::= \"a\"{}", "*".repeat(100_000));
    for source in [deep, stacked] {
        assert!(parse(&source, &GbnfOptions::default()).is_err());
    }
}

/// An expression and the same as a regular expression of crate `regex`.
fn expression() -> impl Strategy<Value = (String, String)> {
    let leaves =
        [("\"a\"", "a"), ("[ab]", "[ab]"), ("\"ab\"", "ab"), ("\"\"", ""), ("[^a]", "[^a]")];
    let leaf = prop::sample::select(leaves.to_vec())
        .prop_map(|(ours, theirs)| (ours.to_owned(), format!("(?:{theirs})")));
    leaf.prop_recursive(4, 16, 3, |inner| {
        let several = |join: &'static str, theirs: &'static str| {
            move |parts: Vec<(String, String)>| {
                let (ours, regexes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                (format!("({})", ours.join(join)), format!("(?:{})", regexes.join(theirs)))
            }
        };
        let times = prop::sample::select(vec!["*", "+", "?", "{2}", "{1,3}", "{2,}"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(several(" ", "")),
            prop::collection::vec(inner.clone(), 2..4).prop_map(several(" | ", "|")),
            (inner, times).prop_map(|((ours, theirs), times)| (
                format!("({ours}){times}"),
                format!("(?:{theirs}){times}")
            )),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Beside a recursive rule that never matches more, expressions are the same language as when
    /// they are regular.
    #[test]
    fn recursive_and_regular_agree_with_the_crate_regex((ours, theirs) in expression()) {
        let regular = grammar(&format!("root ::= {ours}"));
        prop_assert!(regular.terminals().len() <= 1);
        // `n` matches the empty text only, but is no regular rule.
        let recursive = ours.replace("\"a\"", "(n \"a\" n)").replace("[ab]", "([ab] n)");
        let recursive = grammar(&format!("root ::= {recursive}\nn ::= (n n)? | \"(\" n \")\""));
        let regex = regex::Regex::new(&format!("^(?:{theirs})$")).expect("sound");
        for text in ["", "a", "b", "ab", "ba", "aa", "bb", "aab", "aba", "abab", "bbb", "aaaa", "c", "abc"] {
            let expected = regex.is_match(text);
            prop_assert_eq!(is_sentence(&regular, text), expected, "{} on {:?}", ours, text);
            prop_assert_eq!(is_sentence(&recursive, text), expected, "recursive {} on {:?}", ours, text);
        }
    }
}

/// Files from Windows begin so.
#[test]
fn a_byte_order_mark_is_passed_over() {
    assert_eq!(grammar("\u{FEFF}root ::= \"a\""), grammar("root ::= \"a\""));
    assert!(parse("\u{FEFF}\u{FEFF}root ::= \"a\"", &GbnfOptions::default()).is_err());
}
