//! Histories as the field's tools write them.

use std::ops::ControlFlow;
use std::path::Path;

use palmette_catalog_live::CatalogView;
use palmette_recommend::{NamedItem, PromptFields};
use palmette_recommend_eval::{
    Histories, HistoryFormat, HistoryOptions, HistoryRecord, UnknownItems, parse_histories,
};
use proptest::prelude::*;

use crate::evaluate::catalog;

/// Four items, the last two of one semantic ID.
fn view() -> CatalogView {
    catalog(&[vec![1, 2, 3], vec![1, 2, 4], vec![5, 0, 0], vec![5, 0, 0]]).into()
}

/// Records and messages, in order.
fn read(format: HistoryFormat, text: &str) -> Result<Vec<Result<HistoryRecord, String>>, String> {
    let mut all = Vec::new();
    let bytes = text.len() as u64;
    let options = HistoryOptions::default();
    let each = &mut |record: Result<HistoryRecord, _>,
                     progress: palmette_recommend_eval::Progress| {
        assert!(progress.done <= progress.of);
        all.push(record.map_err(|bad: palmette_recommend_eval::BadRecord| bad.to_string()));
        ControlFlow::Continue(())
    };
    parse_histories(Path::new("h"), text.as_bytes(), bytes, format, &options, each)
        .map(|_| all)
        .map_err(|error| error.to_string())
}

fn record(user: &str, items: &[&str], target: Option<&str>) -> HistoryRecord {
    let items = items.iter().map(|&item| item.into()).collect();
    let (user, target, fields) =
        (Some(user.into()), target.map(NamedItem::from), PromptFields::default());
    HistoryRecord { user, items, target, fields }
}

#[track_caller]
fn check(format: HistoryFormat, text: &str, expected: &[HistoryRecord]) {
    let expected: Vec<_> = expected.iter().cloned().map(Ok).collect();
    assert_eq!(read(format, text), Ok(expected));
}

#[test]
fn recbole_events_are_sorted_by_time_for_each_user() {
    let text = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n\
                u2\tc\t5.0\t30\nu1\tb\t1.0\t2e1\nu2\ta\t3.0\t10\r\n\nu2\tb\t\t10\n";
    let expected = [record("u2", &["a", "b", "c"], None), record("u1", &["b"], None)];
    check(HistoryFormat::Inter, text, &expected);
    let without_times = "user_id:token\titem_id:token\nu\tc\nu\ta\n";
    check(HistoryFormat::Inter, without_times, &[record("u", &["c", "a"], None)]);
}

#[test]
fn recbole_sequences_are_questions() {
    let text = "user_id:token\titem_id_list:token_seq\titem_id:token\nu\ta b\tc\nu\ta\tb\n";
    let expected = [record("u", &["a", "b"], Some("c")), record("u", &["a"], Some("b"))];
    check(HistoryFormat::Inter, text, &expected);
}

#[test]
fn minionerec_rows_are_questions() {
    let text = "user_id,history_item_title,item_title,history_item_id,item_id,history_item_sid,item_sid\n\
                A1,\"['Tin, small', \"\"Nail's\"\"]\",Saw,\"[34, 2]\",7,\"['<a_1><b_2>', '<a_0><b_2>']\",<a_3><b_0>\n";
    check(HistoryFormat::Csv, text, &[record("A1", &["34", "2"], Some("7"))]);
    let by_codes = "user_id,history_item_sid,item_sid\nA1,\"['<a_1><b_2>']\",<a_3><b_0>\n";
    check(HistoryFormat::Csv, by_codes, &[record("A1", &["<a_1><b_2>"], Some("<a_3><b_0>"))]);
    let events = "\u{feff}user_id,item_id,timestamp\nu,b,2\nu,a,1\n";
    check(HistoryFormat::Csv, events, &[record("u", &["a", "b"], None)]);
}

