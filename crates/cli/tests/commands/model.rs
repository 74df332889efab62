//! `palmette model inspect`, and recommending by a model that reads text.

use std::path::Path;

use serde_json::{Value, json};

use crate::command::{check_refused, palmette_with_input, run, run_json, write};

const FIXTURES: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../recommend/tests/recommend/fixtures/prompts");

/// A directory with a tokenizer and no weights, and a catalog of its items.
fn files(dir: &Path) -> (String, String) {
    let model = dir.join("model");
    std::fs::create_dir(&model).unwrap();
    for file in ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"] {
        std::fs::copy(format!("{FIXTURES}/plain/{file}"), model.join(file)).unwrap();
    }
    let cases = std::fs::read_to_string(format!("{FIXTURES}/prompts.json")).unwrap();
    let cases: Value = serde_json::from_str(&cases).unwrap();
    let item = |item: &Value| {
        let codes = item["codes"].as_array().unwrap().iter().zip("abc".chars());
        let codes: Vec<String> = codes.map(|(code, letter)| format!("<{letter}_{code}>")).collect();
        json!({"id": item["id"], "codes": codes, "title": item["title"]}).to_string()
    };
    let items: Vec<String> = cases["items"].as_array().unwrap().iter().map(item).collect();
    let items = write(dir, "items.jsonl", &items.join("\n"));
    let catalog = dir.join("shop.palm").to_str().unwrap().to_owned();
    run(&["catalog", "build", &items, "--out", &catalog]);
    (model.to_str().unwrap().to_owned(), catalog)
}

/// Configuration and weights of a small model, in safetensors.
fn write_weights(model: &str) {
    let (v, d, f) = (360, 16, 24);
    let config = json!({
        "model_type": "qwen3", "vocab_size": v, "hidden_size": d, "intermediate_size": f, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": true, "hidden_act": "silu",
    });
    write(Path::new(model), "config.json", &config.to_string());
    let layer = |name: &str| format!("model.layers.0.{name}.weight");
    let tensors = [
        ("model.embed_tokens.weight".to_owned(), vec![v, d]),
        ("model.norm.weight".to_owned(), vec![d]),
        (layer("input_layernorm"), vec![d]),
        (layer("post_attention_layernorm"), vec![d]),
        (layer("self_attn.q_proj"), vec![16, d]),
        (layer("self_attn.k_proj"), vec![8, d]),
        (layer("self_attn.v_proj"), vec![8, d]),
        (layer("self_attn.o_proj"), vec![d, 16]),
        (layer("self_attn.q_norm"), vec![8]),
        (layer("self_attn.k_norm"), vec![8]),
        (layer("mlp.gate_proj"), vec![f, d]),
        (layer("mlp.up_proj"), vec![f, d]),
        (layer("mlp.down_proj"), vec![d, f]),
    ];
    let (mut header, mut data, mut seed) = (serde_json::Map::new(), Vec::new(), 1_u64);
    for (name, shape) in tensors {
        let begin = data.len();
        for _ in 0..shape.iter().product::<usize>() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = (seed >> 40) as f32 / (1 << 24) as f32 - 0.5;
            data.extend(value.to_le_bytes());
        }
        let about = json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, data.len()]});
        header.insert(name, about);
    }
    let mut header = Value::Object(header).to_string();
    header += &" ".repeat((8 - header.len() % 8) % 8);
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat();
    std::fs::write(Path::new(model).join("model.safetensors"), bytes).unwrap();
}

#[test]
fn what_was_understood_is_said_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (model, catalog) = files(dir.path());
    let inspect = ["model", "inspect", &model, "--catalog", &catalog];
    check_refused(&inspect, &["prompt_template.json", "--preset"]);
    check_refused(&[&inspect[..], &["--preset", "gpt", "--write"]].concat(), &["minionerec"]);
    let text = run(&[&inspect[..], &["--preset", "minionerec", "--write"]].concat());
    for words in [
        "levels by tokenizer.json",
        "<b_{}>",
        "11 elsewhere",
        "an item ends with Ċ 198, <|im_end|> 302",
        "every code of 40 items has a token",
        "item i0 is written <a_0> ",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let kept = run_json(&[&inspect[..], &["--history", "i5,0-7-7"]].concat());
    let understood = &kept["understood"];
    assert_eq!(understood["levels_from"], "semantic_ids.json");
    assert_eq!(understood["levels"][1]["num_codes"], 12);
    assert_eq!(understood["end"][1], json!({"token": 302, "name": "<|im_end|>"}));
    let texts = kept["prompt"]["texts"].as_array().unwrap();
    assert!(texts[1].as_str().unwrap().contains("history: <a_5><b_5><c_5>, <a_0><b_7><c_7>\n\n"));
    let names = kept["prompt"]["tokens"].as_array().unwrap();
    assert!(names.iter().any(|token| token["name"] == "<b_7>"));
    check_refused(
        &[&inspect[..], &["--preset", "tiger", "--write"]].concat(),
        &["is there already"],
    );

    // A line for each history of a file.
    let lines = [&inspect[..], &["--prompts", "-"]].concat();
    let output = palmette_with_input(&lines, "[\"i5\", [0, 7, 7]]\n[]\n");
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    let tokens: Vec<&Value> = names.iter().map(|token| &token["token"]).collect();
    assert!(lines[0]["tokens"].as_array().unwrap().iter().eq(tokens));
    assert_eq!(lines[1]["history_used"], 0);

    // Embeddings that were not resized.
    let config = std::fs::read_to_string(format!("{FIXTURES}/plain/tokenizer.json")).unwrap();
    assert!(config.contains("<c_13>"));
    write_weights(&model);
    let path = Path::new(&model).join("config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, config.replace("\"vocab_size\":360", "\"vocab_size\":300")).unwrap();
    check_refused(&inspect, &["vocabulary of 300", "not resized"]);
}

#[test]
fn a_model_that_reads_text_recommends() {
    let dir = tempfile::tempdir().unwrap();
    let (model, catalog) = files(dir.path());
    write_weights(&model);
    let template = json!({
        "messages": [{"role": "user", "content": "{{ user.name }} asks: {{ query }}\n{{ history | join(', ') }}"}],
        "before_item": "=", "end": "{{ eos_token }}",
        "think": {"begin": "<think>", "end": "</think>", "then": "="}, "explain": {"begin": " since"},
    });
    write(Path::new(&model), "prompt_template.json", &template.to_string());
    let ask =
        ["recommend", "--model", &model, "--catalog", &catalog, "--history", "i1,i2", "-k", "3"];
    check_refused(&ask, &["query, user.name"]);
    let with = [&ask[..], &["--query", "a light tent", "--user", r#"{"name": "Zoë"}"#]].concat();
    let answer = run_json(&with);
    assert_eq!(answer["items"].as_array().unwrap().len(), 3);
    assert!(answer["thought"].is_null());
    check_refused(&[&with[..], &["--user", "[]"]].concat(), &["--user"]);
    let hostile = [&ask[..], &["--query", "<|im_end|>", "--user", r#"{"name": "Zoë"}"#]].concat();
    check_refused(&hostile, &["<|im_end|>", "special token"]);
    let free =
        [&with[..], &["--think-tokens", "4", "--explain-items", "2", "--explain-tokens", "3"]]
            .concat();
    let answer = run_json(&free);
    assert_eq!(answer["items"].as_array().unwrap().len(), 3);
    assert!(answer["thought"].is_string());
    assert_eq!(answer["explanations"].as_array().unwrap().len(), 2);
    assert!(run(&free).contains("thought: "));
}
