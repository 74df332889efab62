//! Calls of random tools in every format: written, held by the grammar, and read back.
//!
//! A call is written by the plain definition of its format. The format's grammar accepts the text,
//! and refuses what is no call; the reader gives back the name and the arguments, wherever the text
//! is cut.

use std::cell::RefCell;
use std::collections::HashSet;

use palmette_grammar::frontends::structural_tag::{
    ArgumentStyle, StructuralTagOptions, TOOL_FORMATS, ToolFormat, parse_tools,
};
use palmette_testkit::grammar::Machine;
use palmette_text::{ArgumentKinds, Piece, ToolCallReader, written_calls};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

/// A parameter's schema, and the way in which values of it are drawn.
#[derive(Clone, Copy, Debug)]
enum Parameter {
    Text,
    Integer,
    Number,
    Truth,
    Texts,
    Object,
    Listed,
    MaybeText,
    TextOrInteger,
    TextOrList,
    TextOrTrue,
    Mixed,
    Free,
}

const PARAMETERS: [Parameter; 13] = [
    Parameter::Text,
    Parameter::Integer,
    Parameter::Number,
    Parameter::Truth,
    Parameter::Texts,
    Parameter::Object,
    Parameter::Listed,
    Parameter::MaybeText,
    Parameter::TextOrInteger,
    Parameter::TextOrList,
    Parameter::TextOrTrue,
    Parameter::Mixed,
    Parameter::Free,
];

impl Parameter {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Integer => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Truth => json!({"type": "boolean"}),
            Self::Texts => json!({"type": "array", "items": {"type": "string"}}),
            Self::Object => json!({"type": "object", "properties": {
                "key": {"type": "string"}, "more": {"type": "array", "items": {"type": ["number", "null"]}}},
                "required": ["key"], "additionalProperties": false}),
            Self::Listed => json!({"enum": ["a b", "c\"d", "\n"]}),
            Self::MaybeText => json!({"type": ["string", "null"]}),
            Self::TextOrInteger => json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            Self::TextOrList => json!({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/list"}]}),
            Self::TextOrTrue => json!({"anyOf": [{"type": "string"}, {"const": true}]}),
            Self::Mixed => json!({"enum": ["x", 3, null, true, "3.5"]}),
            Self::Free => json!({}),
        }
    }

    fn value(self) -> BoxedStrategy<Value> {
        let text = || text().prop_map(Value::from);
        let integer = || (-1000_i64..1000).prop_map(Value::from);
        let number = || (-99_i64..99).prop_map(|n| json!(n as f64 + 0.5));
        let list = || prop::collection::vec(text(), 0..3).prop_map(Value::from);
        match self {
            Self::Text => text().boxed(),
            Self::Integer => integer().boxed(),
            Self::Number => prop_oneof![number(), integer()].boxed(),
            Self::Truth => any::<bool>().prop_map(Value::from).boxed(),
            Self::Texts => list().boxed(),
            Self::Object => {
                (text(), prop::collection::vec(prop_oneof![number(), Just(Value::Null)], 0..3))
                    .prop_map(|(key, more)| json!({"key": key, "more": more}))
                    .boxed()
            }
            Self::Listed => {
                prop_oneof![Just(json!("a b")), Just(json!("c\"d")), Just(json!("\n"))].boxed()
            }
            Self::MaybeText => prop_oneof![text(), Just(Value::Null)].boxed(),
            Self::TextOrInteger => prop_oneof![text(), integer()].boxed(),
            Self::TextOrList => prop_oneof![text(), list()].boxed(),
            Self::TextOrTrue => prop_oneof![text(), Just(json!(true))].boxed(),
            Self::Mixed => prop_oneof![
                Just(json!("x")),
                Just(json!(3)),
                Just(json!(null)),
                Just(json!(true)),
                Just(json!("3.5"))
            ]
            .boxed(),
            Self::Free => {
                prop_oneof![text(), integer(), list(), Just(json!({"a": {"b": [1]}}))].boxed()
            }
        }
    }

