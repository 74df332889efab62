//! Wrong arguments and refused grammars: each an error with its status, message and place.

use std::ptr;

use palmette_c::*;

use crate::handles::{self, Failure, answer, run, texts};

#[track_caller]
fn check<T>(result: Result<T, Failure>, status: Status, message: &str) -> Failure {
    let failure = result.err().expect("it fails");
    assert_eq!(failure.status, status, "{}", failure.message);
    assert!(failure.message.contains(message), "{}", failure.message);
    failure
}

#[test]
fn null_is_an_error() {
    let invalid = Status::InvalidArgument;
    // SAFETY: no pointer is read.
    unsafe {
        check(
            answer(|place, error| {
                palmette_vocabulary_open(ptr::null(), ptr::null(), 0, place, error)
            }),
            invalid,
            "path is NULL",
        );
        let path = c"nowhere".as_ptr();
        check(
            run(|error| palmette_vocabulary_open(path, ptr::null(), 0, None, error)),
            invalid,
            "vocabulary is NULL",
        );
        check(
            answer(|place, error| palmette_vocabulary_open(path, ptr::null(), 2, place, error)),
            invalid,
            "end_tokens is NULL with a length of 2",
        );
        let null = ptr::null();
        check(
            answer(|place, error| {
                palmette_grammar_compile(None, null, null, 0, null, null, None, place, error)
            }),
            invalid,
            "vocabulary is NULL",
        );
        check(
            answer(|place, error| palmette_matcher_new(None, ptr::null(), 0, place, error)),
            invalid,
            "grammar is NULL",
        );
        check(
            run(|error| palmette_matcher_fill_mask(None, ptr::null_mut(), 0, None, error)),
            invalid,
            "matcher is NULL",
        );
        let (no_rows, no_lengths, row) = (ptr::null(), ptr::null(), ptr::null_mut());
        check(
            run(|error| {
                palmette_batch_fill(None, no_rows, 0, row, 0, no_lengths, ptr::null_mut(), error)
            }),
            invalid,
            "batch is NULL",
        );
    }
    check(
        answer(|place, error| palmette_batch_new(usize::MAX, place, error)),
        invalid,
        "give 1024 or fewer",
    );
    // Without a place for the error the status alone tells.
    assert_eq!(palmette_matcher_commit(None, 0, None), invalid);
    assert_eq!(palmette_vocabulary_num_tokens(None), 0);
    assert_eq!(palmette_matcher_mask_words(None), 0);
    assert!(!palmette_matcher_has_ended(None));
    assert!(palmette_vocabulary_notes(None).is_null());
    palmette_vocabulary_free(None);
    palmette_grammar_free(None);
    palmette_matcher_free(None);
    palmette_batch_free(None);
    palmette_error_free(None);
    palmette_bytes_free(None);
    palmette_cancellation_free(None);
    palmette_cancellation_cancel(None);
    palmette_matcher_reset(None);
}

