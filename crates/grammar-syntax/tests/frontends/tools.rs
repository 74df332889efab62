//! Tools and requests: the calls and answers that they allow, and messages.

use palmette_grammar_parser::{Budget, Grammar};
use palmette_grammar_syntax::structural_tag::{
    StructuralTagOptions, ToolFormat, check_tools, parse_tools_with_budget,
};
use palmette_testkit::grammar::Machine;

fn read(request: &str, format: &str) -> (Grammar, Vec<(String, String)>) {
    let format = ToolFormat::named(format).unwrap();
    let options = StructuralTagOptions::default();
    let read = parse_tools_with_budget(request, format, &options, &mut Budget::unlimited());
    let (grammar, warnings) = read.unwrap_or_else(|error| panic!("{request}\n{error}"));
    (grammar, warnings.into_iter().map(|warning| (warning.pointer, warning.message)).collect())
}

#[track_caller]
fn calls(request: &str, format: &str, valid: &[&str], invalid: &[&str]) {
    let (grammar, _) = read(request, format);
    let machine = Machine::new(&grammar.without_tokens()).unwrap();
    for text in valid {
        assert!(machine.accepts(text), "{text:?} is refused in {format} by\n{request}");
    }
    for text in invalid {
        assert!(!machine.accepts(text), "{text:?} is accepted in {format} by\n{request}");
    }
}

#[track_caller]
fn refused(request: &str, rule: &str) {
    refused_in("hermes", request, rule);
}

#[track_caller]
fn refused_in(format: &str, request: &str, rule: &str) {
    let (format, options) = (ToolFormat::named(format).unwrap(), StructuralTagOptions::default());
    let read = parse_tools_with_budget(request, format, &options, &mut Budget::unlimited());
    let error = read.map(|_| ()).expect_err(request).to_string();
    assert!(error.contains(rule), "{rule:?} is not in:\n{error}");
}

/// A call in the format of hermes.
fn call(name: &str, arguments: &str) -> String {
    format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
}

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "time", "description": "now", "parameters": {"type": "object",
    "properties": {"zone": {"enum": ["cet"]}}, "required": ["zone"], "additionalProperties": false}}},
    {"name": "rain", "input_schema": {"type": "object", "properties": {"mm": {"type": "integer"}}, "additionalProperties": false}},
    {"name": "stop"}]"#;

fn request(more: &str) -> String {
    format!("{{\"tools\": {TOOLS}{more}}}")
}

const TIME_CALL: &str =
    "<tool_call>\n{\"name\": \"time\", \"arguments\": {\"zone\": \"cet\"}}\n</tool_call>";
const RAIN_CALL: &str =
    "<tool_call>\n{\"name\": \"rain\", \"arguments\": {\"mm\": 3}}\n</tool_call>";

/// A tool that says `"strict": false` takes any object where the request has `lax_tools`, beside
/// others that are held to their schemas.
#[test]
fn lax_tools_take_any_object() {
    let tool = |name: &str, strict: &str| {
        format!(
            r#"{{"type": "function", "function": {{"name": "{name}", "parameters": {{"type": "object",
                "properties": {{"mm": {{"type": "integer"}}}}, "required": ["mm"], "additionalProperties": false}}{strict}}}}}"#
        )
    };
    let tools = [
        tool("strict", ", \"strict\": true"),
        tool("silent", ""),
        tool("null", ", \"strict\": null"),
        tool("lax", ", \"strict\": false"),
        r#"{"type": "function", "name": "flat", "parameters": {"type": "object", "additionalProperties": false}, "strict": false}"#
            .to_owned(),
    ];
    let asked = |more: &str| {
        let tools = tools.join(", ");
        format!("{{\"tools\": [{tools}], \"tool_choice\": \"required\"{more}}}")
    };
    let call = |name: &str, arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let others = [call("strict", "{}"), call("silent", "{}"), call("null", "{\"a\": 1}")];
    let lax = [
        call("lax", "{}"),
        call("lax", "{\"mm\": \"few\", \"a\": [1]}"),
        call("flat", "{\"a\": 1}"),
    ];
    let no_object = [call("lax", "1"), call("lax", "[]"), call("lax", "")];
    let fit = [call("strict", "{\"mm\": 1}"), call("lax", "{\"mm\": 1}"), call("flat", "{}")];
    let [others, lax, no_object, fit] = [&others, &lax, &no_object, &fit]
        .map(|calls| calls.iter().map(String::as_str).collect::<Vec<_>>());
    let refused = [&others[..], &no_object].concat();
    calls(&asked(", \"lax_tools\": true"), "hermes", &[&fit[..], &lax].concat(), &refused);
    for more in ["", ", \"lax_tools\": false", ", \"lax_tools\": null"] {
        calls(&asked(more), "hermes", &fit, &[&refused[..], &lax].concat());
    }
}