    /// True where a value is valid for the schema of a union.
    fn is_valid(self, value: &Value) -> bool {
        let is_whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
        match self {
            Self::MaybeText => value.is_string() || value.is_null(),
            Self::TextOrInteger => value.is_string() || is_whole,
            Self::TextOrList => {
                let are_texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
                value.is_string() || value.as_array().is_some_and(are_texts)
            }
            Self::TextOrTrue => value.is_string() || *value == json!(true),
            Self::Mixed => {
                [json!("x"), json!(3), json!(3.0), json!(null), json!(true), json!("3.5")]
                    .contains(value)
            }
            _ => true,
        }
    }

    /// True where a text may stand beside values that are written in JSON.
    fn is_union(self) -> bool {
        matches!(
            self,
            Self::MaybeText
                | Self::TextOrInteger
                | Self::TextOrList
                | Self::TextOrTrue
                | Self::Mixed
                | Self::Free
        )
    }
}

/// Texts with what marks and JSON are made of.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("a"),
        Just("Zürich"),
        Just(" "),
        Just("\n"),
        Just("\""),
        Just("\\"),
        Just("<"),
        Just(">"),
        Just("</"),
        Just("parameter"),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("'"),
        Just(","),
        Just(":"),
        Just("|"),
        Just("3"),
        Just("null"),
        Just("true"),
        Just("=\u{1F600}"),
        Just("<think>"),
        Just("\t"),
        Just("("),
        Just(")"),
        Just("NAME"),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

/// A tool and a call of it.
#[derive(Clone, Debug)]
struct Called {
    name: String,
    /// Parameters, and whether each is required.
    parameters: Vec<(Parameter, bool)>,
    arguments: Map<String, Value>,
}

fn name_of(at: usize) -> String {
    ["city", "max_days", "q-3", "NUMBER"][at].to_owned()
}

fn called(name: &'static str, format: &'static ToolFormat) -> impl Strategy<Value = Called> {
    let parameter = (prop::sample::select(&PARAMETERS[..]), any::<bool>());
    let parameters = prop::collection::vec(parameter, 0..=4);
    parameters.prop_flat_map(move |parameters| {
        let values: Vec<_> = parameters
            .iter()
            .map(|&(parameter, required)| {
                let value = parameter.value().prop_filter("it can be written", move |value| {
                    can_be_written(format, parameter, value)
                });
                (value, if required { Just(true).boxed() } else { any::<bool>().boxed() })
            })
            .collect();
        values.prop_map(move |values| {
            let there = values.into_iter().enumerate().filter(|(_, (_, is_there))| *is_there);
            let arguments = there.map(|(at, (value, _))| (name_of(at), value)).collect();
            Called { name: name.to_owned(), parameters: parameters.clone(), arguments }
        })
    })
}

/// False for texts that hold the mark that would end them, or that would be read as another value.
fn can_be_written(format: &ToolFormat, parameter: Parameter, value: &Value) -> bool {
    match (format.arguments, value) {
        (ArgumentStyle::Parameters(style), Value::String(text)) => {
            let trimmed = text.trim_matches([' ', '\n', '\t', '\r']);
            let is_other = match serde_json::from_str::<Value>(trimmed) {
                Ok(read) => !read.is_string(),
                Err(_) => trimmed.starts_with(['{', '[']),
            };
            let may_be_other = parameter.is_union() && style.before_text == style.before_json;
            let is_read_otherwise = may_be_other && is_other;
            // The end of the text and the mark after it are not to be a mark, either.
            let (inside, stop) = (text.clone() + style.padding, style.text_stop());
            let end = (inside.clone() + stop).find(stop);
            let is_json = matches!(parameter, Parameter::Free) && style.is_nested();
            end == Some(inside.len()) && !is_read_otherwise && !(is_json && style.tells_types())
        }
        // Where a text may stand, or anything, lists and objects are JSON.
        (ArgumentStyle::Parameters(style), Value::Array(_) | Value::Object(_))
            if style.is_nested() && parameter.is_union() =>
        {
            style.tells_types() && !matches!(parameter, Parameter::Free)
        }
        (ArgumentStyle::Parameters(style), Value::Array(items)) if style.is_nested() => {
            items.iter().all(|item| can_be_written(format, Parameter::Text, item))
        }
        (ArgumentStyle::Parameters(style), Value::Object(members)) if style.is_nested() => {
            members.values().all(|member| can_be_written(format, Parameter::Text, member))
        }
        (ArgumentStyle::Notated(notation), _) => {
            !value.to_string().replace("\\\"", "\"").contains(notation.quote)
        }
        _ => true,
    }
}

