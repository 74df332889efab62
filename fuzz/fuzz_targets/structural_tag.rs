//! Structural tags and requests with tools: no panic, and errors lie within the source.
#![no_main]

use libfuzzer_sys::fuzz_target;
use palmette_grammar::Budget;
use palmette_grammar::frontends::structural_tag::{
    StructuralTagOptions, TOOL_FORMATS, parse_with_budget, structural_tag_of,
};

fuzz_target!(|source: &str| {
    let read =
        parse_with_budget(source, &StructuralTagOptions::default(), &mut Budget::new(10_000_000));
    if let Err(error) = read {
        assert!(error.span.is_none_or(|span| source.get(span.start..span.end).is_some()));
    }
    for format in TOOL_FORMATS {
        if let Ok(tag) = structural_tag_of(source, format) {
            let _ = parse_with_budget(
                &tag,
                &StructuralTagOptions::default(),
                &mut Budget::new(10_000_000),
            );
        }
    }
});