#[test]
fn calls_may_stand_in_words() {
    let both = format!("let me see {TIME_CALL}\n{RAIN_CALL}");
    let thought = format!("<think>hm</think>{TIME_CALL}");
    let wrong = TIME_CALL.replace("cet", "utc");
    let unknown = TIME_CALL.replace("time", "snow");
    calls(
        TOOLS,
        "hermes",
        &["", "hello", TIME_CALL, &both, &thought],
        &[&wrong, &unknown, "<tool_call>"],
    );
}

#[test]
fn a_choice_requires_forbids_or_names_calls() {
    let both = format!("{TIME_CALL}\n{RAIN_CALL}");
    calls(
        &request(", \"tool_choice\": \"required\""),
        "hermes",
        &[TIME_CALL, &both],
        &["", "hello"],
    );
    calls(
        &request(", \"tool_choice\": {\"type\": \"any\"}, \"parallel_tool_calls\": false"),
        "hermes",
        &[RAIN_CALL],
        &["", &both],
    );
    calls(
        &request(", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"rain\"}}"),
        "hermes",
        &[RAIN_CALL],
        &[TIME_CALL, "x", &format!("{RAIN_CALL}\n{RAIN_CALL}")],
    );
    calls(
        &request(
            ", \"parallel_tool_calls\": true, \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"rain\"}}",
        ),
        "hermes",
        &[RAIN_CALL, &format!("{RAIN_CALL}\n{RAIN_CALL}")],
        &[TIME_CALL],
    );
    calls(
        &request(", \"tool_choice\": {\"type\": \"tool\", \"name\": \"time\"}"),
        "hermes",
        &[TIME_CALL],
        &[RAIN_CALL],
    );
    calls(&request(", \"tool_choice\": \"none\""), "hermes", &["words"], &[]);
}

#[test]
fn an_answer_without_a_call_has_the_response_format() {
    let format = r#", "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}"#;
    calls(&request(format), "hermes", &["7", TIME_CALL], &["seven", "{}"]);
    let alone = r#"{"type": "json_schema", "json_schema": {"schema": {"type": "integer"}}}"#;
    calls(alone, "llama3", &["7"], &["seven"]);
    calls("{\"response_format\": {\"type\": \"json_object\"}}", "llama3", &["{\"a\": 1}"], &["[]"]);
}

#[test]
fn formats_differ_in_the_texts_around_calls() {
    let arguments = "{\"zone\": \"cet\"}";
    for (format, call) in [
        ("llama3", format!("{{\"name\": \"time\", \"parameters\": {arguments}}}")),
        ("mistral", format!("[TOOL_CALLS]time[ARGS]{arguments}")),
        (
            "mistral-list",
            format!("[TOOL_CALLS] [{{\"name\": \"time\", \"arguments\": {arguments}}}]"),
        ),
        (
            "deepseek",
            format!(
                "<think>hm</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
            ),
        ),
        (
            "harmony",
            format!(
                "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=functions.time <|constrain|>json<|message|>{arguments}"
            ),
        ),
    ] {
        let wrong = call.replace("cet", "utc");
        calls(TOOLS, format, &[&call], &[&wrong]);
        calls(&request(", \"tool_choice\": \"required\""), format, &[&call], &[&wrong, "words"]);
    }
    calls(TOOLS, "harmony", &["<|channel|>final<|message|>hello"], &["hello"]);
}

#[test]
fn a_request_that_is_none_says_the_rule() {
    refused("7", "tools are a list");
    refused("[{\"parameters\": {}}]", "a tool has a \"name\"");
    refused("[{\"name\": \"a\"}, {\"name\": \"a\"}]", "is there twice");
    refused("[{\"name\": 7}]", "the name of a tool is a text");
    refused("[{\"name\": \"\"}]", "the name of a tool is empty");
    for name in [" a", "a ", "a<|im_end|>", "a[ARGS]", "a\\\"b"] {
        refused(&format!("[{{\"name\": \"{name}\"}}]"), "is no name of a tool");
    }
    // Within quotes it ends where they do, elsewhere at what comes after it.
    for (format, is_bare) in [
        ("hermes", false),
        ("qwen_xml", true),
        ("pythonic", true),
        ("inkling", true),
        ("gemma4", true),
    ] {
        assert_eq!(ToolFormat::named(format).unwrap().has_bare_names(), is_bare, "{format}");
        for name in ["a b", "k(", "a,b", "a&b"].into_iter().filter(|_| is_bare) {
            refused_in(
                format,
                &format!("[{{\"name\": \"{name}\"}}]"),
                "writes names without quotes",
            );
        }
    }
    calls("[{\"name\": \"a b\"}]", "hermes", &[&call("a b", "{}")], &[&call("a c", "{}")]);
    refused(&request(", \"tool_choice\": \"maybe\""), "a choice is");
    refused(
        &request(", \"tool_choice\": {\"type\": \"tool\", \"name\": \"snow\"}"),
        "there are: time, rain, stop",
    );
    refused(&request(", \"response_format\": {\"type\": \"xml\"}"), "\"json_object\"");
    refused("{\"tools\": [], \"tool_choice\": \"required\"}", "there are no tools");
    refused("[{\"name\": \"a\\\"b\"}]", "no quotes");
}