impl Called {
    fn definition(&self) -> Value {
        let named = self.parameters.iter().enumerate();
        let properties: Map<String, Value> =
            named.clone().map(|(at, (parameter, _))| (name_of(at), parameter.schema())).collect();
        let required: Vec<String> =
            named.filter(|(_, (_, required))| *required).map(|(at, _)| name_of(at)).collect();
        let parameters = json!({"type": "object", "properties": properties, "required": required,
            "additionalProperties": false, "$defs": {"list": {"type": "array", "items": {"type": "string"}}}});
        json!({"type": "function", "function": {"name": self.name, "parameters": parameters}})
    }

    fn call(&self) -> (String, Value) {
        (self.name.clone(), Value::Object(self.arguments.clone()))
    }
}

/// A whole answer: a thought, words where they may stand before calls, the calls.
fn answer(format: &ToolFormat, calls: &[(String, Value)], thought: bool, words: &str) -> String {
    let thought = match format.reasoning.filter(|_| thought) {
        Some((begin, end)) => format!("{begin}Hm, 1 < 2.{end}"),
        None => String::new(),
    };
    let words = match (format.answer, format.answer_is_first) {
        ((begin, end), true) => format!("{begin}{words}{end}"),
        (("", ""), false) if !format.calls_stand_alone || calls.is_empty() => words.to_owned(),
        _ => String::new(),
    };
    let calls = match calls {
        [] => String::new(),
        calls => written_calls(format, calls),
    };
    format!("{thought}{words}{calls}{}", format.message_end)
}

fn machine(format: &ToolFormat, tools: &[Value], parallel: bool) -> Machine {
    machine_of(format, &json!({"tools": tools, "parallel_tool_calls": parallel}))
}

fn machine_of(format: &ToolFormat, request: &Value) -> Machine {
    let request = request.to_string();
    let grammar = parse_tools(&request, format, &StructuralTagOptions::default());
    let grammar = grammar.unwrap_or_else(|error| panic!("{request}\n{error}"));
    Machine::new(&grammar.without_tokens()).expect("within limits")
}

/// What a reader made of a text.
#[derive(Debug, Default, PartialEq)]
struct Read {
    words: String,
    reasoning: String,
    calls: Vec<(String, String, bool)>,
}

fn read(format: &ToolFormat, kinds: &ArgumentKinds, pieces: &[&str]) -> Read {
    let mut reader = ToolCallReader::new(*format, kinds.clone());
    let mut found: Vec<Piece> = pieces.iter().flat_map(|piece| reader.push(piece)).collect();
    found.extend(reader.finish());
    let mut read = Read::default();
    for piece in found {
        match piece {
            Piece::Text(text) => read.words += &text,
            Piece::Reasoning(text) => read.reasoning += &text,
            Piece::CallBegin { index, name } => {
                assert_eq!(index, read.calls.len());
                read.calls.push((name, String::new(), false));
            }
            Piece::Arguments(text) => read.calls.last_mut().expect("a call").1 += &text,
            Piece::CallEnd { is_whole } => read.calls.last_mut().expect("a call").2 = is_whole,
        }
    }
    read
}

