//! A generated shop: items with titles, prices and semantic IDs, and users who bought some.
//!
//! What there is to sell and why people buy it stands in tables: departments and their product
//! types (`departments`, `product_types`, `tables`), brands (`brands`), and interests with the
//! order in which their things are bought (`interests`). Generating goes in two steps: `items` puts
//! products of every brand on the shelves, then `users` draws people with a taste and lets them
//! shop.

mod brands;
mod departments;
mod dice;
mod interests;
mod items;
mod product_types;
mod purchases;
mod samples;
mod tables;
mod titles;
mod users;

#[cfg(test)]
mod tests;

use dice::Dice;

pub use purchases::{ShopItem, ShopUser};

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
        samples::sample_histories(&self.items)
    }
}
