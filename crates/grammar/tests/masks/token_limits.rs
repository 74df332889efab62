//! Limits on the tokens of a rule, against a finite automaton that counts them.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;

use palmette_core::{Constraint, Lengths, TokenId, Vocabulary, mask};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions, Whitespace};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::frontends::structural_tag::{self, StructuralTagOptions};
use palmette_grammar::{
    Budget, Grammar, GrammarConstraint, GrammarScratch, GrammarState, Lexing, MaskBudget,
    PreparedVocabulary, Recognizer, RecognizerLimits, TokenError,
};
use proptest::prelude::*;

/// Part of a grammar.
#[derive(Clone, Debug)]
enum Part {
    Literal(String),
    /// A rule with a limit: `min` or more letters of a class.
    Limited {
        class: &'static str,
        min: usize,
        max: Option<usize>,
        most: u32,
        form: Form,
    },
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Any(Box<Part>),
}

/// Way of writing a rule with a limit.
#[derive(Clone, Copy, Debug)]
enum Form {
    Expression,
    /// Another rule alone.
    Rule,
    /// A rule for each letter, which has one within.
    Letters,
}

impl Part {
    /// The part as Lark writes it; adds rules with limits.
    fn write(&self, rules: &mut Vec<String>) -> String {
        match self {
            Self::Literal(text) => format!("{text:?}"),
            Self::Limited { class, min, max, most, form } => {
                let written = max.map_or_else(String::new, |max| max.to_string());
                let (name, texts) =
                    (format!("t{}", rules.len()), format!("/[{class}]{{{min},{written}}}/"));
                let (body, within) = match form {
                    Form::Expression => (texts, String::new()),
                    Form::Rule => (format!("{name}_all"), format!("\n{name}_all: {texts}")),
                    Form::Letters => {
                        let letters = vec![format!("{name}_one"); *min].join(" ");
                        let more = match max {
                            Some(max) => format!("{name}_one~0..{}", max - min),
                            None => format!("{name}_one*"),
                        };
                        let one =
                            format!("\n{name}_one: {name}_letter\n{name}_letter: /[{class}]/");
                        (format!("{letters} {more}"), one)
                    }
                };
                rules.push(format!("{name}[max_tokens={most}]: {body}{within}"));
                name
            }
            Self::Sequence(parts) => {
                parts.iter().map(|part| part.write(rules)).collect::<Vec<_>>().join(" ")
            }
            Self::Choice(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| part.write(rules)).collect();
                format!("({})", parts.join(" | "))
            }
            Self::Any(part) => format!("({})*", part.write(rules)),
        }
    }
}

/// A finite automaton over bytes; steps within a rule with a limit are told from others.
#[derive(Default)]
struct Counter {
    steps: Vec<Vec<Step>>,
    empty: Vec<Vec<usize>>,
}

struct Step {
    byte: u8,
    to: usize,
    /// The limit of the rule, and whether the step is its first.
    limit: Option<(u32, bool)>,
}

/// A state, and the tokens of the rule that it is in.
type Place = (usize, u32);

impl Counter {
    fn state(&mut self) -> usize {
        self.steps.push(Vec::new());
        self.empty.push(Vec::new());
        self.steps.len() - 1
    }

