//! Hand-picked histories to show recommendations for.

use super::brands::PriceClass::{self, Budget, Mid, Premium};
use super::brands::price_class;
use super::purchases::ShopItem;

/// Somebody to recommend to: what they like to spend, and what they bought.
struct Theme {
    price_class: PriceClass,
    /// Brands to take first, the most liked one first.
    brands: &'static [&'static str],
    /// A product type and words of the title, the oldest purchase first.
    purchases: &'static [(&'static str, &'static str)],
}

/// Each one stops in the middle of a sequence of its interest, so there is a sensible next thing.
const THEMES: &[Theme] = &[
    // A camper who still needs something to cook in and to see by.
    Theme {
        price_class: Mid,
        brands: &["Fernhollow", "Tarnbeck"],
        purchases: &[
            ("Tent", "2-Person Tent"),
            ("Sleeping Bag", "Sleeping Bag"),
            ("Sleeping Mat", "Inflatable"),
            ("Camping Stove", "Camping Stove"),
            ("Gas Cartridge", "Gas Cartridge"),
        ],
    },
    // A baker of bread who likes fine tools.
    Theme {
        price_class: Premium,
        brands: &["Belfournet", "Caldermont"],
        purchases: &[
            ("Mixing Bowl", "Bowl"),
            ("Bread Flour", "Bread Flour"),
            ("Proofing Basket", "Proofing Basket"),
            ("Bread Flour", "Rye Flour"),
        ],
    },
    // A runner on a budget.
    Theme {
        price_class: Budget,
        brands: &["Quickhare", "Bendry"],
        purchases: &[
            ("Running Shoes", "Women's"),
            ("Running Socks", "Running Socks"),
            ("Running Belt", "Running Belt"),
            ("Energy Gels", "Energy Gels"),
        ],
    },
    // Somebody who furnishes a home office.
    Theme {
        price_class: Mid,
        brands: &["Amberlow", "Oakledger"],
        purchases: &[
            ("Desk", "Desk"),
            ("Office Chair", "Office Chair"),
            ("Desk Lamp", "Desk Lamp"),
            ("Monitor Stand", "Monitor"),
        ],
    },
    // Somebody with a new espresso machine, and beans to refill.
    Theme {
        price_class: Premium,
        brands: &["Caldermont", "Ostrelle"],
        purchases: &[
            ("Espresso Machine", "Espresso Machine"),
            ("Coffee Beans", "Espresso Beans"),
            ("Coffee Grinder", "Coffee Grinder"),
            ("Coffee Beans", "Beans"),
        ],
    },
];

impl Theme {
    /// The items that tell this theme's story best.
    ///
    /// # Panics
    /// If the shop has too few items of a type, which a test excludes for the shops it makes.
    fn history(&self, items: &[ShopItem]) -> Vec<usize> {
        let mut history = Vec::new();
        for &(product_type, words) in self.purchases {
            let best = (0..items.len())
                .filter(|&index| items[index].product_type == product_type)
                .filter(|index| !history.contains(index))
                .min_by_key(|&index| self.misfit(&items[index], words))
                .unwrap_or_else(|| panic!("the shop has no more items of type {product_type:?}"));
            history.push(best);
        }
        history
    }

    /// Faults of an item under the theme, the most important first; the smallest fits best.
    fn misfit(&self, item: &ShopItem, words: &str) -> (bool, bool, bool, usize) {
        let liked = self.brands.iter().position(|&brand| brand == item.brand);
        (
            price_class(item.codes[2] as usize) != self.price_class,
            !item.title.contains(words),
            item.stock == 0,
            liked.unwrap_or(self.brands.len()),
        )
    }
}

/// One history per theme.
pub(crate) fn sample_histories(items: &[ShopItem]) -> Vec<Vec<usize>> {
    THEMES.iter().map(|theme| theme.history(items)).collect()
}
