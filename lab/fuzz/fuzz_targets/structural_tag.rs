//! Structural tags and requests with tools: no panic, and errors lie within the source.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_grammar::Budget;
use palmette_grammar::frontends::structural_tag::{
    StructuralTagOptions, TOOL_FORMATS, parse_tools_with_budget, parse_with_budget,
};

fuzz_target!(|source: &str| {
    let options = StructuralTagOptions::default();
    let read = parse_with_budget(source, &options, &mut Budget::new(10_000_000));
    let of_tools = TOOL_FORMATS.iter().map(|format| {
        parse_tools_with_budget(source, format, &options, &mut Budget::new(10_000_000))
    });
    for error in std::iter::once(read).chain(of_tools).filter_map(Result::err) {
        assert!(error.span.is_none_or(|span| source.get(span.start..span.end).is_some()));
    }
});