    /// Adds a part after a state; the state after it.
    fn add(&mut self, part: &Part, from: usize) -> usize {
        match part {
            Part::Literal(text) => text.bytes().fold(from, |at, byte| {
                let to = self.state();
                self.steps[at].push(Step { byte, to, limit: None });
                to
            }),
            &Part::Limited { class, min, max, most, .. } => {
                let (end, mut at) = (self.state(), from);
                if min == 0 {
                    self.empty[from].push(end);
                }
                let least = min.max(1);
                let number = max.unwrap_or(least);
                for nth in 1..=number {
                    let to = self.state();
                    for byte in class.bytes() {
                        self.steps[at].push(Step { byte, to, limit: Some((most, nth == 1)) });
                        if max.is_none() && nth == number {
                            self.steps[to].push(Step { byte, to, limit: Some((most, false)) });
                        }
                    }
                    if nth >= least {
                        self.empty[to].push(end);
                    }
                    at = to;
                }
                end
            }
            Part::Sequence(parts) => parts.iter().fold(from, |at, part| self.add(part, at)),
            Part::Choice(parts) => {
                let end = self.state();
                for part in parts {
                    let begin = self.state();
                    self.empty[from].push(begin);
                    let to = self.add(part, begin);
                    self.empty[to].push(end);
                }
                end
            }
            Part::Any(part) => {
                let begin = self.state();
                self.empty[from].push(begin);
                let to = self.add(part, begin);
                self.empty[to].push(begin);
                begin
            }
        }
    }

    fn close(&self, places: &mut BTreeSet<Place>) {
        let mut open: Vec<_> = places.iter().copied().collect();
        while let Some((at, _)) = open.pop() {
            for &to in &self.empty[at] {
                if places.insert((to, 0)) {
                    open.push((to, 0));
                }
            }
        }
    }

    fn after(&self, places: &BTreeSet<Place>, token: &[u8]) -> BTreeSet<Place> {
        let mut now = places.clone();
        for (nth, &byte) in token.iter().enumerate() {
            let mut next = BTreeSet::new();
            for &(at, tokens) in &now {
                for step in self.steps[at].iter().filter(|step| step.byte == byte) {
                    match step.limit {
                        None => _ = next.insert((step.to, 0)),
                        Some((most, is_first)) => {
                            let tokens = match is_first {
                                true => 1,
                                false => tokens + u32::from(nth == 0),
                            };
                            if tokens <= most {
                                next.insert((step.to, tokens));
                            }
                        }
                    }
                }
            }
            self.close(&mut next);
            now = next;
        }
        now
    }

    /// The places from which some tokens lead to the end.
    fn hopeful(&self, tokens: &[Vec<u8>], end: usize) -> impl Fn(Place) -> bool + use<> {
        let largest = self.steps.iter().flatten().filter_map(|step| step.limit);
        let largest = largest.map(|(most, _)| most).max().unwrap_or(0);
        let all: Vec<Place> =
            (0..self.steps.len()).flat_map(|at| (0..=largest).map(move |n| (at, n))).collect();
        let closed = |place: Place| {
            let mut places = BTreeSet::from([place]);
            self.close(&mut places);
            places
        };
        let next: HashMap<Place, Vec<BTreeSet<Place>>> = all
            .iter()
            .map(|&place| {
                let from = closed(place);
                (place, tokens.iter().map(|token| self.after(&from, token)).collect())
            })
            .collect();
        let mut good: BTreeSet<Place> = all
            .iter()
            .copied()
            .filter(|&place| closed(place).iter().any(|at| at.0 == end))
            .collect();
        loop {
            let more: Vec<Place> = all
                .iter()
                .copied()
                .filter(|place| !good.contains(place))
                .filter(|place| next[place].iter().any(|after| !after.is_disjoint(&good)))
                .collect();
            if more.is_empty() {
                return move |place| good.contains(&place);
            }
            good.extend(more);
        }
    }
}

fn part() -> impl Strategy<Value = Part> {
    let class = prop::sample::select(vec!["a", "ab", "abc", "bc"]);
    let form = prop::sample::select(vec![Form::Expression, Form::Rule, Form::Letters]);
    let limited = (class, 0..4_usize, prop::option::of(0..3_usize), 1..4_u32, form).prop_map(
        |(class, min, more, most, form)| {
            let max = more.map(|more| (min + more).max(1));
            Part::Limited { class, min, max, most, form }
        },
    );
    let leaf = prop_oneof![2 => "[abc]{1,2}".prop_map(Part::Literal), 3 => limited];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Part::Sequence),
            2 => prop::collection::vec(inner.clone(), 1..3).prop_map(Part::Choice),
            1 => inner.prop_map(|part| Part::Any(Box::new(part))),
        ]
    })
}

