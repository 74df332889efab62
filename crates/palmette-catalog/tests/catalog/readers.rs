//! The readers on small inputs, good and bad, on generated ones, and on published files where
//! present.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use palmette_catalog::index::MAX_CODE;
use palmette_catalog::readers::{
    AttributeReport, CellOptions, Format, ItemSink, ReadError, SourceItems, SourceOptions,
    parse_into, parse_items, read_attributes, read_items,
};
use palmette_catalog::{BuildError, ColumnKind, Item};
use palmette_testkit::data::unpacked;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// `expected` is what [`show`] prints, or the error without the source's name.
#[track_caller]
fn check(format: Format, input: impl AsRef<[u8]>, expected: &str) {
    let input = input.as_ref();
    assert_eq!(show(parse_items("in", input, format)), expected);

    let with_mark = [b"\xef\xbb\xbf", input].concat();
    assert_eq!(show(parse_items("in", &*with_mark, format)), expected, "after a byte order mark");
}

/// A line an item, `line: id codes attributes`, then the prefixes.
fn show(result: Result<SourceItems, ReadError>) -> String {
    let source = match result {
        Ok(source) => source,
        Err(error) => return error.to_string().strip_prefix("in").expect("the name").to_owned(),
    };
    assert_eq!(source.items.len(), source.lines.len());
    let mut text = String::new();
    for (item, line) in source.items.iter().zip(&source.lines) {
        let attributes = Value::Object(item.attributes.clone());
        writeln!(text, "{line}: {} {:?} {attributes}", item.id, item.codes).unwrap();
    }
    if let Some(prefixes) = source.level_prefixes {
        writeln!(text, "<{}>", prefixes.join(" ")).unwrap();
    }
    text
}

fn text_formats() -> impl Iterator<Item = Format> {
    Format::ALL.into_iter().filter(|&format| format != Format::Npy)
}

fn usual() -> SourceOptions {
    SourceOptions::default()
}

#[test]
fn nothing_is_a_legal_catalog() {
    assert_eq!(show(parse_items("in", &b""[..], Format::Npy)), "");
    for format in text_formats() {
        check(format, "", "");
        check(format, "\n", "");
        check(format, "\r\n\r\n", "");
    }
    check(Format::IndexJson, "{}", "");
    check(Format::IndexJson, " \n { } \n", "");
    check(Format::Csv, "item_id,codes\n", "");
}

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
fn info_text() {
    let check = |input: &str, expected: &str| check(Format::InfoText, input, expected);
    check(
        "<a_236><b_231>\t5\" pipe, &amp; more\t0\r\n<a_42><b_80>\t\t17\r\n\r\n",
        "1: 0 [236, 231] {\"title\":\"5\\\" pipe, &amp; more\"}\n2: 17 [42, 80] {}\n<a b>\n",
    );
    check("1 2\tt\tx", "1: x [1, 2] {\"title\":\"t\"}\n");
}

