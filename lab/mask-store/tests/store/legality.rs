//! Relations between terminals against their definitions, executed on small random grammars.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::{TokenId, Vocabulary, VocabularyTrie};
use palmette_grammar::engine::glr::ParserScratch;
use palmette_grammar::engine::recognizer::Branch;
use palmette_grammar::{
    Budget, Grammar, GrammarBuilder, Lexing, NonterminalId, Recognizer, RecognizerLimits,
    RecognizerScratch, Regex, Rule, Symbol, Terminal, TerminalId, TerminalKind,
};
use palmette_grammar_parser::blocks::Letter;
use palmette_mask_store::{
    Interchange, Legality, Speller, Spellings, Step, Steps, Streamliner, Successors,
};
use palmette_testkit::grammar::generate::{text_grammar_of, vocabulary};
use proptest::prelude::*;

const TERMINALS: u32 = 3;
const NONTERMINALS: u32 = 4;

/// Rules as numbers: a symbol below `TERMINALS` is a terminal, any other a nonterminal.
fn grammar(rules: &[(u32, Vec<u32>)]) -> Grammar {
    let mut builder = GrammarBuilder::new();
    for terminal in 0..TERMINALS {
        let name = char::from(b'a' + terminal as u8).to_string();
        let regex = Regex::literal(&name);
        let (priority, kind, span) = (0, TerminalKind::Literal, None);
        builder.terminal(Terminal { name, regex, priority, kind, span });
    }
    for nonterminal in 0..NONTERMINALS {
        builder.nonterminal(format!("n{nonterminal}"), None);
    }
    for (head, body) in rules {
        let symbol = |&symbol: &u32| match symbol.checked_sub(TERMINALS) {
            None => Symbol::Terminal(TerminalId(symbol)),
            Some(nonterminal) => Symbol::Nonterminal(NonterminalId(nonterminal)),
        };
        builder.rule(NonterminalId(*head), body.iter().map(symbol).collect::<Vec<_>>());
    }
    builder.build(NonterminalId(0), Lexing::Any)
}

fn any_rules() -> impl Strategy<Value = Vec<(u32, Vec<u32>)>> {
    let body = prop::collection::vec(0..TERMINALS + NONTERMINALS, 0..4);
    prop::collection::vec((0..NONTERMINALS, body), 3..12)
}

