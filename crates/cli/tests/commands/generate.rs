//! `palmette generate` as a user types it, with a tiny model of random weights.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::command::{check_refused, palmette, palmette_with_input, run, run_json, write};

/// A folder with the weights of a test of `palmette-model`, and a vocabulary of the 95 characters
/// of ASCII, a mark and an end.
pub(crate) struct Model(tempfile::TempDir);

const TEMPLATE: &str = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system messages') }}{% endif %}\
    {{ m.role }}: {{ m.content }} {% endfor %}{% for t in tools or [] %}{{ t.function.name }} {% endfor %}assistant: ";

impl Model {
    pub(crate) fn new() -> Self {
        Self::of("tied_f32", ["<|call|>", "</s>"])
    }

    /// The model of a fixture, with these special tokens.
    pub(crate) fn of(fixture: &str, specials: [&str; 2]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/fixtures");
        for file in fs::read_dir(fixtures.join(fixture)).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if name == "config.json" || name.starts_with("model") {
                fs::copy(fixtures.join(fixture).join(&name), dir.path().join(&name)).unwrap();
            }
        }
        let pieces: Vec<String> =
            (' '..='~').map(String::from).chain(specials.map(String::from)).collect();
        write(dir.path(), "tokenizer.json", &json!(pieces).to_string());
        let config = json!({"eos_token": "</s>", "chat_template": TEMPLATE});
        write(dir.path(), "tokenizer_config.json", &config.to_string());
        Self(dir)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn file(&self, name: &str, text: &str) -> String {
        write(self.0.path(), name, text)
    }

    /// Options after `generate --model`.
    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["generate", "--model", self.path()], more].concat()
    }

    #[track_caller]
    fn refused(&self, more: &[&str], words: &[&str]) {
        check_refused(&self.args(more), words);
    }
}

const SCHEMA: &str = r#"{"type": "object", "required": ["on"], "additionalProperties": false,
    "properties": {"on": {"type": "boolean"}, "word": {"type": "string", "maxLength": 4}}}"#;

#[test]
fn a_text_fits_its_schema_and_its_numbers_are_said() {
    let model = Model::new();
    let schema = model.file("schema.json", SCHEMA);
    let args =
        model.args(&["--prompt", "ab: ", "--schema", &schema, "--temperature", "1", "--seed", "4"]);
    let output = palmette(&args);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["on"].is_boolean(), "{text}");
    let said = String::from_utf8(output.stderr).unwrap();
    for words in
        ["tokens in", "after a prompt of 4", "forced (", "masks", "% of the time", "ended by </s>"]
    {
        assert!(said.contains(words), "{said}");
    }

    let report = run_json(&args);
    assert_eq!(report["text"], text.trim_end());
    assert_eq!((&report["finish_reason"], &report["is_complete"]), (&json!("stop"), &json!(true)));
    assert_eq!(report["finish"], json!({"rule": "promised", "steered": 0}));
    assert_eq!(report["end_token"], "</s>");
    let usage = &report["usage"];
    let [tokens, forced, passes] =
        ["completion_tokens", "forced_tokens", "passes"].map(|key| usage[key].as_u64().unwrap());
    assert!(forced > 0 && tokens == text.trim_end().len() as u64 + 1, "{report}");
    assert_eq!(passes, tokens - forced);
    // Quiet, and the same at any number of threads.
    let quiet = palmette(&[&args[..], &["--quiet", "--threads", "2"]].concat());
    assert_eq!((String::from_utf8(quiet.stdout).unwrap(), quiet.stderr), (text, vec![]));
}

