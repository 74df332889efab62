//! Product types: the words and prices that a department's items are made of.

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
