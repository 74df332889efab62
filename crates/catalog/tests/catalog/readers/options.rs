//! Names and spellings that options give.

use palmette_catalog::readers::{Format, SourceOptions};

use super::{check_with, usual};

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
