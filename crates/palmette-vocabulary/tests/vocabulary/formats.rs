//! Mistral's `tekken.json`, SentencePiece models, special tokens of tiktoken files, and options.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use palmette_core::TokenId;
use palmette_vocabulary::{
    AngleTokens, EndsFound, Format, LoadOptions, LoadedVocabulary, load_with,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn load(content: &[u8], options: &LoadOptions) -> Result<LoadedVocabulary, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vocabulary");
    std::fs::write(&path, content).unwrap();
    load_with(path.to_str().unwrap(), options).map_err(|error| error.to_string())
}

fn texts(loaded: &LoadedVocabulary) -> Vec<&[u8]> {
    let num_tokens = loaded.vocabulary.num_tokens() as u32;
    (0..num_tokens).map(|token| loaded.vocabulary.text(TokenId(token))).collect()
}

fn specials(loaded: &LoadedVocabulary) -> Vec<(u32, &str)> {
    loaded.specials.iter().map(|(token, name)| (token.0, &**name)).collect()
}

fn tekken(special_tokens: Value) -> Value {
    let pieces = ["a", "b", "ab", " ", "é"].into_iter().zip(0..).map(|(text, rank)| {
        json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(text), "token_str": text})
    });
    json!({
        "config": {"pattern": "[a-z]+", "num_vocab_tokens": 5, "default_vocab_size": 7,
            "default_num_special_tokens": 3, "version": "v3"},
        "vocab": pieces.collect::<Vec<_>>(),
        "special_tokens": special_tokens,
    })
}

#[test]
fn a_tekken_json() {
    let listed = json!([{"rank": 0, "token_str": "<unk>", "is_control": true},
        {"rank": 1, "token_str": "<s>", "is_control": true}, {"rank": 2, "token_str": "</s>", "is_control": true}]);
    for special_tokens in [listed, Value::Null] {
        let loaded =
            load(tekken(special_tokens).to_string().as_bytes(), &LoadOptions::default()).unwrap();
        assert_eq!(loaded.format, Format::Tekken);
        // Of five ranks the vocabulary has room for four.
        assert_eq!(texts(&loaded), [&b""[..], b"", b"", b"a", b"b", b"ab", b" "]);
        assert_eq!(specials(&loaded), [(0, "<unk>"), (1, "<s>"), (2, "</s>")]);
        assert_eq!(loaded.vocabulary.ends(), [TokenId(2)]);
        assert_eq!(loaded.ends, EndsFound::Format(Format::Tekken));
    }
}

#[test]
fn a_tekken_json_that_is_damaged() {
    for (at, value, message) in [
        ("/config/default_vocab_size", json!("many"), "config.default_vocab_size is \"many\""),
        ("/config/default_num_special_tokens", json!(9), "more than default_vocab_size, 7"),
        ("/vocab/1/token_bytes", json!("?"), "vocab[1].token_bytes is no base64"),
        ("/vocab/2/rank", json!(-1), "vocab[2] needs a number \"rank\""),
        ("/vocab/2/rank", json!(1), "token id 4 is given twice"),
        (
            "/special_tokens",
            json!([{"rank": 3, "token_str": "x"}]),
            "special_tokens[0] needs a \"rank\" below 3",
        ),
    ] {
        let mut file = tekken(Value::Null);
        *file.pointer_mut(at).unwrap() = value;
        let error = load(file.to_string().as_bytes(), &LoadOptions::default()).unwrap_err();
        assert!(error.contains(message), "{at}: {error}");
    }
}

/// A field of a message: its number and bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

/// A model of these pieces, with their kinds, and an end token.
fn sentence_piece(pieces: &[(&str, u8)], end: Option<u8>) -> Vec<u8> {
    let piece = |&(text, kind): &(&str, u8)| {
        let score = [2 << 3 | 5, 0, 0, 0x80, 0xBF];
        field(1, &[&field(1, text.as_bytes())[..], &score, &[3 << 3, kind]].concat())
    };
    let pieces = pieces.iter().flat_map(piece);
    // Field 42 needs a tag of two bytes.
    let trainer =
        end.map(|end| field(2, &[&field(1, b"corpus.txt")[..], &[0xD0, 2, end]].concat()));
    pieces.chain(trainer.into_iter().flatten()).chain(field(3, b"\x0a\x08identity")).collect()
}

const PIECES: &[(&str, u8)] = &[
    ("<unk>", 2),
    ("<s>", 3),
    ("</s>", 3),
    ("<0x0A>", 6),
    ("▁the", 1),
    ("é", 1),
    ("<turn>", 4),
    ("▁▁", 4),
];

