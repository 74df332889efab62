//! Dealing of histories: those of one shard, of a source that is read whole.

use std::ops::ControlFlow;

use palmette_recommend::offline::Shard;

use super::record::{BadRecord, HistoryRecord};
use super::rows::{EachRecord, Progress};

/// A callback for all histories of a source that hands on those of one shard: lines, and users
/// whose events are gathered, are dealt out one by one.
pub fn deal(
    shard: Shard,
    each: &mut EachRecord<'_>,
) -> impl FnMut(Result<HistoryRecord, BadRecord>, Progress) -> ControlFlow<()> {
    let mut number = 0;
    move |record, progress| {
        let is_own = shard.has(number);
        number += 1;
        if is_own { each(record, progress) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use palmette_recommend::PromptFields;

    use super::*;

    #[test]
    fn histories_are_dealt_out() {
        let mut dealt = Vec::new();
        for shard in ["0/3", "1/3", "2/3"] {
            let mut own = Vec::new();
            let each = &mut |record: Result<HistoryRecord, BadRecord>, _: Progress| {
                own.push(record.unwrap().user.unwrap());
                ControlFlow::Continue(())
            };
            let mut deal = deal(shard.parse().unwrap(), each);
            for user in 0..7 {
                let user = Some(user.to_string());
                let (items, fields) = (Vec::new(), PromptFields::default());
                let record = HistoryRecord { user, items, target: None, fields };
                assert!(deal(Ok(record), Progress::default()).is_continue());
            }
            drop(deal);
            dealt.push(own.join(" "));
        }
        assert_eq!(dealt, ["0 3 6", "1 4", "2 5"]);
    }
}
