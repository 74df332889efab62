//! Scopes of members: all texts that masks allow against all that plain loops find, over small sets
//! of items; masks by every engine against every token tried.

use std::collections::BTreeSet;
use std::sync::Arc;

use palmette_core::{
    Constraint, MemberId, MemberSet, MemberSpelling, RemainderCache, RemainingMembers, SlotId,
    TokenId, Vocabulary, mask,
};
use palmette_grammar::frontends::json_schema::{self, JsonSchemaOptions, Whitespace};
use palmette_grammar::frontends::lark::{self, LarkOptions};
use palmette_grammar::{
    BindError, Budget, CompileError, Grammar, GrammarConstraint, GrammarScratch, GrammarState,
    MaskBudget, PreparedVocabulary, Recognizer, RecognizerLimits, ScopeKind,
};
use palmette_testkit::member_sets::{NaiveSet, assert_equal_sets};
use palmette_testkit::naive_items::{NaiveItem, NaiveItems, NaiveScope};
use proptest::prelude::*;
use serde_json::{Value, json};

const TOKENS: [&str; 52] = [
    "g",
    "2",
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "a",
    "b",
    "c",
    "d",
    "i",
    "t",
    "1",
    "x",
    "y",
    "id",
    "ab",
    "[\"",
    "\"]",
    "\",\"",
    "a\",\"",
    "\",\"b",
    "b\"]",
    "[[",
    "]]",
    "],[",
    "],[\"",
    "\"],[\"",
    "{\"",
    "\"}",
    "\"},{\"",
    "{\"id\":\"",
    "\"id\":\"a",
    "\"t\":",
    "\",\"t\":\"",
    "x\"}",
    "\"}]",
    "},{",
    "[{",
    "}]",
    "[]",
    "a\",\"b\"",
    "\"a\",\"b\",\"",
    "ab\"",
    "\"a",
    "\"b",
    "[[\"a\",",
    "{\"t\":\"x\",\"id\":\"",
    "\"},{\"id\":\"a",
];

fn vocabulary() -> Arc<PreparedVocabulary> {
    let end = TokenId(TOKENS.len() as u32);
    let texts = TOKENS.iter().map(Some).chain([None]);
    Arc::new(PreparedVocabulary::new(Arc::new(Vocabulary::new(texts, [end]).expect("texts"))))
}

fn schema(source: &Value) -> Grammar {
    let options = JsonSchemaOptions { whitespace: Whitespace::Compact, ..Default::default() };
    let parsed = json_schema::parse(&source.to_string(), &options);
    parsed.unwrap_or_else(|error| panic!("{source}: {error}"))
}

fn ready(grammar: Grammar) -> Result<Arc<Recognizer>, CompileError> {
    let limits = RecognizerLimits::default();
    Recognizer::new(Arc::new(grammar), &limits, &mut Budget::unlimited()).map(Arc::new)
}

/// The grammar's slots and scopes over some items.
fn items_of(recognizer: &Recognizer, items: &[NaiveItem]) -> NaiveItems {
    let grammar = recognizer.source();
    let field = |field: &Option<String>| field.clone().unwrap_or_else(|| "id".to_owned());
    let slots = grammar.slots().iter().map(|slot| (field(&slot.field), slot.spelling)).collect();
    let all: Vec<_> = recognizer.scopes().contents().cloned().collect();
    let scopes = all.iter().zip(grammar.scopes()).map(|(contents, scope)| {
        let at_most = match &scope.kind {
            ScopeKind::Distinct { at_most } => at_most.clone(),
            ScopeKind::Record => None,
        };
        let of = contents.records.first().map_or(contents, |record| &all[record.index()]);
        NaiveScope {
            slots: of.slots.iter().map(|slot| slot.index()).collect(),
            has_records: !contents.records.is_empty() || scope.kind == ScopeKind::Record,
            at_most: at_most.map(|limit| (limit.attribute, limit.items as usize)),
        }
    });
    NaiveItems { items: items.to_vec(), slots, scopes: scopes.collect() }
}

/// A constraint under the items, by the automaton or by walking.
fn bind(
    recognizer: &Arc<Recognizer>,
    items: &[NaiveItem],
    walks: bool,
) -> Result<GrammarConstraint, BindError> {
    let vocabulary = vocabulary();
    let open = match walks {
        true => GrammarConstraint::by_walking(Arc::clone(recognizer), vocabulary),
        false => GrammarConstraint::new(Arc::clone(recognizer), vocabulary),
    };
    open.bind_all(Arc::new(items_of(recognizer, items).binding()))
}

