//! Files as data sets and tools publish them, made by hand: read by the name of their layout, and
//! by naming columns.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use palmette_recommend::NamedItem;
use palmette_recommend_eval::{
    BadRecord, HistoryFormat, HistoryOptions, HistoryRecord, Layout, Progress, ReadNotes,
    RowFilter, parse_histories,
};
use proptest::prelude::*;

type HistoryRows = Vec<(String, Vec<String>, Option<String>)>;

fn read_as(
    bytes: &[u8],
    format: HistoryFormat,
    options: &HistoryOptions,
) -> Result<(HistoryRows, ReadNotes), String> {
    let mut all = Vec::new();
    let plain = |item: NamedItem| match item {
        NamedItem::Id(id) => id,
        codes => codes.to_string(),
    };
    let each = &mut |record: Result<HistoryRecord, BadRecord>, _: Progress| {
        all.push(record.map(|record| {
            let items = record.items.into_iter().map(plain).collect();
            (record.user.unwrap_or_default(), items, record.target.map(plain))
        }));
        ControlFlow::Continue(())
    };
    let notes = parse_histories(Path::new("h"), bytes, bytes.len() as u64, format, options, each);
    let notes = notes.map_err(|error| error.to_string())?;
    let all = all.into_iter().collect::<Result<HistoryRows, BadRecord>>();
    Ok((all.map_err(|bad| bad.to_string())?, notes))
}

/// Reads the text of a file of this name by a layout.
fn read(layout: &str, name: &str, bytes: &[u8]) -> Result<(HistoryRows, ReadNotes), String> {
    let layout: &'static Layout = layout.parse()?;
    let options = HistoryOptions { layout: Some(layout), ..HistoryOptions::default() };
    let format = options.format_of(Path::new(name)).unwrap();
    read_as(bytes, format, &options)
}

/// `user: item item > target`, each.
fn shown(found: &HistoryRows) -> Vec<String> {
    let line = |(user, items, target): &(String, Vec<String>, Option<String>)| {
        let target = target.as_ref().map_or_else(String::new, |target| format!(" > {target}"));
        format!("{user}: {}{target}", items.join(" "))
    };
    found.iter().map(line).collect()
}

/// A file is read by its layout, and is what it would be without the columns that are not read.
#[track_caller]
fn check(layout: &str, name: &str, text: &str, expected: &[&str], unread: &str) {
    let (found, notes) = read(layout, name, text.as_bytes()).unwrap();
    assert_eq!(shown(&found), expected, "{layout} {name}");
    let said: Vec<String> = notes.sentences();
    let said = said.iter().find_map(|one| one.strip_prefix("not read: ")).unwrap_or_default();
    assert_eq!(said, unread, "{layout} {name}");
    // Compressed it is the same, whatever the name ends in.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let (again, _) = read(layout, &format!("{name}.gz"), &gzip.finish().unwrap()).unwrap();
    assert_eq!(again, found);
    // And with the line ends of Windows.
    if !text.contains("\r\n") {
        let text = text.replace('\n', "\r\n");
        assert_eq!(read(layout, name, text.as_bytes()).unwrap().0, found);
    }
}

#[test]
fn movielens() {
    let expected = ["1: 31 10", "2: 17"];
    let csv = "userId,movieId,rating,timestamp\n1,10,2.5,1260759144\n1,31,3.0,1260759100\n2,17,5,835355681\n";
    check("movielens", "ratings.csv", csv, &expected, "rating");
    let dat = "1::10::3::978302109\n1::31::5::978300760\n2::17::4::978301968\n";
    check("movielens", "ratings.dat", dat, &expected, "rating");
    let data = "1\t10\t3\t881250949\n1\t31\t3\t881250940\n2\t17\t1\t878887116\n";
    check("movielens", "u.data", data, &expected, "rating");
}