/// Names of parameters are checked where names of tools are, by what the format can write.
#[test]
fn names_that_a_format_cannot_write_are_refused_with_tool_and_place() {
    let tool = |parameters: &str| format!("[{{\"name\": \"get\", \"parameters\": {parameters}}}]");
    let named = |name: &str| {
        tool(&format!(
            "{{\"type\": \"object\", \"properties\": {{\"{name}\": {{\"type\": \"string\"}}}}}}"
        ))
    };
    for (format, name) in [
        ("pythonic", ""),
        ("pythonic", "a b"),
        ("llama4", "a=b"),
        ("lfm2", "a,b"),
        ("olmo3", "a(b"),
        ("minimax_m3_xml", ""),
        ("minimax_m3_xml", "a<b"),
        ("qwen_xml", ""),
        ("qwen_xml", "a>b"),
        ("kimi_k3", ""),
        ("gemma4", "a:b"),
        ("function_gemma", " a"),
    ] {
        let place = format!(
            "at \"/0/parameters/properties/{name}\": the tool \"get\" in the format {format}: {name:?} cannot be"
        );
        refused_in(format, &named(name), &place);
        refused_in(
            format,
            &named(name),
            "rename it, or write calls in a format whose arguments are JSON",
        );
    }
    // The rules are those of what stands without quotes: of objects within arguments too, where these have marks.
    let within = tool(
        r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {"b c": {"type": "integer"}}, "required": ["b c"]}}}"#,
    );
    refused_in(
        "gemma4",
        &within,
        "at \"/0/parameters/properties/a/properties/b c\": the tool \"get\"",
    );
    calls(&within, "pythonic", &["[get(a={\"b c\": 3})]"], &["[get(a={\"b\": 3})]"]);
    calls(&within, "hermes", &[&call("get", "{\"a\": {\"b c\": 3}}")], &[]);
    let required = tool(r#"{"type": "object", "required": ["a b"]}"#);
    refused_in("pythonic", &required, "at \"/0/parameters/required/0\": the tool \"get\"");
    // Of names that a schema leaves open those are left out. Words of Python's own are read back
    // as any others are.
    let open = tool(r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#);
    calls(&open, "pythonic", &["[get(from=1, a-b=2)]"], &["[get(a b=1)]", "[get(=1)]"]);
}

/// The mark after the text of a custom tool repeats the argument's name where marks do.
#[test]
fn the_input_of_a_custom_tool_ends_by_its_name() {
    let tools = r#"[{"type": "custom", "name": "pick", "format": {"type": "grammar", "syntax": "regex", "definition": "[ab]"}}]"#;
    let picked = |name: &str| {
        format!(
            "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"pick\">]<]minimax[>[<input>a]<]minimax[>[</{name}>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
        )
    };
    calls(tools, "minimax_m3_xml", &[&picked("input")], &[&picked("NAME")]);
}

const WEATHER: &str = r#"{"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
    "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false}}}"#;
const NOW: &str = r#"{"type": "function", "name": "now", "description": "the time", "parameters": null, "strict": null}"#;

/// A request with both tools, and more members.
fn both(more: &str) -> String {
    format!("{{\"tools\": [{WEATHER}, {NOW}]{more}}}")
}

#[test]
fn null_in_a_request_is_as_if_a_member_were_absent() {
    let (oslo, now) = (call("weather", "{\"city\": \"Oslo\"}"), call("now", "{}"));
    let two = format!("{oslo}\n{now}");
    let nulls = both(
        r#", "tool_choice": null, "parallel_tool_calls": null, "response_format": null, "text": null, "functions": null"#,
    );
    calls(&nulls, "hermes", &["hello", &oslo, &now, &two], &[&call("now", "{\"a\": 1}")]);
    calls(
        &both(r#", "tool_choice": "required", "parallel_tool_calls": null"#),
        "hermes",
        &[&two],
        &["hello"],
    );
    refused(
        &both(r#", "parallel_tool_calls": "no""#),
        "\"parallel_tool_calls\" must be true or false",
    );
}

/// Text of a call with these arguments, in a format.
type CallText = Box<dyn Fn(&str) -> String>;

/// Whatever a schema says, the arguments of a call are an object; without one there are none.
#[test]
fn arguments_are_an_object_in_every_format() {
    let texts: Vec<(&str, CallText)> = vec![
        ("hermes", Box::new(|arguments| call("f", arguments))),
        (
            "llama3",
            Box::new(|arguments| format!("{{\"name\": \"f\", \"parameters\": {arguments}}}")),
        ),
        ("mistral", Box::new(|arguments| format!("[TOOL_CALLS]f[ARGS]{arguments}"))),
        (
            "mistral-list",
            Box::new(|arguments| {
                format!("[TOOL_CALLS] [{{\"name\": \"f\", \"arguments\": {arguments}}}]")
            }),
        ),
    ];
    for (format, call) in texts {
        for schema in [
            r#"{}"#,
            r#"{"properties": {"a": {"type": "integer"}}}"#,
            "true",
            r#"{"type": ["object", "string"]}"#,
        ] {
            let tool = format!("[{{\"name\": \"f\", \"inputSchema\": {schema}}}]");
            let others = ["5", "\"x\"", "[]", "null", "true"].map(&call);
            let others: Vec<&str> = others.iter().map(String::as_str).collect();
            calls(&tool, format, &[&call("{}"), &call("{\"a\": 1}")], &others);
        }
        for tool in [r#"[{"name": "f"}]"#, r#"[{"name": "f", "parameters": null}]"#] {
            calls(tool, format, &[&call("{}")], &[&call("{\"a\": 1}"), &call("null")]);
        }
    }
    refused(
        r#"[{"name": "f", "parameters": {"type": "array"}}]"#,
        "/0/parameters\": arguments of a call are an object",
    );
    refused(
        r#"[{"name": "f", "parameters": "{}"}]"#,
        "/0/parameters\": the schema of the arguments is a JSON object",
    );
    refused(r#"[{"name": "f", "parameters": {}, "input_schema": {}}]"#, "two schemas");
}

#[test]
fn recursion_to_a_schema_of_arguments_is_to_any_of_its_values() {
    let tool = r##"[{"name": "f", "parameters": {"anyOf": [{"const": 0}, {"type": "object", "properties": {"a": {"$ref": "#"}},
        "required": ["a"], "additionalProperties": false}]}}]"##;
    calls(
        tool,
        "hermes",
        &[&call("f", "{\"a\": 0}"), &call("f", "{\"a\": {\"a\": 0}}")],
        &[&call("f", "0")],
    );
}

