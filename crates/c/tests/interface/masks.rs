//! Masks through C are those of the constraint, along random texts of random schemas.

use std::ptr;
use std::sync::Arc;

use palmette_c::*;
use palmette_core::{Constraint, Lengths, TokenId, Vocabulary as Tokens, mask};
use palmette_grammar::frontends::json_schema::{JsonSchemaOptions, parse};
use palmette_grammar::{
    Budget, GrammarConstraint, GrammarScratch, GrammarState, MaskBudget, PreparedVocabulary,
    Recognizer,
};
use palmette_testkit::json::schemas;
use proptest::prelude::*;

use crate::handles::{self, Handle, answer, commit, fork, run, texts};

/// The constraint without the cache, the names of languages, and C.
fn constraint(schema: &str) -> Option<GrammarConstraint> {
    let (texts, end) = texts();
    let grammar = parse(schema, &JsonSchemaOptions::default()).ok()?;
    let budget = &mut Budget::unlimited();
    let recognizer = Recognizer::new(Arc::new(grammar), &Default::default(), budget).ok()?;
    let tokens = Arc::new(Tokens::new(texts, [TokenId(end)]).unwrap());
    Some(GrammarConstraint::new(Arc::new(recognizer), Arc::new(PreparedVocabulary::new(tokens))))
}

/// Answers of the constraint about a state, each question by itself.
struct Oracle {
    constraint: GrammarConstraint,
    state: GrammarState,
    scratch: GrammarScratch,
}

impl Oracle {
    fn mask(&mut self, lengths: Option<Lengths>) -> Option<Vec<u32>> {
        let mut row = vec![0; mask::num_words(self.constraint.num_tokens())];
        let (state, scratch) = (&self.state, &mut self.scratch);
        let work = MaskBudget::unlimited();
        match lengths {
            None => self.constraint.fill_mask(state, scratch, &mut row).ok()?,
            Some(of) => {
                self.constraint.fill_ending_mask_within(state, of, scratch, &mut row, &work).ok()?
            }
        }
        Some(row)
    }
}

fn counted(
    call: impl FnOnce(
        *mut u32,
        usize,
        Option<&mut std::mem::MaybeUninit<usize>>,
        Option<&mut std::mem::MaybeUninit<*mut Error>>,
    ) -> Status,
) -> (Vec<u32>, usize) {
    let mut room = vec![u32::MAX; 64];
    let count = answer(|place, error| call(room.as_mut_ptr(), room.len(), place, error)).unwrap();
    room.truncate(count);
    (room, count)
}

