//! The streaming lexer against the definition of lexing, executed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use palmette_grammar_parser::{
    CharClass, Grammar, GrammarBuilder, LexerError, LexerLimits, Lexing, Regex, Symbol, Terminal,
    TerminalId, TerminalKind, TerminalSet,
    lexer::{Lexer, LexerState},
};
use palmette_grammar_regex::expressions::Horizon;
use palmette_testkit::lexing::{Cutting, cuttings, first_lexemes, lexeme_ends};
use proptest::prelude::*;

/// One character of two bytes, so that lexemes cannot be cut between any two bytes.
const ALPHABET: [char; 3] = ['a', 'b', 'é'];

fn grammar(terminals: &[Terminal], lexing: Lexing) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let start = builder.nonterminal("start", None);
    builder.rule(start, []);
    for terminal in terminals {
        let id = builder.terminal(terminal.clone());
        builder.rule(start, [Symbol::Nonterminal(start), Symbol::Terminal(id)]);
    }
    builder.build(start, lexing)
}

/// All branches of a lexer over the bytes of a text: at its end, the lexemes that ended before and
/// the state.
type Branches = BTreeSet<(LexerState, Cutting)>;

/// Reads `text` and returns the branches before each of its characters and at its end; an error
/// where a limit is exceeded.
fn read(lexer: &Lexer, text: &[char]) -> Result<Vec<Branches>, LexerError> {
    let mut branches = Branches::from([(lexer.start(), vec![])]);
    let mut all = vec![branches.clone()];
    for (position, c) in text.iter().enumerate() {
        for (at, &byte) in c.encode_utf8(&mut [0; 4]).as_bytes().iter().enumerate() {
            let mut next = Branches::new();
            let mut advance = |state, cutting: &Cutting| {
                let to = lexer.advance(state, byte)?;
                next.extend(to.map(|to| (to, cutting.clone())));
                Ok::<_, LexerError>(())
            };
            for (state, cutting) in &branches {
                advance(*state, cutting)?;
                for end in lexer.ends(*state)? {
                    assert_eq!(at, 0, "a lexeme ends within a character");
                    for terminal in end.terminals.iter() {
                        let longer = [&cutting[..], &[(position, terminal)]].concat();
                        advance(end.next, &longer)?;
                    }
                }
            }
            branches = next;
        }
        all.push(branches.clone());
    }
    Ok(all)
}

/// The cuttings of a whole text, given the branches at its end.
fn whole(lexer: &Lexer, text: &[char], branches: &Branches) -> BTreeSet<Cutting> {
    let mut whole = BTreeSet::new();
    for (state, cutting) in branches {
        if lexer.may_end(*state) {
            whole.insert(cutting.clone());
        }
        for end in lexer.ends(*state).unwrap().iter().filter(|end| lexer.may_end(end.next)) {
            let longer = |terminal| [&cutting[..], &[(text.len(), terminal)]].concat();
            whole.extend(end.terminals.iter().map(longer));
        }
    }
    whole
}

/// Every text over the alphabet that is no longer than this.
fn texts(max_len: usize) -> Vec<Vec<char>> {
    let mut texts = vec![vec![]];
    let mut from = 0;
    for _ in 0..max_len {
        let longer: Vec<Vec<char>> = texts[from..]
            .iter()
            .flat_map(|text| ALPHABET.map(|c| [&text[..], &[c]].concat()))
            .collect();
        from = texts.len();
        texts.extend(longer);
    }
    texts
}