fn has_long_rests(part: &Part) -> bool {
    match part {
        Part::Literal(_) => false,
        Part::Limited { min, .. } => *min > 1,
        Part::Sequence(parts) | Part::Choice(parts) => parts.iter().any(has_long_rests),
        Part::Any(part) => has_long_rests(part),
    }
}

fn vocabulary(tokens: &[Vec<u8>]) -> Arc<PreparedVocabulary> {
    let texts: Vec<_> = tokens.iter().cloned().map(Some).chain([None]).collect();
    let end = TokenId(texts.len() as u32 - 1);
    Arc::new(PreparedVocabulary::new(Arc::new(Vocabulary::new(texts, [end]).expect("texts"))))
}

fn constraint(source: &str, lexing: Lexing, tokens: &[Vec<u8>]) -> Option<GrammarConstraint> {
    let options = LarkOptions { lexing: Some(lexing), ..LarkOptions::default() };
    let budget = &mut Budget::unlimited();
    let (grammar, warnings) = lark::parse_with_budget(source, &options, budget).expect(source);
    assert_eq!(warnings.len(), 0, "{source}");
    over(grammar, vocabulary(tokens))
}

fn over(grammar: Grammar, vocabulary: Arc<PreparedVocabulary>) -> Option<GrammarConstraint> {
    let limits = RecognizerLimits::default();
    let made = Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited());
    let made = made.expect("a small grammar");
    made.start()?;
    Some(GrammarConstraint::new(Arc::new(made), vocabulary))
}

/// A text that is written with these tokens as long as they are allowed, else with the first that
/// is.
fn written(constraint: &GrammarConstraint, wanted: &str, tokens: &[Vec<u8>]) -> String {
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let wanted = tokens.iter().position(|token| token == wanted.as_bytes()).expect("a token");
    let mut text = String::new();
    for _ in 0..100 {
        let mask = allowed(constraint, &state, &mut scratch);
        let wanted = TokenId(wanted as u32);
        let first = mask::iter(&mask).next();
        let token = if mask::contains(&mask, wanted) { Some(wanted) } else { first };
        let Some(token) = token.filter(|token| token.index() < tokens.len()) else { break };
        constraint.commit(&mut state, token, &mut scratch).unwrap();
        text += std::str::from_utf8(&tokens[token.index()]).unwrap();
    }
    text
}

