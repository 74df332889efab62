//! Published files, where `PALMETTE_DATA` or the data beside the repository has them; skipped
//! loudly elsewhere.
//!
//! Expected tokens are those of `mistral-common` 1.13.1 and `sentencepiece` 0.2.3.

use std::io::Write;
use std::path::Path;

use palmette_core::TokenId;
use palmette_vocabulary::{LoadedVocabulary, load};

/// Loads a published file, if it is there.
pub(crate) fn load_published(test: &str, name: &str) -> Option<LoadedVocabulary> {
    let folder = std::env::var("PALMETTE_DATA")
        .unwrap_or_else(|_| format!("{}/../../../shared/data", env!("CARGO_MANIFEST_DIR")));
    let path = format!("{folder}/{name}");
    if !Path::new(&path).exists() {
        // Not `eprintln!`: the test harness hides what that writes when a test passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no {path}; set PALMETTE_DATA");
        return None;
    }
    Some(load(&path).unwrap())
}

const TEXTS: [&str; 2] = ["Hello world", "def f(x):\n    return x  # naïve — 漢字 🌴\t\0"];

#[track_caller]
fn check_encoding(loaded: &LoadedVocabulary, text: &str, expected: &[u32]) {
    let tokens = loaded.tokenizer.as_ref().unwrap().encode(text).unwrap();
    assert_eq!(tokens, expected.iter().map(|&id| TokenId(id)).collect::<Vec<_>>(), "{text:?}");
}

#[test]
fn tekken_of_mistral_nemo_and_pixtral() {
    for (file, at_ten) in [("tekken_240718.json", "<pad>"), ("tekken_240911.json", "[IMG]")] {
        let test = "tekken_of_mistral_nemo_and_pixtral";
        let Some(loaded) = load_published(test, file) else { continue };
        assert_eq!(loaded.vocabulary.num_tokens(), 131_072);
        assert_eq!(loaded.vocabulary.texts().count(), 130_072);
        assert_eq!(loaded.vocabulary.ends(), [TokenId(2)]);
        assert_eq!(loaded.specials[10].1, at_ten);
        check_encoding(&loaded, TEXTS[0], &[22177, 4304]);
        let expected = [
            3149, 1284, 4790, 3640, 1293, 1850, 2460, 1032, 2569, 98355, 2251, 93537, 1162, 18724,
            119685, 1140, 1180, 1009, 1000,
        ];
        check_encoding(&loaded, TEXTS[1], &expected);
    }
}

#[test]
fn sentence_piece_of_mistral() {
    let test = "sentence_piece_of_mistral";
    // As `sentencepiece` does, with a space before the text.
    let with_space = TEXTS.map(|text| format!(" {text}"));
    if let Some(loaded) = load_published(test, "tokenizer.model.v1") {
        assert_eq!(loaded.vocabulary.num_tokens(), 32_000);
        assert_eq!(loaded.vocabulary.ends(), [TokenId(2)]);
        check_encoding(&loaded, &with_space[0], &[22557, 1526]);
        let expected = [
            801, 285, 28732, 28744, 1329, 13, 2287, 604, 1318, 28705, 422, 1879, 28920, 333, 1040,
            28705, 233, 191, 165, 29031, 28705, 243, 162, 143, 183, 12, 3,
        ];
        check_encoding(&loaded, &with_space[1], &expected);
    }
    if let Some(loaded) = load_published(test, "mistral_instruct_tokenizer_240323.model.v3") {
        assert_eq!(loaded.vocabulary.num_tokens(), 32_768);
        assert_eq!(loaded.specials[5], (TokenId(5), "[TOOL_CALLS]".to_owned()));
        check_encoding(&loaded, &with_space[0], &[23325, 2294]);
        let expected = [
            1569, 1053, 29500, 29512, 2097, 781, 3055, 1372, 2086, 29473, 1190, 2647, 29688, 1101,
            1808, 29473, 1001, 959, 933, 29799, 29473, 1011, 930, 911, 951, 780, 771,
        ];
        check_encoding(&loaded, &with_space[1], &expected);
    }
}
