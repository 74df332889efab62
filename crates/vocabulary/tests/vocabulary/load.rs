//! What each kind of source becomes.

use palmette_core::TokenId;
use palmette_vocabulary::{
    AngleTokens, Assumption, EndsFound, Format, LoadOptions, LoadedVocabulary, load, load_bytes,
    load_with,
};
use serde_json::{Value, json};

use crate::published::load_published;

/// Loads a file of this content from a folder that has nothing else.
pub(crate) fn load_content(content: &str) -> Result<LoadedVocabulary, String> {
    load_among(&[("vocabulary", content)])
}

/// Loads the first of these files (name, content).
fn load_among(files: &[(&str, &str)]) -> Result<LoadedVocabulary, String> {
    load_among_with(files, &LoadOptions::default())
}

pub(crate) fn load_among_with(
    files: &[(&str, impl AsRef<[u8]>)],
    options: &LoadOptions,
) -> Result<LoadedVocabulary, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    let path = folder.path().join(files[0].0);
    load_with(path.to_str().unwrap(), options).map_err(|error| error.to_string())
}

/// Options that name special tokens and end tokens.
pub(crate) fn naming(specials: &[(&str, u32)], ends: &[&str]) -> LoadOptions {
    let specials = specials.iter().map(|&(name, id)| (name.to_owned(), TokenId(id)));
    LoadOptions {
        special_tokens: specials.collect(),
        end_tokens: ends.iter().map(|&end| end.to_owned()).collect(),
        ..LoadOptions::default()
    }
}

#[track_caller]
pub(crate) fn check_texts(loaded: &LoadedVocabulary, expected: &[&[u8]]) {
    let vocabulary = &loaded.vocabulary;
    let texts: Vec<_> =
        (0..vocabulary.num_tokens() as u32).map(|t| vocabulary.text(TokenId(t))).collect();
    assert_eq!(texts, expected);
}

#[track_caller]
fn check_error(content: &str, expected: &[&str]) {
    let error = load_content(content).unwrap_err();
    for part in expected {
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    }
}

/// Content that is not in a file is read as a file that has nothing beside it.
#[test]
fn content_is_read_as_a_file_is() {
    let options = naming(&[("<x>", 9)], &["b"]);
    for content in [r#"["a", "b", "</s>"]"#, "a\nb\n", "YQ== 0\nYg== 1\n", "", "PK\u{3}\u{4}"] {
        for options in [&options, &LoadOptions::default()] {
            let file = load_among_with(&[("vocabulary", content)], options);
            let bytes = load_bytes("bytes", content.as_bytes(), options);
            match (file, bytes) {
                (Ok(file), Ok(bytes)) => {
                    assert_eq!(bytes.name, "bytes");
                    assert_eq!((&file.vocabulary, &file.ends), (&bytes.vocabulary, &bytes.ends));
                    assert_eq!((file.format, file.specials), (bytes.format, bytes.specials));
                }
                (Err(file), Err(bytes)) => {
                    let bytes = bytes.to_string();
                    let (_, reason) = bytes.split_once("bytes: ").unwrap();
                    assert!(file.ends_with(reason), "{file}, {reason}");
                }
                (file, bytes) => panic!("{content}: {file:?}, {bytes:?}"),
            }
        }
    }
}

#[test]
fn an_encoding_by_name() {
    let loaded = load("o200k_base").unwrap();
    assert_eq!((loaded.name.as_str(), loaded.format), ("o200k_base", Format::Encoding));
    assert_eq!(loaded.vocabulary.num_tokens(), 200_019);
    assert_eq!(loaded.vocabulary.texts().count(), 199_998);
    assert_eq!(loaded.vocabulary.ends(), [TokenId(199_999)]);
    assert_eq!(loaded.ends, EndsFound::Encoding);
    let names = [(TokenId(199_999), "<|endoftext|>"), (TokenId(200_018), "<|endofprompt|>")];
    assert_eq!(loaded.specials, names.map(|(token, name)| (token, name.to_owned())));
    // As published for this encoding.
    assert_eq!(
        loaded.tokenizer.unwrap().encode("hello world").unwrap(),
        [24912, 2375].map(TokenId)
    );
}