#[test]
fn calls_are_held_and_read_in_every_format() {
    for format in TOOL_FORMATS {
        let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
        let tools = (called("get_weather", format), called("now", format));
        let answers =
            (tools, any::<bool>(), prop::sample::select(&["", "One moment: 1 < 2. "][..]));
        TestRunner::new(config)
            .run(&answers, |((first, second), thought, words)| {
                let tools = [first.definition(), second.definition()];
                let kinds = ArgumentKinds::of_tools(&tools, false);
                let (parallel, alone) =
                    (machine(format, &tools, true), machine(format, &tools, false));
                let both = [first.call(), second.call()];
                check(format, &kinds, &both[..1], thought, words)?;
                let text = answer(format, &both, thought, words);
                if !format.has_one_call {
                    check(format, &kinds, &both, thought, words)?;
                    prop_assert!(parallel.accepts(&text), "{}: refused: {text}", format.name);
                    let ended = text.strip_suffix(format.message_end).unwrap_or(&text);
                    let ended = format!("{ended}{}{}", format.after_calls, format.message_end);
                    prop_assert!(parallel.accepts(&ended), "{}: refused: {ended}", format.name);
                    prop_assert_eq!(read(format, &kinds, &[&ended]), read(format, &kinds, &[&text]));
                }
                prop_assert!(!alone.accepts(&text), "{}: accepted alone: {text}", format.name);
                let one = answer(format, &both[..1], thought, words);
                prop_assert!(alone.accepts(&one), "{}: refused: {one}", format.name);
                let chosen = json!({"type": "function", "function": {"name": "get_weather"}});
                let choice = json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [chosen]}});
                let some = machine_of(format, &json!({"tools": tools, "tool_choice": choice}));
                let other = answer(format, &both[1..], thought, words);
                let none = answer(format, &[], thought, words);
                // Where an answer may stand beside calls, words are let stand there, too.
                let must = if format.answer_is_first { words } else { "" };
                prop_assert!(some.accepts(&answer(format, &both[..1], thought, must)), "{}", format.name);
                prop_assert!(!some.accepts(&other) && !some.accepts(&none), "{}", format.name);
                for (parameter, name, text) in tricky(format, &first) {
                    if parallel.accepts(&text) {
                        let read = read(format, &kinds, &[&text]);
                        let arguments = serde_json::from_str::<Value>(&read.calls[0].1);
                        let value = &arguments.expect("it is whole")[&name];
                        prop_assert!(parameter.is_valid(value), "{}: {text}: {value}", format.name);
                    }
                }
                for wrong in wrongs(format, &first) {
                    let text = answer(format, &[wrong], thought, words);
                    prop_assert!(!parallel.accepts(&text), "{}: accepted: {text}", format.name);
                }
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{}: {error}", format.name));
    }
}

/// Answers in which a text stands that may be read as another value, where both may be.
fn tricky(format: &ToolFormat, called: &Called) -> Vec<(Parameter, String, String)> {
    const TEXTS: [&str; 12] =
        ["null", "true", "false", "3", "3.5", "3.0", "1e2", " 4 ", "[1", "{}", "[]", "\"q\""];
    let unions = called.parameters.iter().enumerate().filter(|(_, (union, _))| union.is_union());
    let answers = unions.flat_map(|(at, &(parameter, _))| {
        TEXTS.map(|text| {
            let mut changed = called.arguments.clone();
            changed.insert(name_of(at), text.into());
            let call = (called.name.clone(), Value::Object(changed));
            (parameter, name_of(at), answer(format, &[call], false, ""))
        })
    });
    answers.collect()
}

/// Calls that are none: of another name, without an argument that is required, with a text that
/// holds what ends it.
fn wrongs(format: &ToolFormat, called: &Called) -> Vec<(String, Value)> {
    let (name, arguments) = called.call();
    let mut wrongs = vec![("get_rain".to_owned(), arguments.clone())];
    let ends = match format.arguments {
        ArgumentStyle::Parameters(style) => style.text_stop(),
        ArgumentStyle::Notated(notation) => notation.quote,
        ArgumentStyle::Json | ArgumentStyle::Keywords => "",
    };
    for (at, (parameter, required)) in called.parameters.iter().enumerate() {
        let mut changed = called.arguments.clone();
        if *required {
            changed.remove(&name_of(at));
            wrongs.push((name.clone(), Value::Object(changed.clone())));
        }
        if let (ArgumentStyle::Parameters(style), Parameter::TextOrList) =
            (format.arguments, parameter)
            && style.before_text == style.before_json
        {
            changed.insert(name_of(at), "[x".into());
            wrongs.push((name.clone(), Value::Object(changed.clone())));
        }
        if matches!(parameter, Parameter::Text) && !ends.is_empty() {
            changed.insert(name_of(at), format!("x{ends}y").into());
            wrongs.push((name.clone(), Value::Object(changed)));
        }
    }
    wrongs
}

