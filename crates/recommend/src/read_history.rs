//! Reader of a request's history: items by id, number or codes as the items that a prompt shows.

use crate::history_item::HistoryItem;
use crate::request::History;
use crate::template::PromptItem;
use crate::view::SpelledView;

/// Puts the items of a history into `shown` and the numbers of those that the view has into `seen`;
/// returns the places of ids that it does not have.
pub(crate) fn read_history(
    history: History<'_>,
    view: &SpelledView,
    seen: &mut Vec<u64>,
    shown: &mut Vec<PromptItem>,
) -> Vec<usize> {
    seen.clear();
    shown.clear();
    let of = view.view();
    let mut unknown = Vec::new();
    let numbered = |number| PromptItem { codes: of.codes(number), number: Some(number), id: None };
    match history {
        History::Numbers(numbers) => {
            seen.extend_from_slice(numbers);
            shown.extend(numbers.iter().map(|&number| numbered(number)));
        }
        History::Ids(names) => {
            for (place, id) in names.iter().enumerate() {
                if let Some(number) = of.find(id) {
                    seen.push(number);
                    shown.push(numbered(number));
                } else if let Some(codes) = view.departed(id) {
                    let id = Some((*id).to_owned());
                    shown.push(PromptItem { codes, number: None, id });
                } else {
                    unknown.push(place);
                }
            }
        }
        History::Items(items) => {
            for item in items {
                shown.push(match item {
                    HistoryItem::Number(number) => {
                        seen.push(*number);
                        numbered(*number)
                    }
                    HistoryItem::Codes(codes) => {
                        let have_it = of.find_codes(codes);
                        // Where one item alone has the ID, it is meant.
                        let number = Some(&have_it[..]).filter(|all| all.len() == 1);
                        let number = number.map(|all| all[0]);
                        seen.extend(have_it);
                        PromptItem { codes: codes.clone(), number, id: None }
                    }
                    HistoryItem::Departed { id, codes } => {
                        let id = Some(id.clone());
                        PromptItem { codes: codes.clone(), number: None, id }
                    }
                });
            }
        }
    }
    unknown
}
