//! From histories to examples and questions.

use palmette_catalog::Catalog;
use palmette_eval::{HoldOut, Question, Split, UserHistories, evenly_spread};

/// The semantic IDs of the items of each history that are trained on.
pub(crate) fn training_histories(
    catalog: &Catalog,
    histories: &UserHistories,
    hold_out: HoldOut,
) -> Vec<Vec<Vec<u32>>> {
    let codes = |history: &Vec<u64>| {
        hold_out.training(history).iter().map(|&rank| catalog.codes(rank)).collect()
    };
    histories.items.iter().map(codes).collect()
}

/// The validation questions of at most `most` users; none where their answers are trained on.
pub(crate) fn validation_questions(
    histories: &UserHistories,
    hold_out: HoldOut,
    most: usize,
) -> Vec<Question<'_>> {
    if hold_out != HoldOut::Both {
        return Vec::new();
    }
    let asked = histories.items.iter().filter_map(|history| Split::Validation.question(history));
    evenly_spread(&asked.collect::<Vec<_>>(), most)
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