/// Answers of C at this place, beside what the constraint does.
fn check(
    matcher: &mut Handle<Matcher>,
    oracle: &mut Oracle,
    batch: &mut Handle<Batch>,
    left: usize,
) {
    let expected = oracle.mask(None).unwrap();
    assert_eq!(handles::mask(matcher, None).as_ref(), Ok(&expected));
    let (constraint, state, scratch) = (&oracle.constraint, &oracle.state, &mut oracle.scratch);
    let accepting =
        answer(|place, error| palmette_matcher_is_accepting(matcher.get_mut(), place, error));
    assert_eq!(accepting, Ok(constraint.is_accepting(state, scratch).unwrap()));
    assert_eq!(palmette_matcher_has_ended(matcher.get()), state.ended());
    assert_eq!(palmette_matcher_num_commits(matcher.get()), state.num_commits());
    let fewest = constraint.fewest_tokens(state, scratch).unwrap();
    let told =
        answer(|place, error| palmette_matcher_fewest_tokens(matcher.get_mut(), place, error));
    assert_eq!(told, Ok(fewest.unwrap_or(usize::MAX)));

    // SAFETY: `counted` gives room.
    let (forced, _) = counted(|room, len, count, error| unsafe {
        palmette_matcher_forced_tokens(matcher.get_mut(), room, len, count, error)
    });
    let expected_tokens = constraint.forced_tokens(state, 64, scratch).unwrap();
    assert_eq!(forced, expected_tokens.iter().map(|token| token.0).collect::<Vec<_>>());
    // SAFETY: `counted` gives room.
    let (way, count) = counted(|room, len, count, error| unsafe {
        palmette_matcher_shortest_completion(matcher.get_mut(), room, len, count, error)
    });
    let expected_way =
        constraint.shortest_completion(state, scratch, &MaskBudget::unlimited()).unwrap();
    match expected_way {
        None => assert_eq!(count, usize::MAX),
        Some(expected) => {
            let tokens: Vec<u32> = expected.tokens.iter().map(|token| token.0).collect();
            assert_eq!((&*way, count), (&tokens[..tokens.len().min(64)], tokens.len()));
        }
    }

    let lengths = LengthsLeft { tokens_needed: 0, tokens_left: left };
    let ending = oracle.mask(Some(Lengths { least: 0, most: left }));
    assert_eq!(handles::mask(matcher, Some(lengths)).ok(), ending);
    let has_way = answer(|place, error| {
        palmette_matcher_has_way(matcher.get_mut(), Some(&lengths), place, error)
    });
    assert_eq!(has_way.is_ok_and(|has_way| has_way), ending.is_some());

    // Rows of a batch: any length, no matcher, an end in time.
    let any = LengthsLeft { tokens_needed: 0, tokens_left: usize::MAX };
    let words = expected.len();
    let rows = [Some(&*matcher), None, Some(&*matcher)];
    let (result, filled, statuses) = handles::fill(batch, &rows, words, Some(&[any, any, lengths]));
    assert_eq!(&filled[..words], &*expected);
    assert!(filled[words..2 * words].iter().all(|&word| word == u32::MAX), "it stays as it is");
    assert_eq!(&filled[2 * words..], &*ending.clone().unwrap_or(vec![0; words]));
    assert_eq!(result.is_ok(), ending.is_some());
    assert_eq!(statuses[..2], [0, 0]);
    assert_eq!(statuses[2] == 0, ending.is_some());
    if let Err(failure) = result {
        assert_eq!((failure.row, failure.status as i32), (Some(2), statuses[2]));
    }
}

/// Lengths after so many tokens; `None` where these are too many.
fn after(lengths: LengthsLeft, tokens: usize) -> Option<LengthsLeft> {
    let LengthsLeft { tokens_needed, tokens_left } = lengths;
    let tokens_left =
        if tokens_left == usize::MAX { Some(tokens_left) } else { tokens_left.checked_sub(tokens) };
    Some(LengthsLeft {
        tokens_needed: tokens_needed.saturating_sub(tokens),
        tokens_left: tokens_left?,
    })
}