#[test]
fn sequential_text_and_json() {
    let expected = [record("1", &["9", "10"], None), record("u", &[], None)];
    check(HistoryFormat::Sequential, "1 9  10\n\nu\n", &expected);
    check(HistoryFormat::Json, r#"{"1": [9, "10"], "u": []}"#, &expected);
    let list =
        "\u{feff} [{\"user\": 1, \"items\": [9, 10]}, {\"user_id\": \"u\", \"history\": []}]";
    check(HistoryFormat::Json, list, &expected);
    let codes = HistoryRecord {
        user: Some("1".into()),
        items: vec![NamedItem::Codes(vec![3, 1]), "<a_3><b_1>".into()],
        target: None,
        fields: PromptFields::default(),
    };
    check(HistoryFormat::JsonLines, r#"{"user": 1, "items": [[3, 1], "<a_3><b_1>"]}"#, &[codes]);
    check(HistoryFormat::Csv, "", &[]);
    check(HistoryFormat::Inter, "", &[]);
}

/// One record is wrong and the next is read.
#[track_caller]
fn check_bad(format: HistoryFormat, text: &str, words: &[&str]) {
    let records = read(format, text).unwrap();
    let message = records[0].clone().unwrap_err();
    for word in words {
        assert!(message.contains(word), "{message} lacks {word}");
    }
    assert_eq!(records[1], Ok(record("2", &["b"], None)));
    assert_eq!(records.len(), 2);
}

#[test]
fn a_bad_record_does_not_end_the_reading() {
    let lines = HistoryFormat::JsonLines;
    let good = "{\"user\": \"2\", \"items\": [\"b\"]}";
    check_bad(lines, &format!("{{\n{good}"), &["line 1", "it is no object"]);
    check_bad(lines, &format!("[1]\n{good}"), &["line 1", "it is no object"]);
    check_bad(lines, &format!("{{\"user\": 1}}\n\n{good}"), &["line 1", "nothing is called"]);
    check_bad(lines, &format!("{{\"user\": 1, \"items\": [1.5]}}\n{good}"), &["item 1.5"]);
    check_bad(HistoryFormat::Json, &format!("[3, {good}]"), &["history 1", "3 is no object"]);
    check_bad(HistoryFormat::Json, r#"{"1": 5, "2": ["b"]}"#, &["history 1", "is no list"]);
    let rows = HistoryFormat::Tsv;
    check_bad(rows, "user\titems\n1\n2\tb\n", &["line 2", "it has 1 columns, the first line 2"]);
    check_bad(rows, "user\titems\n1\t['a\n2\tb\n", &["line 2", "is no list such as"]);
}

#[test]
fn what_cannot_be_told_apart_is_an_error() {
    let wrong = |format, text: &str, words: &[&str]| {
        let message = read(format, text).unwrap_err();
        for word in words {
            assert!(message.contains(word), "{message} lacks {word}");
        }
    };
    wrong(HistoryFormat::Json, r#"{"1": [1]} x"#, &["h: is not {user:", "trailing"]);
    wrong(HistoryFormat::Json, r#"{"1": [1]"#, &["h: is not {user:", "EOF"]);
    wrong(HistoryFormat::Json, "7", &["an object {user: [item, …]}"]);
    wrong(HistoryFormat::Inter, "a\tb\n1\t2\n", &["line 1", "nothing is called", "there are a, b"]);
    let cells = "user_id\titem_id\n1\t2\n1\n";
    wrong(HistoryFormat::Inter, cells, &["line 3", "it has 1 columns"]);
    wrong(HistoryFormat::Csv, "user_id,item_id\n\"1,2\n", &["line 2", "quote"]);
    let mixed = "{\"user\": 1, \"items\": []}\n{\"user\": 1, \"item_id\": 3}\n";
    wrong(HistoryFormat::JsonLines, mixed, &["line 2", "split the file"]);
    let event = "{\"user\": 1, \"item_id\": 3}\n{\"user\": 1, \"item_id\": 1.5}\n";
    wrong(HistoryFormat::JsonLines, event, &["line 2", "item 1.5"]);
}

#[test]
fn a_reader_that_wants_no_more_ends() {
    let line = "{\"user\": 1, \"items\": []}";
    for (format, text) in [
        (HistoryFormat::JsonLines, format!("{line}\n{line}\n")),
        (HistoryFormat::Json, format!("[{line}, {line}")),
        (HistoryFormat::Sequential, "1\n2\n".to_owned()),
        (HistoryFormat::Csv, "user,items\n1,\n2,\n".to_owned()),
        (HistoryFormat::Inter, "user\titem\n1\t5\n2\t5\n".to_owned()),
    ] {
        let mut count = 0;
        let end = &mut |_, _: palmette_recommend_eval::Progress| {
            count += 1;
            ControlFlow::Break(())
        };
        let options = HistoryOptions::default();
        parse_histories(Path::new("h"), text.as_bytes(), 0, format, &options, end).unwrap();
        assert_eq!(count, 1, "{format}");
    }
}

#[test]
fn unknown_items_are_an_error_or_left_out_and_counted() {
    let view = view();
    let known = |number| view.id(number).to_owned();
    let histories = |target: [Option<&str>; 2]| {
        let mut all = Histories::default();
        for (user, target) in [("u", target[0]), ("v", target[1])] {
            let items = [known(0), "gone".into(), known(2), "gone too".into()];
            let items = items.map(NamedItem::Id).to_vec();
            let target = target.map(NamedItem::from);
            let (user, fields) = (Some(user.into()), PromptFields::default());
            all.push(Ok(HistoryRecord { user, items, target, fields })).unwrap();
        }
        all
    };
    let path = Path::new("h.json");
    let error = histories([None; 2]).bind(path, &view, UnknownItems::Error).unwrap_err();
    for word in ["h.json", "user \"u\"", "\"gone\"", "--unknown skip"] {
        assert!(error.to_string().contains(word), "{error}");
    }
    let bound = histories([None; 2]).bind(path, &view, UnknownItems::Skip).unwrap();
    assert_eq!(bound.items, [[0, 2], [0, 2]]);
    assert_eq!((bound.skipped.items, bound.skipped.histories), (4, 2));
    let three = known(3);
    let asked = histories([Some("gone"), Some(&three)]);
    let bound = asked.bind(path, &view, UnknownItems::Skip).unwrap();
    assert_eq!((bound.items.as_slice(), bound.skipped.questions), (&[vec![0, 2, 3]][..], 1));
    assert!(bound.are_questions);
    let questions: Vec<_> = bound.questions(palmette_recommend_eval::Split::Test).collect();
    assert_eq!((questions[0].history, questions[0].target), (&[0, 2][..], 3));
}

/// Fields stay with their questions where others are left out, and go where no prompt reads them.
#[test]
fn fields_of_prompts_stay_with_their_questions() {
    let view = view();
    let row = |user: u32, target: String, query: &str| {
        let items = [view.id(0), view.id(1)];
        serde_json::json!({
            "user_id": user, "user": {"age": 30 + user}, "items": items, "target": target, "query": query,
        })
    };
    let rows = [
        row(1, "gone".into(), "boots"),
        row(2, view.id(2).into(), "tents"),
        row(3, view.id(3).into(), "maps"),
    ];
    let text: String = rows.iter().map(|row| row.to_string() + "\n").collect();
    let path = Path::new("h.jsonl");
    let mut all = Histories::default();
    for record in read(HistoryFormat::JsonLines, &text).unwrap() {
        all.push(Ok(record.unwrap())).unwrap();
    }
    let mut bound = all.bind(path, &view, UnknownItems::Skip).unwrap();
    let asked: Vec<_> = bound
        .questions(palmette_recommend_eval::Split::Test)
        .map(|question| {
            let fields = question.fields.unwrap();
            let age = fields.user["age"].as_u64().unwrap();
            (question.target, fields.query.clone().unwrap(), age)
        })
        .collect();
    assert_eq!(asked, [(2, "tents".to_owned(), 32), (3, "maps".to_owned(), 33)]);
    // Prompts of codes have no place for them.
    let note = bound.drop_unread_fields(&crate::evaluate::format().into()).unwrap();
    assert!(note.contains("reads query, user.age of the histories"), "{note}");
    assert!(bound.fields.iter().all(PromptFields::is_empty));
    assert_eq!(bound.drop_unread_fields(&crate::evaluate::format().into()), None);
}

#[test]
fn semantic_ids_stand_for_their_first_item() {
    let view = view();
    let codes = view.codes(3);
    let first = view.find_codes(&codes)[0];
    assert_eq!(NamedItem::Codes(codes.clone()).number_in(&view), Some(first));
    let text = codes.iter().map(u32::to_string).collect::<Vec<_>>().join("-");
    assert_eq!(NamedItem::Id(text).number_in(&view), Some(first));
    assert_eq!(NamedItem::Codes(vec![u32::MAX]).number_in(&view), None);
}

/// Each user's items, written one after another in an order that times restore.
fn histories() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec("[a-z0-9]{1,3}", 1..6), 1..6)
}

proptest! {
    #[test]
    fn all_formats_say_the_same(histories in histories(), crlf: bool) {
        let end = if crlf { "\r\n" } else { "\n" };
        let lines = |head: &str, line: &dyn Fn(usize, &[String]) -> String| {
            let lines = histories.iter().enumerate().map(|(user, items)| line(user, items) + end);
            (if head.is_empty() { String::new() } else { format!("{head}{end}") }) + &lines.collect::<String>()
        };
        let quoted = |items: &[String]| format!("{items:?}");
        let python = |items: &[String]| format!("{items:?}").replace('"', "'");
        let texts = [
            (HistoryFormat::JsonLines, lines("", &|user, items| format!("{{\"user\": {user}, \"items\": {}}}", quoted(items)))),
            (HistoryFormat::Sequential, lines("", &|user, items| format!("{user}\t{}", items.join(" ")))),
            (HistoryFormat::Inter, lines("user_id:token\titem_id_list:token_seq", &|user, items| format!("{user}\t{}", items.join(" ")))),
            (HistoryFormat::Csv, lines("history,user", &|user, items| format!("\"{}\",{user}", python(items)))),
            (HistoryFormat::Json, format!("{{{}}}", histories.iter().enumerate().map(|(user, items)| format!("\"{user}\": {}", quoted(items))).collect::<Vec<_>>().join(", "))),
        ];
        let expected: Vec<_> = histories.iter().enumerate().map(|(user, items)| {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            Ok(record(&user.to_string(), &items, None))
        }).collect();
        for (format, text) in &texts {
            prop_assert_eq!(read(*format, text), Ok(expected.clone()), "{}", format);
        }
        // The last things done come first in the file; users appear in their order all the same.
        let mut events: Vec<(usize, usize, &String)> = histories.iter().enumerate()
            .flat_map(|(user, items)| items.iter().enumerate().map(move |(time, item)| (user, time, item))).collect();
        events.reverse();
        events.sort_by_key(|&(user, ..)| user);
        let rows = events.iter().map(|(user, time, item)| format!("{user}\t{item}\t{time}.5{end}"));
        let text = format!("user_id:token\titem_id:token\ttimestamp:float{end}{}", rows.collect::<String>());
        prop_assert_eq!(read(HistoryFormat::Inter, &text), Ok(expected));
    }
}
