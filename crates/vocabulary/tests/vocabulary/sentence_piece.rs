//! SentencePiece models.

use palmette_core::TokenId;
use palmette_vocabulary::{
    AngleTokens, Assumption, EndsFound, Format, LoadOptions, LoadedVocabulary, TokenizeError,
};
use proptest::prelude::*;

use crate::load::{check_texts, load_among_with};

const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const CONTROL: u8 = 3;
const USER_DEFINED: u8 = 4;
const UNUSED: u8 = 5;
const BYTE: u8 = 6;

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [&varint(field << 3 | 2)[..], &varint(value.len() as u64), value].concat()
}

fn piece(text: &str, score: f32, kind: u8) -> Vec<u8> {
    let score = [&[0x15][..], &score.to_le_bytes()].concat();
    bytes(1, &[bytes(1, text.as_bytes()), score, number(3, kind.into())].concat())
}

const PIECES: [(&str, f32, u8); 16] = [
    ("<unk>", 0.0, UNKNOWN),
    ("<s>", 0.0, CONTROL),
    ("</s>", 0.0, CONTROL),
    ("<0x0A>", 0.0, BYTE),
    ("<0xC3>", 0.0, BYTE),
    ("<0xA9>", 0.0, BYTE),
    ("ab", -1.0, NORMAL),
    ("bc", -2.0, NORMAL),
    ("▁ab", -3.0, NORMAL),
    ("a", -4.0, NORMAL),
    ("b", -4.0, NORMAL),
    ("c", -4.0, NORMAL),
    ("▁", -4.0, NORMAL),
    ("<tool>", 0.0, USER_DEFINED),
    ("abc!", 0.0, USER_DEFINED),
    ("<0x41>", -9.0, NORMAL),
];

/// A byte-pair model with byte fallback that leaves text as it is.
fn trainer() -> Vec<Vec<u8>> {
    vec![number(3, 2), number(35, 1)]
}

fn normalizer() -> Vec<Vec<u8>> {
    vec![bytes(1, b"identity"), number(3, 1), number(4, 0)]
}

fn model(pieces: &[(&str, f32, u8)], trainer: &[Vec<u8>], normalizer: &[Vec<u8>]) -> Vec<u8> {
    let pieces = pieces.iter().map(|&(text, score, kind)| piece(text, score, kind));
    let specs = [bytes(2, &trainer.concat()), bytes(3, &normalizer.concat())];
    pieces.chain(specs).collect::<Vec<_>>().concat()
}

fn load_with(file: &[u8], options: &LoadOptions) -> Result<LoadedVocabulary, String> {
    load_among_with(&[("tokenizer.model", file)], options)
}

fn load(file: &[u8]) -> Result<LoadedVocabulary, String> {
    load_with(file, &LoadOptions::default())
}

fn encode(loaded: &LoadedVocabulary, text: &str) -> Result<Vec<u32>, TokenizeError> {
    let tokens = loaded.tokenizer.as_ref().unwrap().encode(text)?;
    Ok(tokens.into_iter().map(|token| token.0).collect())
}

#[test]
fn a_byte_pair_model() {
    let loaded = load(&model(&PIECES, &trainer(), &normalizer())).unwrap();
    assert_eq!(loaded.format, Format::SentencePiece);
    let special: [&[u8]; 3] = [b"", b"", b""];
    let texts: [&[u8]; 13] = [
        b"\n", b"\xC3", b"\xA9", b"ab", b"bc", b" ab", b"a", b"b", b"c", b" ", b"", b"abc!",
        b"<0x41>",
    ];
    check_texts(&loaded, &[&special[..], &texts].concat());
    let names: Vec<_> = loaded.specials.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["<unk>", "<s>", "</s>", "<tool>"]);
    assert_eq!(loaded.vocabulary.ends(), [TokenId(2)]);
    assert_eq!(loaded.ends, EndsFound::Source("trainer_spec in the model"));
    assert_eq!(loaded.assumptions, [Assumption::AngleTokens(vec!["<tool>".to_owned()])]);
}

#[test]
fn text_is_merged_by_score() {
    let loaded = load(&model(&PIECES, &trainer(), &normalizer())).unwrap();
    assert_eq!(encode(&loaded, "abc").unwrap(), [6, 11], "`ab` has a higher score than `bc`");
    assert_eq!(encode(&loaded, " abbc").unwrap(), [8, 7]);
    assert_eq!(encode(&loaded, "aabc!é\n").unwrap(), [9, 14, 4, 5, 3]);
    assert_eq!(encode(&loaded, "a  b").unwrap(), [9, 12, 12, 10]);
    assert_eq!(encode(&loaded, "az"), Err(TokenizeError::NoToken { at: 1 }));
    assert_eq!(encode(&loaded, "a▁"), Err(TokenizeError::Changed { at: 1 }));
    assert!(encode(&loaded, "<tool>").is_err(), "no piece has its characters");

    let options = LoadOptions { angle_tokens: AngleTokens::Text, ..LoadOptions::default() };
    let loaded = load_with(&model(&PIECES, &trainer(), &normalizer()), &options).unwrap();
    assert_eq!(encode(&loaded, "a<tool>").unwrap(), [9, 13]);
    assert_eq!(loaded.assumptions, []);
}

