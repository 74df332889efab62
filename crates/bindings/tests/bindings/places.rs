//! Places of texts against plain loops over all texts of a small language.

use palmette_bindings::Bindings;

use crate::{grammar, list, shop};

/// Language of `<catalog:shop> ":" <catalog:shop.brand> | <catalog:list>`.
fn texts() -> Vec<String> {
    let ids = ["P1", "P12", "P2", "P3"];
    let brands = ["Acme", "Zeta", "x"];
    let pairs = ids.iter().flat_map(|id| brands.iter().map(move |brand| format!("{id}:{brand}")));
    pairs.chain(["12", "x"].map(str::to_owned)).collect()
}

#[test]
fn what_may_follow_is_what_texts_go_on_with() {
    let grammar = grammar(crate::SKU_AND_BRAND);
    let bound = list(Bindings::new().catalog("shop", shop())).bind(&grammar).expect("it fits");
    let texts = texts();
    for text in texts.iter().flat_map(|text| (0..=text.len()).map(move |end| &text[..end])) {
        let place = bound.place(text.as_bytes(), 100).expect("small");
        let going = || texts.iter().filter(|whole| whole.starts_with(text));
        let mut next: Vec<u8> =
            going().filter_map(|whole| whole.as_bytes().get(text.len()).copied()).collect();
        next.sort_unstable();
        next.dedup();
        assert_eq!((place.read, &place.next), (text.len(), &next), "{text:?}");
        assert_eq!(place.may_end, texts.iter().any(|whole| whole == text), "{text:?}");
        assert_eq!(place.refused, None, "{text:?}");
        // What is listed leads to texts, and is whole.
        for set in &place.within {
            for member in &set.members {
                let rest = std::str::from_utf8(&member.rest).expect("UTF-8");
                let longer = format!("{text}{rest}");
                assert_eq!(longer[set.written.start..], member.value, "{text:?}");
                assert!(texts.iter().any(|whole| whole.starts_with(&longer)), "{longer:?}");
            }
        }
        // All that lead to texts are listed.
        let mut listed: Vec<(usize, &str)> = place
            .within
            .iter()
            .flat_map(|set| set.members.iter().map(|member| (set.written.start, &*member.value)))
            .collect();
        listed.sort_unstable();
        let colon = text.find(':').map(|at| at + 1);
        let values: &[&str] = match colon {
            None => &["12", "P1", "P12", "P2", "P3", "x"],
            Some(_) => &["Acme", "Zeta", "x"],
        };
        let begin = colon.unwrap_or(0);
        let written = &text[begin..];
        let mut wanted: Vec<(usize, &str)> = values
            .iter()
            .filter(|value| value.starts_with(written))
            .map(|value| (begin, *value))
            .collect();
        // Nothing is left of one that is whole and that no other goes on from.
        let is_whole = wanted == [(begin, written)];
        wanted.retain(|_| !is_whole);
        assert_eq!(listed, wanted, "{text:?}");
        if is_whole {
            let last = place.members.last().expect("it counts");
            assert_eq!((&*last.value, last.span.clone()), (written, begin..text.len()));
        }
        for byte in *b"P123,:AcmeZtaxq\0\xC3\xFF" {
            let longer = [text.as_bytes(), &[byte]].concat();
            let place = bound.place(&longer, 1).expect("small");
            assert_eq!(place.read == longer.len(), next.contains(&byte), "{longer:?}");
        }
    }
}

#[test]
fn the_rest_is_counted_and_near_values_are_told() {
    let grammar = grammar("root ::= <catalog:shop>");
    let bound = Bindings::new().catalog("shop", shop()).bind(&grammar).expect("it fits");
    let place = bound.place(b"P", 2).expect("small");
    let [set] = &place.within[..] else { panic!("{place:?}") };
    let values: Vec<&str> = set.members.iter().map(|member| &*member.value).collect();
    assert_eq!((values, set.more), (["P1", "P12"].to_vec(), true));
    assert_eq!(set.members[0].id.as_deref(), Some("P1"));
    let refused = bound.place(b"P4", 2).expect("small");
    assert_eq!(refused.read, 1);
    let value = refused.refused.expect("it is none");
    assert_eq!((&*value.set, &*value.field, &*value.value), ("shop", "id", "P4"));
    assert!(value.nearest.iter().all(|near| near.starts_with('P')), "{value:?}");
}
