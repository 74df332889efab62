//! Departments of the shop, and the product types inside each.
//!
//! The rows are in `tables/`, one file per group of departments.

use super::product_types::ProductType;
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