#[test]
fn a_sentence_piece_model() {
    let model = sentence_piece(PIECES, None);
    let loaded = load(&model, &LoadOptions::default()).unwrap();
    assert_eq!(loaded.format, Format::SentencePiece);
    let expected = [&b""[..], b"", b"", b"\n", b" the", "é".as_bytes(), b"", b"  "];
    assert_eq!(texts(&loaded), expected);
    assert_eq!(specials(&loaded), [(0, "<unk>"), (1, "<s>"), (2, "</s>"), (6, "<turn>")]);
    assert_eq!(loaded.angle_tokens, ["<turn>"]);
    assert_eq!(loaded.vocabulary.ends(), [TokenId(2)]);
    let options = LoadOptions { angle_tokens: AngleTokens::Text, ..LoadOptions::default() };
    let loaded = load(&sentence_piece(PIECES, Some(1)), &options).unwrap();
    assert_eq!((texts(&loaded)[6], &*loaded.angle_tokens), (&b"<turn>"[..], &[][..]));
    assert_eq!(loaded.vocabulary.ends(), [TokenId(1)], "as the trainer's settings say");
    assert_eq!(loaded.ends, EndsFound::Format(Format::SentencePiece));
}

proptest! {
    /// Whatever is cut off or changed: a vocabulary or an error, and nothing is reserved by a length that is stated.
    #[test]
    fn damaged_models_are_read_or_refused(
        length in 0..200_usize,
        changed in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut model = sentence_piece(PIECES, Some(2));
        model.truncate(length);
        for (at, byte) in changed {
            if !model.is_empty() {
                let at = at.index(model.len());
                model[at] = byte;
            }
        }
        if let Ok(loaded) = load(&model, &LoadOptions::default()) {
            prop_assert!(loaded.vocabulary.num_tokens() <= model.len());
        }
    }
}

#[test]
fn a_cut_off_model_says_where() {
    let model = sentence_piece(PIECES, None);
    let error = load(&model[..40], &LoadOptions::default()).unwrap_err();
    assert!(error.contains("damaged or cut off after 2 pieces"), "{error}");
}

/// A tiktoken file of so many ranks.
fn tiktoken(num_ranks: u32) -> String {
    let line = |rank: u32| format!("{} {rank}\n", BASE64_STANDARD.encode(rank.to_be_bytes()));
    (0..num_ranks).map(line).collect()
}

#[test]
fn tiktoken_files_of_known_families_have_their_special_tokens() {
    let loaded = load(tiktoken(128_000).as_bytes(), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.vocabulary.num_tokens(), 128_256);
    assert!(specials(&loaded).contains(&(128_009, "<|eot_id|>")));
    assert_eq!(loaded.vocabulary.ends(), [128_001, 128_008, 128_009].map(TokenId));
    assert_eq!(loaded.ends.to_string(), "as of Llama 3, which has as many ranks");
    let loaded = load(tiktoken(151_643).as_bytes(), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.vocabulary.ends(), [151_643, 151_645].map(TokenId));
    let loaded = load(tiktoken(1_000).as_bytes(), &LoadOptions::default()).unwrap();
    assert_eq!((loaded.vocabulary.num_tokens(), loaded.ends), (1_000, EndsFound::None));
}

#[test]
fn special_and_end_tokens_may_be_given() {
    let special = |name: &str, id| (name.to_owned(), id);
    let options = LoadOptions {
        special_tokens: vec![special("<|tool|>", 12), special("<|stop|>", 11)],
        end_tokens: vec!["<|stop|>".to_owned(), "10".to_owned()],
        ..LoadOptions::default()
    };
    let loaded = load(tiktoken(10).as_bytes(), &options).unwrap();
    assert_eq!(loaded.vocabulary.ends(), [10, 11].map(TokenId), "by name and by id");
    let options = LoadOptions { end_tokens: vec!["<|stop|>".to_owned()], ..options };
    let loaded = load(tiktoken(10).as_bytes(), &options).unwrap();
    assert_eq!(loaded.vocabulary.num_tokens(), 13);
    assert_eq!(specials(&loaded), [(11, "<|stop|>"), (12, "<|tool|>")]);
    assert_eq!((loaded.vocabulary.ends(), loaded.ends), (&[TokenId(11)][..], EndsFound::Given));
    let taken =
        LoadOptions { special_tokens: vec![special("<|tool|>", 3)], ..LoadOptions::default() };
    let error = load(tiktoken(10).as_bytes(), &taken).unwrap_err();
    assert!(
        error.contains("token 3 is to be the special token \"<|tool|>\", but it spells"),
        "{error}"
    );
    let unknown = LoadOptions { end_tokens: vec!["<|no|>".to_owned()], ..LoadOptions::default() };
    let error = load(tiktoken(10).as_bytes(), &unknown).unwrap_err();
    assert!(error.contains("\"<|no|>\" is neither a token's name nor an id below 10"), "{error}");
}
