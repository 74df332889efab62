//! Numbers that tell one content from another: 64-bit FNV-1a, as hexadecimal digits.

use palmette_catalog::Catalog;
use palmette_recommend::PromptFields;
use palmette_recommend_eval::UserHistories;
use palmette_train::Params;

use super::companions::Companions;

/// Fingerprint of a catalog's semantic IDs and the histories.
pub(crate) fn of_data(catalog: &Catalog, histories: &UserHistories) -> String {
    let mut hash = Fnv::default();
    let mut add_all = |values: &mut dyn ExactSizeIterator<Item = u32>| {
        hash.add(values.len() as u32);
        values.for_each(|value| hash.add(value));
    };
    (0..catalog.num_items()).for_each(|rank| add_all(&mut catalog.codes(rank).into_iter()));
    let ranks = |history: &Vec<u64>| history.clone().into_iter().map(|rank| rank as u32);
    histories.items.iter().for_each(|history| add_all(&mut ranks(history)));
    for PromptFields { query, user } in &histories.fields {
        hash.add_bytes(query.as_deref().unwrap_or_default().as_bytes());
        hash.add_bytes(serde_json::Value::from(user.clone()).to_string().as_bytes());
    }
    hash.digits()
}

/// Fingerprint of files beside a model's weights.
pub(crate) fn of_files(companions: &Companions) -> String {
    let mut hash = Fnv::default();
    for (name, content) in companions.files() {
        hash.add_bytes(name.as_bytes());
        hash.add_bytes(content);
    }
    hash.digits()
}

/// Fingerprint of a model's weights.
pub(crate) fn of_weights(params: &Params) -> String {
    let mut hash = Fnv::default();
    params.values().iter().for_each(|weight| hash.add(weight.to_bits()));
    hash.digits()
}

struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, value: u32) {
        value.to_le_bytes().into_iter().for_each(|byte| self.add_byte(byte));
    }

    /// Adds bytes, and how many they are.
    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u32);
        bytes.iter().for_each(|&byte| self.add_byte(byte));
    }

    fn add_byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }

    fn digits(&self) -> String {
        format!("{:016x}", self.0)
    }
}
