//! Items of a shop, and the users who bought them.

/// A thing to buy.
#[derive(Clone, Debug, PartialEq)]
pub struct ShopItem {
    /// Unique: `P0001`, `P0002`, …
    pub id: String,
    /// Unique: brand, series, what it is, and a colour or size.
    pub title: String,
    /// The department.
    pub category: String,
    /// Type of product, within the department; a name occurs in one department only.
    pub product_type: String,
    /// The maker, who stays in one price class.
    pub brand: String,
    /// In currency units, with two decimals.
    pub price: f64,
    /// Pieces in stock; 0 is sold out.
    pub stock: u32,
    /// Days since the shop first offered it.
    pub age_days: u32,
    /// The semantic ID, see [`Shop::CODES_PER_LEVEL`](super::Shop::CODES_PER_LEVEL). One or two
    /// items in a hundred share the ID of another one, which is the same product in another colour.
    pub codes: [u32; 4],
}

/// Somebody who bought things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopUser {
    /// Unique: `U0001`, `U0002`, …
    pub id: String,
    /// Positions in [`Shop::items`](super::Shop::items), the oldest purchase first: 6 to 30 of
    /// them, no item twice.
    pub history: Vec<usize>,
}