#[test]
fn every_encoding_loads() {
    for name in palmette_vocabulary::encoding_names() {
        let loaded = load(name).unwrap();
        assert!(!loaded.vocabulary.ends().is_empty(), "{name}");
        for &end in loaded.vocabulary.ends() {
            assert!(loaded.specials.iter().any(|(token, _)| *token == end), "{name}: {end}");
        }
    }
}

#[test]
fn a_name_that_is_nothing() {
    let error = load("o300k_base").unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(
        error.to_string(),
        "vocabulary o300k_base: no such file, and no encoding of that name; there are o200k_base, o200k_harmony, \
         cl100k_base, p50k_base, p50k_edit, r50k_base"
    );
}

#[test]
fn a_json_list() {
    let loaded = load_content(r#"["<s>", "</s>", "<0x0A>", "▁the", null, "", "é"]"#).unwrap();
    assert_eq!(loaded.format, Format::Pieces);
    check_texts(&loaded, &[b"", b"", b"\n", b" the", b"", b"", "é".as_bytes()]);
    assert_eq!(loaded.vocabulary.ends(), [TokenId(1)]);
    assert_eq!(loaded.ends.to_string(), "by name: </s>");
    assert_eq!(loaded.tokenizer.unwrap().encode("é the").unwrap(), [6, 3].map(TokenId));
}

#[test]
fn a_json_object_with_holes() {
    let loaded = load_content(r#"{"Ġa": 3, "b": 0, "<|endoftext|>": 5}"#).unwrap();
    check_texts(&loaded, &[b"b", b"", b"", b" a", b"", b""]);
    assert_eq!(loaded.vocabulary.ends(), [TokenId(5)]);
}

#[test]
fn a_text_list() {
    let loaded = load_content("a\\n\n\\\\\n\n  \n\\xFF\n<pad>\n").unwrap();
    assert_eq!(loaded.format, Format::TextList);
    check_texts(&loaded, &[b"a\n", b"\\", b"", b"  ", b"\xFF", b""]);
    assert_eq!((loaded.ends, loaded.vocabulary.ends()), (EndsFound::None, &[][..]));
    let spelled = load_content("▁a\n<0x0A>\nb").unwrap();
    check_texts(&spelled, &[b" a", b"\n", b"b"]);
}

#[test]
fn a_tiktoken_file() {
    let lines = "IQ== 0\nIg== 1\nIyM= 3\n";
    let alone = load_content(lines).unwrap();
    assert_eq!(alone.format, Format::TiktokenFile);
    check_texts(&alone, &[b"!", b"\"", b"", b"##"]);
    assert!(alone.tokenizer.is_none());
    assert_eq!(alone.ends, EndsFound::None);

    let config =
        r#"{"eos_token": "<|im_end|>", "added_tokens_decoder": {"5": {"content": "<|im_end|>"}}}"#;
    let named = load_among(&[("v.tiktoken", lines), ("tokenizer_config.json", config)]).unwrap();
    check_texts(&named, &[b"!", b"\"", b"", b"##", b"", b""]);
    assert_eq!(named.vocabulary.ends(), [TokenId(5)]);
    assert_eq!(named.specials, [(TokenId(5), "<|im_end|>".to_owned())]);

    let generation = r#"{"eos_token_id": [4, 6]}"#;
    let by_id =
        load_among(&[("v.tiktoken", lines), ("generation_config.json", generation)]).unwrap();
    assert_eq!(by_id.vocabulary.num_tokens(), 7);
    assert_eq!(by_id.vocabulary.ends(), [4, 6].map(TokenId));
}

#[test]
fn a_tiktoken_file_with_known_ranks_is_that_encoding() {
    use base64::Engine;
    let encoding = load("r50k_base").unwrap();
    let line = |(token, text): (TokenId, &[u8])| {
        format!("{} {token}\n", base64::prelude::BASE64_STANDARD.encode(text))
    };
    let lines: String = encoding.vocabulary.texts().map(line).collect();
    let loaded = load_content(&lines).unwrap();
    assert_eq!(loaded.format, Format::TiktokenFile);
    assert_eq!(loaded.vocabulary, encoding.vocabulary);
    assert_eq!(loaded.ends, EndsFound::Encoding);
    assert!(loaded.assumptions[0].to_string().contains("those of r50k_base"));
    assert_eq!(loaded.tokenizer.unwrap().encode("Hello world").unwrap(), [15496, 995].map(TokenId));

    let given = naming(&[("<|stop|>", 50_300)], &["<|stop|>"]);
    let given = load_among_with(&[("v.tiktoken", lines)], &given).unwrap();
    assert_eq!(given.specials, [(TokenId(50_300), "<|stop|>".to_owned())]);
    assert_eq!(given.assumptions, []);
    assert_eq!(given.tokenizer.unwrap().encode("Hello world").unwrap(), [15496, 995].map(TokenId));
}

/// A tiktoken file of so many ranks: the 256 bytes, then numbers.
fn ranks(num: usize) -> String {
    use base64::Engine;
    let encode = |bytes: &[u8]| base64::prelude::BASE64_STANDARD.encode(bytes);
    let text = |rank: usize| match u8::try_from(rank) {
        Ok(byte) => encode(&[byte]),
        Err(_) => encode(rank.to_string().as_bytes()),
    };
    (0..num).map(|rank| format!("{} {rank}\n", text(rank))).collect()
}

#[test]
fn a_tiktoken_file_of_a_known_size_has_the_special_tokens_of_its_model() {
    for (num, of, end, cut) in [
        (128_000, "Llama 3", "<|eot_id|>", &[97, 300, 97][..]),
        (151_643, "Qwen", "<|im_end|>", &[97, 51, 48, 48, 97]),
    ] {
        let loaded = load_content(&ranks(num)).unwrap();
        let assumed = loaded.assumptions[0].to_string();
        assert!(assumed.contains(of) && assumed.contains("ranks"), "{assumed}");
        let end = loaded.vocabulary.named(end).unwrap();
        assert!(loaded.vocabulary.ends().contains(&end));
        assert!(matches!(loaded.ends, EndsFound::WellKnownNames(_)));
        let tokens = loaded.tokenizer.unwrap().encode("a300a").unwrap();
        assert_eq!(tokens, cut.iter().map(|&id| TokenId(id)).collect::<Vec<_>>(), "{of}");

        // Nothing is assumed where something is said.
        let file = ("v.tiktoken", ranks(num));
        let given = naming(&[("<|a|>", num as u32)], &[]);
        let given = load_among_with(std::slice::from_ref(&file), &given).unwrap();
        assert_eq!((given.specials.len(), given.assumptions.len()), (1, 0));
        let config = r#"{"added_tokens_decoder": {"200000": {"content": "<|im_end|>"}}}"#;
        let config = ("tokenizer_config.json", config.to_owned());
        let beside = load_among_with(&[file, config], &LoadOptions::default()).unwrap();
        assert_eq!((beside.specials.len(), beside.assumptions.len()), (1, 0));
    }
    let other = load_content(&ranks(128_001)).unwrap();
    assert_eq!((other.specials.len(), other.assumptions.len()), (0, 0));
}

/// A byte-level model with a merge, a token that is spelled as text, one that is special, and a
/// hole.
fn byte_level() -> Value {
    let added = |id: u32, content: &str, special: bool| {
        json!({"id": id, "content": content, "special": special,
        "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})
    };
    json!({
        "added_tokens": [added(3, "a b", false), added(5, "<|im_end|>", true), added(6, "<|pad|>", true)],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true,
            "use_regex": false},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {"Ġ": 0, "Ã": 1, "ĠÃ": 2}, "merges": [["Ġ", "Ã"]]},
    })
}

#[test]
fn a_tokenizer_json() {
    let loaded = load_content(&byte_level().to_string()).unwrap();
    assert_eq!(loaded.format, Format::TokenizerJson);
    check_texts(&loaded, &[b" ", b"\xC3", b" \xC3", b"a b", b"", b"", b""]);
    assert_eq!(loaded.vocabulary.ends(), [TokenId(5)]);
    assert_eq!(loaded.specials.len(), 2);
}

/// Qwen3 marks `<tool_call>` as text.
#[test]
fn added_tokens_in_angle_brackets_are_special() {
    let mut file = byte_level();
    file["added_tokens"][0]["content"] = json!("<tool_call>");
    let loaded = load_content(&file.to_string()).unwrap();
    assert_eq!(loaded.vocabulary.text(TokenId(3)), b"");
    assert_eq!(loaded.vocabulary.named("<tool_call>"), Some(TokenId(3)));
    assert_eq!(loaded.vocabulary.named("<|pad|>"), Some(TokenId(6)));
    assert_eq!(loaded.specials.len(), 3);
    assert_eq!(loaded.assumptions, [Assumption::AngleTokens(vec!["<tool_call>".to_owned()])]);
    let tokenizer = loaded.tokenizer.unwrap();
    assert!(tokenizer.encode("<tool_call>").is_err(), "no piece has its characters");
}

#[test]
fn added_tokens_in_angle_brackets_are_text_by_option() {
    let mut file = byte_level();
    file["added_tokens"][0]["content"] = json!("<tool_call>");
    let options = LoadOptions { angle_tokens: AngleTokens::Text, ..LoadOptions::default() };
    let loaded = load_among_with(&[("tokenizer.json", file.to_string())], &options).unwrap();
    assert_eq!(loaded.vocabulary.text(TokenId(3)), b"<tool_call>");
    assert_eq!(loaded.vocabulary.named("<|pad|>"), Some(TokenId(6)), "marked as special");
    assert_eq!((loaded.specials.len(), loaded.assumptions.as_slice()), (2, &[][..]));
    let tokens = loaded.tokenizer.unwrap().encode("<tool_call>").unwrap();
    assert_eq!(tokens, [TokenId(3)]);
    // Without such tokens nothing is assumed.
    assert_eq!(load_content(&byte_level().to_string()).unwrap().assumptions, []);
}

#[test]
fn options_name_special_and_end_tokens() {
    let list = [("list.json", r#"["a", "STOP", "</s>", "7"]"#)];
    let options = naming(&[("STOP", 1), ("<|call|>", 5)], &["STOP", "5"]);
    let loaded = load_among_with(&list, &options).unwrap();
    check_texts(&loaded, &[b"a", b"", b"", b"7", b"", b""]);
    assert_eq!(loaded.vocabulary.named("<|call|>"), Some(TokenId(5)));
    assert_eq!(loaded.vocabulary.named("STOP"), Some(TokenId(1)));
    assert_eq!(loaded.vocabulary.ends(), [1, 5].map(TokenId));
    assert_eq!(loaded.ends, EndsFound::Options);
    // A name goes before an id.
    let named = load_among_with(&list, &naming(&[], &["7"])).unwrap();
    assert_eq!(named.vocabulary.ends(), [TokenId(3)]);

    let refused = |options: &LoadOptions, part: &str| {
        let error = load_among_with(&list, options).unwrap_err();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
    };
    refused(&naming(&[], &["<eos>"]), "\"<eos>\" is neither a token's name nor an id");
    refused(&naming(&[], &["4"]), "this vocabulary of 4 tokens");
    refused(&naming(&[("<|stop|>", 1)], &[]), "is given the id 1, which spells \"STOP\"");
    refused(&naming(&[("x", 8), ("b", 8)], &[]), "\"b\" is given the id 8 that \"x\" was given");
    refused(&naming(&[("x", 8), ("x", 9)], &[]), "\"x\" is given twice");
    refused(&naming(&[("x", u32::MAX)], &[]), "is past the limit");
}

#[test]
fn options_go_before_an_encoding_and_before_files() {
    let ended = load_with("o200k_base", &naming(&[], &["200018"])).unwrap();
    assert_eq!(ended.vocabulary.ends(), [TokenId(200_018)]);
    let config = ("config.json", r#"{"eos_token_id": 0}"#);
    let ended = load_among_with(&[("list.json", r#"["a", "b"]"#), config], &naming(&[], &["b"]));
    assert_eq!(ended.unwrap().vocabulary.ends(), [TokenId(1)]);
}

#[test]
fn a_folder_is_its_tokenizer_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let error = load(path).unwrap_err().to_string();
    assert!(error.contains("a folder without tokenizer.json"), "{error}");
    std::fs::write(folder.path().join("tokenizer.json"), byte_level().to_string()).unwrap();
    assert_eq!(load(path).unwrap().format, Format::TokenizerJson);
}

#[test]
fn configuration_files_name_the_ends() {
    let tokenizer = byte_level().to_string();
    let with = |files: &[(&'static str, &'static str)]| {
        let mut all = vec![("tokenizer.json", tokenizer.as_str())];
        all.extend(files);
        load_among(&all).map(|loaded| (loaded.vocabulary.ends().to_vec(), loaded.ends.to_string()))
    };
    let generation = ("generation_config.json", r#"{"eos_token_id": [6, 5]}"#);
    let silent = ("generation_config.json", r#"{"eos_token_id": null}"#);
    let tokenizer_config = ("tokenizer_config.json", r#"{"eos_token": {"content": "<|pad|>"}}"#);
    let config = ("config.json", r#"{"eos_token_id": 4}"#);
    let nested = ("config.json", r#"{"text_config": {"eos_token_id": 4}}"#);
    let expect = |ends: &[u32], found: &str| {
        Ok((ends.iter().map(|&id| TokenId(id)).collect::<Vec<_>>(), found.to_owned()))
    };
    let by_generation = expect(&[5, 6], "by eos_token_id in generation_config.json");
    assert_eq!(with(&[generation, tokenizer_config, config]), by_generation);
    let by_tokenizer = expect(&[6], "by eos_token in tokenizer_config.json");
    assert_eq!(with(&[silent, tokenizer_config, config]), by_tokenizer);
    assert_eq!(with(&[silent, config]), expect(&[4], "by eos_token_id in config.json"));
    assert_eq!(with(&[nested]), expect(&[4], "by text_config.eos_token_id in config.json"));
    assert_eq!(with(&[silent]), expect(&[5], "by name: <|im_end|>"));

    for (config, expected) in [
        (r#"{"eos_token_id": 7}"#, "there is no token 7 in this vocabulary of 7 tokens"),
        (r#"{"eos_token_id": -1}"#, "-1 is neither a token id nor a token's name"),
        (r#"{"eos_token_id": "<eos>"}"#, "the vocabulary has no token \"<eos>\""),
        ("{", "the config.json beside it is not valid JSON"),
    ] {
        let error = with(&[("config.json", config)]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn an_end_token_has_no_text() {
    let config = ("config.json", r#"{"eos_token_id": 1}"#);
    let loaded = load_among(&[("list.json", r#"["a", "[STOP]"]"#), config]).unwrap();
    check_texts(&loaded, &[b"a", b""]);
    assert_eq!(loaded.specials, [(TokenId(1), "[STOP]".to_owned())]);
}

#[test]
fn what_is_not_read_is_named() {
    check_error("", &["this is an empty file; read are: a Hugging Face tokenizer.json"]);
    check_error("GGUF\u{3}\0\0", &["this is a GGUF model"]);
    check_error("a\0b", &["this is a binary file"]);
    check_error("version https://git-lfs.github.com/spec/v1\n", &["a Git LFS pointer"]);
    check_error("{\"a\": ", &["not valid JSON", "\\x7B"]);
    check_error("[]", &["a JSON list or object without pieces"]);
    check_error("[1]", &["element 0 of the list is 1"]);
    check_error("{\"vocab\": {}}", &["\"vocab\" has the value an object"]);
    check_error("{\"a\": -1}", &["\"a\" has the value -1"]);
    check_error("{\"a\": 0, \"b\": 0}", &["token id 0 is given twice"]);
    check_error(
        "{\"a\": 4000000000}",
        &["token id 4000000000 is past the limit of 16777216 tokens"],
    );
    check_error("{\"a\": 18446744073709551615}", &["is past the limit"]);
    check_error("a\n\\q\n", &["line 2: a backslash begins none of the escapes"]);
    check_error("a\r\nb\r\n", &["line 1: a carriage return"]);
    check_error("IQ== 0\nIg==\n", &["line 2 is \"Ig==\""]);
    check_error(&"[".repeat(100_000), &["not valid JSON: recursion limit exceeded"]);
    check_error(&"a".repeat((1 << 20) + 1), &["token 0 has 1048577 bytes"]);
}

#[test]
fn tokenizers_without_bytes_are_refused() {
    let with = |path: &str, value: Value| {
        let mut file = byte_level();
        *file.pointer_mut(path).unwrap() = value;
        file.to_string()
    };
    check_error(&with("/model", json!({"type": "WordPiece", "vocab": {}})), &["a WordPiece model"]);
    check_error(&with("/model", json!({"type": "WordLevel", "vocab": {}})), &["a WordLevel model"]);
    check_error(&with("/model", json!({"type": "New"})), &["model type \"New\" is not known"]);
    check_error(&with("/model", json!({})), &["\"model\" has no \"type\""]);
    check_error(&with("/model", json!({"type": "BPE"})), &["model.vocab is neither"]);
    check_error(
        &with("/model/vocab", json!({"a": "0"})),
        &["model.vocab gives \"a\" the id \"0\""],
    );
    check_error(&with("/model/merges", json!([["x", "y"]])), &["its tokenizer cannot be built"]);
    check_error(&with("/decoder", json!({"type": "CTC"})), &["decoder \"CTC\""]);
    check_error(&with("/added_tokens/0", json!({"id": 3})), &["added_tokens[0] needs"]);
    check_error(&with("/added_tokens/0/id", json!(0)), &["token id 0 is given twice"]);
    check_error(
        &with("/added_tokens/0/content", json!("Ġ")),
        &["\"Ġ\" has id 0 in model.vocab and 3"],
    );
    let suffix = json!({"type": "BPE", "vocab": {}, "merges": [], "end_of_word_suffix": "</w>"});
    check_error(&with("/model", suffix), &["model.end_of_word_suffix is \"</w>\""]);
}

#[test]
fn a_published_list() {
    let loaded = load_published("a_published_list", "mistral-7b-v0.1-vocab.json");
    let Some(loaded) = loaded else { return };
    assert_eq!(loaded.vocabulary.num_tokens(), 32_000);
    assert_eq!(loaded.vocabulary.texts().count(), 31_997);
    let bytes: Vec<_> = (3..259).map(|token| loaded.vocabulary.text(TokenId(token))[0]).collect();
    assert_eq!(bytes, (0..=255).collect::<Vec<_>>());
    assert_eq!(loaded.vocabulary.ends(), [TokenId(2)]);
    let text = "def f(x):\n    return x  # naïve — 漢字 🌴\t\0";
    let tokens = loaded.tokenizer.as_ref().unwrap().encode(text).unwrap();
    let bytes: Vec<_> =
        tokens.iter().flat_map(|&token| loaded.vocabulary.text(token)).copied().collect();
    assert_eq!(bytes, text.as_bytes());
}