fn allowed(
    constraint: &GrammarConstraint,
    state: &GrammarState,
    scratch: &mut GrammarScratch,
) -> Vec<u32> {
    let mut allowed = vec![0; mask::num_words(constraint.num_tokens())];
    constraint.fill_mask(state, scratch, &mut allowed).unwrap();
    allowed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Along a random text: a mask has the tokens of the automaton from which an end is reached, or
    /// fewer where a rule's shortest rest is not that of the fewest tokens; it has one while the
    /// text is not whole, and other tokens are refused. The same by reference.
    #[test]
    fn masks_keep_limits(
        part in part(),
        more in prop::collection::vec("[abc]{2,4}", 0..6),
        choices in prop::collection::vec(0..64_usize, 12),
        lexing in prop::sample::select(vec![Lexing::Any, Lexing::Contextual]),
    ) {
        let mut rules = Vec::new();
        let source = format!("start: {}\n", part.write(&mut rules));
        let source = format!("{source}{}\n", rules.join("\n"));
        // Literals compete with each other by context, and the automaton knows of no competition.
        let lexing = match rules.is_empty() || source.matches('"').count() > 2 {
            true => Lexing::Any,
            false => lexing,
        };
        let bytes = ["a", "b", "c"].map(str::to_owned);
        let mut tokens: Vec<Vec<u8>> = more.into_iter().chain(bytes).map(String::into_bytes).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let Some(constraint) = constraint(&source, lexing, &tokens) else { return Ok(()) };
        if constraint.check_token_limits().is_err() {
            return Ok(());
        }
        let mut automaton = Counter::default();
        let start = automaton.state();
        let end = automaton.add(&part, start);
        let hopeful = automaton.hopeful(&tokens, end);
        let mut places = BTreeSet::from([(start, 0)]);
        automaton.close(&mut places);
        let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
        for choice in choices {
            let mask = allowed(&constraint, &state, &mut scratch);
            let by_reference = constraint.mask(&state, &mut scratch).unwrap();
            prop_assert_eq!(by_reference.words(), &*mask);
            let is_whole = places.iter().any(|place| place.0 == end);
            prop_assert_eq!(constraint.is_accepting(&state, &mut scratch).unwrap(), is_whole);
            let mut next = Vec::new();
            for (token, text) in tokens.iter().enumerate() {
                let id = TokenId(token as u32);
                let after = automaton.after(&places, text);
                let is_allowed = mask::contains(&mask, id);
                let by_definition = after.iter().any(|&place| hopeful(place));
                prop_assert!(by_definition || !is_allowed, "{source}{text:?} at {places:?}");
                if !has_long_rests(&part) {
                    prop_assert!(is_allowed || !by_definition, "{source}{text:?} at {places:?}");
                }
                let mut ahead = state.clone();
                let committed = constraint.commit(&mut ahead, id, &mut scratch);
                prop_assert_eq!(committed.is_ok(), is_allowed);
                if is_allowed {
                    next.push((ahead, after));
                }
            }
            prop_assert!(is_whole || !next.is_empty(), "a dead end of {source} at {places:?}");
            if next.is_empty() {
                break;
            }
            let count = next.len();
            (state, places) = next.swap_remove(choice % count);
        }
    }

    /// Texts end within their tokens where rules have limits, too: as many as are asked for at the
    /// beginning suffice.
    #[test]
    fn texts_end_in_time_within_limits(
        part in part(),
        more in prop::collection::vec("[abc]{2,4}", 0..6),
        choices in prop::collection::vec(0..64_usize, 24),
        room in 0..4_usize,
    ) {
        let mut rules = Vec::new();
        let source = format!("start: {}\n", part.write(&mut rules));
        let source = format!("{source}{}\n", rules.join("\n"));
        let bytes = ["a", "b", "c"].map(str::to_owned);
        let tokens: Vec<Vec<u8>> = more.into_iter().chain(bytes).map(String::into_bytes).collect();
        let Some(constraint) = constraint(&source, Lexing::Any, &tokens) else { return Ok(()) };
        let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
        if constraint.check_token_limits().is_err() {
            return Ok(());
        }
        let Some(fewest) = constraint.fewest_tokens(&state, &mut scratch).unwrap() else {
            return Ok(());
        };
        let mut left = fewest + room;
        for choice in choices {
            let mut allowed = vec![0; mask::num_words(constraint.num_tokens())];
            let work = MaskBudget::unlimited();
            let lengths = Lengths::within(left);
            constraint.fill_ending_mask_within(&state, lengths, &mut scratch, &mut allowed, &work).unwrap();
            let tokens: Vec<_> = mask::iter(&allowed).collect();
            prop_assert!(!tokens.is_empty(), "{source} with {left} left");
            let token = tokens[choice % tokens.len()];
            constraint.commit(&mut state, token, &mut scratch).unwrap();
            if state.ended() {
                return Ok(());
            }
            left -= 1;
            if left == 0 {
                prop_assert!(constraint.is_accepting(&state, &mut scratch).unwrap());
                return Ok(());
            }
        }
    }
}

/// Lines and words: `text` in three tokens at most, then a full stop.
const TEXT: &str = "start: \"<\" text \">\"\ntext[max_tokens=3]: /[a-z]+/";