/// Compares cuttings of all texts up to a length, and on the way which lexemes are possible.
fn check(terminals: &[Terminal], lexing: Lexing, max_len: usize) {
    let lexer = Lexer::new(&grammar(terminals, lexing), &LexerLimits::default()).unwrap();
    let shadowed: BTreeSet<TerminalId> = lexer.shadowed().iter().collect();
    // By prefix and lexemes before: the terminals of a lexeme in progress there, as some longer
    // text shows.
    let mut seen = BTreeMap::<(Vec<char>, Cutting), BTreeSet<TerminalId>>::new();
    for text in texts(max_len) {
        let branches = read(&lexer, &text).unwrap();
        let expected = cuttings(terminals, lexing, &shadowed, &text);
        let cut = whole(&lexer, &text, branches.last().unwrap());
        assert_eq!(cut, expected, "cuttings of {text:?} for {terminals:?}");

        // Partial cuttings: their last lexeme is one, given the whole text.
        let mut partial = vec![(0, Cutting::new())];
        while let Some((begin, before)) = partial.pop() {
            for (end, id) in first_lexemes(terminals, lexing, &shadowed, &text, begin) {
                for at in begin + 1..=end {
                    let place = (text[..at].to_vec(), before.clone());
                    seen.entry(place).or_default().insert(id);
                }
                partial.push((end, [&before[..], &[(end, id)]].concat()));
            }
        }
    }
    for ((prefix, before), terminals_seen) in &seen {
        let branches = read(&lexer, prefix).unwrap();
        let at: BTreeSet<_> = branches
            .last()
            .unwrap()
            .iter()
            .filter(|(_, cutting)| cutting == before)
            .flat_map(|(state, _)| lexer.viable_terminals(*state).iter())
            .collect();
        assert!(
            at.is_superset(terminals_seen),
            "at {prefix:?} after {before:?}, {terminals_seen:?} are seen but only {at:?} are \
             possible, for {terminals:?}"
        );
    }
    if !terminals.iter().any(|terminal| looks_ahead(&terminal.regex)) {
        check_witnesses(&lexer, terminals, lexing, &shadowed);
    }
}

fn looks_ahead(regex: &Regex) -> bool {
    match regex {
        Regex::Look { behind, inner, .. } => !behind || looks_ahead(inner),
        Regex::Concat(parts) | Regex::Alternate(parts) | Regex::And(parts) => {
            parts.iter().any(looks_ahead)
        }
        // What it prefers to match depends on what follows.
        Regex::Repeat { inner, reluctant, .. } => *reluctant || looks_ahead(inner),
        Regex::Not(inner) => looks_ahead(inner),
        _ => false,
    }
}

/// Compares the states near the start with those that are to go on alike for a number of bytes.
fn check_within(terminals: &[Terminal], lexing: Lexing, num_bytes: u32) {
    let lexer = Lexer::new(&grammar(terminals, lexing), &LexerLimits::default()).unwrap();
    for text in texts(2) {
        // Some of these take more states than are gone through to tell what is possible.
        let Ok(branches) = read(&lexer, &text) else { return };
        for (state, _) in branches.last().unwrap() {
            let alike = lexer.bounded_equivalent(*state, Horizon::of_bytes(num_bytes)).unwrap();
            check_alike(&lexer, *state, alike, num_bytes);
        }
    }
}

fn check_alike(lexer: &Lexer, one: LexerState, other: LexerState, num_bytes: u32) {
    if one == other {
        return;
    }
    assert_eq!(lexer.viable_terminals(one), lexer.viable_terminals(other));
    assert_eq!(lexer.may_end(one), lexer.may_end(other));
    let ends = |state| lexer.ends(state).unwrap().iter();
    let terminals = |state| ends(state).map(|end| &end.terminals);
    assert!(terminals(one).eq(terminals(other)));
    for byte in "abé".bytes().filter(|_| num_bytes > 0) {
        let from = ends(one).zip(ends(other)).map(|(one, other)| (one.next, other.next));
        for (one, other) in from.chain([(one, other)]) {
            let to = |state| lexer.advance(state, byte).unwrap();
            assert_eq!(to(one).is_some(), to(other).is_some());
            if let (Some(one), Some(other)) = (to(one), to(other)) {
                check_alike(lexer, one, other, num_bytes - 1);
            }
        }
    }
}

/// States that differ in digits which no text of the horizon can use up are one. Oracle: all texts of
/// so many bytes that have no more digits in a row.
#[test]
fn digits_that_no_token_has_in_a_row_do_not_matter() {
    let digits = |min, max| Regex::Class(CharClass::new([('0', '9')])).repeat(min, Some(max));
    let fraction = Regex::concat([Regex::literal("."), digits(1, 7)]).optional();
    let number = pattern(Regex::concat([digits(1, 12), fraction]));
    let word = pattern(Regex::literal("x").repeat(1, Some(12)));
    let lexer = grammar(&[number, word], Lexing::Any);
    let lexer = Lexer::new(&lexer, &LexerLimits::default()).unwrap();
    let (bytes, most) = (6, 2);
    let within = Horizon::of_texts(bytes, [&b"x12"[..], b"7", b".34x"]);
    let (mut state, mut alike) = (lexer.start(), BTreeSet::new());
    for byte in b"123456789012.1234567" {
        state = lexer.advance(state, *byte).unwrap().unwrap();
        let other = lexer.bounded_equivalent(state, within).unwrap();
        alike.insert(other);
        check_digits(&lexer, (state, other), (bytes, 0, most));
    }
    // Of twelve digits there are 11 to 0 left, of the seven 7 to 0: more than two are alike. Two
    // states of each are left apart that have more.
    assert_eq!(alike.len(), (1 + 3) + (1 + 1 + 3), "{alike:?}");
    // Of letters six may be used up.
    let mut state = lexer.start();
    let mut alike = BTreeSet::new();
    for _ in 0..12 {
        state = lexer.advance(state, b'x').unwrap().unwrap();
        alike.insert(lexer.bounded_equivalent(state, within).unwrap());
    }
    assert_eq!(alike.len(), 1 + 7);
}