#[test]
fn some_of_the_tools_may_be_allowed() {
    let (oslo, now) = (call("weather", "{\"city\": \"Oslo\"}"), call("now", "{}"));
    for tools in [
        r#"[{"type": "function", "function": {"name": "weather"}}]"#,
        r#"[{"type": "function", "name": "weather"}]"#,
    ] {
        let nested = |mode: &str| {
            both(&format!(
                r#", "tool_choice": {{"type": "allowed_tools", "allowed_tools": {{"mode": "{mode}", "tools": {tools}}}}}"#
            ))
        };
        calls(&nested("required"), "hermes", &[&oslo], &[&now, "hello"]);
        calls(&nested("auto"), "hermes", &[&oslo, "hello"], &[&now]);
        let flat = both(&format!(
            r#", "tool_choice": {{"type": "allowed_tools", "mode": "auto", "tools": {tools}}}"#
        ));
        calls(&flat, "hermes", &[&oslo, "hello"], &[&now]);
        refused(&nested("maybe"), "the mode of allowed tools");
    }
    let unknown = both(
        r#", "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "snow"}]}"#,
    );
    refused(
        &unknown,
        "/tool_choice\": the chosen tool \"snow\" is not there; there are: weather, now",
    );
}

#[test]
fn hosted_tools_are_left_out_with_a_warning() {
    let hosted = [
        r#"{"type": "web_search_preview"}"#,
        r#"{"type": "code_interpreter", "container": {"type": "auto"}}"#,
        r#"{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}"#,
        r#"{"type": "mcp", "server_label": "a", "server_url": "https://a"}"#,
        r#"{"googleSearch": {}}"#,
    ];
    for tool in hosted {
        let request = format!("{{\"tools\": [{tool}, {NOW}]}}");
        let (_, warnings) = read(&request, "hermes");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].0 == "/tools/0" && warnings[0].1.starts_with("left out: "),
            "{warnings:?}"
        );
        calls(&request, "hermes", &["hello", &call("now", "{}")], &[&call("web_search", "{}")]);
        refused(
            &format!("{{\"tools\": [{tool}], \"tool_choice\": \"required\"}}"),
            "there are no tools",
        );
    }
    let chosen = r#"{"tools": [{"type": "web_search_preview"}], "tool_choice": {"type": "web_search_preview"}}"#;
    refused(chosen, "is run by its provider");
    refused(
        r#"[{"type": "fuction", "name": "f", "parameters": {}}]"#,
        "did you mean \"function\"?",
    );
    // One with a schema is called in the text, whatever it is called.
    calls(
        r#"[{"type": "browser", "name": "open", "parameters": {"type": "object"}}]"#,
        "hermes",
        &[&call("open", "{}")],
        &[],
    );
}

