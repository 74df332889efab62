//! From histories to examples and questions.

use palmette_catalog::Catalog;
use palmette_eval::{ColdStart, HoldOut, Question, Split, UserHistories, evenly_spread};

/// The semantic IDs of the items of each history that are trained on; of a history that has an item
/// of the cold start there, none.
pub(crate) fn training_histories(
    catalog: &Catalog,
    histories: &UserHistories,
    hold_out: HoldOut,
    cold: Option<&ColdStart>,
) -> Vec<Vec<Vec<u32>>> {
    let trained = histories.items.iter().map(|history| hold_out.training(history));
    let trained = trained.filter(|items| cold.is_none_or(|cold| cold.is_without(items)));
    trained.map(|items| items.iter().map(|&rank| catalog.codes(rank)).collect()).collect()
}

/// The validation questions of at most `most` users; none where their answers are trained on, nor
/// any with an item of the cold start.
pub(crate) fn validation_questions<'a>(
    histories: &'a UserHistories,
    hold_out: HoldOut,
    cold: Option<&ColdStart>,
    most: usize,
) -> Vec<Question<'a>> {
    if hold_out != HoldOut::Both {
        return Vec::new();
    }
    let asked = histories.items.iter().filter_map(|history| Split::Validation.question(history));
    let is_without_cold = |question: &Question<'_>| {
        cold.is_none_or(|cold| cold.is_without(question.history) && !cold.contains(question.target))
    };
    evenly_spread(&asked.filter(is_without_cold).collect::<Vec<_>>(), most)
}

/// A number that other histories, or a catalog with other semantic IDs, do not have: 64-bit FNV-1a
/// over both, as hexadecimal digits.
pub(crate) fn fingerprint(catalog: &Catalog, histories: &UserHistories) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |value: u32| {
        for byte in value.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    let mut add_all = |values: &mut dyn ExactSizeIterator<Item = u32>| {
        add(values.len() as u32);
        values.for_each(&mut add);
    };
    (0..catalog.num_items()).for_each(|rank| add_all(&mut catalog.codes(rank).into_iter()));
    let ranks = |history: &Vec<u64>| history.clone().into_iter().map(|rank| rank as u32);
    histories.items.iter().for_each(|history| add_all(&mut ranks(history)));
    format!("{hash:016x}")
}
