//! JSON: indexes, maps, objects a line or in a list.

use palmette_catalog::readers::Format;
use serde_json::json;

use super::check;

#[test]
fn index_json() {
    let check = |input: &str, expected: &str| check(Format::IndexJson, input, expected);
    check(
        r#"{"0": ["<a_183>", "<b_7>"], "P 1": ["<a_0>", "<b_7>"]}"#,
        "1: 0 [183, 7] {}\n1: P 1 [0, 7] {}\n<a b>\n",
    );
    check("{\n \"1\":\n [1,\n2\n],\r\n\"0\": [3]}\n\n", "2: 1 [1, 2] {}\n6: 0 [3] {}\n");
    check(r#"{"x": "<a_1><b_2>", "y": ["<a_1>"]}"#, "1: x [1, 2] {}\n1: y [1] {}\n<a b>\n");
    check(r#"{"x": [1.0, 2e1]}"#, "1: x [1, 20] {}\n");
    check(r#"{"x": [2147483647, "7"]}"#, "1: x [2147483647, 7] {}\n");
}

#[test]
fn index_json_errors() {
    let check = |input: &str, expected: &str| check(Format::IndexJson, input, expected);
    const NOT_A_CODE: &str = "expected a whole number from 0 to 2147483647 or <letter_number>";
    for (value, code) in [
        ("\"x9\"", "\"x9\" at level 1"),
        ("-1", "-1 at level 1"),
        ("1.5", "1.5 at level 1"),
        ("2147483648", "2147483648 at level 1"),
        ("\"4294967295\"", "\"4294967295\" at level 1"),
        ("null", "null at level 1"),
        ("[2]", "of type list at level 1"),
        ("\"<a_1><b_2>\"", "\"<a_1><b_2>\" at level 1"),
    ] {
        let input = format!("{{\n\"P1\": [7, \n{value}]}}");
        check(&input, &format!(", line 2: item \"P1\": code {code}: {NOT_A_CODE}"));
    }
    check(
        "{\"0\": [\"<a_1>\"],\n\"1\": [\"<b_1>\"]}",
        ", line 2: item \"1\": code \"<b_1>\" at level 0: the codes of this level are spelled \
         <a_number> since line 1",
    );
    check(
        "{\"0\": [\"<a_1>\"],\n\"1\": [1]}",
        ", line 2: item \"1\": code \"1\" at level 0: the codes of this source are spelled \
         <letter_number> since line 1",
    );
    check(
        "{\"0\": [0],\n\"1\": [3, \"<b_1>\"]}",
        ", line 2: item \"1\": code \"<b_1>\" at level 1: the codes of this source are spelled \
         as plain numbers since line 1",
    );
    check(
        r#"{"0": ["<a_07>"]}"#,
        ", line 1: item \"0\": code \"<a_07>\" at level 0: a code has no leading zeros",
    );
    check(
        "{\"7\": [1],\n\n\"8\": [1], \"7\": [1]}",
        ", line 3: item ID \"7\" appears twice, first at line 1",
    );
    check(
        r#"{"0": []}"#,
        ", line 1: item \"0\": the semantic ID is empty; it needs at least one code",
    );
    check(r#"{"": [1]}"#, ", line 1: the item ID is empty");
    check(
        r#"{"0": 17}"#,
        ", line 1: item \"0\": semantic ID 17: expected a list of codes, or text such as \
         <a_1><b_2> or 1 2; a map from semantic IDs to items is of format inverse-json",
    );
    check(
        r#"{"7": [{"pid": 1}]}"#,
        ", line 1: item \"7\": semantic ID of type list of objects: expected a list of codes, or text \
         such as <a_1><b_2> or 1 2; a map from semantic IDs to items is of format inverse-json",
    );
    check("[1]", ", line 1, column 3: invalid type: integer `1`, expected a JSON object");
    check(
        "1",
        ", line 1, column 1: invalid type: integer `1`, expected one JSON object whose keys are item IDs",
    );
    check("{\"0\": [1],\n}", ", line 2, column 1: trailing comma");
    check("{\"0\": [1]\n", ", line 1: EOF while parsing an object");
    check("{\"0\": [1]}\n{}", ", line 2, column 1: trailing characters");
    check("nonsense", ", line 1, column 2: expected ident");
    check(&"[".repeat(1000), ", line 1, column 2: invalid type: sequence, expected a JSON object");
    check(
        &format!("{{\"0\":{}", "[".repeat(1000)),
        ", line 1, column 132: recursion limit exceeded",
    );
}

#[test]
fn json_lines() {
    let check = |input: &str, expected: &str| check(Format::JsonLines, input, expected);
    check(
        "{\"title\": \"T\", \"item_id\": \"P1\", \"codes\": [1, 2], \"price\": 9.50, \"tags\": [\"a\"]}\n\n\
         {\"sid\": [\"3\"], \"id\": 17, \"brand\": null}\r\n",
        "1: P1 [1, 2] {\"title\":\"T\",\"price\":9.5,\"tags\":[\"a\"]}\n3: 17 [3] {\"brand\":null}\n",
    );
    check(
        "{\"item_id\": -3, \"semantic_id\": \"<a_1><b_2>\"}\n{\"id\": \"x\", \"codes\": [\"<a_9>\"]}",
        "1: -3 [1, 2] {}\n2: x [9] {}\n<a b>\n",
    );
}

#[test]
fn json_lines_errors() {
    let check = |input: &str, expected: &str| check(Format::JsonLines, input, expected);
    check(
        "{\"item_id\": \"a\", \"codes\": [1]}\n{\"item_id\": \"b\", \"codes\": [1, 2, \"x9\"]}",
        ", line 2: item \"b\": code \"x9\" at level 2: expected a whole number from 0 to 2147483647 \
         or <letter_number>",
    );
    check(
        "{\"codes\": [1], \"name\": 3}",
        ", line 1: no field \"item_id\" or \"id\"; the fields are \"codes\", \"name\"",
    );
    check(
        "{\"id\": 3}",
        ", line 1: no field \"codes\" or \"semantic_id\" or \"sid\"; the fields are none",
    );
    check(
        "{\"id\": 3, \"item_id\": 3}",
        ", line 1: both \"item_id\" and \"id\", which mean the same; keep one of them",
    );
    check(
        "{\"id\": 3, \"sid\": [1], \"codes\": [1]}",
        ", line 1: both \"codes\" and \"sid\", which mean the same; keep one of them",
    );
    check("{\"id\": 3, \"p\": 1, \"p\": 1}", ", line 1, column 21: field \"p\" appears twice");
    for value in ["1.5", "null", "true", "1e20"] {
        let input = format!("{{\"id\": {value}, \"codes\": [1]}}");
        let shown = if value == "1e20" { "1e+20" } else { value };
        check(
            &input,
            &format!(
                ", line 1: item ID {shown}: expected text or a whole number that fits 64 bits"
            ),
        );
    }
    check("\n[1]\n", ", line 2, column 3: invalid type: integer `1`, expected a JSON object");
    check("{}\n[1]\n", ", line 1: no field \"item_id\" or \"id\"; the fields are none");
    check(
        "{\"id\": 1, \"codes\": [NaN]}",
        ", line 1, column 21: expected value: NaN is no JSON; write null where there is no value, or name it \
         as a text that means none (--null NaN)",
    );
    check("{\"id\": 3\n}", ", line 1: EOF while parsing an object");
    check("{\"id\": 1, \"codes\": [1]} {}", ", line 1, column 25: trailing characters");
    check(
        "{\"id\": 1, \"codes\": [1]}\n{\"id\": \"1\", \"codes\": [1]}",
        ", line 2: item ID \"1\" appears twice, first at line 1",
    );
}

#[test]
fn lists_of_objects() {
    for format in [Format::IndexJson, Format::JsonLines] {
        check(format, "\n [ ]\n", "");
        check(
            format,
            "[{\"id\": \"x\", \"codes\": [1, 2], \"a\": null},\n\n {\"sid\": \"3-4\",\n \"item_id\": 7}]",
            "1: x [1, 2] {\"a\":null}\n3: 7 [3, 4] {}\n",
        );
        check(
            format,
            "[{\"id\": 1, \"codes\": [1]},\n{\"id\": 1, \"codes\": [1]}]",
            ", line 2: item ID \"1\" appears twice, first at line 1",
        );
        check(
            format,
            "[{\"id\": 1, \"codes\": [1]}] 2",
            ", line 1, column 27: trailing characters",
        );
    }
}

#[test]
fn maps_from_semantic_ids() {
    let check = |input: &str, expected: &str| check(Format::InverseJson, input, expected);
    check(
        r#"{"1-2": "x", "1,3": [7, "y"], "<a_1>": []}"#,
        "1: x [1, 2] {}\n1: 7 [1, 3] {}\n1: y [1, 3] {}\n",
    );
    check(
        r#"{"<a_1>": [{"pid": 7, "count": 3}, {"id": "8"}], "<a_2>": {"9": 4}}"#,
        "1: 7 [1] {\"count\":3}\n1: 8 [1] {}\n1: 9 [2] {\"count\":4}\n<a>\n",
    );
    check(
        r#"{"1": null}"#,
        ", line 1: semantic ID \"1\": expected an item ID, a list of them, or of objects with an ID, \
         or an object from IDs to counts",
    );
    check(
        r#"{"1": [{"asin": 7}]}"#,
        ", line 1: no field \"item_id\" or \"id\"; the fields are \"asin\"",
    );
    check("{\"1\": 7,\n\"2\": 7}", ", line 2: item ID \"7\" appears twice, first at line 1");
}

#[test]
fn codes_as_programs_print_them() {
    for (text, codes) in [
        ("183, 7,5", "[183, 7, 5]"),
        ("[183, 7, 5]", "[183, 7, 5]"),
        ("[183   7\t5]", "[183, 7, 5]"),
        ("(183, 7)", "[183, 7]"),
    ] {
        let line = json!({"id": "x", "codes": text}).to_string();
        check(Format::JsonLines, line, &format!("1: x {codes} {{}}\n"));
    }
    let line = json!({"id": "x", "codes": "<|sid_begin|><s_a_340><s_b_6566><|sid_end|>"});
    check(Format::JsonLines, line.to_string(), "1: x [340, 6566] {}\n<s_a s_b>\n");
}