#[test]
fn amazon() {
    let lines = r#"{"overall": 5.0, "verified": true, "reviewTime": "09 7, 2017", "reviewerID": "A1", "asin": "B02", "unixReviewTime": 1504742400}
{"overall": 4.0, "reviewTime": "01 2, 2017", "reviewerID": "A1", "asin": "B01", "style": {"Size:": " L"}, "unixReviewTime": 1483315200}
"#;
    let unread = "overall, verified, reviewTime, style";
    check("amazon2018", "All_Beauty_5.json", lines, &["A1: B01 B02"], unread);
    let ratings = "B02,A1,5.0,1504742400\nB01,A1,4.0,1483315200\n";
    check("amazon2018", "All_Beauty.csv", ratings, &["A1: B01 B02"], "overall");

    let lines = r#"{"rating": 5.0, "title": "t", "asin": "C02", "parent_asin": "B02", "user_id": "AG1", "timestamp": 1588687728923}
{"rating": 4.0, "title": "t", "asin": "B01", "parent_asin": "B01", "user_id": "AG1", "timestamp": 1588687728922}
"#;
    check("amazon2023", "All_Beauty.jsonl", lines, &["AG1: B01 B02"], "rating, title, asin");
    let ratings = "user_id,parent_asin,rating,timestamp\nAG1,B02,5.0,1588687728923\nAG1,B01,4.0,1588615855070\n";
    check("amazon2023", "All_Beauty.train.csv", ratings, &["AG1: B01 B02"], "rating");
    let rows = "user_id,parent_asin,rating,timestamp,history\nAG1,B01,3.0,1452647382000,\nAG1,B02,4.0,1454675785000,B01 B00\n";
    let expected = ["AG1:  > B01", "AG1: B01 B00 > B02"];
    check("amazon2023", "All_Beauty.test.csv", rows, &expected, "rating, timestamp");
}

#[test]
fn kuaishou() {
    let log = "user_id,video_id,date,hourmin,time_ms,is_click,tab\n0,11,20220421,1600,1650528001000,1,1\n0,7,20220408,700,1649400957911,0,1\n";
    check("kuairand", "log_standard.csv", log, &["0: 7 11"], "date, hourmin, is_click, tab");
    let matrix = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n\
                  0,183,4,10,2020-07-05 00:08:23.438,20200705,1593878903.439,0.4\n\
                  0,3649,13,10,2020-07-05 00:08:23.437,20200705,1593878903.438,1.3\n";
    let unread = "play_duration, video_duration, time, date, watch_ratio";
    check("kuairec", "big_matrix.csv", matrix, &["0: 3649 183"], unread);
}

#[test]
fn yelp_and_steam() {
    let reviews = r#"{"review_id": "r1", "user_id": "u", "business_id": "b2", "stars": 3.0, "date": "2018-07-07 22:09:11"}
{"review_id": "r2", "user_id": "u", "business_id": "b1", "stars": 5.0, "date": "2012-01-03 15:28:18"}
"#;
    check("yelp", "yelp_academic_dataset_review.json", reviews, &["u: b1 b2"], "review_id, stars");

    let reviews = "{u'username': u'Chaos \"S\"', u'hours': 0.1, u'product_id': u'725280', u'date': u'2017-12-17', u'text': u\"It's\", u'early_access': False}\n\
                   {u'username': u'Chaos \"S\"', u'hours': 51.1, u'product_id': u'328100', u'date': u'2017-12-16', u'text': u'', u'early_access': True}\n";
    let expected = ["Chaos \"S\": 328100 725280"];
    check("steam", "steam_reviews.json", reviews, &expected, "hours, text, early_access");
    let owned = "{'user_id': '76561197970982479', 'items_count': 2, 'items': [{'item_id': '10', 'playtime_forever': 6}, {'item_id': '20', 'playtime_forever': 0}]}\n";
    check(
        "steam",
        "australian_users_items.json",
        owned,
        &["76561197970982479: 10 20"],
        "items_count, items.playtime_forever",
    );
    let csv = "app_id,helpful,date,is_recommended,user_id\n975370,0,2022-12-12,true,51580\n304390,4,2017-02-17,false,51580\n";
    check(
        "steam",
        "recommendations.csv",
        csv,
        &["51580: 304390 975370"],
        "helpful, is_recommended",
    );
}