/// The masks along a draft, by forks that commit one token after another; a token is kept where the
/// text can still have one of the lengths.
fn check_draft(matcher: &mut Handle<Matcher>, draft: &[u32], lengths: Option<LengthsLeft>) {
    let words = palmette_matcher_mask_words(matcher.get());
    let mut rows = vec![u32::MAX; words * (draft.len() + 1)];
    let kept = answer(|place, error| {
        // SAFETY: both arrays are alive.
        unsafe {
            palmette_matcher_fill_draft_masks(
                matcher.get_mut(),
                draft.as_ptr(),
                draft.len(),
                rows.as_mut_ptr(),
                words,
                lengths.as_ref(),
                place,
                error,
            )
        }
    });
    let (mut ahead, mut expected, mut taken) = (fork(matcher), Vec::new(), 0);
    match handles::mask(&mut ahead, lengths) {
        Ok(mask) => expected.extend(mask),
        Err(failure) => {
            let told = kept.expect_err("the mask before the draft is not known");
            return assert_eq!((told.status, told.row), (failure.status, Some(0)));
        }
    }
    for &token in draft {
        if commit(&mut ahead, token).is_err() {
            break;
        }
        let left = lengths.map(|lengths| after(lengths, taken + 1));
        let is_kept = match (lengths, left) {
            (Some(lengths), _) if palmette_matcher_has_ended(ahead.get()) => {
                lengths.tokens_needed <= taken
            }
            (_, Some(None)) => false,
            (_, Some(Some(left))) => answer(|place, error| {
                palmette_matcher_has_way(ahead.get_mut(), Some(&left), place, error)
            })
            .unwrap(),
            _ => true,
        };
        if !is_kept {
            break;
        }
        let none = LengthsLeft { tokens_needed: 0, tokens_left: 0 };
        let left = left.map(|left| left.unwrap_or(none));
        expected.extend(handles::mask(&mut ahead, left).unwrap());
        taken += 1;
    }
    expected.resize(rows.len(), 0);
    assert_eq!(kept, Ok(taken));
    assert_eq!(rows, expected);
    if lengths.is_none() {
        let accepted = answer(|place, error| {
            // SAFETY: the array is alive.
            unsafe {
                palmette_matcher_accepted_prefix(
                    matcher.get_mut(),
                    draft.as_ptr(),
                    draft.len(),
                    place,
                    error,
                )
            }
        });
        assert_eq!(accepted, Ok(taken));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn c_says_what_the_constraint_says(
        schema in schemas(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 12),
        left in 0..12usize,
    ) {
        let (texts, end) = texts();
        let vocabulary = handles::vocabulary(&texts, &[end]);
        let schema = schema.to_string();
        let compiled = handles::grammar(&vocabulary, "json_schema", &schema, None, None);
        let Some(constraint) = constraint(&schema) else {
            prop_assert!(compiled.is_err());
            return Ok(());
        };
        let compiled = compiled.unwrap_or_else(|failure| panic!("{schema}: {failure:?}"));
        drop(vocabulary);
        let mut matcher = handles::matcher(&compiled, &[]).unwrap();
        drop(compiled);
        let mut batch = handles::batch(2);
        let state = constraint.start();
        let mut oracle = Oracle { constraint, state, scratch: GrammarScratch::default() };
        let mut taken = Vec::new();
        for choice in choices {
            check(&mut matcher, &mut oracle, &mut batch, left);
            let allowed: Vec<_> = mask::iter(&oracle.mask(None).unwrap()).collect();
            if allowed.is_empty() {
                break;
            }
            let token = allowed[choice.index(allowed.len())];
            let Oracle { constraint, state, scratch } = &mut oracle;
            constraint.commit(state, token, scratch).unwrap();
            commit(&mut matcher, token.0).unwrap();
            taken.push(token.0);
        }
        // Back to the beginning, and the same way again at once and by drafts.
        run(|error| palmette_matcher_rollback(matcher.get_mut(), taken.len() / 2, error)).unwrap();
        check_draft(&mut matcher, &taken[taken.len() - taken.len() / 2..], None);
        palmette_matcher_reset(matcher.get_mut());
        let wrong = [&*taken, &[0]].concat();
        check_draft(&mut matcher, &wrong, None);
        for (tokens_needed, tokens_left) in [(0, left), (left / 2, usize::MAX), (left / 2, left)] {
            check_draft(&mut matcher, &taken, Some(LengthsLeft { tokens_needed, tokens_left }));
        }
        // SAFETY: the array is alive.
        run(|error| unsafe {
            palmette_matcher_commit_all(matcher.get_mut(), taken.as_ptr(), taken.len(), error)
        }).unwrap();
        check(&mut matcher, &mut oracle, &mut batch, left);
    }
}

/// A text of bytes, forced bytes, ends of one's own, and a file of the grammar.
#[test]
fn bytes_ends_and_files() {
    let (texts, end) = texts();
    let vocabulary = handles::vocabulary(&texts, &[end]);
    let compiled = handles::grammar(
        &vocabulary,
        "lark",
        "begin: \"ab\" \"12\"",
        Some(r#"{"start": "begin"}"#),
        None,
    );
    let compiled = compiled.unwrap();
    let own_end = u32::from(b'!');
    let mut matcher = handles::matcher(&compiled, &[own_end]).unwrap();
    // SAFETY: the array is alive.
    run(|error| unsafe {
        palmette_matcher_commit_bytes(matcher.get_mut(), b"a".as_ptr(), 1, error)
    })
    .unwrap();
    let mut room = [0_u8; 16];
    let count = answer(|place, error| {
        // SAFETY: the array is alive.
        unsafe {
            palmette_matcher_forced_bytes(
                matcher.get_mut(),
                room.as_mut_ptr(),
                room.len(),
                place,
                error,
            )
        }
    });
    assert_eq!(&room[..count.unwrap()], b"b12");
    for token in [b'b', b'1', b'2'] {
        commit(&mut matcher, u32::from(token)).unwrap();
    }
    assert_eq!(handles::mask(&mut matcher, None).unwrap()[1], 1 << (own_end - 32));
    commit(&mut matcher, own_end).unwrap();
    assert!(palmette_matcher_has_ended(matcher.get()));

    let bytes =
        answer(|place, error| palmette_grammar_to_bytes(compiled.get(), place, error)).unwrap();
    let mut length = std::mem::MaybeUninit::uninit();
    // SAFETY: the handle is alive, and the function writes the length.
    let (data, length) =
        unsafe { (palmette_bytes_data(bytes.as_ref(), Some(&mut length)), length.assume_init()) };
    let again = answer(|place, error| {
        // SAFETY: the bytes are alive.
        unsafe { palmette_grammar_from_bytes(vocabulary.get(), data, length, place, error) }
    });
    // SAFETY: the library made both as boxes.
    unsafe {
        palmette_bytes_free(Some(Box::from_raw(bytes)));
        palmette_grammar_free(Some(Box::from_raw(again.unwrap())));
    }

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.grammar").to_str().unwrap().to_owned();
    let path = std::ffi::CString::new(path).unwrap();
    // SAFETY: the path is alive.
    run(|error| unsafe { palmette_grammar_save(compiled.get(), path.as_ptr(), error) }).unwrap();
    // SAFETY: the path is alive.
    let loaded = answer(|place, error| unsafe {
        palmette_grammar_load(vocabulary.get(), path.as_ptr(), place, error)
    });
    // SAFETY: the library made it as a box.
    palmette_grammar_free(Some(unsafe { Box::from_raw(loaded.unwrap()) }));
    let other = handles::vocabulary(&texts[1..], &[end - 1]);
    // SAFETY: the path is alive.
    let refused = answer(|place, error| unsafe {
        palmette_grammar_load(other.get(), path.as_ptr(), place, error)
    });
    assert_eq!(refused.unwrap_err().status, Status::Vocabulary);
}

/// The content of a file, and its tokenizer.
#[test]
fn vocabularies_of_files_cut_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.json");
    std::fs::write(&path, r#"["a", "b", "ab", "</s>"]"#).unwrap();
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let end = c"</s>".as_ptr();
    // SAFETY: both texts are alive.
    let opened = answer(|place, error| unsafe {
        palmette_vocabulary_open(path.as_ptr(), &raw const end, 1, place, error)
    });
    let opened = opened.unwrap();
    // SAFETY: the library made it, and it is freed below.
    let vocabulary = unsafe { opened.as_ref() };
    assert_eq!(palmette_vocabulary_num_tokens(vocabulary), 4);
    assert_eq!(palmette_vocabulary_mask_words(vocabulary), 1);
    let mut count = std::mem::MaybeUninit::uninit();
    let ends = palmette_vocabulary_ends(vocabulary, Some(&mut count));
    // SAFETY: the function writes the count, and the ends are the vocabulary's.
    assert_eq!(unsafe { std::slice::from_raw_parts(ends, count.assume_init()) }, [3]);
    let text = palmette_vocabulary_text(vocabulary, 2, Some(&mut count));
    // SAFETY: as above.
    assert_eq!(unsafe { std::slice::from_raw_parts(text, count.assume_init()) }, b"ab");
    assert!(palmette_vocabulary_text(vocabulary, 3, None).is_null());
    assert!(palmette_vocabulary_text(vocabulary, 4, Some(&mut count)).is_null());
    // SAFETY: the text is alive, and there is no room.
    let length = answer(|place, error| unsafe {
        palmette_vocabulary_encode(
            vocabulary,
            c"abba".as_ptr(),
            4,
            ptr::null_mut(),
            0,
            place,
            error,
        )
    });
    assert_eq!(length, Ok(3));
    // SAFETY: the library made it as a box.
    palmette_vocabulary_free(Some(unsafe { Box::from_raw(opened) }));
}
