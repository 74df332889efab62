//! Where a grammar was before, commits allocate nothing but a state's list of where it was.

use std::sync::Arc;

use palmette_core::{Constraint, TokenId, Vocabulary, mask};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, PreparedVocabulary, Recognizer,
    frontends::json_schema::{JsonSchemaOptions, parse},
};
use palmette_testkit::allocations::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every byte is a token, and so are some longer texts; then the end.
const LONGER: [&str; 6] = ["{\"", "\": ", ", \"", "name", "\"}", "]}"];
const END: TokenId = TokenId(256 + LONGER.len() as u32);

fn constraint(schema: &str) -> GrammarConstraint {
    let grammar = parse(schema, &JsonSchemaOptions::default()).unwrap();
    let budget = &mut Budget::unlimited();
    let recognizer = Recognizer::new(Arc::new(grammar), &Default::default(), budget).unwrap();
    let bytes = (0..=u8::MAX).map(|byte| Some(vec![byte]));
    let longer = LONGER.iter().map(|text| Some(text.as_bytes().to_vec()));
    let vocabulary = Vocabulary::new(bytes.chain(longer).chain([None]), [END]).unwrap();
    let slices = PreparedVocabulary::new(Arc::new(vocabulary));
    GrammarConstraint::new(Arc::new(recognizer), Arc::new(slices))
}

fn tokens(text: &str) -> Vec<TokenId> {
    let (mut left, mut tokens) = (text, Vec::new());
    while let Some(first) = left.bytes().next() {
        let longer = LONGER.iter().position(|longer| left.starts_with(longer));
        let length = longer.map_or(1, |at| LONGER[at].len());
        let token = longer.map_or(u32::from(first), |at| 256 + at as u32);
        tokens.push(TokenId(token));
        left = &left[length..];
    }
    tokens.push(END);
    tokens
}

/// Follows a text and takes it back, twice; counts the allocations of all commits of the first time
/// and of the second.
#[track_caller]
fn follow_twice(constraint: &GrammarConstraint, text: &str) -> [u64; 2] {
    let mut row = vec![0; mask::num_words(constraint.num_tokens())];
    let (mut state, mut scratch) = (constraint.start(), GrammarScratch::default());
    let tokens = tokens(text);
    [(); 2].map(|()| {
        let mut allocated = 0;
        for &token in &tokens {
            constraint.fill_mask(&state, &mut scratch, &mut row).unwrap();
            assert!(mask::contains(&row, token), "{token:?}");
            let before = allocations();
            constraint.commit(&mut state, token, &mut scratch).unwrap();
            let accepts = constraint.is_accepting(&state.clone(), &mut scratch).unwrap();
            assert!(accepts || token != END);
            allocated += allocations() - before;
        }
        constraint.rollback(&mut state, tokens.len()).unwrap();
        allocated
    })
}

#[test]
fn a_warm_commit_allocates_nothing() {
    // Objects in any order, with a tail that is free, are forks: several stacks at once.
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "number"}, "list":
        {"type": "array", "items": {"anyOf": [{"type": "object", "properties": {"name": {"const": "a"}}}, {"type": "integer"}]}}}}"#;
    let constraint = constraint(schema);
    for text in [
        r#"{"name": "x", "n": 1.5e3, "list": [1, {"name": "a"}, {"z": null}]}"#,
        r#"{"list": [1, 2, 3, 4, 5, 6], "other": {"name": ["deep", {"er": [[]]}]}}"#,
    ] {
        let [first, second] = follow_twice(&constraint, text);
        assert!(first > 50, "the counter sees what it is there to see");
        // The state's own list of where it was grows by chunks, of which taking it all back left
        // the first.
        let chunks = [4, 12, 28, 60, 124].iter().filter(|&&begin| begin < tokens(text).len());
        assert_eq!(second, 2 * chunks.count() as u64, "allocations of the second walk");
    }
}
