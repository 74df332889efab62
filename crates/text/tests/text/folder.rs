//! Models of text in folders.

use std::fs;
use std::path::Path;

use palmette_text::{Conversation, TextModel, TextModelOptions};
use serde_json::json;

/// A folder with the weights of a test of `palmette-model`, and a tokenizer of 97 pieces.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures/tied_f32");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(fixture.join(file), dir.path().join(file)).unwrap();
    }
    let pieces: Vec<String> =
        (' '..='~').map(String::from).chain(["<s>", "</s>"].map(String::from)).collect();
    fs::write(dir.path().join("tokenizer.json"), json!(pieces).to_string()).unwrap();
    let config = json!({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true, "chat_template": "{{ bos_token }}{{ messages[0].content }}"});
    fs::write(dir.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    dir
}

fn open(dir: &Path) -> Result<TextModel, String> {
    TextModel::open(dir, &TextModelOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn a_folder_has_weights_tokens_and_a_template() {
    let dir = folder();
    let model = open(dir.path()).unwrap();
    let (begin, end) = (palmette_core::TokenId(95), palmette_core::TokenId(96));
    assert_eq!((model.end_tokens(), model.context_length()), (&[end][..], 128));
    assert_eq!(model.encode_text("a").unwrap()[0], begin);
    assert_eq!(model.encode_text("<s>a").unwrap().len(), 2);
    let conversation = Conversation::new(vec![json!({"role": "user", "content": "hi"})]);
    assert_eq!(model.chat_prompt(&conversation, None).unwrap(), "<s>hi");
    fs::write(dir.path().join("generation_config.json"), "{\"eos_token_id\": [95, 96]}").unwrap();
    assert_eq!(open(dir.path()).unwrap().end_tokens(), [begin, end]);
}

#[test]
fn what_a_folder_lacks_is_named() {
    let dir = folder();
    let refused = |words: &str| {
        let error = open(dir.path()).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    let keep = |file: &str| {
        let path = dir.path().join(file);
        let bytes = fs::read(&path).unwrap();
        move || fs::write(&path, &bytes).unwrap()
    };
    assert!(
        open(Path::new("no/such/folder")).unwrap_err().contains("no/such/folder: not a folder")
    );
    let put_back = keep("tokenizer.json");
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    refused(": no model of text, which has its tokenizer beside config.json: tokenizer.json, ");
    put_back();
    for (file, damaged, words) in [
        ("tokenizer_config.json", "{", "tokenizer_config.json: is not valid JSON"),
        ("tokenizer.json", "", "tokenizer.json"),
        ("config.json", "{}", "config.json"),
        ("model.safetensors", "x", "model.safetensors"),
    ] {
        let back = keep(file);
        fs::write(dir.path().join(file), damaged).unwrap();
        refused(words);
        back();
    }
    // A template is only missed by who asks for it.
    fs::write(dir.path().join("tokenizer_config.json"), "{\"chat_template\": \"{% for %}\"}")
        .unwrap();
    let model = open(dir.path()).unwrap();
    let error = model.chat_template().unwrap_err().to_string();
    assert!(error.contains("tokenizer_config.json"), "{error}");
    fs::remove_file(dir.path().join("tokenizer_config.json")).unwrap();
    let error = open(dir.path()).unwrap().chat_template().unwrap_err().to_string();
    assert!(error.contains("has no chat template"), "{error}");
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    refused("tokenizer.json");
}