/// The mask of a state by the engine alone, which may not walk instead.
fn explored(
    constraint: &GrammarConstraint,
    state: &GrammarState,
    scratch: &mut GrammarScratch,
) -> Vec<u32> {
    let mut mask = vec![!0; mask::num_words(constraint.num_tokens())];
    let work = MaskBudget { walk: 0, ..MaskBudget::unlimited() };
    constraint.fill_mask_within(state, scratch, &mut mask, &work).expect("small");
    mask
}

/// Language of a constraint, each prefix of which is asked for its mask: it is that of every token
/// tried, and that of the walk, and no prefix is a dead end.
fn all_texts(fast: &GrammarConstraint, slow: &GrammarConstraint) -> BTreeSet<String> {
    let (scratch, slow_scratch) = (&mut GrammarScratch::default(), &mut GrammarScratch::default());
    let mut texts = BTreeSet::new();
    let mut open = vec![(fast.start(), slow.start(), String::new())];
    let mut num_prefixes = 0;
    while let Some((state, slowly, text)) = open.pop() {
        num_prefixes += 1;
        assert!(num_prefixes < 200_000, "too many texts");
        let found = explored(fast, &state, scratch);
        let mut walked = vec![0; found.len()];
        slow.fill_mask(&slowly, slow_scratch, &mut walked).expect("small");
        let shown = |mask: &[u32]| {
            let tokens = mask::iter(mask).map(|token| *TOKENS.get(token.index()).unwrap_or(&"end"));
            tokens.collect::<Vec<_>>()
        };
        assert_eq!(shown(&found), shown(&walked), "after {text}");
        assert!(!mask::is_empty(&found), "a dead end after {text}");
        for token in (0..fast.num_tokens() as u32).map(TokenId) {
            let taken = fast.commit(&mut state.clone(), token, scratch).is_ok();
            let shown = TOKENS.get(token.index());
            assert_eq!(taken, mask::contains(&found, token), "{shown:?} after {text}");
        }
        if fast.is_accepting(&state, scratch).expect("small") {
            texts.insert(text.clone());
        }
        for token in mask::iter(&found).filter(|token| token.index() < TOKENS.len()) {
            let character = TOKENS[token.index()];
            if character.len() == 1 {
                let (mut next, mut slowly) = (state.clone(), slowly.clone());
                fast.commit(&mut next, token, scratch).expect("allowed");
                slow.commit(&mut slowly, token, slow_scratch).expect("allowed");
                open.push((next, slowly, format!("{text}{character}")));
            }
        }
    }
    texts
}

/// Compares all texts of a schema under some items with those that are expected; without any,
/// binding fails.
#[track_caller]
fn check(source: &Value, items: &[NaiveItem], expected: BTreeSet<String>) {
    let recognizer = ready(schema(source)).unwrap_or_else(|error| panic!("{source}: {error}"));
    match bind(&recognizer, items, false) {
        Ok(fast) => {
            let slow = bind(&recognizer, items, true).expect("it was bound");
            assert_eq!(all_texts(&fast, &slow), expected, "{source} over {items:?}");
        }
        Err(BindError::Compile(error)) => panic!("{source}: {error}"),
        Err(error) => {
            assert!(expected.is_empty(), "{source} over {items:?}: {error}, not {expected:?}");
        }
    }
}

fn item(fields: &[(&str, &str)]) -> NaiveItem {
    fields.iter().map(|&(field, text)| (field.to_owned(), text.to_owned())).collect()
}

/// Sequences of distinct numbers: all ways to write some below `count` in a row, each once, `min` to `max` of them.
fn orders(count: usize, min: usize, max: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(order) = open.pop() {
        if order.len() < max {
            let next = (0..count).filter(|at| !order.contains(at));
            open.extend(next.map(|at| [&order[..], &[at]].concat()));
        }
        if order.len() >= min {
            all.push(order);
        }
    }
    all
}

const IDS: [&str; 4] = ["a", "ab", "b", "aba"];

fn items(count: usize) -> Vec<NaiveItem> {
    IDS[..count].iter().map(|id| item(&[("id", id)])).collect()
}