#[test]
fn shops() {
    let sessions = r#"{"session": 12, "events": [{"aid": 11830, "ts": 1661724000278, "type": "clicks"}, {"aid": 588923, "ts": 1661724000270, "type": "carts"}]}
{"session": 13, "events": [{"aid": 5, "ts": 1661724000378, "type": "orders"}]}
"#;
    let expected = ["12: 588923 11830", "13: 5"];
    check("otto", "otto-recsys-train.jsonl", sessions, &expected, "events.type");
    let flat = "session,aid,ts,type\n12,11830,1661724000278,0\n12,588923,1661724000270,1\n13,5,1661724000378,2\n";
    check("otto", "train.csv", flat, &expected, "type");

    let events = "timestamp,visitorid,event,itemid,transactionid\n1433221332117,257597,view,355908,\n1433221332116,257597,transaction,248676,4000\n";
    check("retailrocket", "events.csv", events, &["257597: 248676 355908"], "event, transactionid");
    let bought = "t_dat,customer_id,article_id,price,sales_channel_id\n2018-09-21,00a,0663713001,0.05,2\n2018-09-20,00a,0541518023,0.03,2\n";
    check(
        "hm",
        "transactions_train.csv",
        bought,
        &["00a: 0541518023 0663713001"],
        "price, sales_channel_id",
    );

    let feedback = "feedback_type,user_id,item_id,time_stamp\r\nclick,0,2,2021-02-20 10:00:00.5 +0000 UTC\r\nread,0,6,2021-02-20 17:00:00 +0800 CST\r\n";
    check("gorse", "feedback.csv", feedback, &["0: 6 2"], "feedback_type");
    let feedback = feedback.split_once('\n').unwrap().1;
    check("gorse", "feedback.csv", feedback, &["0: 6 2"], "feedback_type");
    let json = r#"[{"FeedbackType": "star", "UserId": "bob", "ItemId": "vuejs:vue", "Timestamp": "2022-02-24T00:00:00Z"}, {"FeedbackType": "star", "UserId": "bob", "ItemId": "d3:d3", "Timestamp": "2022-02-23T00:00:00Z"}]"#;
    check("gorse", "feedback.json", json, &["bob: d3:d3 vuejs:vue"], "FeedbackType");
}

#[test]
fn tools() {
    let inter = "session_id:token\titem_id:token\ttimestamp:float\n1\tb\t30\n1\ta\t20.5\n";
    check("recbole", "diginetica.inter", inter, &["1: a b"], "");
    let inter = "review_id:token\tuser_id:token\tbusiness_id:token\tdate:float\nr\tu\tb\t1.5e9\nq\tu\ta\t1.4e9\n";
    check("recbole", "yelp.inter", inter, &["u: a b"], "review_id");
    let inter = "user_id:token\titem_id_list:token_seq\titem_id:token\nu\ta b\tc\n";
    check("recbole", "beauty.train.inter", inter, &["u: a b > c"], "");
    check("minionerec", "Office.test.inter", inter, &["u: a b > c"], "");

    let train = "user_id\titem_id\ttime\n1\t8\t1389052800\n1\t7\t1388966400\n";
    check("rechorus", "train.csv", train, &["1: 7 8"], "");
    let dev = "user_id\titem_id\ttime\tneg_items\n1\t9\t1389052801\t[3, 4]\n";
    check("rechorus", "dev.csv", dev, &["1: 9"], "neg_items");

    let sessions = "session_id,item_id-list_seq,category-list_seq\n70001,\"[15, 16]\",\"[1, 1]\"\n";
    check("merlin", "sessions.csv", sessions, &["70001: 15 16"], "category-list_seq");
    let sessions = r#"{"session_id": 7, "item_id-list": [15, 16], "item_id-count": 2, "timestamp-list": [2, 1]}"#;
    check("merlin", "sessions.jsonl", sessions, &["7: 16 15"], "item_id-count");

    let rows = "user_id,history_item_title,item_title,history_item_id,item_id,history_item_sid,item_sid\nA1,\"['Tin']\",Saw,\"[34, 2]\",7,\"['<a_1><b_2>', '<a_0><b_2>']\",<a_3><b_0>\n";
    let unread = "history_item_title, item_title, history_item_sid, item_sid";
    check("minionerec", "Office.test.csv", rows, &["A1: 34 2 > 7"], unread);

    let rows = "user_id\tseq\ttarget\n1\t5\t9\t0\t0\t7\n2\t5\t9\t8\t3\t4\n3\t0\t0\t0\t0\t6\n";
    check("taste", "train.txt", rows, &["1: 5 9 > 7", "2: 5 9 8 3 > 4", "3:  > 6"], "");
}

