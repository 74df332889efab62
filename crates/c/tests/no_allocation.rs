//! Masks through C allocate nothing where such a text has been before.

use std::ptr;

use palmette_c::*;
use palmette_testkit::allocations::{Counting, allocations};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A handle that a call makes.
fn made<T>(call: impl FnOnce(&mut std::mem::MaybeUninit<*mut T>) -> Status) -> *mut T {
    let mut place = std::mem::MaybeUninit::uninit();
    assert_eq!(call(&mut place), Status::Ok);
    // SAFETY: a call that succeeds writes it.
    unsafe { place.assume_init() }
}

#[test]
fn masks_allocate_nothing() {
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let token = |byte: &u8| Token { bytes: byte, num_bytes: 1, name: ptr::null() };
    let mut tokens: Vec<_> = bytes.iter().map(token).collect();
    tokens.push(Token { bytes: ptr::null(), num_bytes: 0, name: ptr::null() });
    let ends = [256_u32];
    let schema = r#"{"type": "object", "properties": {"name": {"type": "string"}}}"#;
    // SAFETY: all arrays and texts are alive, and handles are until they are freed below.
    unsafe {
        let vocabulary = made(|place| {
            let (tokens, count) = (tokens.as_ptr(), tokens.len());
            palmette_vocabulary_from_tokens(tokens, count, ends.as_ptr(), 1, Some(place), None)
        });
        let grammar = made(|place| {
            palmette_grammar_compile(
                vocabulary.as_ref(),
                c"json_schema".as_ptr(),
                schema.as_ptr().cast(),
                schema.len(),
                ptr::null(),
                ptr::null(),
                None,
                Some(place),
                None,
            )
        });
        let matcher =
            made(|place| palmette_matcher_new(grammar.as_ref(), ptr::null(), 0, Some(place), None));
        let batch = made(|place| palmette_batch_new(1, Some(place), None));
        let mut words = vec![0; palmette_matcher_mask_words(matcher.as_ref())];
        for round in 0..3 {
            palmette_matcher_reset(matcher.as_mut());
            for byte in br#"{"name": "a b"}"# {
                let (room, before) = (words.len(), allocations());
                let row = words.as_mut_ptr();
                let filled = palmette_matcher_fill_mask(matcher.as_mut(), row, room, None, None);
                let rows = [matcher.cast_const()];
                let (lengths, statuses) = (ptr::null(), ptr::null_mut());
                let batched = palmette_batch_fill(
                    batch.as_mut(),
                    rows.as_ptr(),
                    1,
                    row,
                    room,
                    lengths,
                    statuses,
                    None,
                );
                let allocated = allocations() - before;
                assert_eq!((filled, batched), (Status::Ok, Status::Ok));
                assert!(round == 0 || allocated == 0, "{allocated} before {}", *byte as char);
                let token = u32::from(*byte);
                assert_eq!(palmette_matcher_commit(matcher.as_mut(), token, None), Status::Ok);
            }
        }
        palmette_batch_free(Some(Box::from_raw(batch)));
        palmette_matcher_free(Some(Box::from_raw(matcher)));
        palmette_grammar_free(Some(Box::from_raw(grammar)));
        palmette_vocabulary_free(Some(Box::from_raw(vocabulary)));
    }
}
