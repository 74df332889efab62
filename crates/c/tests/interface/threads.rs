//! Threads: what they share, and work that one of them calls off.

use std::ptr;
use std::thread;

use palmette_c::*;

use crate::handles::{self, answer, commit, texts};

fn is_shared<T: Send + Sync>() {}
fn is_moved<T: Send>() {}

/// The rules of the header, as the compiler knows them. A batch reads matchers on many threads.
#[test]
fn rules_of_threads_hold() {
    is_shared::<Vocabulary>();
    is_shared::<Grammar>();
    is_shared::<Error>();
    is_shared::<Cancellation>();
    is_shared::<Bytes>();
    is_shared::<Matcher>();
    is_moved::<Batch>();
}

#[test]
fn threads_share_vocabularies_and_grammars() {
    let (texts, end) = texts();
    let vocabulary = handles::vocabulary(&texts, &[end]);
    let address = vocabulary.raw.expose_provenance();
    let masks = thread::scope(|scope| {
        let work = || {
            let shared = ptr::with_exposed_provenance::<Vocabulary>(address);
            // SAFETY: it is alive until all threads have ended.
            let shared = unsafe { shared.as_ref() };
            let schema = r#"{"type": "object", "properties": {"ab": {"type": "integer"}}}"#;
            let grammar = answer(|place, error| {
                // SAFETY: all texts are alive.
                unsafe {
                    palmette_grammar_compile(
                        shared,
                        c"json_schema".as_ptr(),
                        schema.as_ptr().cast(),
                        schema.len(),
                        ptr::null(),
                        ptr::null(),
                        None,
                        place,
                        error,
                    )
                }
            });
            let grammar = grammar.unwrap();
            // SAFETY: it is freed below.
            let made = answer(|place, error| unsafe {
                palmette_matcher_new(grammar.as_ref(), ptr::null(), 0, place, error)
            });
            // SAFETY: the library made it as a box.
            palmette_grammar_free(Some(unsafe { Box::from_raw(grammar) }));
            let mut matcher = handles::of_matcher(made.unwrap());
            commit(&mut matcher, u32::from(b'{')).unwrap();
            handles::mask(&mut matcher, None).unwrap()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(masks.iter().all(|mask| *mask == masks[0] && mask.iter().any(|&word| word != 0)));
}

#[test]
fn work_is_called_off() {
    let (texts, end) = texts();
    let vocabulary = handles::vocabulary(&texts, &[end]);
    let cancellation = palmette_cancellation_new();
    // SAFETY: it is alive until it is freed below.
    let shared = unsafe { cancellation.as_ref() };
    palmette_cancellation_cancel(shared);
    let null = ptr::null();
    // SAFETY: all texts are alive.
    let called_off = answer(|place, error| unsafe {
        let language = c"json_object".as_ptr();
        palmette_grammar_compile(
            vocabulary.get(),
            language,
            null,
            0,
            null,
            null,
            shared,
            place,
            error,
        )
    });
    assert_eq!(called_off.unwrap_err().status, Status::Cancelled);
    // SAFETY: the library made it as a box.
    palmette_cancellation_free(Some(unsafe { Box::from_raw(cancellation) }));
}