#[test]
fn refused_grammars_have_a_place() {
    let (texts, end) = texts();
    let vocabulary = handles::vocabulary(&texts, &[end]);
    let compile = |language, text, options, limits| {
        handles::grammar(&vocabulary, language, text, options, limits)
    };
    let failure = check(
        compile("json_schema", "{\n  \"type\": \"objct\"}", None, None),
        Status::Grammar,
        "the types are",
    );
    assert_eq!(failure.pointer.as_deref(), Some("/type"));
    assert_eq!(failure.place.0, 2);
    let failure = check(compile("lark", "start: \"a\"\nx: (", None, None), Status::Grammar, "");
    assert_eq!((failure.place.0, failure.pointer), (2, None));
    check(compile("gbnf", "root ::= (", None, None), Status::Grammar, "");
    let failure = check(compile("regex", "a\nb(", None, None), Status::Grammar, "");
    assert_eq!(failure.place.0, 2);
    let invalid = Status::InvalidArgument;
    check(compile("jsno", "{}", None, None), invalid, "there is no language \"jsno\"");
    check(compile("json_object", "{}", None, None), invalid, "takes no text");
    check(compile("lark", "", Some("{\"strat\": \"a\"}"), None), invalid, "strat");
    check(compile("tools", "[]", None, None), invalid, "\"format\"");
    check(compile("tools", "[]", Some("{\"format\": \"telepathy\"}"), None), invalid, "hermes");
    check(
        compile("json_object", "", None, Some("{\"stpes\": 1}")),
        invalid,
        "there is no limit \"stpes\"",
    );
    check(compile("json_object", "", None, Some("[]")), invalid, "limits: ");
    check(compile("json_object", "", None, Some("{\"steps\": 10}")), Status::LimitExceeded, "");
    assert!(compile("json_object", "", None, None).is_ok());
    let tools = r#"[{"name": "now", "input_schema": {"enum": [{}]}}]"#;
    assert!(compile("tools", tools, Some("{\"format\": \"hermes\"}"), None).is_ok());
    assert!(
        compile(
            "structural_tag",
            r#"{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": {}}}"#,
            None,
            None
        )
        .is_ok()
    );
}

#[test]
fn refused_tokens_change_nothing() {
    let (texts, end) = texts();
    let vocabulary = handles::vocabulary(&texts, &[end]);
    let grammar = handles::grammar(&vocabulary, "regex", "ab+", None, None).unwrap();
    let mut matcher = handles::matcher(&grammar, &[]).unwrap();
    let before = handles::mask(&mut matcher, None).unwrap();
    check(handles::commit(&mut matcher, u32::from(b'b')), Status::NotAllowed, "not allowed");
    check(handles::commit(&mut matcher, end + 1), Status::Vocabulary, "not in the vocabulary");
    let some = [u32::from(b'a'), u32::from(b'a')];
    // SAFETY: the array is alive.
    let all = run(|error| unsafe {
        palmette_matcher_commit_all(matcher.get_mut(), some.as_ptr(), 2, error)
    });
    check(all, Status::NotAllowed, "position 1");
    check(
        run(|error| palmette_matcher_rollback(matcher.get_mut(), 1, error)),
        Status::InvalidArgument,
        "",
    );
    // SAFETY: the array is alive.
    let bytes = run(|error| unsafe {
        palmette_matcher_commit_bytes(matcher.get_mut(), b"ac".as_ptr(), 2, error)
    });
    check(bytes, Status::NotAllowed, "");
    assert_eq!(handles::mask(&mut matcher, None), Ok(before));
    let mut row = [7; 1];
    // SAFETY: the array is alive.
    let narrow = run(|error| unsafe {
        palmette_matcher_fill_mask(matcher.get_mut(), row.as_mut_ptr(), 1, None, error)
    });
    check(narrow, Status::InvalidArgument, "make the rows wider");
    assert_eq!(row, [0], "it denies all");
    let lengths = |tokens_needed, tokens_left| Some(LengthsLeft { tokens_needed, tokens_left });
    check(handles::mask(&mut matcher, lengths(0, 0)), Status::TooFewTokens, "");
    let constant = handles::grammar(&vocabulary, "regex", "ab", None, None).unwrap();
    let mut constant = handles::matcher(&constant, &[]).unwrap();
    check(handles::mask(&mut constant, lengths(9, usize::MAX)), Status::TooManyTokens, "");
    palmette_matcher_limit_masks(matcher.get_mut(), 0);
    let fresh = handles::grammar(&vocabulary, "json_object", "", None, None).unwrap();
    let mut fresh = handles::matcher(&fresh, &[]).unwrap();
    palmette_matcher_limit_masks(fresh.get_mut(), 0);
    check(handles::mask(&mut fresh, None), Status::LimitExceeded, "");
    check(handles::matcher(&grammar, &[end + 1]), Status::Vocabulary, "end token");
}
