//! Vocabularies from files of every format: whole files, and files that are written from pieces.

use std::path::PathBuf;
use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use palmette_core::TokenId;
use palmette_vocabulary::{
    AngleTokens, Format, LoadOptions, LoadedVocabulary, PromptTokenizer, load_bytes,
};
use serde_json::{Value, json};

/// First byte of an input from whose pieces a file is written. No format begins with it.
const PIECES: u8 = 0;
const BETWEEN_PIECES: u8 = 0xFF;

/// Loads the input, or the file that is written from its pieces, and asks what was loaded for its
/// invariants.
pub fn check_vocabularies(data: &[u8]) {
    let written = match data {
        [PIECES, format, flags, pieces @ ..] => Some(write(*format, *flags, pieces)),
        _ => None,
    };
    let file = written.as_deref().unwrap_or(data);
    for angle_tokens in [AngleTokens::Special, AngleTokens::Text] {
        let options = LoadOptions { angle_tokens, ..LoadOptions::default() };
        match load_bytes("input", file, &options) {
            Ok(loaded) => {
                check_loaded(&loaded, file);
                let again = load_bytes("input", file, &options).expect("it was loaded just now");
                assert_eq!(again.vocabulary, loaded.vocabulary, "loaded again");
                assert_eq!(again.assumptions, loaded.assumptions, "loaded again");
                assert_eq!(again.ends, loaded.ends, "loaded again");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if file.trim_ascii_start().starts_with(b"{") {
        check_prompts(file);
    }
}

fn check_loaded(loaded: &LoadedVocabulary, file: &[u8]) {
    let vocabulary = &loaded.vocabulary;
    assert!(vocabulary.ends().is_sorted());
    for &end in vocabulary.ends() {
        assert!(vocabulary.text(end).is_empty(), "end {end} has text");
    }
    for (token, name) in &loaded.specials {
        assert!(vocabulary.text(*token).is_empty(), "special token {token} has text");
        let named = vocabulary.named(name).expect("specials are named");
        assert!(named <= *token, "{name:?} names {named}, not the first of its tokens");
    }
    let texts: Vec<(TokenId, &[u8])> = vocabulary.texts().collect();
    if texts.is_empty() {
        return;
    }

    // Bytes of tokens survive a format that spells any bytes.
    let lines = texts.iter().map(|(token, text)| format!("{} {token}\n", BASE64_STANDARD.encode(text)));
    let options = LoadOptions::default();
    let ranks = load_bytes("ranks", lines.collect::<String>().as_bytes(), &options).expect("ranks");
    assert!(ranks.vocabulary.texts().eq(texts.iter().copied()), "as a tiktoken file");
    if loaded.format == Format::TiktokenFile {
        assert_eq!(ranks.vocabulary.num_tokens(), vocabulary.num_tokens());
    }

    let Some(tokenizer) = &loaded.tokenizer else { return };
    let own = texts.iter().filter_map(|(_, text)| std::str::from_utf8(text).ok()).take(32);
    let own: Vec<&str> = own.collect();
    let whole = own.concat();
    let fixed = ["a  palm\n\n<s></s> <0x0A> ▁Ġ é漢\u{301}🌴 123", "", " "];
    let input = String::from_utf8_lossy(&file[..file.len().min(300)]);
    for text in own.iter().copied().chain(fixed).chain([whole.as_str(), &input]) {
        let Ok(tokens) = tokenizer.encode(text) else { continue };
        let bytes: Vec<u8> =
            tokens.iter().flat_map(|&token| vocabulary.text(token)).copied().collect();
        assert_eq!(bytes, text.as_bytes(), "tokens spell the text");
        let is_text = |&token: &TokenId| !vocabulary.text(token).is_empty();
        assert!(tokens.iter().all(is_text), "a special token of the text {text:?}");
    }
    if matches!(loaded.format, Format::Pieces | Format::TextList) {
        for text in own {
            let tokens = tokenizer.encode(text).expect("it is a token");
            let first = texts.iter().find(|(_, other)| *other == text.as_bytes());
            assert_eq!(tokens, [first.expect("it is there").0], "the token of {text:?}");
        }
    }
}

/// Reads a whole prompt by a `tokenizer.json`: names are found again by their numbers.
fn check_prompts(file: &[u8]) {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let directory = DIRECTORY.get_or_init(|| {
        let name = format!("palmette-fuzz-tokenizer-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        directory
    });
    std::fs::write(directory.join(PromptTokenizer::FILE_NAME), file).expect("a temporary file");
    let tokenizer = match PromptTokenizer::from_directory(directory) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for id in (0..tokenizer.num_tokens() as u32).take(100).map(TokenId) {
        if let Some(name) = tokenizer.name(id) {
            assert_eq!(tokenizer.token(name), Some(id), "{name:?}");
        }
    }
    for around in [false, true] {
        if let Ok(tokens) = tokenizer.encode("a palm <s> é", around) {
            _ = tokenizer.decode(&tokens);
        }
    }
}

/// Writes a file of a format from pieces, whose first byte is their kind; lengths and references
/// are right.
fn write(format: u8, flags: u8, pieces: &[u8]) -> Vec<u8> {
    let pieces = pieces.split(|&byte| byte == BETWEEN_PIECES).filter_map(|piece| {
        let (&kind, text) = piece.split_first()?;
        Some((kind, text))
    });
    let pieces: Vec<(u8, &[u8])> = pieces.take(256).collect();
    match format % 5 {
        0 => sentence_piece(flags, &pieces),
        1 => byte_pairs(flags, &pieces),
        2 => unigram(flags, &pieces),
        3 => tekken(flags, &pieces),
        _ => {
            let lines = pieces.iter().map(|&(kind, text)| {
                format!("{} {kind}\n", BASE64_STANDARD.encode(text))
            });
            lines.collect::<String>().into_bytes()
        }
    }
}

fn has(flags: u8, bit: u32) -> bool {
    flags >> bit & 1 == 1
}

fn text(piece: &[u8]) -> String {
    String::from_utf8_lossy(piece).into_owned()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
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

fn field(field: u64, value: &[u8]) -> Vec<u8> {
    [&varint(field << 3 | 2)[..], &varint(value.len() as u64), value].concat()
}

fn sentence_piece(flags: u8, pieces: &[(u8, &[u8])]) -> Vec<u8> {
    let pieces = pieces.iter().map(|&(kind, text)| {
        let score = [&[0x15][..], &(-f32::from(kind / 6)).to_le_bytes()].concat();
        field(1, &[field(1, text), score, number(3, u64::from(kind % 6) + 1)].concat())
    });
    let model_type = if has(flags, 0) { 1 } else { 2 };
    let mut trainer = vec![number(3, model_type), number(35, u64::from(has(flags, 1)))];
    if has(flags, 2) {
        trainer.push(number(42, u64::from(flags >> 5)));
    }
    let normalizer = [number(4, u64::from(has(flags, 3))), number(5, u64::from(!has(flags, 4)))];
    let specs = [field(2, &trainer.concat()), field(3, &normalizer.concat())];
    pieces.chain(specs).collect::<Vec<_>>().concat()
}

/// Added tokens of a `tokenizer.json`, numbered from `first`: pieces of an odd kind.
fn added(first: usize, pieces: &[(u8, &[u8])]) -> Vec<Value> {
    let added = pieces.iter().filter(|(kind, _)| kind % 2 == 1).enumerate();
    let token = |(at, &(kind, piece)): (usize, &(u8, &[u8]))| {
        json!({
            "id": first + at, "content": text(piece), "special": has(kind, 1),
            "single_word": has(kind, 2), "lstrip": has(kind, 3), "rstrip": has(kind, 4),
            "normalized": has(kind, 5),
        })
    };
    added.map(token).collect()
}

/// Parts of a `tokenizer.json` around its model.
fn around(flags: u8) -> Value {
    let (normalizer, pre_tokenizer, decoder) = match flags % 4 {
        0 => (json!(null), json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": has(flags, 2)}), json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})),
        1 => (json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}), json!(null), json!({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]})),
        2 => (json!({"type": "NFC"}), json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": has(flags, 2)}), json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true})),
        _ => (json!({"type": "Lowercase"}), json!({"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+(?!\\S)"}, "behavior": "Isolated", "invert": has(flags, 2)}), json!({"type": "Fuse"})),
    };
    json!({"normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "decoder": decoder})
}

fn tokenizer_json(flags: u8, first_added: usize, pieces: &[(u8, &[u8])], model: Value) -> Vec<u8> {
    let mut file = around(flags);
    file["version"] = json!("1.0");
    file["added_tokens"] = json!(added(first_added, pieces));
    file["model"] = model;
    file.to_string().into_bytes()
}

/// A BPE `tokenizer.json` with a merge for each cut of a piece into two others.
fn byte_pairs(flags: u8, pieces: &[(u8, &[u8])]) -> Vec<u8> {
    let mut vocab = serde_json::Map::new();
    for (_, piece) in pieces.iter().filter(|(kind, _)| kind % 2 == 0).take(64) {
        let id = vocab.len();
        vocab.entry(text(piece)).or_insert_with(|| json!(id));
    }
    let mut merges = Vec::new();
    for piece in vocab.keys() {
        let cuts = piece.char_indices().skip(1).map(|(at, _)| piece.split_at(at));
        let known = |(left, right): &(&str, &str)| vocab.contains_key(*left) && vocab.contains_key(*right);
        merges.extend(cuts.filter(known).map(|(left, right)| json!([left, right])).take(4));
    }
    let unknown = vocab.keys().next().filter(|_| has(flags, 4)).cloned();
    let (num, fallback, ignore) = (vocab.len(), has(flags, 3), has(flags, 5));
    let model = json!({
        "type": "BPE", "vocab": vocab, "merges": merges, "unk_token": unknown, "fuse_unk": has(flags, 6),
        "byte_fallback": fallback, "ignore_merges": ignore,
    });
    tokenizer_json(flags, num, pieces, model)
}

fn unigram(flags: u8, pieces: &[(u8, &[u8])]) -> Vec<u8> {
    let entries = pieces.iter().filter(|(kind, _)| kind % 2 == 0);
    let entries: Vec<Value> =
        entries.map(|&(kind, piece)| json!([text(piece), -f64::from(kind) / 8.0])).collect();
    let unknown = has(flags, 4).then_some(flags >> 5);
    let (num, fallback) = (entries.len(), has(flags, 3));
    let model = json!({"type": "Unigram", "vocab": entries, "unk_id": unknown, "byte_fallback": fallback});
    tokenizer_json(flags, num, pieces, model)
}

fn tekken(flags: u8, pieces: &[(u8, &[u8])]) -> Vec<u8> {
    let ranks = pieces.iter().filter(|(kind, text)| kind % 2 == 0 && !text.is_empty()).enumerate();
    let vocab: Vec<Value> = ranks
        .map(|(rank, (_, text))| {
            json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(text), "token_str": null})
        })
        .collect();
    let special = pieces.iter().filter(|(kind, _)| kind % 2 == 1).enumerate();
    let special: Vec<Value> = special
        .map(|(rank, (_, piece))| json!({"rank": rank, "token_str": text(piece), "is_control": true}))
        .collect();
    let (num_special, num_unused) = (special.len(), usize::from(flags >> 6).min(vocab.len()));
    let pattern = [" ?[^ ]+| ", ".", "\\p{L}+|\\p{N}{1,3}|\\s+(?!\\S)|\\s+|[^\\s]", "(a|b)*?c|.+"];
    json!({
        "config": {
            "pattern": pattern[usize::from(flags % 4)], "num_vocab_tokens": vocab.len(),
            "default_vocab_size": num_special + vocab.len() - num_unused,
            "default_num_special_tokens": num_special, "version": "v11",
        },
        "vocab": vocab, "special_tokens": if has(flags, 2) { json!(null) } else { json!(special) },
    })
    .to_string()
    .into_bytes()
}