/// What is read of an answer, whole and cut at every place.
fn check(
    format: &ToolFormat,
    kinds: &ArgumentKinds,
    calls: &[(String, Value)],
    thought: bool,
    words: &str,
) -> Result<(), TestCaseError> {
    let text = answer(format, calls, thought, words);
    let whole = read(format, kinds, &[&text]);
    let has_words =
        format.answer_is_first || format.answer == ("", "") && !format.calls_stand_alone;
    prop_assert_eq!(&whole.words, if has_words { words } else { "" }, "{}: {}", format.name, text);
    let has_thought = thought && format.reasoning.is_some();
    prop_assert_eq!(&whole.reasoning, if has_thought { "Hm, 1 < 2." } else { "" }, "{}", text);
    let mut parsed = Vec::new();
    for (name, arguments, is_whole) in &whole.calls {
        let value = serde_json::from_str::<Value>(arguments);
        prop_assert!(*is_whole && value.is_ok(), "{}: {text}\n{arguments}", format.name);
        parsed.push((name.clone(), value.expect("it is")));
    }
    prop_assert_eq!(&parsed[..], calls, "{}: {}", format.name, text);
    for (place, _) in text.char_indices() {
        let cut = read(format, kinds, &[&text[..place], &text[place..]]);
        prop_assert_eq!(&cut, &whole, "{}: {} | {}", format.name, &text[..place], &text[place..]);
    }
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
    prop_assert_eq!(&read(format, kinds, &characters), &whole, "{}", text);
    check_ends(format, kinds, (&text, &whole), calls)
}

/// What is read of an answer that ends at any place: beginnings of its words, of its reasoning and
/// of its calls, each of which is told from its name on; and nothing of a mark that words do not end
/// in, too.
fn check_ends(
    format: &ToolFormat,
    kinds: &ArgumentKinds,
    (text, whole): (&str, &Read),
    calls: &[(String, Value)],
) -> Result<(), TestCaseError> {
    let (group, reasoning) =
        (format.group.unwrap_or_default(), format.reasoning.unwrap_or_default());
    let marks = [
        format.trigger,
        group.0,
        format.begin,
        reasoning.0,
        reasoning.1,
        format.answer.0,
        format.answer.1,
        format.message_end,
    ];
    // Of a mark there may be what is no special token yet.
    let is_begun = |rest: &str| {
        let is_of = |mark: &&str| mark.starts_with(rest) && rest.len() < mark.len();
        !rest.contains(['>', ']'])
            && rest != format.trigger
            && (rest.is_empty() || marks.iter().any(is_of))
    };
    let is_cut_of = |shown: &str, all: &str| {
        let common = shown.bytes().zip(all.bytes()).take_while(|(one, other)| one == other).count();
        (0..=common).rev().any(|len| shown.is_char_boundary(len) && is_begun(&shown[len..]))
    };
    // Places from which on the name of a call stands there.
    let mut named = Vec::new();
    for (number, (name, _)) in calls.iter().enumerate() {
        let begin = format.call_begin(name, number);
        let from = named.last().copied().unwrap_or(0);
        named.push(text[from..].find(&begin).map_or(text.len(), |at| from + at + begin.len()));
    }
    for (place, _) in text.char_indices() {
        let at = || format!("{}: {:?}", format.name, &text[..place]);
        let found = read(format, kinds, &[&text[..place]]);
        prop_assert!(is_cut_of(&found.words, &whole.words), "{}: {:?}", at(), found.words);
        prop_assert!(
            is_cut_of(&found.reasoning, &whole.reasoning),
            "{}: {:?}",
            at(),
            found.reasoning
        );
        let told = named.iter().filter(|&&from| from <= place).count();
        prop_assert!(
            (told..=calls.len()).contains(&found.calls.len()),
            "{}: {:?}",
            at(),
            found.calls
        );
        for (number, (name, arguments, is_whole)) in found.calls.iter().enumerate() {
            let (whole_name, all, _) = &whole.calls[number];
            let is_last = number + 1 == found.calls.len();
            prop_assert!(
                name == whole_name && (*is_whole || is_last),
                "{}: {:?}",
                at(),
                found.calls
            );
            let is_fit =
                if *is_whole { arguments == all } else { all.starts_with(arguments.as_str()) };
            prop_assert!(is_fit, "{}: {arguments:?}", at());
        }
    }
    Ok(())
}

