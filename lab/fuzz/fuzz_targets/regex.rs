//! Regular expressions, in every dialect and reading: what is read has no lookarounds where the
//! whole text is known, and what matches the empty text contains a match of itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_fuzz::{has_look, matches_empty};
use palmette_grammar::engine::regex::parse::{Dialect, Flags, parse, parse_search, parse_text};

fuzz_target!(|input: (u8, &str)| {
    let (switches, source) = input;
    let on = |bit: u8| switches >> bit & 1 == 1;
    let dialect = [Dialect::Python, Dialect::Ecma, Dialect::Rust][usize::from(switches >> 5) % 3];
    let flags = Flags {
        ignore_case: on(0),
        multi_line: on(1),
        dot_all: on(2),
        verbose: on(3) && dialect != Dialect::Ecma,
        ascii: on(4) && dialect == Dialect::Python,
        ascii_digits: on(4),
    };
    let read = [parse, parse_text, parse_search].map(|ask| ask(source, dialect, flags));
    for error in read.iter().filter_map(|read| read.as_ref().err()) {
        assert!(source.is_char_boundary(error.offset), "{error}");
        assert!(!error.message.is_empty());
    }
    let [_, text, search] = &read;
    for whole in [text, search].into_iter().flatten() {
        assert!(!has_look(whole), "{whole:?}");
    }
    if let (Ok(text), Ok(search)) = (text, search) {
        // The empty text matches whole exactly where it contains a match.
        assert_eq!(matches_empty(text), matches_empty(search), "{text:?} and {search:?}");
    }
});
