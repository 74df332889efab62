//! Constructs of Lark grammars, their meaning, and the refusals of the rest.

use std::collections::BTreeSet;

use palmette_grammar_parser::{Budget, Grammar, Lexing, Regex, Symbol, TerminalKind};
use palmette_grammar_syntax::lark::{
    LarkError, LarkIndentation, LarkLimits, LarkOptions, parse, parse_with_budget,
};
use proptest::prelude::*;

fn read(source: &str) -> Grammar {
    parse(source, &LarkOptions::default()).unwrap_or_else(|error| panic!("{source}\n{error}"))
}

fn refused(source: &str) -> LarkError {
    match parse(source, &LarkOptions::default()) {
        Ok(_) => panic!("accepted: {source}"),
        Err(error) => error,
    }
}

/// The sentences of at most `longest` terminals, each terminal by its name, after a blank.
fn sentences(grammar: &Grammar, longest: usize) -> BTreeSet<String> {
    let mut known: Vec<BTreeSet<Vec<u32>>> = vec![BTreeSet::new(); grammar.nonterminals().len()];
    loop {
        let mut grown = false;
        for rule in grammar.rules() {
            let mut texts = BTreeSet::from([Vec::new()]);
            for symbol in &rule.body {
                let next = match symbol {
                    Symbol::Terminal(id) => BTreeSet::from([vec![id.0]]),
                    Symbol::Nonterminal(id) => known[id.index()].clone(),
                };
                let joined = texts
                    .iter()
                    .flat_map(|text| next.iter().map(move |more| [&text[..], more].concat()));
                texts = joined.filter(|text| text.len() <= longest).collect();
            }
            let head = &mut known[rule.head.index()];
            let before = head.len();
            head.extend(texts);
            grown |= head.len() > before;
        }
        if !grown {
            break;
        }
    }
    let name = |id: &u32| format!(" {}", grammar.terminals()[*id as usize].name);
    known[grammar.start().index()].iter().map(|text| text.iter().map(name).collect()).collect()
}

#[track_caller]
fn check_sentences(source: &str, longest: usize, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|text| (*text).to_owned()).collect();
    assert_eq!(sentences(&read(source), longest), expected, "{source}");
}

#[track_caller]
fn check_error(source: &str, expected: &[&str]) {
    let shown = refused(source).to_string();
    for part in expected {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}\nof:\n{source}");
    }
}

fn terminal<'g>(grammar: &'g Grammar, name: &str) -> &'g palmette_grammar_parser::Terminal {
    let found = grammar.terminals().iter().find(|terminal| terminal.name == name);
    found.unwrap_or_else(|| panic!("no {name} among {:?}", grammar.terminals()))
}

#[test]
fn groups_options_and_repetitions() {
    check_sentences(
        "start: \"a\" (\"b\" | \"c\")? [\"d\"]",
        9,
        &[" A", " A B", " A C", " A D", " A B D", " A C D"],
    );
    check_sentences("start: \"a\"* \"b\"+", 2, &[" B", " B B", " A B"]);
    check_sentences("start: \"a\"~2 \"b\"~0..1", 9, &[" A A", " A A B"]);
    check_sentences("start: \"a\"{,1} \"b\"{1} \"c\"{2,}", 4, &[" B C C", " A B C C", " B C C C"]);
    check_sentences("start: ([\"a\"] [\"b\"])*", 1, &["", " A", " B"]);
    check_sentences("start: (\"a\"?)+ ()* \"\"", 1, &["", " A"]);
    check_sentences("start: (\"a\"?)~3 (\"b\"*)~2..9", 1, &["", " A", " B"]);
}

#[test]
fn what_shapes_the_tree_is_read_over() {
    let source =
        "?start: one -> alias\n  | !two\n!?one.2: \"a\"\n_two.-3: \"b\"\n".replace("!two", "_two");
    check_sentences(&source, 9, &[" A", " B"]);
}

#[test]
fn lines_comments_and_continuations() {
    let source = "// first\n%llguidance {}\nstart: (\"a\" # here\n  \"b\")\n\n   // between\n  | \"c\" \\\n  \"d\"\r\n\r\n";
    check_sentences(source, 9, &[" A B", " C D"]);
}