/// Items as semantic IDs in tokens of the model, each found by a beam search.
#[test]
fn texts_have_items_in_the_model_s_tokens() {
    let model = Model::new();
    let items = (0..40_u32).map(|n| {
        let item = json!({"item_id": format!("P{n}"), "codes": [n % 4, n / 4], "stock": n % 2});
        item.to_string()
    });
    let items = model.file("items.jsonl", &items.collect::<Vec<_>>().join("\n"));
    let shop = model.file("shop.palm", "");
    run(&["catalog", "build", &items, "--out", &shop]);
    let shop = format!("shop={shop}");
    let line = json!({
        "prompt": "a", "guided_grammar": "root ::= \"x\" <catalog:shop.codes> [0-9]{2} <catalog:shop.codes>",
        "item_search": {"beam_width": 50, "alternatives": 3},
        "catalogs": {"shop": {"filter": {"match": {"stock": 1}}}},
    });
    let batch = model.file("batch.jsonl", &line.to_string());
    let args = model.args(&["--batch", &batch, "--catalog", &shop]);
    let answer = String::from_utf8(palmette(&args).stdout).unwrap();
    assert!(answer.contains("no tokens spell the codes of shop: "), "{answer}");
    // Codes are letters: `A` to `D`, then `a` to `j`.
    let format = json!({
        "levels": [{"prefix": "a", "first_token": 33, "num_codes": 4}, {"prefix": "b", "first_token": 65, "num_codes": 10}],
        "max_history_items": 4,
    });
    model.file("semantic_ids.json", &format.to_string());
    let answer: Value = serde_json::from_str(&run(&args)).unwrap();
    let text = answer["text"].as_str().unwrap().as_bytes();
    let members = answer["members"].as_array().unwrap();
    assert_eq!(members.len(), 2, "{answer}");
    for (member, begin) in members.iter().zip([1, 5]) {
        let (first, second) = (u32::from(text[begin] - b'A'), u32::from(text[begin + 1] - b'a'));
        let item = format!("P{}", second * 4 + first);
        assert_eq!((&member["field"], &member["id"]), (&json!("codes"), &json!(item)));
        assert_eq!(member["span"], json!([begin, begin + 2]));
        let alternatives = member["alternatives"].as_array().unwrap();
        let scores: Vec<f64> =
            alternatives.iter().map(|other| other["score"].as_f64().unwrap()).collect();
        assert!(scores.len() == 3 && member["score"].as_f64().unwrap() >= scores[0], "{answer}");
        let stock = |id: &Value| id.as_str().unwrap()[1..].parse::<u32>().unwrap() % 2;
        assert!(alternatives.iter().all(|other| stock(&other["id"]) == 1), "{answer}");
    }
    let wide = json!({"prompt": "a", "item_search": {"beam_width": 5000}});
    let wide = model.file("wide.json", &wide.to_string());
    model.refused(&["--chat", &wide], &["item_search", "5000", "at most 1024"]);
}

