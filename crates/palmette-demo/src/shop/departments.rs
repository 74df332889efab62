//! Departments of the shop, and the product types inside each.
//!
//! The rows are in `tables/`, one file per group of departments.

use super::tables::{home, kitchen, leisure, outdoor, sport};

/// A department; its discriminant is code 0 of the semantic ID of every item in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Department {
    Camping,
    Hiking,
    Running,
    Cycling,
    Fitness,
    Baking,
    Kitchen,
    Coffee,
    Garden,
    Office,
    Bedding,
    Living,
    Craft,
    Pets,
    Toys,
}

impl Department {
    pub(crate) const ALL: [Self; 15] = [
        Self::Camping,
        Self::Hiking,
        Self::Running,
        Self::Cycling,
        Self::Fitness,
        Self::Baking,
        Self::Kitchen,
        Self::Coffee,
        Self::Garden,
        Self::Office,
        Self::Bedding,
        Self::Living,
        Self::Craft,
        Self::Pets,
        Self::Toys,
    ];

    /// The name a customer reads.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Camping => "Camping",
            Self::Hiking => "Hiking",
            Self::Running => "Running",
            Self::Cycling => "Cycling",
            Self::Fitness => "Yoga & Fitness",
            Self::Baking => "Baking",
            Self::Kitchen => "Kitchen",
            Self::Coffee => "Coffee & Tea",
            Self::Garden => "Garden",
            Self::Office => "Home Office",
            Self::Bedding => "Bed & Bath",
            Self::Living => "Living Room",
            Self::Craft => "Art & Craft",
            Self::Pets => "Pets",
            Self::Toys => "Toys & Games",
        }
    }

    /// The product types of this department; the position is code 1 of the semantic ID.
    pub(crate) fn product_types(self) -> &'static [ProductType] {
        match self {
            Self::Camping => outdoor::CAMPING,
            Self::Hiking => outdoor::HIKING,
            Self::Running => sport::RUNNING,
            Self::Cycling => sport::CYCLING,
            Self::Fitness => sport::FITNESS,
            Self::Baking => kitchen::BAKING,
            Self::Kitchen => kitchen::KITCHEN,
            Self::Coffee => kitchen::COFFEE,
            Self::Garden => leisure::GARDEN,
            Self::Office => home::OFFICE,
            Self::Bedding => home::BEDDING,
            Self::Living => home::LIVING,
            Self::Craft => leisure::CRAFT,
            Self::Pets => leisure::PETS,
            Self::Toys => leisure::TOYS,
        }
    }
}

/// One kind of product, with the words and the price its items are made of.
#[derive(Debug)]
pub(crate) struct ProductType {
    /// Unique in the shop.
    pub(crate) name: &'static str,
    /// Price of a mid-class item of form and size 100 %, in whole currency units.
    pub(crate) price: u32,
    /// Bought again once it is used up; most people own one of anything else.
    pub(crate) refill: bool,
    /// Materials and properties, from plain to fine: cheap brands use the front, dear ones the end.
    pub(crate) features: &'static [&'static str],
    /// The words that name the thing, with a price in percent. `{}` is where the feature goes; a
    /// form without it takes the feature in front.
    pub(crate) forms: &'static [(&'static str, u32)],
    pub(crate) options: Options,
}

/// Variants that stand behind the comma of a title.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Options {
    /// Colours, finishes, scents: no influence on the price.
    Colours(&'static [&'static str]),
    /// Sizes and pack sizes, with a price in percent.
    Sizes(&'static [(&'static str, u32)]),
}

impl Options {
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Colours(names) => names.len(),
            Self::Sizes(rows) => rows.len(),
        }
    }

    /// The words of option `index` and its price in percent.
    pub(crate) fn get(self, index: usize) -> (&'static str, u32) {
        match self {
            Self::Colours(names) => (names[index], 100),
            Self::Sizes(rows) => rows[index],
        }
    }
}

/// A row of the tables: something bought once.
pub(crate) const fn durable(
    name: &'static str,
    price: u32,
    features: &'static [&'static str],
    forms: &'static [(&'static str, u32)],
    options: Options,
) -> ProductType {
    ProductType { name, price, refill: false, features, forms, options }
}

/// A row of the tables: something used up and bought again.
pub(crate) const fn refill(
    name: &'static str,
    price: u32,
    features: &'static [&'static str],
    forms: &'static [(&'static str, u32)],
    options: Options,
) -> ProductType {
    ProductType { name, price, refill: true, features, forms, options }
}
