//! Blocks by indentation: masks of random grammars over random vocabularies are those of the
//! definition.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, CharClass, Grammar, GrammarBuilder, GrammarConstraint, GrammarScratch, Indentation,
    Lexing, NonterminalId, PreparedVocabulary, Recognizer, RecognizerLimits, Regex, Symbol,
    Terminal, TerminalId, TerminalKind,
};
use proptest::prelude::*;

fn class(of: &str) -> Regex {
    Regex::Class(CharClass::new(of.chars().map(|letter| (letter, letter))))
}

/// Patterns of a line's end: with and without the next line's blanks, with comments, and some that
/// can end where they could go on.
fn newline() -> impl Strategy<Value = Regex> {
    let blanks = || class(" \t").repeat(0, None);
    let line = move || Regex::concat([Regex::literal("\n"), blanks()]);
    let comment = || Regex::concat([Regex::literal("#"), class("a #(").repeat(0, None)]);
    let returned = || Regex::concat([Regex::literal("\r").repeat(0, Some(1)), line()]);
    prop::sample::select(vec![
        line().repeat(1, None),
        returned().repeat(1, None),
        Regex::alternate([returned(), comment()]).repeat(1, None),
        line(),
        Regex::literal("\n"),
        Regex::alternate([line(), comment()]).repeat(1, None),
        Regex::concat([blanks(), Regex::literal("\n"), class(" \t").repeat(0, Some(2))]),
        Regex::concat([class("\n#"), class(" \t\n").repeat(0, Some(3))]),
    ])
}

/// Terminal `a`: a letter, one that may not stand after another, or a word that may hold a line's
/// break.
fn word() -> impl Strategy<Value = Regex> {
    let behind = Regex::Look { inner: Arc::new(class("\n")), behind: true, negated: true };
    prop::sample::select(vec![
        class("a"),
        class("a").repeat(1, None),
        Regex::concat([class("b\t").repeat(1, None), behind, class("a")]),
        Regex::concat([class("a"), class("a\n ").repeat(0, Some(2))]),
    ])
}

/// A line's end, marks, brackets, a word and what begins a block, with rules for blocks and some
/// random ones.
fn grammar() -> impl Strategy<Value = Grammar> {
    let symbol = prop_oneof![
        (0..7_u32).prop_map(|id| Symbol::Terminal(TerminalId(id))),
        (0..5_u32).prop_map(|id| Symbol::Nonterminal(NonterminalId(id))),
    ];
    let rules = prop::collection::vec((0..5_u32, prop::collection::vec(symbol, 0..4)), 0..5);
    let lexing = prop::sample::select(vec![Lexing::Longest, Lexing::Longest, Lexing::Any]);
    let widths = prop::sample::select(vec![0_u32, 1, 2, 8]);
    (newline(), word(), rules, lexing, widths, 0..4_u32).prop_map(
        |(newline, word, rules, lexing, tab_width, ignores)| {
            let mut builder = GrammarBuilder::new();
            let mut terminal = |name: &str, regex, kind| {
                builder.terminal(Terminal {
                    name: name.into(),
                    regex,
                    priority: 0,
                    kind,
                    span: None,
                })
            };
            let newline = terminal("newline", newline, TerminalKind::Pattern);
            let indent = terminal("indent", Regex::Never, TerminalKind::Declared);
            let dedent = terminal("dedent", Regex::Never, TerminalKind::Declared);
            let open = terminal("open", Regex::literal("("), TerminalKind::Literal);
            let close = terminal("close", Regex::literal(")"), TerminalKind::Literal);
            let word = terminal("word", word, TerminalKind::Pattern);
            let begin = terminal("begin", Regex::literal(":"), TerminalKind::Literal);
            let blanks = terminal("blanks", class(" \t").repeat(1, None), TerminalKind::Pattern);
            let continued = terminal("continued", Regex::literal(":\n"), TerminalKind::Literal);
            if ignores & 1 > 0 {
                builder.ignore(blanks);
            }
            if ignores & 2 > 0 {
                builder.ignore(continued);
            }
            let names = ["start", "stmt", "block", "stmts", "item"];
            let [start, stmt, block, stmts, item] =
                names.map(|name| builder.nonterminal(name, None));
            let t = Symbol::Terminal;
            let n = Symbol::Nonterminal;
            builder.rule(start, []);
            builder.rule(start, [n(start), t(newline)]);
            builder.rule(start, [n(start), n(stmt)]);
            builder.rule(stmt, [n(item), t(newline)]);
            builder.rule(stmt, [n(item), t(begin), n(block)]);
            builder.rule(block, [n(item), t(newline)]);
            builder.rule(block, [t(newline), t(indent), n(stmts), t(dedent)]);
            builder.rule(stmts, [n(stmt)]);
            builder.rule(stmts, [n(stmts), n(stmt)]);
            builder.rule(item, [t(word)]);
            builder.rule(item, [t(open), n(item), t(close)]);
            builder.rule(item, [t(open), t(close)]);
            for (head, body) in rules {
                builder.rule(NonterminalId(head), body);
            }
            let (open, close) = (vec![open], vec![close]);
            builder.indentation(Indentation { newline, indent, dedent, open, close, tab_width });
            builder.build(start, lexing)
        },
    )
}

fn tokens() -> impl Strategy<Value = Vec<String>> {
    let letter = prop::sample::select(vec![
        "\n", "\n", " ", " ", "\t", "\r\n", "a", "a", ":", "(", ")", "#",
    ]);
    // Tokens of few letters tell few depths apart.
    let len = prop_oneof![1..3_usize, 1..7_usize];
    let token = len.prop_flat_map(move |len| prop::collection::vec(letter.clone(), len));
    let token = token.prop_map(|letters| letters.concat());
    let singles = ["\n", " ", "a", ":", "(", ")", "\n ", "\n  ", ":\n  a"].map(String::from);
    prop::collection::vec(token, 1..40).prop_map(move |mut tokens| {
        tokens.extend(singles.clone());
        tokens
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn masks_are_those_of_the_definition(
        grammar in grammar(),
        tokens in tokens(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 24),
    ) {
        let limits = RecognizerLimits::default();
        let recognizer = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        let recognizer = Arc::new(recognizer.unwrap());
        let end = TokenId(tokens.len() as u32);
        let vocabulary = Vocabulary::new(tokens.iter().map(Some).chain([None]), [end]).unwrap();
        let vocabulary = Arc::new(PreparedVocabulary::new(Arc::new(vocabulary)));
        let read = GrammarConstraint::new(Arc::clone(&recognizer), Arc::clone(&vocabulary));
        let walked = GrammarConstraint::by_walking(recognizer, vocabulary);
        let (mut state, mut scratch) = (read.start(), GrammarScratch::default());
        let mut text = String::new();
        for choice in choices {
            let rows = [&read, &walked].map(|constraint| {
                let mut row = vec![!0; mask::num_words(constraint.num_tokens())];
                constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
                mask::iter(&row).map(|token| tokens.get(token.index()).map_or("end", |text| text)).collect::<Vec<_>>()
            });
            prop_assert_eq!(&rows[0], &rows[1], "after {:?}", text);
            let allowed: Vec<&str> = rows[0].iter().copied().filter(|&text| text != "end").collect();
            if allowed.is_empty() {
                break;
            }
            let chosen = *choice.get(&allowed);
            let token = tokens.iter().position(|token| token == chosen).unwrap();
            read.commit(&mut state, TokenId(token as u32), &mut scratch).unwrap();
            text.push_str(chosen);
        }
    }
}