#[test]
fn templates() {
    let list = "list{item, mark}: item (mark item)*\n";
    check_sentences(&format!("start: list{{\"a\", \",\"}}\n{list}"), 3, &[" A", " A COMMA A"]);
    let nested = "start: pair{pair{X}} | pair{X}\npair{x}: x x\nX: \"x\"";
    check_sentences(nested, 9, &[" X X", " X X X X"]);
    assert_eq!(read(nested).nonterminals().len(), 3);
    check_error(
        "start: t{\"a\"}\nt{x}: x t{u{x}}\nu{x}: x x",
        &["template `t` makes more than 4096 instances"],
    );
    check_error("start: t{\"a\"}\nt{x, y}: x y", &["`t` takes 2 arguments, not 1"]);
    check_error("start: t\nt{x}: x", &["`t` is a template"]);
    check_error("start: t{(\"a\")}\nt{x}: x", &["make the group a rule"]);
    check_error("start: t{start}\nt{x}: x{\"a\"}", &["cannot be passed to a template"]);
}

#[test]
fn terminals_are_named_as_lark_names_them() {
    let grammar = read(
        "start: \"+\" \"if\" \"if\"i \"+=\" ASYNC \"async\" \"SELECT\"i /x+/ Y \"é\"\nASYNC: \"async\"\nY.3: /x+/ \"y\"",
    );
    let names: Vec<_> = grammar.terminals().iter().map(|terminal| &*terminal.name).collect();
    assert_eq!(names, ["ASYNC", "Y", "PLUS", "IF", "\"if\"i", "\"+=\"", "SELECT", "/x+/", "É"]);
    assert_eq!(terminal(&grammar, "Y").priority, 3);
    assert_eq!(terminal(&grammar, "SELECT").kind, TerminalKind::Literal);
    assert_eq!(terminal(&grammar, "Y").kind, TerminalKind::Pattern);
    assert_eq!(grammar.lexing(), Lexing::Contextual);
}

#[test]
fn names_have_hyphens_between_their_parts() {
    let grammar = read("start: tool-call -> first-one\ntool-call: X-Y* \"-\"->b\nX-Y: \"a\"");
    let names: Vec<_> = grammar.nonterminals().iter().map(|one| &*one.name).collect();
    assert!(names.contains(&"tool-call"), "{names:?}");
    assert!(grammar.terminals().iter().any(|one| one.name == "X-Y"));
}

