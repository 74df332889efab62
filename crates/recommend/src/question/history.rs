//! Histories of questions: names of items, found in a view.

use palmette_document::Fault;

use super::UnknownItems;
use crate::history_item::HistoryItem;
use crate::named_item::NamedItem;
use crate::view::SpelledView;

/// The items of a history, and the places of those that are unknown and left out.
pub(super) fn find(
    named: &[NamedItem],
    view: &SpelledView,
    unknown: UnknownItems,
) -> Result<(Vec<HistoryItem>, Vec<usize>), Fault> {
    let (mut items, mut left_out) = (Vec::with_capacity(named.len()), Vec::new());
    for (place, name) in named.iter().enumerate() {
        match (view.find_item(name), unknown) {
            (Ok(item), _) => items.push(item),
            (Err(_), UnknownItems::Skip) => left_out.push(place),
            (Err(error), UnknownItems::Error) => {
                return Err(Fault::new(format!("/history/{place}"), error.to_string()));
            }
        }
    }
    Ok((items, left_out))
}