#[test]
fn models_of_other_kinds_spell_their_tokens_and_cut_no_text() {
    let unused = [&PIECES[..], &[("q", 0.0, UNUSED)]].concat();
    let mapped = [normalizer(), vec![bytes(2, b"map")]].concat();
    let unescaped = [normalizer(), vec![number(5, 0)]].concat();
    for (file, by) in [
        (model(&PIECES, &[], &normalizer()), "a SentencePiece unigram model"),
        (model(&PIECES, &[number(3, 3)], &normalizer()), "of words"),
        (model(&PIECES, &[number(3, 4)], &normalizer()), "of characters"),
        (model(&unused, &trainer(), &normalizer()), "unused pieces"),
        (model(&PIECES, &trainer(), &mapped), "a character map"),
        (model(&PIECES, &trainer(), &unescaped), "does not write spaces"),
    ] {
        let loaded = load(&file).unwrap();
        assert_eq!(loaded.vocabulary.text(TokenId(8)), b" ab");
        let error = encode(&loaded, "ab").unwrap_err().to_string();
        assert!(error.contains(by), "{error:?} lacks {by:?}");
    }
    // By default several spaces become one.
    let loaded = load(&model(&PIECES, &trainer(), &[])).unwrap();
    assert_eq!(encode(&loaded, "a b").unwrap(), [9, 12, 10]);
    assert_eq!(encode(&loaded, "a  b"), Err(TokenizeError::Changed { at: 1 }));
}

#[test]
fn the_end_is_what_the_trainer_says() {
    let end = |more: &[Vec<u8>]| {
        let trainer = [trainer(), more.to_vec()].concat();
        load(&model(&PIECES, &trainer, &normalizer()))
            .map(|loaded| loaded.vocabulary.ends().to_vec())
    };
    assert_eq!(end(&[number(42, 1)]).unwrap(), [TokenId(1)]);
    assert_eq!(end(&[bytes(47, b"<s>")]).unwrap(), [TokenId(1)]);
    assert_eq!(end(&[number(42, u64::MAX), bytes(47, b"a")]).unwrap(), [TokenId(2)], "by its name");
    let error = end(&[number(42, 16)]).unwrap_err();
    assert!(error.contains("eos_id in its trainer_spec is 16, and it has 16 pieces"), "{error}");
}

#[test]
fn damaged_models_are_refused() {
    let check = |file: &[u8], part: &str| {
        let error = load(file).unwrap_err();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    };
    let whole = model(&PIECES, &trainer(), &normalizer());
    check(&whole[..whole.len() - 1], "cut off or damaged: at byte");
    check(&whole[..5], "cut off or damaged: at byte 2");
    check(&[whole.clone(), vec![0x0B]].concat(), "a field is of no kind");
    let with = |text, score, kind| model(&[PIECES[0], (text, score, kind)], &[], &[]);
    check(&with("", 0.0, NORMAL), "piece 1 is empty");
    check(&with("a", f32::NAN, NORMAL), "the score of piece 1 is not a number");
    check(&with("a", 0.0, 7), "piece 1 is of type 7");
    check(&with("<0xZZ>", 0.0, BYTE), "piece 1 is \"<0xZZ>\" and of type BYTE");
    let mut bad = with("ab", 0.0, NORMAL);
    let at = bad.windows(2).position(|pair| pair == b"ab").unwrap();
    bad[at] = 0xFF;
    check(&bad, "piece 1 is not UTF-8");
}

/// A text list that begins with an empty line is none.
#[test]
fn text_lists_are_not_models() {
    for list in ["\na\nb\nc\n", "\nz\n\nab\n", "\n~\n\tx\n", "\n\n\n\na"] {
        let loaded = load_among_with(&[("list.txt", list)], &LoadOptions::default()).unwrap();
        assert_eq!(loaded.format, Format::TextList, "{list:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Errors are all that damage can do; what is read is no larger than the file.
    #[test]
    fn damage_is_an_error_or_another_model(
        cut in 0.0..=1.0f64,
        flips in proptest::collection::vec((0.0..1.0f64, any::<u8>()), 0..6),
    ) {
        let mut file = model(&PIECES, &trainer(), &normalizer());
        file.truncate((file.len() as f64 * cut) as usize);
        for (place, byte) in flips {
            let place = (file.len() as f64 * place) as usize;
            if let Some(target) = file.get_mut(place) {
                *target ^= byte;
            }
        }
        if let Ok(loaded) = load(&file) {
            prop_assert!(loaded.vocabulary.num_tokens() <= file.len());
            let bytes: usize = loaded.vocabulary.texts().map(|(_, text)| text.len()).sum();
            prop_assert!(bytes <= file.len());
            let _ = loaded.tokenizer.unwrap().encode("a b abc!é<tool>\n");
        }
    }
}