/// Members of catalogs that a grammar leaves open, under filters, from files of every kind.
#[test]
fn texts_name_members_of_catalogs() {
    let model = Model::new();
    let items: Vec<String> = (0..40)
        .map(|n| {
            json!({"item_id": format!("P{n}"), "codes": [n % 4, n], "stock": n % 2}).to_string()
        })
        .collect();
    let (items, units) =
        (model.file("items.jsonl", &items.join("\n")), model.file("units.txt", "kg\nlb\n"));
    let (shop, lexicon) = (model.file("shop.palm", ""), model.file("units.palm", ""));
    run(&["catalog", "build", &items, "--out", &shop]);
    run(&["lexicon", "build", &units, "--out", &lexicon]);
    let schema = model.file(
        "answer.json",
        r#"{"type": "object", "required": ["sku", "unit"], "additionalProperties": false, "properties": {
            "sku": {"type": "string", "x-catalog": "shop"}, "unit": {"type": "string", "x-catalog": "units"}}}"#,
    );
    let (shop, units) = (format!("shop={shop}"), format!("units={lexicon}"));
    let base = ["--prompt", "a: ", "--temperature", "1", "--quiet"];
    let shape = ["--schema", &*schema, "--catalog", &*shop, "--catalog", &*units];
    for seed in ["1", "2", "3"] {
        let filter = ["--filter", "shop={\"match\": {\"stock\": 1}}", "--seed", seed];
        let text = run(&model.args(&[&base[..], &shape, &filter].concat()));
        let value: Value = serde_json::from_str(&text).unwrap();
        let sku = value["sku"].as_str().unwrap().strip_prefix('P').unwrap().parse::<u32>().unwrap();
        assert!(sku < 40 && sku % 2 == 1, "{text}");
        assert!(["kg", "lb"].contains(&value["unit"].as_str().unwrap()), "{text}");
    }
    // A line may say filters and values of its own, and calls catalogs by the options' names.
    let lines = [
        json!({"prompt": "a"}),
        json!({"prompt": "b", "guided_regex": "x"}),
        json!({"prompt": "c", "catalogs": {"shop": {"filter": {"ids": ["P7"]}}, "units": {"values": ["x\""]}}}),
        json!({"prompt": "d", "guided_grammar": "root ::= <catalog:mine> \";\"", "catalogs": {"mine": {"catalog": "units", "exclude": ["kg"]}}}),
    ];
    let batch = model.file("batch.jsonl", &lines.map(|line| line.to_string()).join("\n"));
    let answers = run(&model.args(&[&["--batch", &*batch], &shape[..]].concat()));
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(answers[0]["text"].as_str().unwrap().contains("sku"), "{answers:?}");
    assert!(answers[1].get("members").is_none(), "{answers:?}");
    let text = answers[2]["text"].as_str().unwrap();
    for (member, [value, spelled]) in
        answers[2]["members"].as_array().unwrap().iter().zip([["P7", "P7"], ["x\"", "x\\\""]])
    {
        let [begin, end] = [0, 1].map(|at| member["span"][at].as_u64().unwrap() as usize);
        assert_eq!((member["value"].as_str(), &text[begin..end]), (Some(value), spelled));
    }
    assert_eq!(answers[3]["text"], "lb;");
    let own = json!({"prompt": "a", "catalogs": {"shop": {"catalog": "shpo"}}});
    let own = model.file("own.json", &own.to_string());
    let refused = [&["--chat", &*own], &shape[..]].concat();
    model.refused(&refused, &["there is no catalog", "the nearest is", "shop"]);

    let refused = |more: &[&str], words: &[&str]| model.refused(&[&base[..], more].concat(), words);
    refused(&shape[..4], &["names the catalog units", "--catalog units=FILE"]);
    refused(&["--regex", "x", "--catalog", &shop], &["--catalog shop: the text has no grammar"]);
    let none = ["--filter", "shop={\"match\": {\"stock\": 7}}"];
    refused(&[&shape[..], &none].concat(), &["no text is left", "shop: 0 of 40 match"]);
    refused(
        &["--schema", &schema, "--filter", "shop={}"],
        &["--filter shop", "--catalog shop=FILE"],
    );
}

#[test]
fn every_way_of_saying_the_shape_gives_its_texts() {
    let model = Model::new();
    let lark = model.file("a.lark", "start: \"x\" /[0-9]{2}/ \"y\"\n");
    let gbnf = model.file("a.gbnf", "root ::= \"x\" [0-9] [0-9] \"y\"\n");
    let format = json!({"type": "json_schema", "json_schema": {"schema": {"enum": ["x12y"]}}});
    let format = model.file("format.json", &format.to_string());
    for shape in [
        &["--grammar", lark.as_str()][..],
        &["--grammar", &gbnf],
        &["--regex", "x[0-9]{2}y"],
        &["--response-format", &format],
    ] {
        let text = run(&model.args(&[&["--prompt", "a", "--quiet"], shape].concat()));
        let text = text.trim().trim_matches('"');
        assert!(text.len() == 4 && text.starts_with('x') && text.ends_with('y'), "{text}");
    }
    // Without its mask such a model writes something else, of any length.
    let args =
        ["--prompt", "a", "--regex", "x[0-9]{2}y", "--no-mask", "--max-tokens", "9", "--json"];
    let free: Value = serde_json::from_str(&run(&model.args(&args))).unwrap();
    assert_ne!(free["text"].as_str().unwrap().chars().next(), Some('x'));
    assert_eq!(free["usage"]["forced_tokens"], 0);
}