const CALC: &str = r#"{"type": "grammar", "syntax": "lark", "definition": "start: NUMBER (\"+\" NUMBER)*\nNUMBER: /[0-9]+/\n%ignore \" \""}"#;

#[test]
fn the_input_of_a_custom_tool_is_a_text_of_its_grammar() {
    let nested = CALC.replace("\"syntax\"", "\"grammar\": {\"syntax\"").replace("}", "}}");
    for tool in [
        format!(r#"{{"type": "custom", "name": "calc", "format": {CALC}}}"#),
        format!(r#"{{"type": "custom", "custom": {{"name": "calc", "format": {nested}}}}}"#),
    ] {
        let tools = format!("[{tool}]");
        let input = |text: &str| call("calc", &format!("{{\"input\": \"{text}\"}}"));
        calls(
            &tools,
            "hermes",
            &["hi", &input("1"), &input("1 + 22+3")],
            &[
                &input("1+"),
                &input("x"),
                &call("calc", "{\"x\": 1}"),
                &call("calc", "5"),
                &input(""),
            ],
        );
        calls(
            &tools,
            "mistral",
            &["[TOOL_CALLS]calc[ARGS]{\"input\": \"1+2\"}"],
            &["[TOOL_CALLS]calc[ARGS]1+2"],
        );
        let between = |text: &str| {
            format!(
                "<tool_call>\n<function=calc>\n<parameter=input>\n{text}\n</parameter>\n</function>\n</tool_call>"
            )
        };
        calls(&tools, "qwen_xml", &[&between("1+2")], &[&between("1+")]);
    }
    let patch = r#"[{"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "regex", "definition": "\"[a-c]\\\\\n(?!no)[é-í]*\""}}]"#;
    let input = |text: &str| call("patch", &format!("{{\"input\": \"{text}\"}}"));
    calls(
        patch,
        "hermes",
        &[&input(r#"\"b\\\nêë\""#), &input(r#"\"b\\\n\""#)],
        &[&input(r#"\"d\\\n\""#), &input("\"b\\\\\n\"")],
    );
    let any = r#"[{"type": "custom", "name": "say", "format": {"type": "text"}}]"#;
    calls(
        any,
        "hermes",
        &[&call("say", "{\"input\": \"a\\nb\"}")],
        &[&call("say", "{}"), &call("say", "\"a\"")],
    );
    // A tool alone, whose format is no answer's.
    let alone = format!(r#"{{"type": "custom", "name": "calc", "format": {CALC}}}"#);
    calls(&alone, "hermes", &["hi", &call("calc", "{\"input\": \"1+2\"}")], &[&call("calc", "{}")]);
    // Anthropic's custom tools are functions.
    calls(
        r#"[{"type": "custom", "name": "f", "input_schema": {"type": "object"}}]"#,
        "hermes",
        &[&call("f", "{\"a\": 1}")],
        &[],
    );
}

#[test]
fn grammars_of_custom_tools_that_cannot_be_read_are_refused_at_their_place() {
    let tool = |format: &str| {
        format!(r#"{{"tools": [{{"type": "custom", "name": "f", "format": {format}}}]}}"#)
    };
    let at = "/tools/0/format/definition\": ";
    refused(
        &tool(r#"{"type": "grammar", "syntax": "lark", "definition": "start: x"}"#),
        &format!("{at}in this grammar"),
    );
    refused(
        &tool(r#"{"type": "grammar", "syntax": "regex", "definition": "["}"#),
        &format!("{at}in this pattern"),
    );
    refused(
        &tool(r#"{"type": "grammar", "syntax": "lark", "definition": "start: <think>"}"#),
        &format!("{at}tokens by name or number"),
    );
    refused(
        &tool(r#"{"type": "grammar", "syntax": "peg", "definition": ""}"#),
        "lark, regex or gbnf",
    );
    refused(&tool(r#"{"type": "grammar", "syntax": "lark"}"#), "\"definition\" is missing");
    refused(&tool(r#"{"type": "jsno"}"#), "\"text\" or \"grammar\"");
    refused(
        &tool(r#"{"type": "grammar", "sintax": "lark", "definition": ""}"#),
        "did you mean \"syntax\"?",
    );
}

/// Wherever a client puts the format of an answer, it holds.
#[test]
fn formats_of_answers_are_read_where_clients_put_them() {
    let schema = r#"{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false}"#;
    let now = call("now", "{}");
    for member in [
        format!(
            r#""response_format": {{"type": "json_schema", "json_schema": {{"name": "a", "schema": {schema}}}}}"#
        ),
        format!(
            r#""text": {{"format": {{"type": "json_schema", "name": "a", "schema": {schema}}}, "verbosity": "low"}}"#
        ),
        format!(
            r#""output_config": {{"effort": "low", "format": {{"type": "json_schema", "schema": {schema}}}}}"#
        ),
        format!(r#""output_format": {{"type": "json_schema", "schema": {schema}}}"#),
        format!(r#""structured_outputs": {{"json": {schema}, "regex": null}}"#),
        format!(r#""guided_json": {schema}"#),
        format!(r#""guided_json": {:?}"#, schema),
        r#""guided_regex": "\\{\"x\": [0-9]\\}""#.to_owned(),
        r#""structured_outputs": {"choice": ["{\"x\": 1}", "b"]}"#.to_owned(),
        r#""structured_outputs": {"grammar": "root ::= \"{\\\"x\\\": 1}\""}"#.to_owned(),
        r#""guided_grammar": "start: \"{\\\"x\\\": 1}\"""#.to_owned(),
        format!(
            r#""response_format": {{"type": "structural_tag", "format": {{"type": "json_schema", "json_schema": {schema}}}}}"#
        ),
    ] {
        calls(
            &both(&format!(", {member}")),
            "hermes",
            &["{\"x\": 1}", &now],
            &["hello", "{\"x\": \"a\"}"],
        );
    }
    let twice = r#", "response_format": {"type": "json_object"}, "text": {"format": {"type": "json_object"}}"#;
    refused(&both(twice), "there are response_format and text.format; leave one out");
    calls(
        &both(r#", "response_format": {"type": "text"}, "text": {"format": {"type": "text"}}"#),
        "hermes",
        &["hello"],
        &[],
    );
    for elsewhere in
        ["format", "grammar", "json_schema", "extra_body", "generationConfig", "regex", "ebnf"]
    {
        refused(
            &both(&format!(", \"{elsewhere}\": {{}}")),
            &format!("/{elsewhere}\": \"{elsewhere}\" is not read here"),
        );
    }
    refused(&both(r#", "structured_outputs": {}"#), "it asks for nothing");
}

#[test]
fn members_of_requests_and_tools_that_are_not_read_are_said_by_name() {
    for (request, meant) in [
        (both(r#", "tool_choise": "none""#), "tool_choice"),
        (both(r#", "respons_format": {}"#), "response_format"),
        (both(r#", "parallelToolCalls": false"#), "parallel_tool_calls"),
        (r#"[{"name": "f", "paramters": {}}]"#.to_owned(), "parameters"),
        (r#"[{"name": "f", "input_shema": {}}]"#.to_owned(), "input_schema"),
        (
            r#"[{"type": "function", "function": {"name": "f", "parameter": {}}}]"#.to_owned(),
            "parameters",
        ),
        (
            both(r#", "response_format": {"type": "json_schema", "json_schema": {"shema": {}}}"#),
            "schema",
        ),
        (both(r#", "text": {"fromat": {}}"#), "format"),
        (both(r#", "structured_outputs": {"jsno": {}}"#), "json"),
    ] {
        refused(&request, &format!("(did you mean {meant:?}?)"));
    }
    let request = r#"{"model": "m", "messages": [], "temperature": 1, "colour": "red", "tools": [{"name": "f", "taste": 1, "strict": true}],
            "structured_outputs": {"regex": "a", "blanks": " "}}"#;
    let (_, warnings) = read(request, "hermes");
    let pointers: Vec<&str> = warnings.iter().map(|(pointer, _)| pointer.as_str()).collect();
    assert_eq!(
        pointers,
        ["/colour", "/tools/0/taste", "/structured_outputs/blanks"],
        "{warnings:?}"
    );
    assert_eq!(check_tools(request, ToolFormat::named("hermes").unwrap()).unwrap().len(), 3);
}

/// A schema is nowhere accepted and not enforced.
#[test]
fn a_schema_is_read_wherever_servers_put_it() {
    let schema = r#"{"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false}"#;
    for format in [
        format!(r#"{{"type": "json_object", "schema": {schema}}}"#),
        format!(r#"{{"type": "json_object", "value": {schema}}}"#),
        format!(r#"{{"type": "json", "value": {schema}}}"#),
        format!(
            r#"{{"type": "json_schema", "json_schema": {{"name": "a", "schema": {schema:?}}}}}"#
        ),
        r#"{"type": "regex", "value": "\\{\"x\": [0-9]\\}"}"#.to_owned(),
        r#"{"type": "grammar", "grammar": "root ::= \"{\\\"x\\\": 1}\""}"#.to_owned(),
    ] {
        let request = both(&format!(r#", "response_format": {format}"#));
        calls(&request, "hermes", &[r#"{"x": 1}"#], &[r#"{"y": 1}"#, "{}"]);
    }
    for (format, rule) in [
        (r#"{"type": "json_object", "schema": {}, "value": {}}"#, "has one body"),
        (r#"{"type": "json_schema", "json_schema": {"schema": {}}, "schema": {}}"#, "has one body"),
        (r#"{"type": "json_schema", "json_schema": {"type": "object"}}"#, "\"schema\" is missing"),
        (r#"{"type": "regexp", "pattern": "a"}"#, "did you mean \"regex\"?"),
    ] {
        refused(&both(&format!(r#", "response_format": {format}"#)), rule);
    }
    let among = r#", "response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "urn:a"}, "resources": {"urn:a": {"const": 1}}}}"#;
    calls(&both(among), "hermes", &["1"], &["2"]);
    refused(&both(&among.replace(r#"{"urn:a": {"const": 1}}"#, "[]")), "schemas by their URIs");
    let (_, said) = read(&both(r#", "response_format": {"type": "text", "schema": {}}"#), "hermes");
    assert_eq!(said[0].0, "/response_format/schema");
}

/// The same as over HTTP.
#[test]
fn structured_outputs_have_their_forms() {
    let asked = |more: &str| format!(r#"{{"model": "m", "structured_outputs": {{{more}}}}}"#);
    let schema = r#"{"type": "object", "properties": {"x": {"type": "integer"}}}"#;
    let compact = asked(&format!(r#""json": {schema}, "disable_any_whitespace": true"#));
    calls(&compact, "hermes", &[r#"{"x":1}"#, r#"{"y":1}"#], &[r#"{"x": 1}"#]);
    let closed = asked(&format!(r#""json": {schema}, "disable_additional_properties": true"#));
    calls(&closed, "hermes", &[r#"{"x": 1}"#], &[r#"{"y": 1}"#]);
    refused(
        &asked(r#""json": {}, "whitespace_pattern": " *""#),
        "whitespace by a pattern is not computed",
    );
    let tag = r#"{"structures": [{"begin": "<f>", "schema": {"type": "integer"}, "end": "</f>"}], "triggers": ["<f>"]}"#;
    for given in [tag.to_owned(), format!("{tag:?}")] {
        let request = asked(&format!(r#""structural_tag": {given}"#));
        calls(&request, "hermes", &["see <f>1</f>"], &["<f>a</f>"]);
    }
    refused(&asked(r#""structural_tag": "{\"type\": \"tagg\"}""#), "in this structural tag: ");
}

#[test]
fn a_choice_is_said_once_and_in_every_interfaces_way() {
    refused(
        &both(r#", "tool_choice": "auto", "function_call": "none""#),
        "at \"/function_call\": \"/tool_choice\" says which tools may be called",
    );
    let declared = r#""tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}]}]"#;
    let gemini = |choice: &str| {
        format!(r#"{{{declared}, "toolConfig": {{"functionCallingConfig": {choice}}}}}"#)
    };
    let [f, g] = ["f", "g"].map(|name| call(name, "{}"));
    calls(
        &gemini(r#"{"mode": "ANY", "allowedFunctionNames": ["f"]}"#),
        "hermes",
        &[&f],
        &[&g, "hi"],
    );
    calls(&gemini(r#"{"mode": "NONE"}"#), "hermes", &["hi"], &[]);
    calls(&gemini(r#"{"mode": "AUTO"}"#), "hermes", &["hi", &g], &[]);
    refused(&gemini(r#"{"mode": "SOME"}"#), "the mode is AUTO, ANY, VALIDATED or NONE");
    let bedrock = |choice: &str| {
        format!(
            r#"{{"toolConfig": {{"tools": [{{"toolSpec": {{"name": "f"}}}}, {{"toolSpec": {{"name": "g"}}}}], "toolChoice": {choice}}}}}"#
        )
    };
    calls(&bedrock(r#"{"any": {}}"#), "hermes", &[&f, &g], &["hi"]);
    calls(&bedrock(r#"{"tool": {"name": "g"}}"#), "hermes", &[&g], &[&f, "hi"]);
    refused(&bedrock(r#"{"any": {}, "auto": {}}"#), "a choice is {\"auto\": {}}");
    let mcp =
        r#"{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "f", "inputSchema": {}}]}}"#;
    calls(mcp, "hermes", &[&call("f", "{\"a\": 1}"), "hi"], &[]);
}

#[test]
fn places_are_those_of_the_users_document() {
    let request = both("").replace("\"string\"", "\"sting\"");
    refused(&request, "at \"/tools/0/function/parameters/properties/city/type\": `type`");
    let format = r#", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"minLength": "a"}}}"#;
    refused(&both(format), "at \"/text/format/schema/minLength\": ");
    let unknown = both("").replace("\"city\": {", "\"city\": {\"minimun\": 1, ");
    let (_, warnings) = read(&unknown, "hermes");
    assert_eq!(warnings[0].0, "/tools/0/function/parameters/properties/city/minimun");
}

#[test]
fn definitions_of_other_interfaces_are_read() {
    let gemini = r#"{"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "object"}}, {"name": "g"}]}, {"googleSearch": {}}]}"#;
    calls(
        gemini,
        "hermes",
        &[&call("f", "{\"a\": 1}"), &call("g", "{}")],
        &[&call("g", "{\"a\": 1}")],
    );
    let bedrock = r#"{"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object", "maxProperties": 0}}}}]}"#;
    calls(bedrock, "hermes", &[&call("f", "{}")], &[&call("f", "{\"a\": 1}")]);
    let legacy = r#"{"functions": [{"name": "f"}, {"name": "g"}], "function_call": {"name": "f"}}"#;
    calls(legacy, "hermes", &[&call("f", "{}")], &[&call("g", "{}"), "hi"]);
    calls(
        &both(r#", "tool_choice": {"type": "auto", "disable_parallel_tool_use": true}"#),
        "hermes",
        &[&call("now", "{}")],
        &[&format!("{0}\n{0}", call("now", "{}"))],
    );
}

/// A tool that is run elsewhere is called as functions are, but where a format has another way.
#[test]
fn own_tools_of_a_format_are_refused_by_name() {
    let tool = r#"[{"type": "web_search_preview", "name": "browser.search", "parameters": {"type": "object"}}]"#;
    calls(tool, "hermes", &[&call("browser.search", "{}")], &[]);
    let rule = "\"browser.search\" is no function, and harmony calls tools of the type \"web_search_preview\"";
    refused_in("harmony", tool, rule);
    let (_, warnings) = read(r#"[{"type": "browser"}]"#, "harmony");
    assert!(warnings[0].1.contains("left out: \"browser\""), "{warnings:?}");
}

/// gpt-oss ends a call by a token that may be in the text.
#[test]
fn a_call_of_harmony_may_have_its_end() {
    let text = "<|channel|>commentary to=functions.stop <|constrain|>json<|message|>{}";
    let ended = format!("{text}<|call|>");
    let twice = format!("{ended}<|call|>");
    calls(TOOLS, "harmony", &[text, &ended], &[&twice, &format!("{ended} ")]);
    calls(&request(r#", "tool_choice": "required""#), "harmony", &[text, &ended], &[&twice]);
}

/// Calls that nothing marks are all of an answer, and words begin otherwise.
#[test]
fn words_do_not_begin_as_calls_that_stand_alone() {
    let valid = ["", "See [1].", " a", "[stop()]", "[rain(mm=3), stop()]"];
    let invalid = ["[1] and [2]", " [stop()]", "[stop()] See.", "[snow()]", "See.\n[", "["];
    calls(TOOLS, "pythonic", &valid, &invalid[..4]);
    calls(TOOLS, "pythonic", &[invalid[4]], &invalid[5..]);
    let one = request(r#", "parallel_tool_calls": false"#);
    calls(&one, "pythonic", &["[stop()]"], &["[stop(), stop()]"]);
}