/// All sequences of one to `longest` terminals.
fn sequences(longest: usize) -> Vec<Vec<TerminalId>> {
    let (mut all, mut begin) = (vec![Vec::new()], 0);
    for _ in 0..longest {
        let end = all.len();
        for at in begin..end {
            for terminal in 0..TERMINALS {
                let mut longer: Vec<TerminalId> = all[at].clone();
                longer.push(TerminalId(terminal));
                all.push(longer);
            }
        }
        begin = end;
    }
    all.split_off(1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn never_legal_is_an_empty_intersection(rules in any_rules()) {
        let grammar = grammar(&rules);
        let (legality, successors) = (Legality::new(&grammar), Successors::new(&grammar));
        for sequence in sequences(3) {
            let never = legality.is_never_legal(&sequence);
            prop_assert_eq!(never, !product_has_a_word(&grammar, &sequence), "{:?}", sequence);
            if let [first, second] = sequence[..] {
                prop_assert!(never || successors.may_follow(first, second), "{:?}", sequence);
            }
        }
    }

    #[test]
    fn always_legal_is_legal_after_every_prefix(rules in any_rules()) {
        let grammar = grammar(&rules);
        let legality = Legality::new(&grammar);
        let prefixes: Vec<_> =
            sequences(5).into_iter().filter(|word| is_prefix(&grammar, word)).collect();
        for next in sequences(2) {
            for terminal in (0..TERMINALS).map(TerminalId) {
                let always = legality.is_always_legal(&[terminal], &next);
                if always {
                    for prefix in prefixes.iter().filter(|word| word.last() == Some(&terminal)) {
                        let word = [&prefix[..], &next].concat();
                        prop_assert!(is_prefix(&grammar, &word), "{:?} after {:?}", next, prefix);
                    }
                }
                let explored = explore(&grammar, terminal, &next, 5);
                prop_assert!(always || !explored, "{:?} after {:?} is not found", next, terminal);
            }
        }
    }

    /// The same after the terminals of a longer context.
    #[test]
    fn always_legal_after_a_context_is_legal_after_every_prefix_with_it(rules in any_rules()) {
        let grammar = grammar(&rules);
        let legality = Legality::new(&grammar);
        let prefixes: Vec<_> =
            sequences(5).into_iter().filter(|word| is_prefix(&grammar, word)).collect();
        for next in sequences(2) {
            for context in sequences(3) {
                let always = legality.is_always_legal(&context, &next);
                let shorter = legality.is_always_legal(&context[1..], &next);
                let is_more = always || !shorter || legality.is_never_legal(&context);
                prop_assert!(is_more, "{:?} after {:?}: its end tells more", next, context);
                for prefix in prefixes.iter().filter(|word| always && word.ends_with(&context)) {
                    let word = [&prefix[..], &next].concat();
                    prop_assert!(is_prefix(&grammar, &word), "{:?} after {:?}", next, prefix);
                }
            }
        }
    }

    #[test]
    fn interchangeable_terminals_may_be_replaced_one_by_one(rules in any_rules()) {
        let grammar = grammar(&rules);
        let interchange = Interchange::new(&grammar);
        for word in sequences(4) {
            let legal = is_prefix(&grammar, &word);
            for (place, &terminal) in word.iter().enumerate() {
                let mut other = word.clone();
                other[place] = interchange.representative(terminal);
                prop_assert_eq!(is_prefix(&grammar, &other), legal, "{:?} for {:?}", other, word);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Rows of texts so far, after the first two steps and after the long ones.
    #[test]
    fn long_steps_change_no_token(
        grammar in text_grammar_of(&[Lexing::Any, Lexing::Longest]),
        tokens in vocabulary(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 5),
    ) {
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
        // A terminal may match the empty text.
        let Ok(recognizer) = made else { return Ok(()) };
        let rules = recognizer.grammar();
        let texts = Vocabulary::new(tokens.iter().map(Some), []).expect("no end");
        let trie = VocabularyTrie::new(&texts);
        let speller = Speller {
            tokens: &trie,
            ignored: recognizer.ignored(),
            indentation: None,
        };
        let two = Streamliner::new(rules, Steps::first(2));
        let long = Step::ALL[2..].iter().map(|&step| Steps::only(step)).chain([Steps::ALL]);
        let long: Vec<_> = long.map(|steps| Streamliner::new(rules, steps)).collect();
        let mut scratch = RecognizerScratch::default();
        let mut position = recognizer.start().cloned();
        for choice in choices {
            let Some(at) = &position else { break };
            let mut allowed = BTreeSet::new();
            for branch in at.branches() {
                let (rows, _) = speller.spell(recognizer.lexer(), branch.lexer).expect("small");
                let rows = two.streamline(rows);
                let expected = tokens_of(&recognizer, branch, &rows);
                for long in &long {
                    let fewer = long.streamline(rows.clone());
                    prop_assert!(fewer.len() <= rows.len());
                    prop_assert_eq!(&tokens_of(&recognizer, branch, &fewer), &expected, "{:?}", branch);
                }
                allowed.extend(expected);
            }
            if allowed.is_empty() {
                break;
            }
            let token = *allowed.iter().nth(choice.index(allowed.len())).expect("below the count");
            position = recognizer.advance_all(at, texts.text(token), &mut scratch).expect("small");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Rows of a state whose lexeme comes after a terminal that is known.
    #[test]
    fn a_terminal_before_changes_no_token(rules in any_rules(), words in prop::collection::vec("[abc]{1,3}", 1..8)) {
        let grammar = Arc::new(grammar(&rules));
        let limits = RecognizerLimits::default();
        let made = Recognizer::new(grammar, &limits, &mut Budget::unlimited());
        let recognizer = made.expect("its terminals are letters");
        let rules = recognizer.grammar();
        let texts = Vocabulary::new(words.iter().map(Some), []).expect("no end");
        let trie = VocabularyTrie::new(&texts);
        let speller = Speller { tokens: &trie, ignored: recognizer.ignored(), indentation: None };
        let steps = [Steps::first(2), Steps::first(4), Steps::only(Step::Context), Steps::ALL];
        let streamliners = steps.map(|steps| Streamliner::new(rules, steps));
        let mut scratch = RecognizerScratch::default();
        for word in sequences(4) {
            // A terminal is a letter, so the terminals of a text are its letters.
            let text: Vec<u8> = word.iter().map(|terminal| b'a' + terminal.0 as u8).collect();
            let Some(begin) = recognizer.start() else { break };
            let Some(at) = recognizer.advance_all(begin, &text, &mut scratch).expect("small") else { continue };
            let before = word.len().checked_sub(2).map(|last| word[last]);
            for branch in at.branches() {
                let (rows, _) = speller.spell(recognizer.lexer(), branch.lexer).expect("small");
                let expected = tokens_of(&recognizer, branch, &rows);
                for streamliner in &streamliners {
                    let fewer = streamliner.streamline_after(before, rows.clone());
                    prop_assert!(fewer.len() <= rows.len());
                    prop_assert_eq!(&tokens_of(&recognizer, branch, &fewer), &expected, "{:?}", word);
                }
            }
        }
    }
}

/// The tokens of those rows that the parser accepts.
fn tokens_of(recognizer: &Recognizer, branch: &Branch, rows: &Spellings) -> BTreeSet<TokenId> {
    let (parser, mut scratch) = (recognizer.parser(), ParserScratch::default());
    let mut accepts = |letters: &[TerminalId]| {
        let Some((&last, before)) = letters.split_last() else { return true };
        let mut stacks = branch.stacks.clone();
        for &terminal in before {
            match parser.shift(&stacks, terminal, &mut scratch).expect("few stacks") {
                Some(next) => stacks = next,
                None => return false,
            }
        }
        parser.accepts(&stacks, last, &mut scratch).expect("few stacks")
    };
    let mut tokens = BTreeSet::new();
    for (letters, row) in rows {
        let terminals: Vec<_> = letters.iter().map(|letter| letter.terminal).collect();
        if accepts(&terminals) {
            tokens.extend(row);
        }
    }
    tokens
}

/// Bar-Hillel as in the textbook: the nonterminals of the product are triples (position, symbol,
/// position).
fn product_has_a_word(grammar: &Grammar, infix: &[TerminalId]) -> bool {
    let last = infix.len();
    let mut derives = vec![vec![vec![false; last + 1]; last + 1]; NONTERMINALS as usize];
    let steps = |symbol: &Symbol, from: usize, to: usize, derives: &[Vec<Vec<bool>>]| match symbol {
        Symbol::Terminal(terminal) => {
            from == to && (from == 0 || from == last) || to == from + 1 && infix[from] == *terminal
        }
        Symbol::Nonterminal(nonterminal) => derives[nonterminal.index()][from][to],
    };
    loop {
        let mut changed = false;
        for rule in grammar.rules() {
            for from in 0..=last {
                let mut at = vec![false; last + 1];
                at[from] = true;
                for symbol in &rule.body {
                    at = (0..=last)
                        .map(|to| (0..=last).any(|mid| at[mid] && steps(symbol, mid, to, &derives)))
                        .collect();
                }
                for to in 0..=last {
                    if at[to] && !derives[rule.head.index()][from][to] {
                        derives[rule.head.index()][from][to] = true;
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            return derives[grammar.start().index()][0][last];
        }
    }
}

/// Whether some sentence begins with `word`: the automaton of word·Σ*, again as in the textbook.
fn is_prefix(grammar: &Grammar, word: &[TerminalId]) -> bool {
    // `reads[n][i]`: where nonterminal `n` can lead from `i`; the last position reads anything.
    let last = word.len();
    let mut reads = vec![vec![vec![false; last + 1]; last + 1]; NONTERMINALS as usize];
    loop {
        let mut changed = false;
        for rule in grammar.rules() {
            for from in 0..=last {
                let mut at = vec![from];
                for symbol in &rule.body {
                    let mut next: Vec<usize> = (0..=last)
                        .filter(|&to| {
                            at.iter().any(|&mid| match symbol {
                                Symbol::Terminal(terminal) => {
                                    mid == last && to == last
                                        || mid < last && word[mid] == *terminal && to == mid + 1
                                }
                                Symbol::Nonterminal(n) => reads[n.index()][mid][to],
                            })
                        })
                        .collect();
                    std::mem::swap(&mut at, &mut next);
                }
                for to in at {
                    changed |= !std::mem::replace(&mut reads[rule.head.index()][from][to], true);
                }
            }
        }
        if !changed {
            return reads[grammar.start().index()][0][last];
        }
    }
}

/// Unlimited credit exploration node by node, with stacks of at most `max_stack` places.
fn explore(grammar: &Grammar, terminal: TerminalId, next: &[TerminalId], max_stack: usize) -> bool {
    let rules: Vec<Rule> = useful_rules(grammar);
    let places = |symbol: Symbol| -> Vec<(usize, usize)> {
        let all = rules
            .iter()
            .enumerate()
            .flat_map(|(number, rule)| (0..rule.body.len()).map(move |place| (number, place)));
        all.filter(|&(number, place)| rules[number].body[place] == symbol).collect()
    };
    let borrows: Vec<Node> = vec![(0, At::After(Symbol::Terminal(terminal)), Vec::new())];
    if places(Symbol::Terminal(terminal)).is_empty() {
        return false;
    }
    // The graph: for each node, its alternatives; each alternative is a list of nodes that must all
    // win.
    let mut nodes = borrows;
    let mut edges: Vec<Vec<Vec<usize>>> = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        let (read, state, stack) = nodes[at].clone();
        let mut alternatives: Vec<Vec<Node>> = Vec::new();
        // Going on after a place: into the next symbol of its body, or out of the rule.
        let on = |(rule, place): (usize, usize), stack: &[(usize, usize)]| -> Node {
            match rules[rule].body.get(place + 1) {
                Some(&symbol) => {
                    let mut stack = stack.to_vec();
                    stack.push((rule, place + 1));
                    (read, At::Before(symbol), stack)
                }
                None => (read, At::After(Symbol::Nonterminal(rules[rule].head)), stack.to_vec()),
            }
        };
        match state {
            _ if read == next.len() => {}
            At::Before(Symbol::Terminal(terminal)) => {
                if next[read] == terminal {
                    alternatives.push(vec![(
                        read + 1,
                        At::After(Symbol::Terminal(terminal)),
                        stack,
                    )]);
                }
            }
            At::Before(Symbol::Nonterminal(head)) => {
                for (number, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.head == head)
                {
                    let mut stack = stack.clone();
                    alternatives.push(match rule.body.first() {
                        Some(&symbol) => {
                            stack.push((number, 0));
                            vec![(read, At::Before(symbol), stack)]
                        }
                        None => vec![(read, At::After(Symbol::Nonterminal(head)), stack)],
                    });
                }
            }
            At::After(symbol) => match stack.split_last() {
                Some((&place, rest)) => alternatives.push(vec![on(place, rest)]),
                // After the start nothing may follow.
                None if symbol == Symbol::Nonterminal(grammar.start()) => {}
                None => alternatives.push(places(symbol).into_iter().map(|p| on(p, &[])).collect()),
            },
        }
        let mut known = Vec::new();
        for alternative in alternatives {
            if alternative.iter().any(|(_, _, stack)| stack.len() > max_stack) {
                continue;
            }
            known.push(
                alternative
                    .into_iter()
                    .map(|node| {
                        nodes.iter().position(|other| *other == node).unwrap_or_else(|| {
                            nodes.push(node);
                            nodes.len() - 1
                        })
                    })
                    .collect(),
            );
        }
        edges.push(known);
        at += 1;
        if nodes.len() > 3000 {
            return false;
        }
    }
    let mut wins: Vec<bool> = nodes.iter().map(|(read, _, _)| *read == next.len()).collect();
    loop {
        let before = wins.clone();
        for (node, alternatives) in edges.iter().enumerate() {
            wins[node] |= alternatives.iter().any(|all| all.iter().all(|&node| wins[node]));
        }
        if wins == before {
            return wins[0];
        }
    }
}

type Node = (usize, At, Vec<(usize, usize)>);

#[derive(Clone, Copy, PartialEq)]
enum At {
    Before(Symbol),
    After(Symbol),
}

/// Rules that take part in some sentence: those whose removal loses one of the pairs (head,
/// productive) or reach.
fn useful_rules(grammar: &Grammar) -> Vec<Rule> {
    let productive = |symbol: &Symbol, known: &[bool]| match symbol {
        Symbol::Terminal(_) => true,
        Symbol::Nonterminal(n) => known[n.index()],
    };
    let mut known = vec![false; NONTERMINALS as usize];
    for _ in 0..NONTERMINALS {
        for rule in grammar.rules() {
            known[rule.head.index()] |= rule.body.iter().all(|symbol| productive(symbol, &known));
        }
    }
    let rules = grammar.rules().iter();
    let rules: Vec<_> =
        rules.filter(|rule| rule.body.iter().all(|s| productive(s, &known))).collect();
    let mut reached = vec![false; NONTERMINALS as usize];
    reached[grammar.start().index()] = true;
    for _ in 0..NONTERMINALS {
        for rule in &rules {
            for symbol in &rule.body {
                if let (true, Symbol::Nonterminal(n)) = (reached[rule.head.index()], symbol) {
                    reached[n.index()] = true;
                }
            }
        }
    }
    rules.into_iter().filter(|rule| reached[rule.head.index()]).cloned().collect()
}

/// The post's example: `S → a S b | ε`.
#[test]
fn after_an_opening_one_anything_may_follow_but_not_after_a_closing_one() {
    let grammar = grammar(&[(0, vec![0, TERMINALS, 1]), (0, vec![])]);
    let legality = Legality::new(&grammar);
    let (a, b, c) = (TerminalId(0), TerminalId(1), TerminalId(2));
    assert!(legality.is_always_legal(&[a], &[a]));
    assert!(legality.is_always_legal(&[a], &[b]));
    assert!(legality.is_always_legal(&[a], &[a, b, b]));
    assert!(!legality.is_always_legal(&[b], &[b]));
    assert!(!legality.is_always_legal(&[b], &[a]));
    assert!(legality.is_never_legal(&[b, a]));
    assert!(!legality.is_never_legal(&[a, a, b, b]));
    assert!(legality.is_never_legal(&[c]));
}

/// Longer sequences than are looked at as a whole are looked at in windows.
#[test]
fn long_sequences_are_refused_by_their_windows() {
    let grammar = grammar(&[(0, vec![0, TERMINALS]), (0, vec![1])]);
    let legality = Legality::new(&grammar);
    let (a, b) = (TerminalId(0), TerminalId(1));
    let mut sequence = vec![a; 2 * Legality::MAX_TERMINALS];
    assert!(!legality.is_never_legal(&sequence));
    sequence[100] = b;
    assert!(legality.is_never_legal(&sequence));
}

/// `s: x x | y y` with `x: a | b`, `y: c` has one set; `s: a a | b b` has none, though swapping
/// leaves it as it is.
#[test]
fn interchangeable_is_more_than_swappable() {
    let ids = |set: &[u32]| set.iter().copied().map(TerminalId).collect::<Vec<_>>();
    let n = |nonterminal: u32| TERMINALS + nonterminal;
    let rules =
        [(0, vec![n(1), n(1)]), (0, vec![n(2), n(2)]), (1, vec![0]), (1, vec![1]), (2, vec![2])];
    assert_eq!(Interchange::new(&grammar(&rules)).sets(), [ids(&[0, 1])]);
    let rules = [(0, vec![0, 0]), (0, vec![1, 1])];
    assert_eq!(Interchange::new(&grammar(&rules)).sets(), Vec::<Vec<TerminalId>>::new());
}

/// `s: a x | b y`, `x: c a | c b`, `y: c a`: after `a c` both may come, after `b c` one, and after
/// `c` alone nothing is known.
#[test]
fn two_terminals_before_tell_more_than_one() {
    let n = |nonterminal: u32| TERMINALS + nonterminal;
    let rules = [
        (0, vec![0, n(1)]),
        (0, vec![1, n(2)]),
        (1, vec![2, n(3)]),
        (2, vec![2, 0]),
        (3, vec![0]),
        (3, vec![1]),
    ];
    let legality = Legality::new(&grammar(&rules));
    let (a, b, c) = (TerminalId(0), TerminalId(1), TerminalId(2));
    assert!(legality.is_always_legal(&[c], &[a]));
    assert!(!legality.is_always_legal(&[c], &[b]));
    assert!(legality.is_always_legal(&[a, c], &[b]));
    assert!(!legality.is_always_legal(&[b, c], &[b]));
    assert!(legality.is_never_legal(&[b, c, b]));
}

/// `s: c x b | a c b`, `x: a | b`: after `c`, `a b` and `b b` are legal on the same stacks, `b` is
/// on more.
#[test]
fn rows_that_the_same_stacks_accept_become_one() {
    let n = |nonterminal: u32| TERMINALS + nonterminal;
    let rules = [(0, vec![2, n(1), 1]), (0, vec![0, 2, 1]), (1, vec![0]), (1, vec![1])];
    let grammar = grammar(&rules);
    let row = |terminals: &[u32], token: u32| -> (Vec<Letter>, Vec<TokenId>) {
        let letters = terminals.iter().map(|&terminal| Letter::of(TerminalId(terminal)));
        (letters.collect(), vec![TokenId(token)])
    };
    let rows = [row(&[2, 0, 1], 7), row(&[2, 1, 1], 3), row(&[2, 1], 5)];
    let joint = Streamliner::new(&grammar, Steps::only(Step::Joint));
    let fewer = joint.streamline(Spellings::from(rows));
    let (both, _) = row(&[2, 0, 1], 0);
    let expected = [(both, vec![TokenId(3), TokenId(7)]), row(&[2, 1], 5)];
    assert_eq!(fewer, Spellings::from(expected));
}
