//! The bytes of a text's tokens are the text.

use palmette_core::TokenId;
use palmette_vocabulary::{LoadedVocabulary, TokenizeError, load};
use proptest::prelude::*;
use serde_json::{Value, json};

fn load_json(file: &Value) -> LoadedVocabulary {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, file.to_string()).unwrap();
    load(path.to_str().unwrap()).unwrap()
}

fn encode(loaded: &LoadedVocabulary, text: &str) -> Result<Vec<TokenId>, TokenizeError> {
    loaded.tokenizer.as_ref().unwrap().encode(text)
}

#[track_caller]
fn check_bytes(loaded: &LoadedVocabulary, text: &str) {
    let tokens = encode(loaded, text).unwrap();
    let bytes: Vec<_> = tokens.iter().flat_map(|&t| loaded.vocabulary.text(t)).copied().collect();
    assert!(bytes == text.as_bytes(), "{}: {text:?} became {bytes:?}", loaded.name);
}

const TEXTS: [&str; 8] = [
    "",
    " ",
    "x",
    " leading, and trailing \n\n",
    "fn main() {\n\tprintln!(\"naïve — 漢字 🌴\");\r\n}",
    "<|endoftext|></s><s>[INST]<0x0A>",
    "Ġ \u{A0}\u{AD}\0\u{7F}",
    "e\u{301} ﬁ Å",
];

#[test]
fn encodings_keep_real_texts() {
    for name in palmette_vocabulary::encoding_names() {
        let loaded = load(name).unwrap();
        TEXTS.iter().for_each(|text| check_bytes(&loaded, text));
        check_bytes(&loaded, include_str!("../../../../README.md"));
        check_bytes(&loaded, include_str!("../../../../ARCHITECTURE.md"));
        check_bytes(&loaded, include_str!("load.rs"));
    }
}

/// The 256 characters that stand for bytes, in the order of the bytes.
fn alphabet() -> Vec<char> {
    let printable = |byte: u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = 0x100..;
    let char_of =
        |byte| char::from_u32(if printable(byte) { byte } else { others.next().unwrap() });
    (0..256).map(char_of).map(Option::unwrap).collect()
}