fn letters() -> Vec<Vec<u8>> {
    ["<", ">", "a", "b", "ab", "a>", "<a", "b><"].map(|text| text.as_bytes().to_vec()).into()
}

#[test]
fn a_text_ends_within_its_tokens() {
    let constraint = constraint(TEXT, Lexing::Contextual, &letters()).unwrap();
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let mut seen = Vec::new();
    for token in [6, 4, 3] {
        let mask = allowed(&constraint, &state, &mut scratch);
        seen.push(mask::iter(&mask).map(|token| token.0).collect::<Vec<_>>());
        constraint.commit(&mut state, TokenId(token), &mut scratch).unwrap();
    }
    let mask = allowed(&constraint, &state, &mut scratch);
    seen.push(mask::iter(&mask).map(|token| token.0).collect());
    // The first token has a letter of the text, so two are left after it.
    assert_eq!(seen, [vec![0, 6], vec![1, 2, 3, 4, 5], vec![1, 2, 3, 4, 5], vec![1]]);
    // Taken back, there is room again.
    constraint.rollback(&mut state, 1).unwrap();
    let mask = allowed(&constraint, &state, &mut scratch);
    assert!(mask::contains(&mask, TokenId(4)));
}

/// Blanks that are ignored stand between the lexemes of a limited rule, and count; with rules within
/// and without.
#[test]
fn lexemes_of_limited_rules_have_blanks_between() {
    let tokens: Vec<Vec<u8>> = ["a", " ", "=", ";"].map(|text| text.as_bytes().to_vec()).into();
    let rules = [
        "pair[max_tokens=5]: name \"=\" name\nname: /a+/",
        "pair[max_tokens=5]: A \"=\" A\nA: /a+/",
    ];
    for rules in rules {
        let source = format!("start: pair \";\"\n{rules}\n%ignore \" \"");
        let constraint = constraint(&source, Lexing::Contextual, &tokens).unwrap();
        let written = |wanted: &str| {
            let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
            wanted.bytes().all(|byte| {
                let token = tokens.iter().position(|token| *token == [byte]).expect("a token");
                constraint.commit(&mut state, TokenId(token as u32), &mut scratch).is_ok()
            }) && constraint.is_accepting(&state, &mut scratch).unwrap()
        };
        let texts = ["a=a;", "a = a;", " aa=aa ;", "a=  a  ;", "a  =  a;", "aaaa=a;", "aa = a;"];
        // Blanks before and after stand outside; six tokens are too many.
        assert_eq!(texts.map(written), [true, true, true, true, false, false, false], "{source}");
    }
}

#[test]
fn a_limit_below_the_shortest_text_is_an_error() {
    let source = "start: text\ntext[max_tokens=2]: /[ab]{3}/";
    let constraint = constraint(source, Lexing::Any, &[b"a".to_vec(), b"b".to_vec()]).unwrap();
    let error = constraint.check_token_limits().unwrap_err();
    assert!(matches!(error, TokenError::Limit { most: 2, needed: Some(3), .. }));
    let message = "the limit on the tokens of text is 2, and its shortest text takes 3; raise the limit to that at least";
    assert_eq!(error.to_string(), message);
}