/// Names of parameters, of all that names and marks are made of.
fn parameter_names() -> impl Strategy<Value = String> {
    const PARTS: [&str; 30] = [
        "a",
        "B",
        "3",
        "é",
        "_",
        "-",
        ".",
        " ",
        "\n",
        "\u{3000}",
        "\"",
        "'",
        "\\",
        "<",
        ">",
        "/",
        "=",
        ":",
        ",",
        "&",
        "&quot;",
        "(",
        "}",
        "[",
        "]<]minimax[>[",
        "｜",
        "NAME",
        "NUMBER",
        "item",
        "from",
    ];
    let drawn = prop::collection::vec(prop::sample::select(&PARTS[..]), 0..4);
    drawn.prop_map(|parts| parts.concat())
}

/// A name of a parameter is refused with the tool, the format, its place and the way out, or else
/// a call with it is held and read back, of a text as of another value.
#[test]
fn names_of_parameters_are_read_back_or_refused() {
    let refused = RefCell::new(HashSet::new());
    let config = Config { cases: 96, failure_persistence: None, ..Config::default() };
    let drawn = (parameter_names(), any::<bool>(), any::<bool>());
    TestRunner::new(config)
        .run(&drawn, |(name, is_text, is_required)| {
            let (schema, value) = match is_text {
                true => (json!({"type": "string"}), json!("x y")),
                false => (json!({"type": "integer"}), json!(7)),
            };
            let required = if is_required { vec![&name] } else { Vec::new() };
            let parameters = json!({"type": "object", "properties": {&name: schema}, "required": required,
                "additionalProperties": false});
            let tools = [json!({"name": "get", "parameters": parameters})];
            let kinds = ArgumentKinds::of_tools(&tools, false);
            let call = ("get".to_owned(), json!({&name: value}));
            for format in TOOL_FORMATS {
                let request = json!({"tools": tools}).to_string();
                let text = answer(format, std::slice::from_ref(&call), false, "");
                match parse_tools(&request, format, &StructuralTagOptions::default()) {
                    Ok(_) => {
                        prop_assert!(machine(format, &tools, true).accepts(&text), "{}: {text}", format.name);
                        check(format, &kinds, std::slice::from_ref(&call), false, "")?;
                    }
                    Err(error) => {
                        let pointer = name.replace('~', "~0").replace('/', "~1");
                        prop_assert_eq!(&error.pointer, &format!("/tools/0/parameters/properties/{}", pointer));
                        for part in ["the tool \"get\"", &format!("the format {}", format.name), &format!("{name:?}"), "rename it"] {
                            prop_assert!(error.message.contains(part), "{part}: {}", error.message);
                        }
                        prop_assert!(format.arguments != ArgumentStyle::Json, "{}: {error}", format.name);
                        refused.borrow_mut().insert(format.name);
                    }
                }
            }
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
    for format in TOOL_FORMATS {
        assert_eq!(
            refused.borrow().contains(format.name),
            format.arguments != ArgumentStyle::Json,
            "{}",
            format.name
        );
    }
}

/// What a lax tool is called with is read as it was meant: `3` is a number where any value may
/// stand, and a text where the schema binds and asks for one.
#[test]
fn arguments_of_lax_tools_are_read_as_any_values() {
    let format = ToolFormat::named("qwen_xml").expect("is known");
    let tools = [json!({"name": "get", "strict": false, "parameters": {"type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "additionalProperties": false}})];
    let call = |parameters: &[(&str, &str)]| {
        let one =
            |(name, value): &(&str, &str)| format!("<parameter={name}>\n{value}\n</parameter>\n");
        let inside: String = parameters.iter().map(one).collect();
        format!("<tool_call>\n<function=get>\n{inside}</function>\n</tool_call>")
    };
    let few = call(&[("a", "3"), ("b", "few"), ("c", "[1]")]);
    let fit = call(&[("a", "3"), ("b", "4")]);
    for (lax, text, expected) in [
        (true, &few, Some(json!({"a": 3, "b": "few", "c": [1]}))),
        (true, &fit, Some(json!({"a": 3, "b": 4}))),
        (false, &few, None),
        (false, &fit, Some(json!({"a": "3", "b": 4}))),
    ] {
        let request = json!({"tools": tools, "lax_tools": lax});
        assert_eq!(machine_of(format, &request).accepts(text), expected.is_some(), "{lax} {text}");
        let Some(expected) = expected else { continue };
        let found = read(format, &ArgumentKinds::of_tools(&tools, lax), &[text]);
        let [(_, arguments, true)] = &found.calls[..] else { panic!("{lax} {text}: {found:?}") };
        assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), expected, "{lax} {text}");
    }
}

/// The same call as each family's models write it, by hand.
#[test]
fn samples_of_families() {
    let tools = [
        json!({"name": "get", "parameters": {"type": "object", "required": ["city"], "additionalProperties": false,
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}),
    ];
    let kinds = ArgumentKinds::of_tools(&tools, false);
    let expected = json!({"city": "Köln", "days": 3});
    for (name, text) in SAMPLES {
        let format = ToolFormat::named(name).unwrap_or_else(|| panic!("{name}"));
        let found = read(format, &kinds, &[text]);
        let [(tool, arguments, true)] = &found.calls[..] else { panic!("{name}: {found:?}") };
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!((tool.as_str(), &arguments), ("get", &expected), "{name}");
        assert!(machine(format, &tools, true).accepts(text), "{name}: {text}");
    }
    for format in TOOL_FORMATS {
        assert!(SAMPLES.iter().any(|(name, _)| *name == format.name), "{}", format.name);
    }
}

const SAMPLES: &[(&str, &str)] = &[
    (
        "minimax_m3_xml",
        "<mm:think>I look.</mm:think>]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"get\">]<]minimax[>[<city>Köln]<]minimax[>[</city>]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    (
        "cohere_xml",
        "<cofl:tool_calls><cofl:tool_call id=\"0\" name=\"get\"><cofl:value name=\"city\" type=\"raw\">Köln</cofl:value><cofl:value name=\"days\" type=\"json\">3</cofl:value></cofl:tool_call></cofl:tool_calls>",
    ),
    (
        "inkling",
        "<|content_thinking|>I look.<|end_message|><|message_model|>get<|content_invoke_tool_json|>{\"name\":\"get\",\"args\":{\"city\": \"Köln\", \"days\": 3}}<|end_message|>",
    ),
    (
        "gigachat_xml",
        "One moment.<｜GCML｜tool_calls>\n<｜GCML｜invoke name=\"get\">\n<｜GCML｜parameter name=\"city\" string=\"true\">Köln</｜GCML｜parameter>\n<｜GCML｜parameter name=\"days\" string=\"false\">3</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>",
    ),
    (
        "gigachat",
        "One moment.<|function_call|>{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}",
    ),
    ("mistral_ids", "[TOOL_CALLS]get[CALL_ID]a1B2c3D4e[ARGS]{\"city\": \"Köln\", \"days\": 3}"),
    ("pythonic", "[get(city=\"Köln\", days=3)]"),
    (
        "openpangu",
        "<|tool_call_start|>\n[{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]\n<|tool_call_end|>",
    ),
    (
        "openpangu_1",
        "[unused16]I look.[unused17][unused11][{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}][unused12]",
    ),
    (
        "cohere_flat_xml",
        "<|START_THINKING|>I look.<|END_THINKING|><cofl:tool_calls><cofl:tool_call id=\"0\" name=\"get\"><cofl:tool_param name=\"city\" string=\"true\">Köln</cofl:tool_param><cofl:tool_param name=\"days\" string=\"false\">3</cofl:tool_param></cofl:tool_call></cofl:tool_calls>",
    ),
    (
        "hermes",
        "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n</tool_call>",
    ),
    (
        "exaone",
        "<tool_call>{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}</tool_call>",
    ),
    ("llama3", "{\"name\": \"get\", \"parameters\": {\"city\": \"Köln\", \"days\": 3}}"),
    ("llama4", "<|python_start|>[get(city=\"Köln\", days=3)]<|python_end|>"),
    ("lfm2", "<|tool_call_start|>[get(city=\"Köln\", days=3)]<|tool_call_end|>"),
    ("lfm2", "<|tool_call_start|>[get(city='Köln', days=3)]<|tool_call_end|>"),
    ("olmo3", "<function_calls>get(city=\"Köln\", days=3)</function_calls>"),
    ("mistral", "[TOOL_CALLS]get[ARGS]{\"city\": \"Köln\", \"days\": 3}"),
    (
        "mistral-list",
        "[TOOL_CALLS] [{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]",
    ),
    (
        "granite",
        "<|tool_call|>[{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]",
    ),
    (
        "phi4",
        "<|tool_call|>[{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]<|/tool_call|>",
    ),
    (
        "functools",
        "functools[{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]",
    ),
    (
        "nemotron",
        "<TOOLCALL>[{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]</TOOLCALL>",
    ),
    (
        "hunyuan",
        "<tool_calls>[{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}]</tool_calls>",
    ),
    (
        "minimax_m1",
        "<tool_calls>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n</tool_calls>",
    ),
    (
        "longcat",
        "<longcat_tool_call>\n{\"name\": \"get\", \"arguments\": {\"city\": \"Köln\", \"days\": 3}}\n</longcat_tool_call>",
    ),
    ("apertus", "<|tools_prefix|>[{\"get\": {\"city\": \"Köln\", \"days\": 3}}]<|tools_suffix|>"),
    (
        "internlm",
        "<|action_start|><|plugin|>\n{\"name\": \"get\", \"parameters\": {\"city\": \"Köln\", \"days\": 3}}<|action_end|>",
    ),
    (
        "cohere",
        "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get\", \"parameters\": {\"city\": \"Köln\", \"days\": 3}}\n]<|END_ACTION|>",
    ),
    (
        "cohere4",
        "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"get\", \"parameters\": {\"city\": \"Köln\", \"days\": 3}}\n]<|END_ACTION|>",
    ),
    (
        "harmony",
        "<|channel|>commentary to=functions.get <|constrain|>json<|message|>{\"city\": \"Köln\", \"days\": 3}",
    ),
    (
        "kimi_k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get:0<|tool_call_argument_begin|>{\"city\": \"Köln\", \"days\": 3}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    (
        "kimi_k3",
        "<|open|>response<|sep|><|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"get\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>Köln<|close|>argument<|sep|><|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
    ),
    (
        "deepseek_r1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get\n```json\n{\"city\": \"Köln\", \"days\": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "deepseek",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get<｜tool▁sep｜>{\"city\": \"Köln\", \"days\": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "deepseek_xml",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Köln</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    (
        "deepseek_v4",
        "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Köln</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    ),
    (
        "deepseek_v41",
        "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"get\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">Köln</｜DSML｜ parameter>\n<｜DSML｜ parameter name=\"days\" string=\"false\">3</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>",
    ),
    (
        "step3",
        "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name=\"get\">\n<steptml:parameter name=\"city\">Köln</steptml:parameter>\n<steptml:parameter name=\"days\">3</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>",
    ),
    (
        "longcat_xml",
        "<longcat_tool_call>get\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Köln</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>3</longcat_arg_value>\n</longcat_tool_call>",
    ),
    (
        "glm_xml",
        "<tool_call>get<arg_key>city</arg_key><arg_value>Köln</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>",
    ),
    (
        "glm_xml",
        "<tool_call>get\n<arg_key>city</arg_key>\n<arg_value>Köln</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
    ),
    (
        "hunyuan_xml",
        "<tool_calls>\n<tool_call>get<tool_sep>\n<arg_key>city</arg_key>\n<arg_value>Köln</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n</tool_calls>",
    ),
    (
        "seed_xml",
        "<seed:tool_call>\n<function=get>\n<parameter=city>Köln</parameter>\n<parameter=days>3</parameter>\n</function>\n</seed:tool_call>",
    ),
    (
        "qwen_xml",
        "<tool_call>\n<function=get>\n<parameter=city>\nKöln\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
    ),
    (
        "mimo_xml",
        "<tool_call>\n<function=get>\n<parameter=city>Köln</parameter>\n<parameter=days>3</parameter>\n</function>\n</tool_call>",
    ),
    (
        "minimax_xml",
        "<minimax:tool_call>\n<invoke name=\"get\">\n<parameter name=\"city\">Köln</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
    (
        "dots_xml",
        "<dots_function_call>\n<invoke name=\"get\">\n<parameter name=\"city\">Köln</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</dots_function_call>",
    ),
    (
        "minicpm_xml",
        "<function name=\"get\"><param name=\"city\">Köln</param><param name=\"days\">3</param></function>",
    ),
    ("gemma4", "<|tool_call>call:get{city:<|\"|>Köln<|\"|>,days:3}<tool_call|>"),
    (
        "function_gemma",
        "<start_function_call>call:get{city:<escape>Köln<escape>,days:3}<end_function_call>",
    ),
];