/// A record of TensorFlow: `sequence_data` and `user_id` as lists of whole numbers.
#[test]
fn grid() {
    let field =
        |number: u8, content: &[u8]| [&[number << 3 | 2, content.len() as u8], content].concat();
    let feature = |name: &str, numbers: &[u8]| {
        let list = field(3, &field(1, numbers));
        field(1, &[field(1, name.as_bytes()), field(2, &list)].concat())
    };
    let mut bytes = Vec::new();
    for (user, items) in [(3, &[7, 5, 9][..]), (4, &[1][..])] {
        let features = [feature("user_id", &[user]), feature("sequence_data", items)].concat();
        let example = field(1, &features);
        bytes.extend((example.len() as u64).to_le_bytes());
        bytes.extend([[0; 4].to_vec(), example, [0; 4].to_vec()].concat());
    }
    let (found, _) = read("grid", "00000.tfrecord", &bytes).unwrap();
    assert_eq!(shown(&found), ["3: 7 5 9", "4: 1"]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    let gzip = gzip.finish().unwrap();
    assert_eq!(read("grid", "00000.tfrecord.gz", &gzip).unwrap().0, found);
    let cut = &bytes[..bytes.len() - 3];
    assert!(read("grid", "00000.tfrecord", cut).unwrap_err().contains("within a record"));
}

#[test]
fn a_layout_that_is_not_the_files_is_said() {
    let error = read("yelp", "r.jsonl", b"{\"user\": 1, \"item\": 2}\n").unwrap_err();
    for word in ["line 1", "business_id", "there are user, item"] {
        assert!(error.contains(word), "{error}");
    }
    let error = "netflix".parse::<&'static Layout>().unwrap_err();
    assert!(error.contains("\"netflix\"") && error.contains("movielens, amazon2018"), "{error}");
}

/// Options by name: `user`, `item`, `history`, `time`, `target`, and conditions.
fn options(named: &[(&str, &str)]) -> HistoryOptions {
    let mut options = HistoryOptions::default();
    for &(name, column) in named {
        let place = match name {
            "user" => &mut options.user_column,
            "item" => &mut options.item_column,
            "history" => &mut options.history_column,
            "time" => &mut options.time_column,
            "target" => &mut options.target_column,
            "list separator" => &mut options.list_separator,
            "separator" => {
                options.separator = column.chars().next();
                continue;
            }
            _ => {
                options.rows = Some(column.parse::<RowFilter>().unwrap());
                continue;
            }
        };
        *place = Some(column.to_owned());
    }
    options
}

#[track_caller]
fn check_options(
    format: HistoryFormat,
    text: &str,
    named: &[(&str, &str)],
    expected: Result<(&[&str], &[&str]), &[&str]>,
) {
    match (read_as(text.as_bytes(), format, &options(named)), expected) {
        (Ok((found, notes)), Ok((expected, said))) => {
            assert_eq!(shown(&found), expected, "{named:?}");
            assert_eq!(notes.sentences(), said, "{named:?}");
        }
        (Err(error), Err(words)) => {
            for word in words {
                assert!(error.contains(word), "{error} lacks {word}");
            }
        }
        (got, want) => panic!("{got:?} where {want:?} was expected"),
    }
}

const UNTIMED: &str =
    "no column has times: a user's items keep the order of the file (--time-column names one)";

#[test]
fn columns_by_name() {
    let csv = "who,what,date\n0,b,20220408\n0,a,20220407\n";
    let dates = "2 times such as 20220408 read as dates, YYYYMMDD: they are compared as numbers, and things of one date keep the order of the file";
    let named = [("user", "who"), ("item", "what")];
    check_options(HistoryFormat::Csv, csv, &named, Ok((&["0: b a"], &["not read: date", UNTIMED])));
    let timed = [named[0], named[1], ("time", "date")];
    check_options(HistoryFormat::Csv, csv, &timed, Ok((&["0: a b"], &[dates])));
    let lines = "{\"who\": 0, \"what\": \"b\", \"date\": 20220408}\n{\"who\": 0, \"what\": \"a\", \"date\": 20220407, \"n\": 1}\n";
    check_options(
        HistoryFormat::JsonLines,
        lines,
        &timed,
        Ok((&["0: a b"], &["not read: n", dates])),
    );

    let wrong = [("user", "who"), ("item", "what"), ("time", "data")];
    check_options(HistoryFormat::Csv, csv, &wrong, Err(&["line 1", "\"data\"", "who, what, date"]));
    check_options(
        HistoryFormat::Csv,
        csv,
        &named[..1],
        Err(&["nothing is called", "--item-column"]),
    );
    check_options(HistoryFormat::Csv, csv, &named[1..], Err(&["--user-column"]));
    check_options(
        HistoryFormat::Sequential,
        "1 2\n",
        &named,
        Err(&["--user-column", "sequential"]),
    );
}

#[test]
fn columns_of_whole_histories() {
    let rows = "who,seen,bought,at\n0,\"[3, 1]\",7,\"[2, 1]\"\n";
    let all = [("user", "who"), ("item", "seen"), ("target", "bought"), ("time", "at")];
    check_options(
        HistoryFormat::Csv,
        rows,
        &all,
        Ok((
            &["0: 1 3 > 7"],
            &[
                "2 times such as 2 lie before 1971 if they count seconds; they are compared as numbers",
            ],
        )),
    );
    let history = [("user", "who"), ("history", "seen")];
    check_options(HistoryFormat::Csv, rows, &history, Ok((&["0: 3 1"], &["not read: bought, at"])));
    let events = "user,item,next\n0,1,2\n";
    let target = [("target", "next")];
    check_options(
        HistoryFormat::Csv,
        events,
        &target,
        Err(&["--target-column next", "--history-column"]),
    );
    let nested = "{\"id\": 5, \"visits\": [{\"sku\": \"b\", \"when\": \"2020-01-02\"}, {\"sku\": \"a\", \"when\": \"2020-01-01\", \"n\": 1}]}\n";
    let named = [("user", "id"), ("item", "visits.sku"), ("time", "visits.when")];
    check_options(
        HistoryFormat::JsonLines,
        nested,
        &named,
        Ok((&["5: a b"], &["not read: visits.n"])),
    );
}

#[test]
fn lists_in_cells_are_parted_by_what_is_named() {
    let csv = HistoryFormat::Csv;
    let rows = |cell: &str| format!("user,history\n0,\"{cell}\"\n1,\"d e\"\n");
    for (cell, separator) in [("a,b, c", ","), ("a|b|c|", "|"), ("a;b;c", ";")] {
        let named = [("list separator", separator)];
        check_options(csv, &rows(cell), &named, Ok((&["0: a b c", "1: d e"], &[])));
        check_options(
            csv,
            &rows(cell),
            &[],
            Err(&["line 2", &format!("{cell:?}"), "--list-separator"]),
        );
    }
    for list in ["['a', 'b']", "['a' 'b']", "('a', 'b')", "[ 'a'  'b' ]"] {
        for named in [&[][..], &[("list separator", "|")]] {
            let (found, _) = read_as(rows(list).as_bytes(), csv, &options(named)).unwrap();
            assert_eq!(shown(&found)[0], "0: a b", "{list} {named:?}");
        }
    }
    check_options(csv, &rows("['a' ... 'b']"), &[], Err(&["it was cut off when it was printed"]));
    // Times go with their items.
    let timed = "user,history,times\n0,a|b,2000000002|2000000001\n";
    check_options(csv, timed, &[("list separator", "|")], Ok((&["0: b a"], &[])));
    // The bad record of a user is that user's.
    let error = read_as(rows("a|b").as_bytes(), csv, &options(&[])).unwrap_err();
    assert!(error.contains("line 2"), "{error}");

    let members = "{\"user\": 0, \"history\": \"a,b\"}\n{\"user\": 1, \"history\": [\"c\"]}\n";
    let named = [("list separator", ",")];
    let lines = HistoryFormat::JsonLines;
    check_options(lines, members, &named, Ok((&["0: a b", "1: c"], &[])));
    check_options(lines, members, &[], Err(&["`history` is no list", "--list-separator"]));

    let sequences = "0,a,b\n1,c\n2\n";
    let text = HistoryFormat::Sequential;
    check_options(text, sequences, &named, Ok((&["0: a b", "1: c", "2: "], &[])));
    check_options(text, sequences, &[], Err(&["line 1", "\"0,a,b\"", "--list-separator"]));
    check_options(text, "0 a b\n", &named, Err(&["\"0 a b\" has no \",\""]));
    check_options(text, "0 a b\n", &[("list separator", "")], Err(&["--list-separator is empty"]));
}

#[test]
fn cells_are_parted_by_what_is_named() {
    for (format, mark, other) in [
        (HistoryFormat::Csv, ";", ";"),
        (HistoryFormat::Csv, "\t", "tab"),
        (HistoryFormat::Tsv, "|", "|"),
    ] {
        let text = format!(
            "user{mark}item{mark}time\n0{mark}b,c{mark}2000000002\n0{mark}a{mark}2000000001\n"
        );
        check_options(format, &text, &[("separator", mark)], Ok((&["0: a b,c"], &[])));
        let hint = format!("if {other} stands between its cells, say --separator {other:?}");
        check_options(format, &text, &[], Err(&["the first line is one column", &hint]));
    }
    check_options(
        HistoryFormat::JsonLines,
        "{}",
        &[("separator", ";")],
        Err(&["--separator ';'", "the format is jsonl"]),
    );
}

#[test]
fn nothing_is_read_in_place_of_another() {
    check_options(
        HistoryFormat::Csv,
        "user,item,item\n0,a,b\n",
        &[],
        Err(&["line 1", "two columns are called \"item\""]),
    );
    let twice = "{\"user\": 0, \"items\": [\"a\"], \"items\": [\"b\"]}";
    check_options(HistoryFormat::JsonLines, twice, &[], Err(&["\"items\" appears twice"]));
    let list = format!("[{twice}]");
    check_options(HistoryFormat::Json, &list, &[], Err(&["\"items\" appears twice"]));
    let dict = twice.replace('"', "'");
    check_options(HistoryFormat::Python, &dict, &[], Err(&["\"items\" stands twice"]));
    // A type of RecBole is no part of a name, other colons are.
    let typed = "user:id:token\titem:token\n0\ta\n";
    let named = [("user", "user:id")];
    check_options(HistoryFormat::Inter, typed, &named, Ok((&["0: a"], &[UNTIMED])));
}

#[test]
fn what_is_no_text_is_said() {
    let wide: Vec<u8> = "user,items\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (format, bytes, words) in [
        (HistoryFormat::Csv, &wide[..], ["UTF-16LE", "iconv"]),
        (HistoryFormat::JsonLines, b"\x28\xb5\x2f\xfd...", ["zstd", "decompress"]),
        (HistoryFormat::Csv, b"user,item\n\xe9,a\n", ["line 2: not UTF-8", "Latin-1"]),
        (HistoryFormat::Json, b"{\"\xe9\": []}", ["not UTF-8", "Latin-1"]),
    ] {
        let error = read_as(bytes, format, &HistoryOptions::default()).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn rows_that_do_not_match_are_left_out_and_counted() {
    let csv = "user,item,event,rating,time\n0,a,view,4.5,3\n0,b,buy,2,2000000000\n1,c,view,1e1,1\n";
    let view = [("where", "event=view")];
    let early = |count: u64, example: u64| {
        format!(
            "{count} times such as {example} lie before 1971 if they count seconds; they are compared as numbers"
        )
    };
    let left_out = |count: u64| format!("{count} rows do not match --where and are left out");
    check_options(
        HistoryFormat::Csv,
        csv,
        &view,
        Ok((&["0: a", "1: c"], &["not read: rating", &left_out(1), &early(2, 3)])),
    );
    let rated = [("where", "{\"range\": {\"rating\": {\"gte\": 4}}}")];
    check_options(
        HistoryFormat::Csv,
        csv,
        &rated,
        Ok((&["0: a", "1: c"], &["not read: event", &left_out(1), &early(2, 3)])),
    );
    let bought = [("where", "event!=view")];
    check_options(
        HistoryFormat::Csv,
        csv,
        &bought,
        Ok((&["0: b"], &["not read: rating", &left_out(2)])),
    );
    check_options(
        HistoryFormat::Csv,
        csv,
        &[("where", "evnt=view")],
        Err(&["--where", "\"evnt\"", "event"]),
    );
    // The objects of a list are asked one by one.
    let otto: &'static Layout = "otto".parse().unwrap();
    let rows = Some("type=orders,carts".parse().unwrap());
    let options = HistoryOptions { layout: Some(otto), rows, ..HistoryOptions::default() };
    let line = r#"{"session": 1, "events": [{"aid": 1, "ts": 3, "type": "clicks"}, {"aid": 2, "ts": 2, "type": "carts"}, {"aid": 3, "ts": 1, "type": "orders"}]}"#;
    let (found, _) = read_as(line.as_bytes(), HistoryFormat::JsonLines, &options).unwrap();
    assert_eq!(shown(&found), ["1: 3 2"]);
}

#[test]
fn lines_that_end_in_carriage_returns_alone() {
    for (format, text) in [
        (HistoryFormat::Csv, "user,item\r0,a\r0,b\r"),
        (HistoryFormat::Tsv, "user\titem\r0\ta\r0\tb"),
        (HistoryFormat::JsonLines, "{\"user\": 0, \"items\": [\"a\", \"b\"]}\r"),
        (HistoryFormat::Sequential, "0 a b\r"),
    ] {
        let (found, _) = read_as(text.as_bytes(), format, &HistoryOptions::default()).unwrap();
        assert_eq!(shown(&found), ["0: a b"], "{format}");
    }
}

/// A quote is a character as others between tabs.
#[test]
fn tabs_have_no_quoting() {
    let text = "user_id\titem_id\ttitle\n1\ta\t\"Quoth\n1\tb\tlamp\n2\tc\tlast\"\n3\t\"d\tx\n";
    let (found, _) =
        read_as(text.as_bytes(), HistoryFormat::Tsv, &HistoryOptions::default()).unwrap();
    assert_eq!(shown(&found), ["1: a b", "2: c", "3: \"d"]);
}

#[test]
fn tabs_have_quotes_where_it_is_asked_for() {
    let quoted = HistoryOptions { quoted_tabs: true, ..HistoryOptions::default() };
    let text = "\"user_id\"\titem_id\ttitle\n1\t\"a\tb\"\t\"Quoth\nlamp\"\n2\tc\tx\n";
    let (found, _) = read_as(text.as_bytes(), HistoryFormat::Tsv, &quoted).unwrap();
    assert_eq!(shown(&found), ["1: a\tb", "2: c"]);
    for (format, options, words) in [
        (HistoryFormat::Tsv, &HistoryOptions::default(), ["\"user_id\"", "--quotes"]),
        (HistoryFormat::JsonLines, &quoted, ["--quotes", "the format is jsonl"]),
    ] {
        let error = read_as(text.as_bytes(), format, options).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn nanoseconds_keep_their_order() {
    for (later, earlier) in [
        ("1659304800123456789", "1659304800123456788"),
        ("2022-07-31T22:00:00.123456789Z", "2022-07-31T22:00:00.123456788Z"),
    ] {
        for quote in ["\"", ""] {
            if quote.is_empty() && later.contains('T') {
                continue;
            }
            let line = |item: &str, time: &str| {
                format!("{{\"user\": 1, \"item\": \"{item}\", \"time\": {quote}{time}{quote}}}\n")
            };
            let text = line("b", later) + &line("a", earlier);
            check_options(HistoryFormat::JsonLines, &text, &[], Ok((&["1: a b"], &[])));
        }
    }
}

/// Pieces of which files of every format are made.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "\"",
        "'",
        "u'",
        ":",
        "::",
        ",",
        "\t",
        "\n",
        "\r",
        "\\",
        "\\u00",
        "user",
        "item",
        "\"items\"",
        "history",
        "timestamp",
        "events",
        "aid",
        "ts",
        "session",
        "userId",
        "movieId",
        "-1",
        "0",
        "1e999",
        "1.5",
        "None",
        "True",
        "null",
        "2020-01-01",
        "2020-01-01 10:00:00 +0000 UTC",
        "é",
        "|",
        ";",
        "...",
        "\u{feff}",
        "\u{0}",
        "\u{1f}\u{8b}",
        "\n\u{5}a",
        "\u{8}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    /// Whatever the bytes, reading ends, with records or with an error that says something.
    #[test]
    fn no_input_panics(
        text in pieces(),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        layout in 0..=Layout::ALL.len(),
        separator in prop::option::of(prop::sample::select(vec![';', '\t', 'é'])),
        list_separator in prop::option::of("[|,;]|::"),
    ) {
        let layout = Layout::ALL.get(layout);
        let options =
            HistoryOptions { layout, separator, list_separator, ..HistoryOptions::default() };
        for bytes in [&text[..], &bytes[..]] {
            for format in HistoryFormat::ALL {
                let read = read_as(bytes, format, &options);
                prop_assert!(read.err().is_none_or(|error| !error.is_empty()));
            }
        }
    }
}