/// Lists of distinct ids: all orders, whatever the bounds.
#[test]
fn lists_of_distinct_ids_are_all_orders() {
    for keyword in [json!({"x-distinct": "s"}), json!({"uniqueItems": true})] {
        for (count, min) in (0..=4).flat_map(|count| (0..=count + 1).map(move |min| (count, min))) {
            for max in min.max(1)..=count.min(3) + 1 {
                let mut source = json!({"type": "array", "minItems": min, "maxItems": max,
                    "items": {"type": "string", "x-catalog": "s.id"}});
                let object = source.as_object_mut().expect("an object");
                object.extend(keyword.as_object().expect("an object").clone());
                let expected = orders(count, min, max.min(count)).into_iter();
                let text = |order: Vec<usize>| {
                    let ids: Vec<&str> = order.iter().map(|at| IDS[*at]).collect();
                    json!(ids).to_string()
                };
                check(&source, &items(count), expected.map(text).collect());
            }
        }
    }
}

/// A list before one that needs some stops in time; between them lies nothing.
#[test]
fn what_comes_later_keeps_what_it_needs() {
    let list = |min: usize, max: usize| {
        json!({"type": "array", "minItems": min, "maxItems": max,
            "items": {"type": "string", "x-catalog": "s"}})
    };
    for (count, first, second) in (0..=4).flat_map(|count| {
        (0..3).flat_map(move |first| (0..4).map(move |second| (count, first, second)))
    }) {
        let source = json!({"type": "array", "x-distinct": "s", "minItems": 2, "items": false,
            "prefixItems": [list(first, 3), list(second, second)]});
        let mut expected = BTreeSet::new();
        for order in orders(count, 0, count) {
            if order.len() < second || order.len() - second > 3 || order.len() - second < first {
                continue;
            }
            let ids = |order: &[usize]| order.iter().map(|at| IDS[*at]).collect::<Vec<_>>();
            let (one, other) = order.split_at(order.len() - second);
            expected.insert(json!([ids(one), ids(other)]).to_string());
        }
        check(&source, &items(count), expected);
    }
}