#[test]
fn texts_in_quotes() {
    let grammar = read(r#"start: "\"" "\\" "\n" "\x41\u0042\U00000043" "\d""#);
    let texts: Vec<_> = grammar.terminals().iter().map(|terminal| terminal.regex.clone()).collect();
    assert_eq!(texts, ["\"", "\\", "\n", "ABC", "\\d"].map(Regex::literal));
    check_error("start: \"\\u12\"", &["4 hexadecimal digits", "line 1, column 9"]);
    check_error("start: \"a\nstart: b", &["does not end on its line"]);
}

#[test]
fn terminals_are_built_of_terminals() {
    let grammar = read("start: A\nA: B C? \"z\"i /q/\nB: \"x\"..\"y\" & ~\"y\"\nC: \"c\"");
    assert_eq!(grammar.terminals().len(), 1);
    check_error(
        "start: A\nA: B\nB: \"(\" A? \")\"",
        &["terminal `A` is built of itself", "line 2"],
    );
    check_error("start: A\nA: start", &["`start` is a rule"]);
    check_error("start: \"a\" & \"b\"", &["terminals only"]);
    check_error("start: A\nA: /a(/", &["line 2, column", "regular expression"]);
    check_error("start: A\nA: /a/l", &["locale"]);
}

#[test]
fn the_empty_text_is_split_off() {
    let source = "start: \"a\" DIM \"b\" NOTHING\nDIM: /[ ]*/\nNOTHING: \"\"\n%ignore /x*/";
    check_sentences(source, 9, &[" A B", " A DIM B"]);
    let grammar = read(source);
    assert_eq!(terminal(&grammar, "DIM").regex, Regex::literal(" ").repeat(1, None));
    assert_eq!(terminal(&grammar, "/x*/").regex, Regex::literal("x").repeat(1, None));
    check_error(
        "start: \"a\" END\nEND: /(?!b)/",
        &["`END` matches the empty text where", "line 1, column 12"],
    );
}

#[test]
fn imports_and_changes() {
    let source = "start: INT | NUM | CNAME\n%import common (INT, CNAME)\n%import common.SIGNED_NUMBER -> NUM\n%import common.WS\n\
                  %ignore WS\n%import common.INT\n%extend INT: \"0x\" /[0-9a-f]+/\n%override CNAME: /[a-z]+/";
    let grammar = read(source);
    let names: Vec<_> = grammar.terminals().iter().map(|terminal| &*terminal.name).collect();
    assert_eq!(names, ["INT", "CNAME", "NUM", "WS"]);
    assert_eq!(grammar.ignored().len(), 1);
    assert!(matches!(terminal(&grammar, "INT").regex, Regex::Alternate(_)));
    check_error("start: A\n%import common.A", &["`common` has no `A`; it has DIGIT"]);
    check_error("start: A\n%import python.A", &["there is no library `python`"]);
    check_error("start: A\n%import .python.A", &["other files"]);
    check_error("start: WS", &["say `%import common.WS`"]);
    check_error("start: \"a\"\n%extend other: \"b\"", &["no `other` above"]);
    check_error(
        "start: WS\n%import common.WS\nWS: \" \"",
        &["`WS` is defined twice, first at line 2, column 16"],
    );
}

#[test]
fn blocks_by_indentation() {
    let source = "start: (line _NEWLINE | \"{\" _INDENT start _DEDENT \"}\")*\nline: /[a-z]+/\n_NEWLINE: /\\n */\n%declare _INDENT _DEDENT";
    let blocks = read(source).indentation().cloned().expect("blocks");
    assert_eq!((blocks.open.len(), blocks.close.len(), blocks.tab_width), (1, 1, 8));
    let off = LarkOptions { indentation: LarkIndentation::None, ..LarkOptions::default() };
    let shown = parse(source, &off).expect_err("declared terminals").to_string();
    assert!(shown.contains("`_INDENT` is only declared"), "{shown}");
    let shown = parse("start: \"a\"", &LarkOptions::default().python_indentation())
        .expect_err("no blocks")
        .to_string();
    assert!(shown.contains("need terminal `_NEWLINE`"), "{shown}");
}

#[test]
fn errors_tell_all_and_where() {
    let error = refused("start: a b\nstart: \"x\"\nc: (\"y\"\nd: ]\n");
    assert_eq!(error.problems().len(), 2, "{error}");
    let error = refused("start: a b\nstart: \"x\"\n");
    let shown = error.to_string();
    for part in [
        "`a` is used but not defined",
        "`b` is used",
        "defined twice, first at line 1, column 1",
        "  start: a b\n         ^",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    check_error("one: two\ntwo: \"a\"", &["no rule `start`", "one, two"]);
    check_error("Start: \"a\"", &["neither a rule"]);
    check_error("start: 'a'", &["double quotes"]);
    check_error("start: <|end|", &["a token is written `<name>`"]);
    check_error("start: A\nA: \"a\" <|end|>", &["no part of a terminal"]);
    check_error("start: %yaml {}", &["`%yaml` inside a definition"]);
    check_error("start[eager]: \"a\"", &["there is no attribute `eager`", "lazy, suffix=TERMINAL"]);
    check_error("start: (\"a\" -> x)", &["an alias names a whole alternative"]);
    check_error("start: \"a\"~3..2", &["3 to 2 times is never"]);
    check_error("start: \"a\"?+", &["two repetitions"]);
    check_error("start \"a\"", &["the `:` is missing"]);
    check_error("%frob x\nstart: \"a\"", &["`%frob` is not supported"]);
    check_error("", &["has no rules"]);
}

#[test]
fn sizes_are_bounded() {
    let deep = format!("start: {}\"a\"{}", "(".repeat(200), ")".repeat(200));
    check_error(&deep, &["nested more than 100 deep"]);
    let chain: String = (0..2000).map(|i| format!("A{i}: A{}?\n", i + 1)).collect();
    check_error(&format!("start: A0\n{chain}A2000: \"a\""), &["nested more than 500 deep"]);
    let double: String = (0..60).map(|i| format!("A{i}: A{0} A{0}\n", i + 1)).collect();
    check_error(&format!("start: A0\n{double}A60: \"a\""), &["limit `terminal_nodes`"]);
    let wide = format!("start: {}", "[\"a\"] ".repeat(5000));
    check_error(
        &wide,
        &["limit is `rule_symbols`".trim_start_matches("limit is "), "rules of their own"],
    );
    let small = LarkLimits { rule_symbols: 3, ..LarkLimits::default() };
    let options = LarkOptions { limits: small, ..LarkOptions::default() };
    assert!(parse("start: \"a\" \"b\" \"c\" \"d\"", &options).is_err());
}

#[test]
fn many_options_do_not_multiply_without_end() {
    let options: String = (0..40).map(|i| format!("[\"o{i}\"] ")).collect();
    let grammar = read(&format!("start: {options}"));
    assert!(grammar.rules().len() < 1000, "{} rules", grammar.rules().len());
    let expected: usize = 1 + 40 + 40 * 39 / 2;
    assert_eq!(sentences(&grammar, 2).len(), expected);
}

#[test]
fn counted_repetitions_take_few_rules() {
    for source in [
        "start: \"a\"~100000",
        "start: \"a\"~0..100000",
        "start: \"a\"~5..4294967295",
        "start: (\"a\"|\"b\")~7,".trim_end_matches(','),
    ] {
        let grammar = read(source);
        assert!(grammar.rules().len() < 400, "{source}: {} rules", grammar.rules().len());
    }
}

proptest! {
    #[test]
    fn a_counted_repetition_is_just_so_many(min in 0_u32..40, more in 0_u32..60) {
        let max = min + more;
        let found = sentences(&read(&format!("start: \"a\"~{min}..{max}")), 101);
        let expected: BTreeSet<String> = (min..=max).map(|times| " A".repeat(times as usize)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn any_text_is_read_or_refused(source in "[a-cA-C:|()?*+~0-9.,{}&%/\" \n\\[\\]>-]{0,60}") {
        if let Err(error) = parse(&format!("start: a\na: \"a\"\n{source}"), &LarkOptions::default()) {
            prop_assert!(!error.problems().is_empty());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}

/// Lark's own example of blocks and gdtoolkit's GDScript call the end of a line `_NL`.
#[test]
fn lines_end_by_the_terminal_before_a_block() {
    let newline = |source: &str| {
        let grammar = read(source);
        let blocks = grammar.indentation().map(|blocks| blocks.newline);
        blocks.map(|newline| grammar.terminals()[newline.index()].name.clone())
    };
    let end = r"/(\r?\n[\t ]*)+/";
    let tree = format!(
        "?start: _NL* tree\ntree: NAME _NL [_INDENT tree+ _DEDENT]\nNAME: /[a-z]+/\n\
         %declare _INDENT _DEDENT\n%ignore / +/\n_NL: {end}"
    );
    assert_eq!(newline(&tree).as_deref(), Some("_NL"));
    let bare = tree.replace("_INDENT", "INDENT").replace("_DEDENT", "DEDENT");
    assert_eq!(newline(&bare).as_deref(), Some("_NL"));
    // The end of a line in a rule of its own, what may be empty between, and a comment before it.
    let apart = format!(
        "start: (head block)+\nhead: NAME \":\" end\nend: COMMENT? _EOL nothing\nnothing: \"x\"?\n\
         block: _INDENT NAME _EOL _DEDENT\nNAME: /[a-z]+/\nCOMMENT: /#[^\\n]*/\n\
         %declare _INDENT _DEDENT\n_EOL: {end}"
    );
    assert_eq!(newline(&apart).as_deref(), Some("_EOL"));
    let unused = format!("start: NAME _NL\nNAME: /[a-z]+/\n%declare _INDENT _DEDENT\n_NL: {end}");
    assert_eq!(newline(&unused), None);
    let two = format!("{tree}\n_OTHER: /\\n/").replace("NAME _NL [", "NAME (_NL | _OTHER) [");
    check_error(&two, &["`_INDENT` begins a block", "_NL, _OTHER stand before it", "`_NEWLINE`"]);
    check_error(
        &tree.replace("NAME _NL [", "NAME ["),
        &["`_INDENT` begins a block", "no terminal", "`_NEWLINE`"],
    );
}

#[test]
fn what_dialects_read_differently_is_a_warning() {
    let warnings = |source: &str| {
        let read = parse_with_budget(source, &LarkOptions::default(), &mut Budget::unlimited());
        let (_, warnings) = read.unwrap_or_else(|error| panic!("{source}\n{error}"));
        warnings.into_iter().map(|warning| warning.to_string()).collect::<Vec<_>>()
    };
    let set = warnings("start: A /[a-z&&[^aeiou]]+/\nA: \"a\"");
    assert_eq!(set.len(), 1, "{set:?}");
    assert!(set[0].starts_with("line 1, column 15: "), "{set:?}");
    assert!(set[0].contains("`&&` in a class is an operation on sets"), "{set:?}");
    assert!(warnings("start: /[[:alpha:]]/")[0].contains("POSIX"));
    assert!(warnings("start: /[0-9--4]/")[0].contains("as Python does"));
    for quiet in [r"start: /[^[\]]+/", "start: /[&|]/", r"start: /\p{Lu}\x{41}(?<n>a)/"] {
        assert_eq!(warnings(quiet), [""; 0], "{quiet}");
    }
}
