//! A generated shop: items with titles, prices and semantic IDs, and users who bought some.
//!
//! What there is to sell and why people buy it stands in tables: departments and their product
//! types (`departments`, `tables`), brands (`brands`), and interests with the order in which
//! their things are bought (`interests`). Generating goes in two steps: `items` puts products of
//! every brand on the shelves, then `users` draws people with a taste and lets them shop.

mod brands;
mod departments;
mod dice;
mod interests;
mod items;
mod samples;
mod tables;
mod titles;
mod users;

#[cfg(test)]
mod tests;

use dice::Dice;

/// A shop with its customers, invented from a seed.
///
/// ```
/// use palmette_demo::Shop;
///
/// let shop = Shop::generate(1);
/// let history = &shop.users[0].history;
/// let oldest = &shop.items[history[0]];
/// assert!(oldest.title.starts_with(&oldest.brand));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Shop {
    /// About 4,000 items, in the order of departments, product types and brands.
    pub items: Vec<ShopItem>,
    /// 6,000 users, in no particular order.
    pub users: Vec<ShopUser>,
}

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
    /// The semantic ID, see [`Shop::CODES_PER_LEVEL`]. One or two items in a hundred share the ID
    /// of another one, which is the same product in another colour.
    pub codes: [u32; 4],
}

/// Somebody who bought things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopUser {
    /// Unique: `U0001`, `U0002`, …
    pub id: String,
    /// Positions in [`Shop::items`], the oldest purchase first: 6 to 30 of them, no item twice.
    pub history: Vec<usize>,
}

impl Shop {
    /// Codes of level `i` of a semantic ID are below `CODES_PER_LEVEL[i]`.
    ///
    /// From level 0 on, the codes are the department, the product type in it, the brand (16 brands
    /// of each price class, so `code / 16` is the class), and a number for the product's form and
    /// variant among those of its brand.
    pub const CODES_PER_LEVEL: [u32; 4] = [64; 4];

    /// The shop of this seed: the same on every platform.
    pub fn generate(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let items = items::generate_items(&mut dice);
        let users = users::generate_users(&items, &mut dice);
        Self { items, users }
    }

    /// A few short histories with a theme, to show recommendations for: a camper, a bread baker, a
    /// runner, a home office, an espresso drinker. Positions in [`Shop::items`], oldest first.
    pub fn sample_histories(&self) -> Vec<Vec<usize>> {
        samples::sample_histories(self)
    }
}