#[test]
fn tools_are_called_and_calls_are_read() {
    let model = Model::new();
    let tool = json!({"name": "now", "input_schema": {"type": "object", "properties": {"utc": {"type": "boolean"}}, "required": ["utc"], "additionalProperties": false}});
    let tools = model.file("tools.json", &json!([tool]).to_string());
    let args = [
        "--one-call",
        "--ask",
        "time?",
        "--tools",
        &tools,
        "--tool-choice",
        "required",
        "--tool-format",
    ];
    for format in ["llama3", "mistral"] {
        let args = model.args(
            &[&args[..], &[format, "--max-tokens", "90", "--seed", "2", "--temperature", "1"]]
                .concat(),
        );
        let report = run_json(&args);
        let call = &report["tool_calls"][0];
        assert_eq!(
            (&call["name"], &report["finish_reason"]),
            (&json!("now"), &json!("tool_calls"))
        );
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments["utc"].is_boolean(), "{report}");
    }
    let text = run(&model.args(&[&args[..], &["llama3", "--quiet"]].concat()));
    assert!(text.starts_with("call now {"), "{text}");
    // Which format the model writes is not shown by its template.
    model.refused(
        &["--ask", "time?", "--tools", &tools],
        &["shows no format of tool calls", "--tool-format", "): apertus, cohere"],
    );
    model.refused(
        &["--ask", "time?", "--tools", &tools, "--tool-format", "hermse"],
        &["\"hermse\" is no format", "llama3"],
    );
    let named = [&args[..5], &["--tool-choice", "later", "--tool-format", "hermes"]].concat();
    model.refused(&named, &["\"later\" is not there", "now"]);
}

#[test]
fn conversations_come_from_files_and_requests() {
    let model = Model::new();
    let messages = json!([{"role": "user", "content": "hi"}]);
    let list = model.file("list.json", &messages.to_string());
    let request = json!({"messages": messages, "model": "any", "max_tokens": 5, "response_format": {"type": "regex", "pattern": "[ab]{3}"}});
    let request = model.file("request.json", &request.to_string());
    let asked = run(&model.args(&["--ask", "hi", "--max-tokens", "5", "--quiet"]));
    assert_eq!(run(&model.args(&["--chat", &list, "--max-tokens", "5", "--quiet"])), asked);
    let prompt = model.file("prompt.txt", "user: hi assistant: ");
    assert_eq!(
        run(&model.args(&["--prompt-file", &prompt, "--max-tokens", "5", "--quiet"])),
        asked
    );
    let stdin = palmette_with_input(
        &model.args(&["--prompt-file", "-", "--max-tokens", "5", "-q"]),
        "user: hi assistant: ",
    );
    assert_eq!(String::from_utf8(stdin.stdout).unwrap(), asked);
    let shaped = run(&model.args(&["--chat", &request, "--quiet"]));
    assert!(
        shaped.trim_end().len() == 3 && shaped.trim_end().chars().all(|c| "ab".contains(c)),
        "{shaped}"
    );

    let bad = |name: &str, text: &str| model.file(name, text);
    for (file, words) in [
        (bad("a.json", "{"), "a.json"),
        (bad("b.json", "{\"prompts\": []}"), "nor \"messages\"; there are: prompts"),
        (bad("c.json", "{\"temperature\": 1}"), "nor \"messages\"; there are: temperature"),
        (bad("d.json", "[]"), "no messages"),
        (bad("e.json", "[{\"content\": \"x\"}]"), "message 0: its \"role\""),
        (bad("f.json", "[{\"role\": \"system\", \"content\": \"x\"}]"), "no system messages"),
        (bad("g.json", "7"), "a list of messages"),
    ] {
        model.refused(&["--chat", &file], &[words]);
    }
}

