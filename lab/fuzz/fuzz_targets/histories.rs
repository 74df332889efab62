//! Files of histories in every format, by options: what is read is read twice the same, or refused
//! with a reason.
#![no_main]

use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use palmette_recommend_eval::{
    BadRecord, HistoryFormat, HistoryOptions, HistoryRecord, Progress, parse_histories,
};

/// Records and notes, or the reason why there are none.
type Reading = Result<(Vec<Result<HistoryRecord, BadRecord>>, Vec<String>), String>;

fn read(file: &[u8], format: HistoryFormat, options: &HistoryOptions) -> Reading {
    let mut records = Vec::new();
    let each = &mut |record, _: Progress| {
        records.push(record);
        ControlFlow::Continue(())
    };
    let notes = parse_histories(Path::new("file"), file, 0, format, options, each);
    let notes = notes.map_err(|error| error.to_string())?.sentences();
    Ok((records, notes))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, file)) = data.split_first() else { return };
    let options = HistoryOptions {
        separator: (choice & 1 != 0).then_some(';'),
        list_separator: (choice & 2 != 0).then(|| "|".to_owned()),
        quoted_tabs: choice & 4 != 0,
        ..HistoryOptions::default()
    };
    for format in HistoryFormat::ALL {
        let found = read(file, format, &options);
        assert_eq!(found, read(file, format, &options));
        match found {
            Ok((records, _)) => {
                let refused = records.iter().filter_map(|record| record.as_ref().err());
                refused.for_each(|bad| assert!(!bad.reason().is_empty()));
            }
            Err(reason) => assert!(reason.len() > "file: ".len()),
        }
    }
});
