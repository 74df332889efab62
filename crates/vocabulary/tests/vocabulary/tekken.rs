//! Mistral's `tekken.json`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use palmette_core::TokenId;
use palmette_vocabulary::{EndsFound, Format, LoadOptions, LoadedVocabulary, TokenizeError};
use serde_json::{Value, json};

use crate::load::{check_texts, load_among_with, naming};

/// Ranks `a`, `b`, `ab`, `▁` and one that is past the size; the last four ids of six special ones
/// have no names.
fn small() -> Value {
    let texts = [&b"a"[..], b"b", b"ab", b" ", b"abab"];
    let vocab: Vec<_> = texts.iter().zip(0..).map(|(text, rank)| {
        json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(text), "token_str": null})
    }).collect();
    let special =
        |rank: u32, name: &str| json!({"rank": rank, "token_str": name, "is_control": true});
    json!({
        "config": {"pattern": " ?[^ ]+", "num_vocab_tokens": 5, "default_vocab_size": 10,
            "default_num_special_tokens": 6, "version": "v11"},
        "vocab": vocab,
        "special_tokens": [special(1, "</s>"), special(0, "<s>")],
    })
}

fn load_tekken(file: &Value, options: &LoadOptions) -> Result<LoadedVocabulary, String> {
    load_among_with(&[("tekken.json", file.to_string())], options)
}

#[test]
fn a_tekken_file() {
    let loaded = load_tekken(&small(), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.format, Format::Tekken);
    check_texts(&loaded, &[b"", b"", b"", b"", b"", b"", b"a", b"b", b"ab", b" "]);
    let names: Vec<_> = loaded.specials.iter().map(|(_, name)| name.as_str()).collect();
    let fillers = ["<SPECIAL_2>", "<SPECIAL_3>", "<SPECIAL_4>", "<SPECIAL_5>"];
    assert_eq!(names, [&["<s>", "</s>"][..], &fillers].concat());
    assert_eq!(loaded.vocabulary.ends(), [TokenId(1)]);
    assert_eq!(loaded.ends, EndsFound::Source("</s> among its special tokens"));
    assert_eq!(loaded.assumptions, []);

    let tokenizer = loaded.tokenizer.unwrap();
    assert_eq!(tokenizer.encode("abab ba").unwrap(), [8, 8, 9, 7, 6].map(TokenId));
    assert_eq!(tokenizer.encode("abc"), Err(TokenizeError::NoToken { at: 2 }));
    // A part of the text that the pattern does not match has no tokens.
    assert_eq!(tokenizer.encode("a "), Err(TokenizeError::Changed { at: 1 }));
}

#[test]
fn special_tokens_that_a_tekken_file_lacks_are_assumed_or_given() {
    let mut file = small();
    file.as_object_mut().unwrap().remove("special_tokens");
    file["config"]["default_num_special_tokens"] = json!(16);
    file["config"]["default_vocab_size"] = json!(20);
    let names = |file: &Value, options: &LoadOptions| {
        let loaded = load_tekken(file, options).unwrap();
        let names: Vec<_> = loaded.specials.into_iter().map(|(_, name)| name).collect();
        let assumed: Vec<_> = loaded.assumptions.iter().map(ToString::to_string).collect();
        (names, assumed.join("\n"), loaded.vocabulary.ends().to_vec())
    };
    let (text_only, assumed, ends) = names(&file, &LoadOptions::default());
    assert_eq!(
        text_only[9..15],
        ["[TOOL_CALLS]", "<pad>", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "<SPECIAL_14>"]
    );
    assert!(assumed.contains("those of Mistral NeMo"), "{assumed}");
    assert_eq!(ends, [TokenId(2)]);

    let (given, assumed, ends) = names(&file, &naming(&[("[STOP]", 3)], &["[STOP]"]));
    assert_eq!(given[2..4], ["<SPECIAL_2>", "[STOP]"]);
    assert_eq!((assumed.as_str(), ends), ("", vec![TokenId(3)]));

    file["image"] = json!({"image_patch_size": 16});
    let (with_images, assumed, _) = names(&file, &LoadOptions::default());
    assert_eq!(with_images[9..12], ["[TOOL_CALLS]", "[IMG]", "<pad>"]);
    assert!(assumed.contains("those of Pixtral"), "{assumed}");
}

#[test]
fn damaged_tekken_files_are_refused() {
    let check = |path: &str, value: Value, part: &str| {
        let mut file = small();
        *file.pointer_mut(path).unwrap() = value;
        let error = load_tekken(&file, &LoadOptions::default()).unwrap_err();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    };
    check(
        "/config/default_vocab_size",
        json!(5),
        "config.default_vocab_size is 5, less than the 6",
    );
    check("/config/default_vocab_size", json!(12), "vocab has no rank 5");
    check("/config/default_vocab_size", json!(u64::MAX), "up to 16777216");
    check(
        "/config/default_num_special_tokens",
        json!(-1),
        "config.default_num_special_tokens is -1",
    );
    check("/config/pattern", json!("("), "config.pattern cannot be used");
    check("/config/pattern", json!(7), "config.pattern is no string");
    check("/vocab/1/rank", json!(0), "given twice");
    check("/vocab/1/rank", json!("1"), "vocab[1] needs");
    check("/vocab/1/token_bytes", json!("?"), "token_bytes of rank 1 is \"?\"");
    check("/vocab/1/token_bytes", json!(""), "token_bytes of rank 1 is \"\"");
    check("/special_tokens/0/rank", json!(6), "has the rank 6");
    check("/special_tokens/0/rank", json!(0), "have the rank 0");
    check("/special_tokens/0/token_str", json!(null), "special_tokens[0] needs");
    check("/special_tokens", json!({}), "special_tokens is no list");
}