/// A byte-level BPE as GPT-2's, small.
fn byte_level(add_prefix_space: bool) -> Value {
    let mut vocab: serde_json::Map<String, Value> =
        alphabet().iter().zip(0..).map(|(char, id)| (char.to_string(), json!(id))).collect();
    let merges = ["h e", "Ġ t", "Ġt he", "Ċ Ċ", "Ã ©", "Ġ Ġ", "< |"];
    for (merge, id) in merges.iter().zip(256..) {
        vocab.insert(merge.replace(' ', ""), json!(id));
    }
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
        "added_tokens": [{"id": 300, "content": "<|im_end|>", "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false}],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    })
}

/// A SentencePiece BPE as Llama's: byte fallback, and a space before the text.
fn sentence_piece(before: Value) -> Value {
    let mut vocab: serde_json::Map<String, Value> = ["<unk>", "<s>", "</s>"]
        .into_iter()
        .zip(0..)
        .map(|(piece, id)| (piece.to_owned(), json!(id)))
        .collect();
    for byte in 0..256 {
        vocab.insert(format!("<0x{byte:02X}>"), json!(3 + byte));
    }
    for (piece, id) in ["▁", "t", "h", "e", "▁t", "he", "▁the", "▁▁"].into_iter().zip(259..)
    {
        vocab.insert(piece.to_owned(), json!(id));
    }
    let special = |id: u32, content: &str| {
        json!({"id": id, "content": content, "special": true,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
    };
    let mut file = json!({
        "version": "1.0",
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "vocab": vocab, "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>",
            "merges": ["▁ t", "h e", "▁t he", "▁ ▁"]},
    });
    file.as_object_mut().unwrap().extend(before.as_object().unwrap().clone());
    file
}

fn prepend() -> Value {
    json!({"normalizer": {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}})
}

fn metaspace() -> Value {
    json!({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}})
}

#[test]
fn no_space_is_put_before_a_text() {
    for file in [sentence_piece(prepend()), sentence_piece(metaspace())] {
        let loaded = load_json(&file);
        assert_eq!(encode(&loaded, "the").unwrap(), [260, 264].map(TokenId));
        assert_eq!(encode(&loaded, " the").unwrap(), [265].map(TokenId));
        assert_eq!(encode(&loaded, "\n").unwrap(), [13].map(TokenId));
        assert_eq!(encode(&loaded, "</s>").unwrap().len(), 4, "text is not a special token");
    }
    let loaded = load_json(&byte_level(true));
    assert_eq!(encode(&loaded, "the the").unwrap(), [116, 256, 258].map(TokenId));
}

#[test]
fn a_text_that_the_tokenizer_changes_is_an_error() {
    let loaded = load_json(&sentence_piece(prepend()));
    // `▁` in a text cannot be told from a space.
    assert_eq!(encode(&loaded, "the▁"), Err(TokenizeError::Changed { at: 3 }));
    let mut lower = byte_level(false);
    lower["normalizer"] = json!({"type": "Lowercase"});
    assert_eq!(encode(&load_json(&lower), "aB"), Err(TokenizeError::Changed { at: 1 }));
}

#[test]
fn a_unigram_model() {
    let vocab = [("<unk>", 0.0), ("▁", -3.0), ("▁a", -2.0), ("a", -4.0), ("b", -4.0), ("ab", -5.0)];
    let file = json!({"version": "1.0", "added_tokens": [],
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab, "byte_fallback": false}});
    let loaded = load_json(&file);
    assert_eq!(loaded.vocabulary.text(TokenId(0)), b"", "the unknown token is special");
    assert_eq!(encode(&loaded, "ab ab").unwrap(), [5, 2, 4].map(TokenId));
    assert_eq!(encode(&loaded, "az"), Err(TokenizeError::Changed { at: 1 }), "it has no z");
    // The unknown token spells nothing, so that bytes alone would not tell of it.
    let mut longer = file;
    longer["normalizer"] = json!({"type": "Replace", "pattern": {"String": "b"}, "content": "bz"});
    assert_eq!(encode(&load_json(&longer), "b"), Err(TokenizeError::Changed { at: 1 }));
}

#[test]
fn a_list_is_cut_longest_first() {
    let loaded = load_json(&json!(["a", "ab", "abcd", "b", "c", "ab"]));
    assert_eq!(
        encode(&loaded, "abcabcdab").unwrap(),
        [1, 4, 2, 1].map(TokenId),
        "the lowest id of equals"
    );
    assert_eq!(encode(&loaded, "abx"), Err(TokenizeError::NoToken { at: 2 }));
}

#[test]
fn long_runs_of_space_are_refused() {
    for loaded in [load("o200k_base").unwrap(), load_json(&byte_level(false))] {
        check_bytes(&loaded, &format!("{}x", " ".repeat(500_000)));
        let longer = format!("é{}x", " ".repeat(500_001));
        assert_eq!(encode(&loaded, &longer), Err(TokenizeError::SpaceRun { at: 500_002 }));
    }
}

#[test]
fn tokenizer_files_keep_texts() {
    let files = [
        byte_level(false),
        byte_level(true),
        sentence_piece(prepend()),
        sentence_piece(metaspace()),
    ];
    for file in files {
        let loaded = load_json(&file);
        TEXTS.iter().for_each(|text| check_bytes(&loaded, text));
        check_bytes(&loaded, include_str!("../../../../README.md"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_kept(text in "([the <|>\\n\\PC]|\\u{0}|é){0,40}") {
        prop_assume!(!text.contains('▁'));
        thread_local! {
            static LOADED: [LoadedVocabulary; 4] = [
                load("cl100k_base").unwrap(),
                load_json(&byte_level(true)),
                load_json(&sentence_piece(prepend())),
                load_json(&sentence_piece(metaspace())),
            ];
        }
        LOADED.with(|all| all.iter().for_each(|loaded| check_bytes(loaded, &text)));
    }
}