/// Compares two states along texts of so many bytes, after a run of so many digits of at most so
/// many.
fn check_digits(
    lexer: &Lexer,
    (one, other): (LexerState, LexerState),
    (bytes, run, most): (u32, u32, u32),
) {
    if one == other {
        return;
    }
    assert_eq!(lexer.viable_terminals(one), lexer.viable_terminals(other));
    assert_eq!(lexer.may_end(one), lexer.may_end(other));
    let ends = |state| lexer.ends(state).unwrap().iter();
    let terminals = |state| ends(state).map(|end| &end.terminals);
    assert!(terminals(one).eq(terminals(other)));
    for byte in b"1.x".iter().filter(|_| bytes > 0) {
        let run = if byte.is_ascii_digit() { run + 1 } else { 0 };
        let from = ends(one).zip(ends(other)).map(|(one, other)| (one.next, other.next));
        for (one, other) in from.chain([(one, other)]).filter(|_| run <= most) {
            let to = |state| lexer.advance(state, *byte).unwrap();
            assert_eq!(to(one).is_some(), to(other).is_some());
            if let (Some(one), Some(other)) = (to(one), to(other)) {
                check_digits(lexer, (one, other), (bytes - 1, run, most));
            }
        }
    }
}

/// Compares a state with the one that leaves out all terminals but some.
fn check_among(
    lexer: &Lexer,
    all: LexerState,
    some: LexerState,
    among: &TerminalSet,
    num_bytes: u32,
) {
    let only = |terminals: &TerminalSet| -> BTreeSet<TerminalId> {
        terminals.iter().filter(|&terminal| among.contains(terminal)).collect()
    };
    assert_eq!(
        lexer.viable_terminals(some).iter().collect::<BTreeSet<_>>(),
        only(lexer.viable_terminals(all))
    );
    assert_eq!(lexer.may_end(some), lexer.may_end(all));
    let ends = |state| {
        let ends = lexer.ends(state).unwrap().iter();
        let ends = ends.map(|end| (end.next, only(&end.terminals)));
        ends.filter(|(_, terminals)| !terminals.is_empty()).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(ends(some), ends(all));
    for byte in "abé".bytes().filter(|_| num_bytes > 0) {
        let to = |state| lexer.advance(state, byte).unwrap();
        match (to(all).filter(|&all| !only(lexer.viable_terminals(all)).is_empty()), to(some)) {
            (None, None) => {}
            (Some(all), Some(some)) => check_among(lexer, all, some, among, num_bytes - 1),
            (all, some) => panic!("{all:?} but {some:?} after {byte}"),
        }
    }
}

/// For every state near the start, a text that makes each possible terminal a lexeme.
fn check_witnesses(
    lexer: &Lexer,
    terminals: &[Terminal],
    lexing: Lexing,
    shadowed: &BTreeSet<TerminalId>,
) {
    for text in texts(2) {
        for (state, cutting) in read(lexer, &text).unwrap().last().unwrap() {
            let begin = cutting.last().map_or(0, |&(end, _)| end);
            for terminal in lexer.viable_terminals(*state).iter() {
                let rest = witness(lexer, *state, terminal);
                let whole: Vec<char> = text.iter().copied().chain(rest.chars()).collect();
                let lexemes = first_lexemes(terminals, lexing, shadowed, &whole, begin);
                let all = cuttings(terminals, lexing, shadowed, &whole);
                let lexeme = (whole.len(), terminal);
                assert!(
                    lexemes.contains(&lexeme) && all.contains(&[&cutting[..], &[lexeme]].concat()),
                    "{terminal:?} after {cutting:?} in {whole:?} for {terminals:?}"
                );
            }
        }
    }
}

/// The shortest text from `state` to the end of a lexeme that is `terminal`.
fn witness(lexer: &Lexer, state: LexerState, terminal: TerminalId) -> String {
    let mut seen = BTreeSet::from([state]);
    let mut queue = VecDeque::from([(state, vec![])]);
    while let Some((state, way)) = queue.pop_front() {
        if lexer.matched(state).unwrap().contains(terminal) {
            return String::from_utf8(way).unwrap();
        }
        for byte in "abé".bytes().chain(*b"xyz") {
            let to = lexer.advance(state, byte).unwrap();
            if let Some(to) = to.filter(|&to| seen.insert(to)) {
                queue.push_back((to, [&way[..], &[byte]].concat()));
            }
        }
    }
    panic!("{terminal:?} is said to be possible, and no text shows it")
}

/// Regular expressions over the alphabet. Reluctant quantifiers only where they have a meaning.
fn regexes(reluctant: bool, looks: bool) -> BoxedStrategy<Regex> {
    let letter = || prop::sample::select(&ALPHABET[..]);
    let class = prop::collection::vec(letter(), 1..3)
        .prop_map(|chars| Regex::Class(CharClass::new(chars.into_iter().map(|c| (c, c)))));
    let literal = prop::collection::vec(letter(), 0..3)
        .prop_map(|chars| Regex::literal(&chars.into_iter().collect::<String>()));
    let leaf = prop_oneof![
        4 => class,
        4 => literal,
        1 => Just(Regex::Class(CharClass::any())),
        1 => Just(Regex::anything()),
    ];
    leaf.prop_recursive(3, 10, 3, move |inner| {
        let parts = || prop::collection::vec(inner.clone(), 2..4);
        let sets = || {
            let part = if reluctant { regexes(false, looks) } else { inner.clone() };
            prop_oneof![
                prop::collection::vec(part.clone(), 2..3).prop_map(Regex::and),
                part.prop_map(Regex::complement),
            ]
        };
        let counts = (0_u32..3, prop::option::of(0_u32..3), any::<bool>());
        let repeat = (inner.clone(), counts).prop_map(move |(inner, (min, more, lazy))| {
            let max = more.map(|more| (min + more).max(1));
            Regex::Repeat { inner: inner.into(), min, max, reluctant: lazy && reluctant }
        });
        let look = (inner.clone(), any::<bool>(), any::<bool>()).prop_map(
            move |(inner, behind, negated)| {
                let look = |inner: Regex| Regex::Look { inner: inner.into(), behind, negated };
                if looks { look(inner) } else { inner }
            },
        );
        prop_oneof![
            3 => parts().prop_map(Regex::concat),
            3 => parts().prop_map(Regex::alternate),
            3 => repeat,
            1 => sets(),
            2 => look,
        ]
    })
    .boxed()
}

/// Terminals none of which matches the empty text.
fn terminals(max: usize, looks: bool) -> impl Strategy<Value = Vec<Terminal>> {
    let kinds = prop_oneof![Just(TerminalKind::Literal), Just(TerminalKind::Pattern)];
    let regex = prop_oneof![2 => regexes(false, looks), 1 => regexes(true, looks)];
    let terminal = (regex, 0..2, kinds).prop_map(|(regex, priority, kind)| {
        let empty = texts(3).iter().any(|text| lexeme_ends(&regex, text, 0).contains(&0));
        let may_be_empty = empty || {
            let terminal =
                Terminal { name: "T".into(), regex: regex.clone(), priority, kind, span: None };
            Lexer::new(&grammar(&[terminal], Lexing::Any), &LexerLimits::default()).is_err()
        };
        let regex = if may_be_empty { Regex::concat([Regex::literal("a"), regex]) } else { regex };
        Terminal { name: "T".into(), regex, priority, kind, span: None }
    });
    prop::collection::vec(terminal, 1..=max)
}

fn not_before(c: char) -> Regex {
    let inner = Arc::new(Regex::Class(CharClass::single(c)));
    Regex::Look { inner, behind: false, negated: true }
}

fn pattern(regex: Regex) -> Terminal {
    let (name, kind) = ("T".into(), TerminalKind::Pattern);
    Terminal { name, regex, priority: 0, kind, span: None }
}

fn reluctant(inner: Regex, min: u32) -> Regex {
    Regex::Repeat { inner: Arc::new(inner), min, max: None, reluctant: true }
}

/// `(?:b|(?!é)){2,}?`: a repetition that takes nothing is one of two, and not the last of all.
#[test]
fn repetitions_that_must_be_may_take_nothing() {
    for min in 2..4 {
        let several = reluctant(Regex::alternate([Regex::literal("b"), not_before('é')]), min);
        let first = Regex::concat([Regex::literal("a"), several]);
        check(&[pattern(first), pattern(Regex::literal("é"))], Lexing::Longest, 4);
    }
}

/// Many of them are within the limits or an error.
#[test]
fn many_repetitions_that_may_take_nothing() {
    let lexer = |min| {
        let options = [not_before('é'), Regex::literal("b"), not_before('a')];
        let several = reluctant(Regex::alternate(options), min);
        let terminals = [pattern(Regex::concat([Regex::literal("a"), several]))];
        Lexer::new(&grammar(&terminals, Lexing::Longest), &LexerLimits::default()).and_then(
            |lexer| {
                let branches = read(&lexer, &['a', 'b', 'b', 'é'])?;
                Ok(branches.len())
            },
        )
    };
    assert_eq!(lexer(100).expect("within the limits"), 5);
    let error = lexer(5000).expect_err("more than max_nesting").to_string();
    assert!(error.contains("max_nesting"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_cutting_equals_the_definition(terminals in terminals(2, false)) {
        check(&terminals, Lexing::Any, 4);
    }

    #[test]
    fn longest_cutting_equals_the_definition(terminals in terminals(3, false)) {
        check(&terminals, Lexing::Longest, 4);
    }

    #[test]
    fn any_cutting_with_lookarounds_equals_the_definition(terminals in terminals(2, true)) {
        check(&terminals, Lexing::Any, 4);
    }

    #[test]
    fn longest_cutting_with_lookarounds_equals_the_definition(terminals in terminals(3, true)) {
        check(&terminals, Lexing::Longest, 4);
    }

    #[test]
    fn within_some_bytes_states_go_on_alike(
        terminals in terminals(2, true),
        lexing in prop_oneof![Just(Lexing::Any), Just(Lexing::Longest)],
        num_bytes in 0_u32..4,
        times in (0_u32..8, 0_u32..8),
    ) {
        let many = |mut terminal: Terminal| {
            let many = terminal.regex.repeat(1 + times.0, Some(1 + times.0 + times.1));
            terminal.regex = Regex::concat([many, Regex::literal("b").optional()]);
            terminal
        };
        let terminals: Vec<_> = terminals.into_iter().map(many).collect();
        prop_assume!(Lexer::new(&grammar(&terminals, lexing), &LexerLimits::default()).is_ok());
        check_within(&terminals, lexing, num_bytes);
    }

    #[test]
    fn among_some_terminals_states_know_no_others(
        terminals in terminals(4, true),
        lexing in prop_oneof![Just(Lexing::Any), Just(Lexing::Longest)],
        chosen in 0_u32..16,
    ) {
        let lexer = Lexer::new(&grammar(&terminals, lexing), &LexerLimits::default());
        prop_assume!(lexer.is_ok());
        let lexer = lexer.expect("assumed");
        let mut among = TerminalSet::new(terminals.len());
        let ids = (0..terminals.len() as u32).map(TerminalId);
        ids.filter(|id| chosen >> id.0 & 1 == 1).for_each(|id| _ = among.insert(id));
        for text in texts(2) {
            let Ok(branches) = read(&lexer, &text) else { return Ok(()) };
            // Where lexemes begin, under all conditions that come up.
            let states = branches.last().expect("one for each place").iter().map(|&(state, _)| state);
            let nexts = states.flat_map(|state| lexer.ends(state).expect("read before"));
            for begin in nexts.map(|end| end.next).chain([lexer.start()]) {
                let some = lexer.restricted_to(begin, &among).expect("no more than all");
                match lexing {
                    Lexing::Longest => prop_assert_eq!(some, begin),
                    Lexing::Any => check_among(&lexer, begin, some, &among, 4),
                    Lexing::Contextual => unreachable!("not drawn"),
                }
            }
        }
    }

    #[test]
    fn a_terminal_that_matches_the_empty_text_is_refused(regex in regexes(false, true)) {
        let empty = texts(3).iter().any(|text| lexeme_ends(&regex, text, 0).contains(&0));
        let terminal = Terminal {
            name: "T".into(), regex, priority: 0, kind: TerminalKind::Pattern, span: None,
        };
        let lexer = Lexer::new(&grammar(&[terminal], Lexing::Any), &LexerLimits::default());
        prop_assert!(!(empty && lexer.is_ok()));
    }
}