/// The body of a request to `palmette serve` is read as it is, and names what changes nothing.
#[test]
fn a_servers_body_is_a_document() {
    let model = Model::new();
    let body = json!({
        "model": "any", "stream": true, "stream_options": {"include_usage": true}, "deadline_ms": 5, "user": "u", "metadata": {},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "so"}],
        "continue_final_message": true, "guided_choice": ["yes", "no"], "stop_token_ids": [3], "reasoning_effort": "low",
        "json_form": {"whitespace": "compact"}, "best_of": 1, "logprobs": true, "top_logprobs": 1, "max_completion_tokens": 9,
    });
    let file = model.file("body.json", &body.to_string());
    let report = run_json(&model.args(&["--chat", &file]));
    assert!(["yes", "no"].contains(&report["text"].as_str().unwrap()), "{report}");
    assert_eq!(report["usage"]["prompt_tokens"], "user: hi assistant: so".len());
    assert_eq!(report["tokens"][0]["top"].as_array().unwrap().len(), 1);
    let warnings = report["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().starts_with("reasoning_effort is low"), "{report}");
    assert_eq!(
        warnings[1],
        "metadata, user, model, stream, stream_options, deadline_ms: for servers, and without effect here"
    );
    let output = palmette(&model.args(&["--chat", &file, "--max-tokens", "9"]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("warning: metadata, user, model"), "{said}");
    // Its form goes before that of the options, which are named where they are at fault.
    let chosen = run(&model.args(&["--chat", &file, "--regex", "[a-z]{9}", "-q"]));
    assert!(["yes\n", "no\n"].contains(&chosen.as_str()), "{chosen}");
    model.refused(&["--prompt", "a", "--regex", "a\\bb"], &["--regex", "no text"]);
    // All that is wrong is said.
    let wrong = json!({"messages": [], "guided_choice": [], "top_p": 7, "temperature": -1});
    let wrong = model.file("wrong.json", &wrong.to_string());
    model.refused(
        &["--chat", &wrong],
        &["no messages", "no choices", "top_p is 7", "temperature is -1"],
    );
    for (members, words) in [
        (json!({"prompt": "a", "best_of": 2}), "only 1 is computed where answers are drawn"),
        (json!({"prompt": "a", "echo": true}), "echo is true"),
        (json!({"prompt": "a", "messages": []}), "give one"),
        (json!({"prompt": "a", "regex": "b"}), "use structured_outputs.regex"),
        (json!({"prompt": "a", "max_token": 3}), "did you mean \"max_tokens\""),
    ] {
        let file = model.file("bad.json", &members.to_string());
        model.refused(&["--chat", &file], &[words]);
    }
    let tools = model.file("tools.json", r#"[{"name": "now"}]"#);
    model.refused(&["--prompt", "a", "--tools", &tools], &["tools are for conversations"]);
    // Several prompts are several texts.
    let prompts = json!({"prompt": [[65], [66, 67]], "n": 2, "guided_regex": "[ab]{3}"});
    let file = model.file("prompts.json", &prompts.to_string());
    let report = run_json(&model.args(&["--chat", &file]));
    assert_eq!(report["answers"].as_array().unwrap().len(), 4, "{report}");
}

#[test]
fn templates_that_are_missing_or_wrong_are_named() {
    let model = Model::new();
    let other = model.file("other.jinja", "{{ messages[0].content }}!");
    let args = ["--ask", "hi", "--max-tokens", "3", "-q"];
    let with = run(&model.args(&[&args[..], &["--chat-template", &other]].concat()));
    assert_eq!(with, run(&model.args(&["--prompt", "hi!", "--max-tokens", "3", "-q"])));
    let broken = model.file("broken.jinja", "{% for %}");
    model.refused(
        &[&args[..], &["--chat-template", &broken]].concat(),
        &["broken.jinja", "no Jinja"],
    );
    model.refused(&[&args[..], &["--chat-template", "nowhere.jinja"]].concat(), &["nowhere.jinja"]);
    fs::remove_file(model.0.path().join("tokenizer_config.json")).unwrap();
    model.refused(&args, &["has no chat template", "chat_template.jinja"]);
    // A prompt that is text needs none.
    run(&model.args(&["--prompt", "hi", "--max-tokens", "3"]));
}

#[test]
fn bad_options_are_refused_with_their_rule() {
    let model = Model::new();
    let long = "a".repeat(200);
    let schema = model.file("bad.json", r#"{"type": "objekt"}"#);
    for (more, words) in [
        (&["--max-tokens", "0"][..], "--max-tokens is 0"),
        (&["--max-tokens", "128"], "ask for at most 127"),
        (&["--stop", ""], "--stop is empty"),
        (&["--temperature", "-1"], "--temperature is -1"),
        (&["--temperature", "1e39"], "'1e39' for '--temperature <T>': it is from -3.4e38"),
        (&["--top-p", "2"], "--top-p is 2"),
        (&["-n", "0"], "-n is 0"),
        (&["--logit-bias", "5000=1"], "--logit-bias names token 5000"),
        (&["--logit-bias", "x"], "ID=F"),
        (
            &["--min-tokens", "9", "--max-tokens", "3"],
            "--min-tokens is 9, more than the 3 of --max-tokens",
        ),
        (&["--beams", "100"], "--beams is 100, the beams of a search"),
        (&["--beams", "2", "-n", "3"], "--beams is 2, and -n is 3"),
        (&["--beams", "2", "--length-penalty", "-11"], "--length-penalty is -11; it must be from"),
        (&["--beams", "2", "--length-penalty", "-1e308"], "'-1e308' for '--length-penalty <P>'"),
        (&["--schema", &schema], "bad.json"),
        (&["--schema", "nowhere.json"], "nowhere.json"),
        (&["--regex", "[a"], "--regex"),
        (&["--regex", "a", "--schema", "b.json"], "cannot be used with"),
    ] {
        model.refused(&[&["--prompt", "a"], more].concat(), &[words]);
    }
    // Members of a document have its names.
    let document = json!({"prompt": "a", "use_beam_search": true, "best_of": 100, "max_tokens": 0});
    let document = model.file("best.json", &document.to_string());
    model.refused(&["--chat", &document], &["best_of is 100", "max_tokens is 0"]);
    let twice = model.file(
        "twice.json",
        r#"[{"name": "f", "parameters": {"type": "object", "type": "object"}}]"#,
    );
    let asked = ["--ask", "a", "--tool-format", "hermes", "--tools", &twice];
    model.refused(
        &asked,
        &["twice.json", "has the key \"type\" twice, in [0].parameters; give it once"],
    );
    model.refused(&["--prompt", &long], &["the prompt has 200 tokens and the model reads 128"]);
    model.refused(&["--prompt", ""], &["the prompt is empty"]);
    model.refused(&["--prompt", "ü"], &["no token"]);
    model.refused(&[], &["--prompt"]);
    check_refused(&["generate", "--model", "nowhere", "--prompt", "a"], &["nowhere: not a folder"]);
    fs::remove_file(model.0.path().join("tokenizer.json")).unwrap();
    model.refused(&["--prompt", "a"], &["no model of text", "give the folder of another model"]);
    let model = Model::new();
    let error = palmette(&model.args(&["--prompt", "", "--json"]));
    let error: Value = serde_json::from_slice(&error.stdout).unwrap();
    assert!(error["error"].as_str().unwrap().contains("empty"), "{error}");
}

#[test]
fn several_texts_stop_strings_and_streams() {
    let model = Model::new();
    let args =
        model.args(&["--prompt", "a", "--temperature", "1", "--max-tokens", "12", "-n", "3", "-q"]);
    let text = run(&args);
    assert!(text.starts_with("== 1\n") && text.contains("\n== 3\n"), "{text}");
    let report = run_json(&args);
    let texts: Vec<&str> =
        report["answers"].as_array().unwrap().iter().map(|a| a["text"].as_str().unwrap()).collect();
    assert_eq!(texts.len(), 3);
    let second = model.args(&[
        "--prompt",
        "a",
        "--temperature",
        "1",
        "--max-tokens",
        "12",
        "--seed",
        "1",
        "--json",
    ]);
    let second: Value = serde_json::from_str(&run(&second)).unwrap();
    assert_eq!(second["text"], texts[1]);

    let stop: String = texts[1].chars().skip(4).take(2).collect();
    let stopped = model.args(&[
        "--prompt",
        "a",
        "--temperature",
        "1",
        "--max-tokens",
        "12",
        "--seed",
        "1",
        "--json",
        "--stop",
        &stop,
    ]);
    let stopped: Value = serde_json::from_str(&run(&stopped)).unwrap();
    assert_eq!(stopped["stop"], stop.as_str());
    assert!(texts[1].starts_with(stopped["text"].as_str().unwrap()));

    let streamed = run(&model.args(&[
        "--prompt",
        "a",
        "--max-tokens",
        "6",
        "--json",
        "--stream",
        "--logprobs",
        "2",
    ]));
    let lines: Vec<Value> =
        streamed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (last, pieces) = lines.split_last().unwrap();
    let whole: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert_eq!(last["text"], whole.as_str());
    let tokens = last["tokens"].as_array().unwrap();
    assert_eq!((tokens.len(), tokens[0]["top"].as_array().unwrap().len()), (6, 2));
}

#[test]
fn the_best_texts_of_a_search_come_in_their_order() {
    let model = Model::new();
    let options = ["--prompt", "a", "--regex", "red|green|blue", "--beams", "6", "-n", "4"];
    let found: Value = serde_json::from_str(&run(
        &model.args(&[&options[..], &["--json", "--length-penalty", "0.5"]].concat())
    ))
    .unwrap();
    // Three texts exist, however they are spelled.
    let answers = found["answers"].as_array().unwrap();
    let texts: Vec<&str> = answers.iter().map(|one| one["text"].as_str().unwrap()).collect();
    let scores: Vec<f64> = answers.iter().map(|one| one["score"].as_f64().unwrap()).collect();
    let mut sorted = texts.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["blue", "green", "red"]);
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    // The same by a document, which people read with headings.
    let document = json!({"prompt": "a", "guided_regex": "red|green|blue", "use_beam_search": true, "best_of": 6,
        "length_penalty": 0.5, "n": 4});
    let file = model.file("beams.json", &document.to_string());
    let shown = run(&model.args(&["--chat", &file, "--quiet"]));
    let expected: String =
        (1..).zip(&texts).map(|(number, text)| format!("== {number}\n{text}\n")).collect();
    assert_eq!(shown, expected);

    for (more, words) in [
        (&["--temperature", "0.5"][..], "--temperature is 0.5"),
        (&["--stop", "x"], "stop_token_ids"),
        (&["--beams", "3"], "as many beams as"),
        (&["--finish", "gentle"], "promised and cut"),
    ] {
        let mut asked = vec!["--prompt", "a", "-n", "4"];
        asked.extend(if more[0] == "--beams" { &[][..] } else { &["--beams", "6"] });
        asked.extend(more);
        let output = palmette(&model.args(&asked));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(words), "{more:?}: {said}");
    }
    let batch = model.file("beams.jsonl", &document.to_string());
    let output = palmette(&model.args(&["--batch", &batch]));
    assert!(String::from_utf8(output.stdout).unwrap().contains("a batch are drawn"));
}

#[test]
fn a_batch_answers_every_line_and_tells_of_bad_ones() {
    let model = Model::new();
    let lines = [
        json!({"id": "a", "prompt": "x", "guided_regex": "[ab]{4}", "user": "u"}),
        json!({"id": 7, "messages": [{"role": "user", "content": "hi"}], "structured_outputs": {"json": {"type": "boolean"}}, "n": 2}),
        json!({"id": "bad", "prompt": "x", "max_tokens": 0}),
        json!({"prompt": "x", "guided_grammar": "start: \"q\"", "stop": ["z"]}),
        json!({"id": "worse", "promt": "x"}),
        json!({"prompt": "x", "schema": {}, "guided_regex": "a"}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n\n")).collect();
    let batch = model.file("batch.jsonl", &text);
    let output = palmette(&model.args(&["--batch", &batch, "--max-tokens", "20"]));
    assert_eq!(output.status.code(), Some(1));
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<Value> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(
        ids,
        [json!("a"), json!(7), json!(7), json!("bad"), Value::Null, json!("worse"), Value::Null]
    );
    assert_eq!(
        answers.iter().map(|a| a["line"].as_u64().unwrap()).collect::<Vec<_>>(),
        [1, 3, 3, 5, 7, 9, 11]
    );
    assert_eq!(answers[0]["text"].as_str().unwrap().len(), 4);
    assert_eq!(answers[0]["warnings"], json!(["user: for servers, and without effect here"]));
    assert_eq!((&answers[1]["index"], &answers[2]["index"]), (&json!(0), &json!(1)));
    assert!(["true", "false"].contains(&answers[1]["text"].as_str().unwrap()));
    assert_eq!(answers[4]["text"], "q");
    for (answer, words) in
        [(3, "max_tokens is 0"), (5, "there are: promt"), (6, "use structured_outputs.json")]
    {
        assert!(answers[answer]["error"].as_str().unwrap().contains(words), "{}", answers[answer]);
    }
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("4 answers to 6 lines")
            && said.contains("3 of 6 lines could not be answered"),
        "{said}"
    );

    let good: String = lines[..2].iter().map(|line| format!("{line}\n")).collect();
    let from_stdin = palmette_with_input(&model.args(&["--batch", "-", "-q"]), &good);
    assert!(from_stdin.status.success() && from_stdin.stderr.is_empty());
    assert_eq!(String::from_utf8(from_stdin.stdout).unwrap().lines().count(), 3);
}

#[test]
fn answers_do_not_depend_on_how_many_are_written_at_once() {
    let model = Model::new();
    let lines: Vec<Value> = (0..18_usize)
        .map(|n| {
            let mut line = json!({
                "id": n, "prompt": "ab".repeat(1 + (n * 13) % 40), "seed": n, "temperature": 1, "max_tokens": 11 + (n * 7) % 25,
            });
            match n % 3 {
                0 => line["guided_regex"] = json!("[a-f]{2,9}x"),
                1 => line["n"] = json!(2),
                _ => line["guided_json"] = serde_json::from_str(SCHEMA).unwrap(),
            }
            line
        })
        .collect();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let batch = model.file("batch.jsonl", &text);
    let answers_with = |more: &[&str]| -> Vec<Value> {
        let text = run(&model.args(&[&["--batch", &batch, "-q"], more].concat()));
        let without_times = |line: &str| {
            let mut answer: Value = serde_json::from_str(line).unwrap();
            let answer_members = answer.as_object_mut().unwrap();
            answer_members.remove("seconds").expect("it has times");
            answer["usage"].as_object_mut().unwrap().remove("passes").expect("it has passes");
            answer
        };
        text.lines().map(without_times).collect()
    };
    let answers = |at_once: &str| answers_with(&["--at-once", at_once]);
    let one = answers("1");
    let ids: Vec<u64> = one.iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), 24);
    assert!(ids.is_sorted(), "{ids:?}");
    for at_once in ["3", "8"] {
        assert_eq!(answers(at_once), one, "{at_once} at once");
    }
    // Nor on what a draft model guesses: the model itself, or another.
    let other = Model::of("untied_sharded", ["<|call|>", "</s>"]);
    for draft_model in [&model, &other] {
        assert_eq!(answers_with(&["--draft-model", draft_model.path()]), one);
    }
    let named = Model::of("tied_f32", ["<|tool|>", "</s>"]);
    model.refused(
        &["--batch", &batch, "--draft-model", named.path()],
        &["token 95 is the special token <|tool|> there and the special token <|call|> here"],
    );
    model.refused(
        &["--batch", &batch, "--draft-model", "nowhere"],
        &["--draft-model nowhere", "not a folder"],
    );
    model.refused(&["--prompt", "a", "--draft-model", "b"], &["cannot be used with"]);
    // And they are those of the command for one prompt.
    let first = &lines[0];
    let [seed, max_tokens] = ["seed", "max_tokens"].map(|key| first[key].to_string());
    let alone = run_json(&model.args(&[
        "--prompt",
        first["prompt"].as_str().unwrap(),
        "--regex",
        "[a-f]{2,9}x",
        "--temperature",
        "1",
        "--seed",
        &seed,
        "--max-tokens",
        &max_tokens,
    ]));
    assert_eq!(alone["text"], one[0]["text"]);
    model.refused(&["--batch", &batch, "--at-once", "0"], &["--at-once is 0"]);
    model.refused(&["--prompt", "a", "--at-once", "2"], &["cannot be used with"]);
}

#[test]
fn a_device_that_is_not_there_is_refused_by_name() {
    let model = Model::new();
    let prompt = ["--prompt", "ab: ", "--max-tokens", "3", "--temperature", "0"];
    let on = |device: &[&'static str]| [&prompt, device].concat();
    model.refused(&on(&["--device", "gpu"]), &["\"gpu\" is no device", "cpu, or cuda:0"]);
    model.refused(&on(&["--device", "cuda:999"]), &["--device cuda:999"]);
    model.refused(&on(&["--device-memory", "1GiB"]), &["--device-memory is of a device"]);
    let here = run(&model.args(&on(&["--device", "cpu"])));
    assert_eq!(here, run(&model.args(&prompt)));
}
