//! Tables of text: info text, CSV and TSV.

use palmette_catalog::ColumnKind;
use palmette_catalog::readers::{CellOptions, Format, SourceOptions};

use super::{check, check_with, usual};

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
        ", line 1: the first line is one column, \"item_id;codes\"; if ; stands between its cells, say --separator \";\"",
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