#[test]
fn info_text_errors() {
    let check = |input: &str, expected: &str| check(Format::InfoText, input, expected);
    check(
        "<a_1>\tone\t1\nno tabs\n",
        ", line 2: 1 tab-separated fields in \"no tabs\", expected 3: semantic ID, title, item ID",
    );
    check(
        "<a_1>\ta\ttab\t1",
        ", line 1: 4 tab-separated fields in \"<a_1>\\ta\\ttab\\t1\", expected 3: semantic ID, title, \
         item ID",
    );
    check(
        "7 1 2 3\n8 3\n",
        ", line 1: 1 tab-separated fields in \"7 1 2 3\", expected 3: semantic ID, title, item ID; lines \
         of numbers, a user and items, are histories, which recommenders are evaluated on",
    );
    check("<a_1>\tt\t\n", ", line 1: the item ID is empty");
    check("\tt\t5\n", ", line 1: item \"5\": the semantic ID is empty; it needs at least one code");
    check("<a_1>\t\t5\n\n<a_1>\t\t5\n", ", line 3: item ID \"5\" appears twice, first at line 1");
    check(
        "<a_1>;<b_2>\t\t5\n",
        ", line 1: item \"5\": code \";\" at level 1: expected a whole number from 0 to 2147483647 \
         or <letter_number>",
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
fn csv() {
    let check = |input: &str, expected: &str| check(Format::Csv, input, expected);
    check(
        "item_id,codes,title,price,sold_out\n\
         007,1 2 3,\"two\nlines, \"\"quoted\"\"\",9.99,true\r\n\
         \n\
         8,1-2-3,,007,yes\n",
        "2: 007 [1, 2, 3] {\"title\":\"two\\nlines, \\\"quoted\\\"\",\"price\":9.99,\"sold_out\":true}\n\
         5: 8 [1, 2, 3] {\"price\":\"007\",\"sold_out\":\"yes\"}\n",
    );
    check(
        "code_1,id,code_0,code_name,code_01\n2,x,1,n,\n,y,<3>,,",
        ", line 3: item \"y\": code \"<3>\" at level 0: expected a whole number from 0 to 2147483647 \
         or <letter_number>",
    );
    check(
        "code_1,id,code_0,code_name,code_01\n2,x,1,n,\n,y, 3 ,,",
        "2: x [1, 2] {\"code_name\":\"n\"}\n3: y [3] {}\n",
    );
    check("sid,id\n<a_1><b_2>,x", "2: x [1, 2] {}\n<a b>\n");
}

#[test]
fn csv_errors() {
    let check = |input: &str, expected: &str| check(Format::Csv, input, expected);
    check(
        "item_id;codes\n1;2\n",
        ", line 1: no field \"item_id\" or \"id\"; the fields are \"item_id;codes\"",
    );
    check(
        "item_id,title\n",
        ", line 1: no field \"codes\" or \"semantic_id\" or \"sid\" or \"code_0\"; the fields are \
         \"item_id\", \"title\"",
    );
    check(
        "item_id,id,codes\n",
        ", line 1: both \"item_id\" and \"id\", which mean the same; keep one of them",
    );
    check(
        "item_id,codes,code_0\n",
        ", line 1: both \"codes\" and \"code_0\", which mean the same; keep one of them",
    );
    check("id,codes,p,p\n", ", line 1: column \"p\" appears twice in the header");
    check(
        "id,code_0,code_2\n",
        ", line 1: column code_1 is missing: code columns are numbered from 0 without gaps",
    );
    check("id,codes\n1,2\n3\n", ", line 3: 1 cells, but the header has 2");
    check(
        "id,code_0,code_1,code_2\n\"a\nb\",1,2,3\nx,1,,3\n",
        ", line 4: item \"x\": code_1 is empty but code_2 is not; only trailing codes may be left out",
    );
    check(
        "id,code_0,code_1\nx,,\n",
        ", line 2: item \"x\": the semantic ID is empty; it needs at least one code",
    );
    check(
        "id,codes\nx,-1\n",
        ", line 2: item \"x\": code \"-1\" at level 0: expected a whole number from 0 to 2147483647 \
         or <letter_number>",
    );
    check("id,codes\n,1\n", ", line 2: the item ID is empty");
    check(
        "id,codes,t\n1,1,\"a\nb\n\"\n1,2,\n",
        ", line 5: item ID \"1\" appears twice, first at line 2",
    );
    check("id,codes\n1,2\n\"3,4\n5,6\n", ", line 3: the quote opened on this line is never closed");
    check(
        "id,codes\n\"1\"x,2\n",
        ", line 2: text after a closing quote; write a quote inside a quoted cell twice (\"\")",
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
fn tables_separated_by_tabs() {
    let table = "item_id\tcodes\ttitle\tprice\nx\t1-2\t\"a\t1.5\ny\t3,4\tb\"\t\n";
    let expected =
        "2: x [1, 2] {\"title\":\"\\\"a\",\"price\":1.5}\n3: y [3, 4] {\"title\":\"b\\\"\"}\n";
    check(Format::Tsv, table, expected);
    // By its header, a table is told from info text.
    check(Format::InfoText, table, expected);
    // A quote is a character as any other, unless quoted cells are asked for.
    let quoted = SourceOptions { quoted_tabs: true, ..usual() };
    let table = "\"item_id\"\tcodes\ttitle\nx\t1-2\t\"a\tb\"\n";
    for format in [Format::Tsv, Format::InfoText] {
        check_with(&quoted, format, table, "2: x [1, 2] {\"title\":\"a\\tb\"}\n");
        check(
            format,
            table,
            ", line 1: the column name \"item_id\" is quoted; in tab-separated files quotes are characters as any \
             other, unless quoted cells are asked for (--quotes)",
        );
    }
    check(Format::InfoText, "title\tcode_0\tid\nt\t5\tz\n", "2: z [5] {\"title\":\"t\"}\n");
    check(Format::InfoText, "7\tid\tx\n", "1: x [7] {\"title\":\"id\"}\n");
    check(
        Format::InfoText,
        "asin\tcodes\tt\n",
        ", line 1: no field \"item_id\" or \"id\"; the fields are \"asin\", \"codes\", \"t\"",
    );
}

#[test]
fn lines_that_end_in_carriage_returns_alone() {
    check(
        Format::Csv,
        "id,codes,t\rx,1-2,a\r\ry,3,\"b\rc\"\r",
        "2: x [1, 2] {\"t\":\"a\"}\n4: y [3] {\"t\":\"b\\nc\"}\n",
    );
    check(
        Format::InfoText,
        "1\tt\tx\r2\tu\ty\r",
        "1: x [1] {\"title\":\"t\"}\n2: y [2] {\"title\":\"u\"}\n",
    );
    check(
        Format::JsonLines,
        "{\"id\":\"x\",\"codes\":[1]}\r{\"id\":\"y\",\"codes\":[2]}",
        "1: x [1] {}\n2: y [2] {}\n",
    );
    check(Format::Csv, "id,codes\rx,1\ry\r", ", line 3: 1 cells, but the header has 2");
}

#[test]
fn cells_are_read_by_declared_kinds() {
    let kinds = [
        ("zip", ColumnKind::Keyword),
        ("flag", ColumnKind::Boolean),
        ("tags", ColumnKind::Keywords),
        ("more", ColumnKind::Json),
        ("price", ColumnKind::Number),
    ];
    let options = SourceOptions {
        cells: CellOptions {
            kinds: kinds.map(|(name, kind)| (name.to_owned(), kind)).to_vec(),
            nulls: vec!["NaN".to_owned(), "null".to_owned()],
            list_separator: Some("|".to_owned()),
            ..CellOptions::default()
        },
        ..usual()
    };
    let expected = r#""zip":"90210","flag":true,"tags":["a","b"],"more":{"k":1}"#;
    check_with(
        &options,
        Format::Csv,
        "id,codes,zip,flag,tags,more,price\nx,1,90210,True,a|b,\"{\"\"k\"\":1}\",NaN\n",
        &format!("2: x [1] {{{expected}}}\n"),
    );
    let item = r#"{"id":"x","codes":[1],"zip":90210,"flag":1,"tags":["a",null,"b"],"more":{"k":1},"price":NaN}"#;
    for (format, text) in
        [(Format::JsonLines, item.to_owned()), (Format::JsonLines, format!("[{item}]"))]
    {
        check_with(&options, format, &text, &format!("1: x [1] {{{expected},\"price\":null}}\n"));
    }
    check_with(
        &options,
        Format::Csv,
        "id,codes,more\nx,1,{1}\n",
        ", line 2: item \"x\": attribute \"more\" is no JSON, as which the attribute was declared: key must be a string at \
         line 1 column 2: \"{1}\"",
    );
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

/// Reads with these options; `expected` as in [`check`].
#[track_caller]
fn check_with(options: &SourceOptions, format: Format, input: &str, expected: &str) {
    let mut items = SourceItems::default();
    let result = parse_into("in", input.as_bytes(), format, options, &mut items);
    let result =
        result.map(|summary| SourceItems { level_prefixes: summary.level_prefixes, ..items });
    assert_eq!(show(result), expected);
}

#[test]
fn fields_of_other_names() {
    let named = |id: Option<&str>, codes: &[&str]| SourceOptions {
        id_column: id.map(str::to_owned),
        codes_columns: codes.iter().map(|&name| name.to_owned()).collect(),
        ..usual()
    };
    let lines = "{\"asin\": \"x\", \"tokens\": [1, 2], \"id\": 5, \"codes\": 6}\n";
    let options = named(Some("asin"), &["tokens"]);
    let expected = "1: x [1, 2] {\"id\":5,\"codes\":6}\n";
    check_with(&options, Format::JsonLines, lines, expected);
    check_with(&options, Format::IndexJson, &format!("[{lines}]"), expected);
    check_with(&options, Format::Csv, "tokens,asin\n1 2,x\n", "2: x [1, 2] {}\n");
    check_with(
        &options,
        Format::Csv,
        "codes,asin\n",
        ", line 1: no field \"tokens\"; the fields are \"codes\", \"asin\"",
    );
    let levels = named(None, &["b", "a", "c"]);
    check_with(&levels, Format::Csv, "id,a,b,c\nx,1,2,\n", "2: x [2, 1] {}\n");
    check_with(
        &levels,
        Format::Csv,
        "id,a,b,c\nx,,2,3\n",
        ", line 2: item \"x\": a is empty but c is not; only trailing codes may be left out",
    );
    let lines = "{\"id\": \"x\", \"a\": 1, \"b\": 2, \"c\": null}\n{\"id\": \"y\", \"a\": 1, \"b\": 2.0, \"c\": 3}";
    check_with(&levels, Format::JsonLines, lines, "1: x [2, 1] {}\n2: y [2, 1, 3] {}\n");
    check_with(
        &levels,
        Format::JsonLines,
        "{\"id\": \"x\", \"a\": 1, \"c\": 2}",
        ", line 1: item \"x\": b is empty but c is not; only trailing codes may be left out",
    );
    check_with(
        &named(None, &["id"]),
        Format::Csv,
        "id,x\n",
        ", line 1: field \"id\" cannot be both the item ID and a semantic ID",
    );
    let without = SourceOptions { left_out: vec!["t".into()], ..usual() };
    check_with(&without, Format::Csv, "id,codes,t,u\nx,1,2,3\n", "2: x [1] {\"u\":3}\n");
    check_with(&without, Format::JsonLines, "{\"id\":7,\"codes\":[1],\"t\":1}", "1: 7 [1] {}\n");
}

#[test]
fn packed_semantic_ids() {
    let packed = SourceOptions { packed: vec![300, 20, 10], ..usual() };
    let line = |codes: &str| format!("{{\"id\": \"x\", \"codes\": {codes}}}\n");
    for number in ["42137", "\"42137\""] {
        check_with(&packed, Format::JsonLines, &line(number), "1: x [210, 13, 7] {}\n");
    }
    check_with(&packed, Format::InverseJson, "{\"59999\": \"x\"}", "1: x [299, 19, 9] {}\n");
    for (codes, value) in
        [("60000", "\"60000\""), ("-1", "\"-1\""), ("1.5", "\"1.5\""), ("\"1-2-3\"", "\"1-2-3\"")]
    {
        let expected = format!(
            ", line 1: item \"x\": semantic ID {value}: expected one whole number below 60000, the \
             product of the codebook sizes that it is packed by"
        );
        check_with(&packed, Format::JsonLines, &line(codes), &expected);
    }
}

/// An array as `numpy.save` writes it.
fn npy(kind: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), elements].concat()
}

#[test]
fn arrays_of_numpy() {
    let check = |bytes: Vec<u8>, expected: &str| {
        assert_eq!(show(parse_items("in", bytes.as_slice(), Format::Npy)), expected);
    };
    check(npy("|u1", "2, 3", &[1, 2, 255, 4, 5, 6]), "1: 0 [1, 2, 255] {}\n2: 1 [4, 5, 6] {}\n");
    check(npy("<i2", "1, 2", &[1, 1, 0, 0]), "1: 0 [257, 0] {}\n");
    check(
        npy("<i2", "1, 2", &[1, 1, 255, 255]),
        ", line 1: item \"0\": code -1 at level 1: expected a whole number from 0 to 2147483647 or \
         <letter_number>",
    );
    check(
        npy("|u1", "2, 2", &[1, 2, 3]),
        ": as an array of NumPy: it says that it has 2 rows, and ends in row 1",
    );
    check(npy("|u1", "1, 2", &[1, 2, 3]), ": as an array of NumPy: bytes follow its 1 rows");
    check(
        b"some codes".to_vec(),
        ": as an array of NumPy: it does not begin as NumPy's array files do",
    );
}

#[test]
fn bytes_that_are_not_utf8() {
    let check = |format, input: &[u8], line: u64, what: &str| {
        let found = show(parse_items("in", input, format));
        assert_eq!(found, format!(", line {line}: not {what}"));
    };
    const LATIN: &str = "UTF-8: the byte 0xe9, which is é in Latin-1; convert it: iconv -f LATIN1 -t \
        UTF-8 OLD > NEW";
    check(
        Format::IndexJson,
        b"{\"0\": [1],\n\"\x93\": [2]}",
        2,
        "UTF-8: the byte 0x93, as in Windows-1252; convert it: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW",
    );
    check(Format::InfoText, b"<a_1>\tt\t0\n<a_1>\t\xe9t\xe9\t1\n", 2, LATIN);
    check(Format::JsonLines, b"\n\n{\"id\": \"\xe9\"}", 3, LATIN);
    check(Format::Csv, b"id,codes,t\n0,1,\"a\n\xe9\"\n", 3, LATIN);
    check(
        Format::Csv,
        b"id,codes,t\n0,1,\xc4\xe3\n",
        2,
        "UTF-8: the bytes 0xc4 0xe3, as in GB18030, Big5, Shift JIS, EUC-KR or Latin-1; convert it: \
         iconv -f GB18030 (or the one it is) -t UTF-8 OLD > NEW",
    );
    check(
        Format::Csv,
        b"id,codes,t\n0,1,\xe2\x82",
        2,
        "UTF-8: the text ends within a character; it was cut off",
    );
    for (name, bytes) in [
        ("UTF-16LE", &b"\xff\xfei\0d\0"[..]),
        ("UTF-16LE", b"{\0\"\0i\0"),
        ("UTF-16BE", b"\xfe\xff\0i"),
        ("UTF-16BE", b"\0{\0\"\0i"),
        ("UTF-32LE", b"\xff\xfe\0\0i\0\0\0"),
    ] {
        let what = format!("UTF-8 but {name}; convert it: iconv -f {name} -t UTF-8 OLD > NEW");
        for format in text_formats() {
            check(format, bytes, 1, &what);
        }
    }
    check(
        Format::JsonLines,
        b"\x80\x04\x95",
        1,
        "text but a Python pickle; write it as JSON, or an array with numpy.save",
    );
}

#[test]
fn formats_by_their_first_bytes() {
    for (head, format) in [
        ("{\"item_id\": \"x\", \"codes\": [1]}\n{", Some(Format::JsonLines)),
        ("\u{feff}{\"id\": 7, \"sid\": \"<a_1>\"}", Some(Format::JsonLines)),
        ("{\"id\": [7], \"sid\": [1]}", Some(Format::IndexJson)),
        ("{\"x\": [1, 2],\n", Some(Format::IndexJson)),
        ("\n[{", Some(Format::JsonLines)),
        ("<a_1><b_2>\tTitle\t7\n", Some(Format::InfoText)),
        ("12-3\t\t7", Some(Format::InfoText)),
        ("id,codes\n", Some(Format::Csv)),
        ("\"id\",\"code_0\"\r\n", Some(Format::Csv)),
        ("title\tid\tcodes\n", Some(Format::Tsv)),
        ("id;codes\n", None),
        ("1 2 3\n", None),
        ("", None),
    ] {
        assert_eq!(Format::detect(head.as_bytes(), &usual()), format, "{head:?}");
    }
    assert_eq!(Format::detect(&npy("|u1", "0, 1", b""), &usual()), Some(Format::Npy));
}

#[test]
fn format_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert_eq!(
        "xml".parse::<Format>().unwrap_err().to_string(),
        "unknown format \"xml\"; the formats are index-json, inverse-json, info-text, jsonl, csv, tsv, npy"
    );
    for (path, format) in [
        ("d/a.index.json", Some(Format::IndexJson)),
        ("a.txt", Some(Format::InfoText)),
        ("a.TSV", Some(Format::InfoText)),
        ("a.jsonl", Some(Format::JsonLines)),
        ("A.JSONL", Some(Format::JsonLines)),
        ("a.ndjson", Some(Format::JsonLines)),
        ("a.csv", Some(Format::Csv)),
        ("a.npy", Some(Format::Npy)),
        ("a.parquet", None),
        ("json", None),
    ] {
        assert_eq!(Format::from_path(Path::new(path)), format, "{path}");
    }
}

#[test]
fn errors_know_path_and_line() {
    let missing = Path::new("no-such-folder/items.csv");
    let error = read_items(missing, Format::Csv).unwrap_err();
    assert_eq!((error.path(), error.line()), (missing, None));
    assert!(error.to_string().starts_with("no-such-folder/items.csv: cannot be read: "), "{error}");

    let error = parse_items("in", "x".as_bytes(), Format::InfoText).unwrap_err();
    assert_eq!((error.path(), error.line()), (Path::new("in"), Some(1)));
}

/// Refuses items without attributes.
#[derive(Default)]
struct Described(Vec<String>);

impl ItemSink for Described {
    fn push(
        &mut self,
        line: u64,
        id: String,
        _codes: &[u32],
        attributes: Map<String, Value>,
    ) -> Result<(), BuildError> {
        if attributes.is_empty() {
            return Err(BuildError::of_item(line, id, "has no attributes"));
        }
        self.0.push(id);
        Ok(())
    }
}

#[test]
fn a_refused_item_is_named_once() {
    let lines = "{\"id\": 3, \"codes\": [1], \"a\": 1}\n\n{\"id\": \"x\", \"codes\": [1]}\n";
    let mut sink = Described::default();
    let error =
        parse_into("in", lines.as_bytes(), Format::JsonLines, &usual(), &mut sink).unwrap_err();
    assert_eq!(error.to_string(), "in, line 3: item \"x\" has no attributes");
    assert_eq!((error.line(), sink.0), (Some(3), vec!["3".to_owned()]));
}

#[test]
fn a_sink_may_take_an_id_twice() {
    let lines = "{\"id\": 3, \"codes\": [1]}\n{\"id\": 3, \"codes\": [2]}\n";
    let mut items = SourceItems::default();
    let summary =
        parse_into("in", lines.as_bytes(), Format::JsonLines, &usual(), &mut items).unwrap();
    assert_eq!((summary.num_items, summary.level_prefixes), (2, None));
    assert_eq!(items.lines, [1, 2]);
}

/// Reads attributes for the items `0`, `1`, …, `num_items - 1`; item 0 has the title `old`.
fn with_attributes(
    name: &str,
    content: &str,
    num_items: usize,
) -> (SourceItems, Result<AttributeReport, String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    let mut info = String::from("1\told\t0\n");
    (1..num_items).for_each(|id| writeln!(info, "1\t\t{id}").unwrap());
    let mut source = parse_items("in", info.as_bytes(), Format::InfoText).unwrap();
    let report = read_attributes(&path, &mut source).map_err(|error| {
        assert_eq!(error.path(), path);
        error.to_string().split_once(name).expect("the path").1.to_owned()
    });
    (source, report)
}

#[test]
fn attributes_are_merged_by_id() {
    for (name, content) in [
        (
            "A.JSON",
            "\u{feff}{\"1\": {\"b\": 1}, \"9\": {}, \"0\": {\"title\": \"new\", \"b\": null}}",
        ),
        (
            "A.JSONL",
            "\u{feff}{\"id\": 1, \"b\": 1}\n{\"id\": 9}\n{\"title\": \"new\", \"id\": 0, \"b\": null}",
        ),
        ("a.json", r#"{"1": {"b": 1}, "9": {}, "0": {"title": "new", "b": null}}"#),
        (
            "a.jsonl",
            "{\"id\": 1, \"b\": 1}\n{\"item_id\": \"9\"}\n{\"title\": \"new\", \"id\": \"0\", \"b\": null}",
        ),
        ("a.json", r#"[{"id": 1, "b": 1}, {"id": 9}, {"title": "new", "id": 0, "b": null}]"#),
    ] {
        let (source, report) = with_attributes(name, content, 8);
        let strings = |ids: &[&str]| ids.iter().map(|&id| id.to_owned()).collect();
        let expected = AttributeReport {
            num_without_attributes: 6,
            without_attributes: strings(&["2", "3", "4", "5", "6"]),
            num_unknown: 1,
            unknown: strings(&["9"]),
            num_replaced: 1,
            ..AttributeReport::default()
        };
        assert_eq!(report, Ok(expected));
        assert_eq!(source.items[0].title(), Some("new"));
        assert_eq!(
            Value::from(source.items[0].attributes.clone()),
            json!({"title": "new", "b": null})
        );
        assert_eq!(Value::from(source.items[1].attributes.clone()), json!({"b": 1}));
    }
}

#[test]
fn attribute_errors_change_nothing() {
    for (name, content, expected) in [
        (
            "a.json",
            "{\"0\": {\"title\": \"new\"},\n\"0\": {}}",
            ", line 2: item ID \"0\" appears twice, first at line 1",
        ),
        (
            "a.json",
            "{\"0\": {\"title\": \"new\"},\n\"1\": 5\n}",
            ", line 2: invalid type: integer `5`, expected a JSON object",
        ),
        (
            "a.jsonl",
            "{\"id\": 0, \"title\": \"new\"}\n{\"title\": 3}",
            ", line 2: no field \"item_id\" or \"id\"; the fields are \"title\"",
        ),
        (
            "a.npy",
            "item_id,title\n0,new\n",
            ": attributes are read from JSON, {\"item ID\": {\"title\": …}, …}, from objects with item_id, a line each or \
             in a list, or from tables with that column; npy holds none",
        ),
        (
            "a.csv",
            "item_id,title\n0,new\n0,\n",
            ", line 3: item ID \"0\" appears twice, first at line 2",
        ),
        (
            "a.csv",
            "asin,title\n",
            ", line 1: no field \"item_id\" or \"id\"; the fields are \"asin\", \"title\"",
        ),
        ("a.tsv", "id\ttitle\n0\n", ", line 2: 1 cells, but the header has 2"),
    ] {
        let (source, report) = with_attributes(name, content, 1);
        assert_eq!(report, Err(expected.to_owned()));
        assert_eq!(source.items[0].title(), Some("old"));
    }
}

/// The `expected` of [`check`] cannot hold a whole file, so published ones are checked by count.
/// The files are not part of this repository: `PALMETTE_DATA` names their folder.
#[test]
fn published_files() {
    let test = "published_files";
    let Some(scientific) = unpacked(test, "scientific") else { return };
    let Some(minionerec) = unpacked(test, "minionerec") else { return };

    let scientific = scientific.path().join("data/Scientific");
    for (index, num_distinct) in
        [("rqvae_native", 3790), ("rkmeans_native", 3469), ("rqvae_zcr", 4344)]
    {
        let path = scientific.join(format!("indexes/{index}/Scientific.index.json"));
        let mut source = read_items(&path, Format::IndexJson).unwrap();
        assert_eq!(source.items.len(), 4344);
        assert!(source.items.iter().all(|item| item.codes.len() == 4));
        assert_eq!(
            source.level_prefixes.as_deref(),
            Some(&["a", "b", "c", "d"].map(String::from)[..])
        );
        let distinct: HashSet<&[u32]> = source.items.iter().map(|item| &*item.codes).collect();
        assert_eq!(distinct.len(), num_distinct, "{index}");

        let report = read_attributes(&scientific.join("Scientific.item.json"), &mut source);
        assert_eq!(report.unwrap(), AttributeReport::default());
        assert!(source.items.iter().all(|item| item.title().is_some()));
    }

    for (name, num_items, num_distinct) in
        [("Industrial_and_Scientific", 3686, 3670), ("Office_Products", 3459, 3444)]
    {
        let folder = minionerec.path().join("minionerec");
        let index =
            read_items(&folder.join(format!("{name}.index.json")), Format::IndexJson).unwrap();
        let info = folder.join(format!("{name}_5_2016-10-2018-11.txt"));
        let info = read_items(&info, Format::InfoText).unwrap();
        assert_eq!(index.items.len(), num_items);
        let distinct: HashSet<&[u32]> = index.items.iter().map(|item| &*item.codes).collect();
        assert_eq!(distinct.len(), num_distinct, "{name}");
        let names = |source: &SourceItems| -> Vec<(String, Vec<u32>)> {
            source.items.iter().map(|item| (item.id.clone(), item.codes.clone())).collect()
        };
        assert_eq!(names(&index), names(&info), "{name}: both files tell the same");
        assert!(info.items.iter().all(|item| item.title().is_some()));
    }
}

/// Items every format can hold: the title has no tab, no line end and is not read as a number.
fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = (
        prop::collection::vec(prop_oneof![0..300u32, 0..=MAX_CODE], 1..5),
        prop::option::of("[a-zé\"',<>\\\\{}-][a-z0-9é\"',<>\\\\{} -]{0,12}"),
        0..1000u32,
    );
    prop::collection::vec(item, 0..20).prop_map(|items| {
        let item = |(index, (codes, title, salt)): (usize, (Vec<u32>, Option<String>, u32))| {
            let mut attributes = Map::new();
            // "true" and "false" alone would come back as truth values from CSV.
            if let Some(title) = title {
                attributes.insert("title".to_owned(), format!("{title}!").into());
            }
            Item { id: format!("P{index}-{salt}"), codes, attributes }
        };
        items.into_iter().enumerate().map(item).collect()
    })
}

const PREFIXES: [&str; 4] = ["a", "b", "c2", "d"];

fn tags(item: &Item) -> Vec<String> {
    let levels = item.codes.iter().zip(PREFIXES);
    levels.map(|(code, prefix)| format!("<{prefix}_{code}>")).collect()
}

/// Writes `items` as `format` in one of its spellings, `way`; the flag says whether with prefixes.
fn write_items(items: &[Item], format: Format, way: usize) -> (String, bool) {
    let title = |item: &Item| item.title().unwrap_or_default().to_owned();
    let numbers = |item: &Item, separator| {
        item.codes.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
    };
    let tagged = way == 0;
    let mut text = String::new();
    match format {
        Format::IndexJson => {
            let entries = items.iter().map(|item| {
                let codes = if tagged { json!(tags(item)) } else { json!(item.codes) };
                (item.id.clone(), codes)
            });
            let object = Value::Object(entries.collect());
            text = if tagged { object.to_string() } else { format!("{object:#}") };
        }
        Format::InfoText => {
            for item in items {
                let codes = if tagged { tags(item).concat() } else { numbers(item, " ") };
                writeln!(text, "{codes}\t{}\t{}", title(item), item.id).unwrap();
            }
        }
        Format::JsonLines => {
            for item in items {
                let mut object = item.attributes.clone();
                object.insert("item_id".to_owned(), json!(item.id));
                let codes = match way {
                    0 => json!(tags(item).concat()),
                    1 => json!(item.codes),
                    _ => json!(numbers(item, "-")),
                };
                object.insert("codes".to_owned(), codes);
                writeln!(text, "{}", Value::Object(object)).unwrap();
            }
        }
        Format::InverseJson => {
            let entries = items.iter().map(|item| {
                let codes = if tagged { tags(item).concat() } else { numbers(item, ",") };
                let mut object = item.attributes.clone();
                object.insert(["item_id", "id", "pid"][way].to_owned(), json!(item.id));
                // A semantic ID that several items share stands several times.
                format!("{}: [{}]", json!(codes), Value::Object(object))
            });
            text = format!("{{{}}}", entries.collect::<Vec<_>>().join(",\n"));
        }
        Format::Npy => unreachable!("no text"),
        Format::Csv | Format::Tsv => {
            let separator = if format == Format::Csv { b',' } else { b'\t' };
            let quotes = match format {
                Format::Csv => csv::QuoteStyle::Necessary,
                _ => csv::QuoteStyle::Never,
            };
            let mut writer = csv::WriterBuilder::new()
                .delimiter(separator)
                .quote_style(quotes)
                .from_writer(Vec::new());
            if way == 2 {
                writer
                    .write_record(["id", "code_0", "code_1", "code_2", "code_3", "title"])
                    .unwrap();
            } else {
                writer.write_record(["id", "codes", "title"]).unwrap();
            }
            for item in items {
                let mut cells = vec![item.id.clone()];
                match way {
                    0 => cells.push(tags(item).concat()),
                    1 => cells.push(numbers(item, " ")),
                    _ => {
                        cells.extend(item.codes.iter().map(u32::to_string));
                        cells.resize(5, String::new());
                    }
                }
                cells.push(title(item));
                writer.write_record(cells).unwrap();
            }
            text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        }
    }
    (text, tagged)
}

proptest! {
    #[test]
    fn written_items_read_back(items in items(), way in 0..3usize) {
        for format in text_formats() {
            let (text, tagged) = write_items(&items, format, way);
            let source = parse_items("generated", text.as_bytes(), format).unwrap();
            let mut expected = items.clone();
            if format == Format::IndexJson {
                expected.iter_mut().for_each(|item| item.attributes.clear());
            }
            prop_assert_eq!(&source.items, &expected);
            let num_levels = items.iter().map(|item| item.codes.len()).max().unwrap_or(0);
            let prefixes = (tagged && num_levels > 0)
                .then(|| PREFIXES[..num_levels].iter().map(|&prefix| prefix.to_owned()).collect());
            prop_assert_eq!(&source.level_prefixes, &prefixes);
            prop_assert!(source.lines.is_sorted());

            let mut pushed = SourceItems::default();
            let summary =
                parse_into("generated", text.as_bytes(), format, &usual(), &mut pushed).unwrap();
            prop_assert_eq!(summary.num_items, items.len() as u64);
            pushed.level_prefixes = summary.level_prefixes;
            prop_assert_eq!(pushed, source);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            let _ = parse_items("noise", bytes.as_slice(), format);
        }
    }

    /// Damage to well-formed input reaches deeper than noise.
    #[test]
    fn damaged_items_do_not_panic(
        items in items(),
        way in 0..3usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        for format in text_formats() {
            let mut bytes = write_items(&items, format, way).0.into_bytes();
            for (place, byte) in &damage {
                if !bytes.is_empty() {
                    let place = place.index(bytes.len());
                    bytes[place] = *byte;
                }
            }
            match parse_items("damaged", bytes.as_slice(), format) {
                Ok(source) => prop_assert_eq!(source.items.len(), source.lines.len()),
                Err(error) => prop_assert!(error.line().is_some(), "{}", error),
            }
        }
    }
}