/// A rule of Lark as a scope; blanks are ignored in it as elsewhere.
#[test]
fn rules_of_lark_are_scopes() {
    const SOURCE: &str = r#"
        start: list ("/" list)?
        list[distinct=s]: "[" [item ("," item)*] "]"
        item: ID
        ID: %catalog {"name": "s"}
    "#;
    let recognizer =
        |source: &str| ready(lark::parse(source, &LarkOptions::default()).expect(source));
    let recognizer_of = recognizer(SOURCE).expect("sound");
    let items = [item(&[("id", "a")]), item(&[("id", "b")])];
    let fast = bind(&recognizer_of, &items, false).expect("two items");
    let lists = ["[]", "[a]", "[b]", "[a,b]", "[b,a]"];
    for one in lists.iter().copied().chain(["[a,a]", "[a,b,a]", "[a,b,", "[c]"]) {
        let mut state = fast.start();
        let scratch = &mut GrammarScratch::default();
        let read = fast.commit_bytes(&mut state, one.as_bytes(), scratch).is_ok();
        assert_eq!(read, lists.contains(&one), "{one}");
    }
    for (rule, words) in [
        (r#"list[distinct=s]: item "]""#, "begins and ends with terminals"),
        (r#"list[distinct=s, record=s]: "[" item "]""#, "one scope of members"),
        (r#"list[distinct="s"]: "[" item "]""#, "is no name of a set"),
    ] {
        let source = format!("start: list\n{rule}\nitem: %catalog {{\"name\": \"s\"}}");
        let error = lark::parse(&source, &LarkOptions::default()).expect_err(rule).to_string();
        assert!(error.contains(words), "{rule}: {error}");
    }
    for (rules, words) in [
        (
            "list[distinct=s]: \"[\" inner \"]\"\ninner[distinct=s]: \"(\" item \")\"",
            "stands within x-distinct \"s\"",
        ),
        ("list[distinct=t]: \"[\" item \"]\"", "has no member of t in it"),
        (
            "list[distinct=s]: \"[\" item \",\" other \"]\"\nother: %catalog {\"name\": \"s\", \"field\": \"t\"}",
            "members of several fields",
        ),
    ] {
        let source = format!("start: list\n{rules}\nitem: %catalog {{\"name\": \"s\"}}");
        let error = recognizer(&source).expect_err(rules).to_string();
        assert!(error.contains(words), "{rules}: {error}");
    }
}

/// An item with an id, a title, and a group; some have no title.
fn shop(count: usize) -> Vec<NaiveItem> {
    let all = [
        item(&[("id", "a"), ("t", "x"), ("g", "1")]),
        item(&[("id", "b"), ("t", "x"), ("g", "1")]),
        item(&[("id", "ab"), ("t", "y"), ("g", "1")]),
        item(&[("id", "c"), ("g", "2")]),
        item(&[("id", "d"), ("t", "xy"), ("g", "2")]),
    ];
    all[..count].to_vec()
}

/// Lists with at most some items of a group, all orders.
#[test]
fn at_most_some_of_a_group() {
    for (count, most, min) in (0..=5)
        .flat_map(|count| (1..3).flat_map(move |most| (0..4).map(move |min| (count, most, min))))
    {
        let source = json!({"type": "array", "x-distinct": "s", "minItems": min, "maxItems": 3,
            "x-at-most": [{"attribute": "g", "items": most}],
            "items": {"type": "string", "x-catalog": "s.id"}});
        let items = shop(count);
        let mut expected = BTreeSet::new();
        for order in orders(count, min, 3) {
            let of_group =
                |group: &str| order.iter().filter(|at| items[**at]["g"] == group).count();
            if ["1", "2"].iter().all(|group| of_group(group) <= most) {
                let ids: Vec<&str> = order.iter().map(|at| &*items[*at]["id"]).collect();
                expected.insert(json!(ids).to_string());
            }
        }
        check(&source, &items, expected);
    }
}

/// Texts of a record: its members in any order, those of one item that has all.
fn records(item: &NaiveItem, required: &[&str], optional: &[&str]) -> Vec<String> {
    let all: Vec<&str> = required.iter().chain(optional).copied().collect();
    if !all.iter().all(|field| item.contains_key(*field)) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    for order in orders(all.len(), required.len(), all.len()) {
        if (0..required.len()).all(|at| order.contains(&at)) {
            let members = order.iter().map(|at| format!("{:?}:{:?}", all[*at], item[all[*at]]));
            texts.push(format!("{{{}}}", members.collect::<Vec<_>>().join(",")));
        }
    }
    texts
}

fn record_schema(required: &[&str], optional: &[&str]) -> Value {
    let field = |name: &str| json!({"type": "string", "x-catalog": format!("s.{name}")});
    let all = required.iter().chain(optional);
    let properties: serde_json::Map<String, Value> =
        all.map(|name| ((*name).to_owned(), field(name))).collect();
    json!({"type": "object", "x-record": "s", "required": required, "properties": properties,
        "additionalProperties": false})
}

/// A record alone: all texts of one item, whatever the order of its members.
#[test]
fn records_describe_one_item() {
    let shapes: [(&[&str], &[&str]); 5] = [
        (&["id"], &["t"]),
        (&["id", "t"], &[]),
        (&["t"], &["g"]),
        (&[], &["t", "id"]),
        (&["t", "g", "id"], &[]),
    ];
    for (required, optional) in shapes {
        for count in 0..=5 {
            let items = shop(count);
            let texts = items.iter().flat_map(|item| records(item, required, optional));
            check(&record_schema(required, optional), &items, texts.collect());
        }
    }
}

/// Lists of records in a distinct scope, with a bound on groups and without one.
#[test]
fn lists_of_records_describe_distinct_items() {
    for (count, min, most) in (0..=5)
        .flat_map(|count| (0..3).flat_map(move |min| (0..3).map(move |most| (count, min, most))))
    {
        let mut source = json!({"type": "array", "x-distinct": "s", "minItems": min, "maxItems": 2,
            "items": record_schema(&["id"], &["t"])});
        if most > 0 {
            source["x-at-most"] = json!([{"attribute": "g", "items": most}]);
        }
        let items = shop(count);
        let mut expected = BTreeSet::new();
        for order in orders(count, min, 2) {
            let of_group =
                |group: &str| order.iter().filter(|at| items[**at]["g"] == group).count();
            if most > 0 && ["1", "2"].iter().any(|group| of_group(group) > most) {
                continue;
            }
            let mut texts = vec![String::new()];
            for (place, at) in order.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                let own = records(&items[*at], &["id"], &["t"]);
                texts = texts
                    .iter()
                    .flat_map(|text| own.iter().map(move |own| format!("{text}{comma}{own}")))
                    .collect();
            }
            expected.extend(texts.into_iter().map(|text| format!("[{text}]")));
        }
        check(&source, &items, expected);
    }
}

/// Scopes that cannot be expressed are refused, with what to do.
#[test]
fn scopes_that_are_refused() {
    let id = json!({"type": "string", "x-catalog": "s"});
    let parse = |source: &Value| {
        let options = JsonSchemaOptions { whitespace: Whitespace::Compact, ..Default::default() };
        match json_schema::parse(&source.to_string(), &options) {
            Err(error) => error.to_string(),
            Ok(grammar) => ready(grammar).expect_err(&source.to_string()).to_string(),
        }
    };
    for (source, words) in [
        (json!({"type": "array", "x-at-most": [], "items": id}), "stands beside \"x-distinct\""),
        (json!({"type": "array", "x-distinct": 7, "items": id}), "is the name of a set"),
        (
            json!({"type": "object", "x-distinct": "s", "properties": {"a": id}}),
            "no array is asked for: put it beside `items`",
        ),
        (
            json!({"type": ["string", "array"], "x-record": "s", "items": id}),
            "no object is asked for: put it beside `properties`",
        ),
        (json!({"type": "array", "x-distinct": "a b", "items": id}), "is no name of a set"),
        (
            json!({"type": "array", "x-distinct": "s", "items": id, "x-at-most": [
                {"attribute": "g", "items": 1}, {"attribute": "h", "items": 1}]}),
            "has several rules",
        ),
        (
            json!({"type": "array", "x-distinct": "s", "items": id,
                "x-at-most": [{"attribute": "g", "items": 0}]}),
            "must be a list of one rule",
        ),
        (
            json!({"not": {"type": "array", "x-distinct": "s", "items": id}}),
            "stands where all values but these are asked for",
        ),
        (
            json!({"type": "array", "items": id,
                "allOf": [{"x-distinct": "s"}, {"x-distinct": "t"}]}),
            "beside another scope",
        ),
        (
            json!({"type": "array", "x-distinct": "s",
                "items": {"type": "array", "x-distinct": "s", "items": id}}),
            "stands within x-distinct \"s\"",
        ),
        (
            json!({"type": "array", "x-distinct": "s", "items": record_schema(&["t"], &["id"])}),
            "may be written without the id",
        ),
        (
            json!({"type": "array", "x-distinct": "s", "x-at-most": [{"attribute": "g", "items": 1}],
                "items": {"type": "string", "x-catalog": "s.t"}}),
            "does not tell items apart",
        ),
        (
            json!({"type": "array", "x-distinct": "s", "items": {"anyOf": [id, record_schema(&["id"], &[])]}}),
            "records of different fields",
        ),
        (
            json!({"type": "object", "x-record": "s", "properties": {"a": {"type": "null"}}}),
            "has no member of s",
        ),
    ] {
        let error = parse(&source);
        assert!(error.contains(words), "{source}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A set without some members is the set of the others, in every respect.
    #[test]
    fn sets_without_members_are_those_of_the_others(
        texts in prop::collection::btree_set("[abx,\"]{1,5}", 1..12),
        missing: u16,
        before: u16,
        json: bool,
    ) {
        let all: Vec<(u64, Vec<u8>)> =
            (0..).zip(&texts).map(|(id, text)| (id, text.clone().into_bytes())).collect();
        let spelling = if json { MemberSpelling::JsonString } else { MemberSpelling::Raw };
        let make = |all: Vec<_>| match json {
            true => NaiveSet::json_strings(all),
            false => NaiveSet::raw(all),
        };
        let is_missing = |id: u64| missing >> id & 1 == 1;
        let gone = || all.iter().map(|(id, _)| MemberId(*id)).filter(|id| is_missing(id.0));
        let whole: Arc<dyn MemberSet> = Arc::new(make(all.clone()));
        let remaining = RemainingMembers::new(Arc::clone(&whole), spelling, gone());
        let others = make(all.iter().filter(|(id, _)| !is_missing(*id)).cloned().collect());
        let vocabulary = vocabulary();
        assert_equal_sets(&remaining, &others, vocabulary.trie(), &[0, 3, 9], 400);
        // Made of one that lacked fewer, or others, before.
        let cache = RemainderCache::default();
        let first = gone().filter(|id| before >> id.0 & 1 == 1);
        cache.remainder(SlotId(0), (&whole, spelling), first);
        let others_before = all.iter().map(|(id, _)| MemberId(*id)).filter(|id| !is_missing(id.0));
        cache.remainder(SlotId(0), (&whole, spelling), others_before);
        let remaining = cache.remainder(SlotId(0), (&whole, spelling), gone());
        assert_equal_sets(&*remaining, &others, vocabulary.trie(), &[0, 3, 9], 400);
    }
}