/// Thinking has its tokens, the values of a schema theirs.
#[test]
fn parts_of_answers_have_limits() {
    let texts = ["[/t]", "[t]", "x", "a", "{", "}", "\"", "\"a\"", ":", "/", "<", ",", ">", "t"];
    let tokens: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).into();
    let tag = r#"{"type": "sequence", "elements": [
        {"type": "tag", "begin": "[t]", "content": {"type": "any_text", "max_tokens": 4}, "end": "[/t]"},
        {"type": "const_string", "value": "t"}]}"#;
    let options = StructuralTagOptions::default();
    let grammar = structural_tag::parse(tag, &options).unwrap();
    let constraint = over(grammar, vocabulary(&tokens)).unwrap();
    assert_eq!(written(&constraint, "x", &tokens), "[t]xxxx[/t]t");
    let options = JsonSchemaOptions {
        whitespace: Whitespace::Compact,
        max_string_tokens: NonZeroU32::new(5),
        ..JsonSchemaOptions::default()
    };
    let schema = r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}"#;
    let grammar = json_schema::parse(schema, &options).unwrap();
    let constraint = over(grammar, vocabulary(&tokens)).unwrap();
    assert_eq!(written(&constraint, "x", &tokens), "{\"a\":\"xxx\"}");
}

/// Strings of which the shortest ways join tokens with what is around them.
#[test]
fn tight_limits_leave_a_way_to_the_end() {
    let pieces =
        ["{", "}", "\"", ":", ",", "\":\"", "\",\"", "{\"", "#", "0", "00", "000", "a", "b", "\"}"];
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let mut tokens: Vec<Vec<u8>> = pieces.map(|text| text.as_bytes().to_vec()).into();
    tokens.extend(bytes.filter(|byte| !pieces.iter().any(|text| text.as_bytes() == byte)));
    let schema = r##"{"type": "object", "properties": {"a": {"type": "string", "pattern": "^#[0-9]{3}$"}, "b": {"type": "string", "pattern": "^#[0-9]{3}$"}}, "required": ["a", "b"], "additionalProperties": false}"##;
    let options = JsonSchemaOptions {
        whitespace: Whitespace::Compact,
        max_string_tokens: NonZeroU32::new(4),
        ..JsonSchemaOptions::default()
    };
    let grammar = json_schema::parse(schema, &options).unwrap();
    let constraint = over(grammar, vocabulary(&tokens)).unwrap();
    constraint.check_token_limits().unwrap();
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let work = MaskBudget::unlimited();
    let way = constraint.shortest_completion(&state, &mut scratch, &work).unwrap().expect("a way");
    assert_eq!(way.bytes, b"{\"a\":\"#000\",\"b\":\"#000\"}");
    let fewest = constraint.fewest_tokens(&state, &mut scratch).unwrap();
    assert_eq!(fewest, Some(way.tokens.len()));
    for (place, &token) in way.tokens.iter().enumerate() {
        let mut allowed = vec![0; mask::num_words(constraint.num_tokens())];
        let left = way.tokens.len() - place;
        constraint
            .fill_ending_mask_within(
                &state,
                Lengths::within(left),
                &mut scratch,
                &mut allowed,
                &work,
            )
            .unwrap();
        assert!(mask::contains(&allowed, token));
        constraint.commit(&mut state, token, &mut scratch).unwrap();
    }
    assert!(constraint.is_accepting(&state, &mut scratch).unwrap());
}

/// Far from a limit no mask takes steps of its own, however many states the texts have.
#[test]
fn masks_far_from_limits_are_the_engines_own() {
    let tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    let source =
        "start: a \";\" b\na[max_tokens=1000000]: /[^;]*/\nb[max_tokens=50]: /[a-z]{0,5000}/";
    let constraint = constraint(source, Lexing::Any, &tokens).unwrap();
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let mut allowed = vec![0; mask::num_words(constraint.num_tokens())];
    let far = MaskBudget::of_steps(u64::MAX, None);
    constraint.fill_mask_within(&state, &mut scratch, &mut allowed, &far).unwrap();
    for byte in *b"long;text" {
        constraint.commit(&mut state, TokenId(u32::from(byte)), &mut scratch).unwrap();
        let parts = constraint.mask(&state, &mut scratch).unwrap();
        // A mask that was found by its parts is found again without being filled.
        let none = MaskBudget::of_steps(0, None);
        assert_eq!(constraint.mask_within(&state, &mut scratch, &none).unwrap(), parts);
    }
}
