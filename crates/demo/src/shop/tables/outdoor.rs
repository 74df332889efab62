//! Camping and hiking.

use crate::shop::product_types::Options::{Colours, Sizes};
use crate::shop::product_types::{ProductType, durable, refill};

const TRAIL: &[&str] =
    &["Moss Green", "Slate Grey", "Burnt Orange", "Midnight Blue", "Sand", "Rust Red"];
const WEAR: &[&str] = &["Black", "Pine Green", "Stone", "Navy", "Brick", "Glacier Blue"];

pub(crate) const CAMPING: &[ProductType] = &[
    durable(
        "Tent",
        190,
        &["Waterproof", "Double-Wall", "Three-Season", "Lightweight", "Ultralight", "Four-Season"],
        &[
            ("{} 1-Person Tent", 70),
            ("{} 2-Person Tent", 100),
            ("{} 3-Person Tent", 130),
            ("{} 4-Person Tunnel Tent", 180),
        ],
        Colours(TRAIL),
    ),
    durable(
        "Sleeping Bag",
        95,
        &["Synthetic", "Quick-Dry", "Insulated", "Three-Season", "Down", "Ultralight Down"],
        &[
            ("{} Sleeping Bag", 100),
            ("{} Mummy Sleeping Bag", 115),
            ("{} Sleeping Quilt", 90),
            ("{} Double Sleeping Bag", 150),
        ],
        Colours(TRAIL),
    ),
    durable(
        "Sleeping Mat",
        65,
        &["Compact", "Textured", "Insulated", "Lightweight", "Four-Season"],
        &[
            ("{} Foam Sleeping Mat", 50),
            ("{} Self-Inflating Sleeping Mat", 100),
            ("{} Inflatable Sleeping Mat", 120),
        ],
        Colours(TRAIL),
    ),
    durable(
        "Camping Stove",
        55,
        &["Compact", "Folding", "Self-Igniting", "Windproof", "High-Output"],
        &[
            ("{} Camping Stove", 90),
            ("{} Single-Burner Camping Stove", 100),
            ("{} Two-Burner Camping Stove", 165),
        ],
        Colours(&["Black", "Forest Green", "Steel Grey", "Rust Red"]),
    ),
    refill(
        "Gas Cartridge",
        8,
        &["Self-Sealing", "All-Season", "Cold-Weather", "High-Altitude"],
        &[("{} Gas Cartridge", 100), ("{} Screw-Top Gas Cartridge", 110)],
        Sizes(&[("100 g", 75), ("230 g", 100), ("450 g", 160), ("3 x 230 g", 270)]),
    ),
    durable(
        "Camp Cookset",
        52,
        &["Stackable", "Non-Stick", "Aluminium", "Stainless Steel", "Titanium"],
        &[
            ("{} Solo Camp Cookset", 75),
            ("{} 2-Person Camp Cookset", 100),
            ("{} 4-Person Camp Cookset", 145),
        ],
        Sizes(&[("4 Pieces", 90), ("6 Pieces", 105), ("9 Pieces", 125)]),
    ),
    durable(
        "Headlamp",
        39,
        &["Compact", "Water-Resistant", "Lightweight", "Rechargeable", "Dual-Beam"],
        &[("{} Headlamp", 100), ("{} LED Headlamp", 100), ("{} Headlamp with Red Light", 115)],
        Sizes(&[("200 lm", 75), ("350 lm", 100), ("500 lm", 125), ("800 lm", 160)]),
    ),
    durable(
        "Camp Chair",
        48,
        &["Folding", "Padded", "Compact", "Lightweight"],
        &[("{} Camp Chair", 100), ("{} High-Back Camp Chair", 130), ("{} Camp Stool", 60)],
        Colours(TRAIL),
    ),
];

pub(crate) const HIKING: &[ProductType] = &[
    durable(
        "Hiking Boots",
        135,
        &["Suede", "Mid-Cut", "Waterproof", "Nubuck", "Full-Grain Leather"],
        &[("Women's {} Hiking Boots", 100), ("Men's {} Hiking Boots", 100)],
        Colours(&["Walnut Brown", "Slate Grey", "Black", "Moss Green", "Sand"]),
    ),
    refill(
        "Hiking Socks",
        17,
        &["Cushioned", "Quick-Dry", "Wool-Blend", "Merino Wool"],
        &[("{} Hiking Socks", 100), ("{} Crew Hiking Socks", 105), ("{} Liner Socks", 75)],
        Sizes(&[("1 Pair", 75), ("2 Pairs", 125), ("3 Pairs", 170)]),
    ),
    durable(
        "Trekking Backpack",
        120,
        &["Adjustable", "Ventilated", "Roll-Top", "Lightweight", "Waterproof"],
        &[
            ("{} Hiking Backpack", 90),
            ("{} Trekking Backpack", 110),
            ("Women's {} Trekking Backpack", 110),
        ],
        Sizes(&[("22 L", 75), ("28 L", 85), ("45 L", 110), ("60 L", 130)]),
    ),
    durable(
        "Trekking Poles",
        68,
        &["Adjustable", "Shock-Absorbing", "Aluminium", "Cork-Grip", "Carbon"],
        &[
            ("{} Trekking Poles", 100),
            ("{} Folding Trekking Poles", 120),
            ("{} Telescopic Trekking Poles", 105),
        ],
        Colours(&["Black", "Burnt Orange", "Moss Green", "Glacier Blue"]),
    ),
    durable(
        "Rain Jacket",
        115,
        &["Hooded", "Packable", "Breathable", "2.5-Layer", "3-Layer"],
        &[
            ("Women's {} Rain Jacket", 100),
            ("Men's {} Rain Jacket", 100),
            ("Unisex {} Rain Poncho", 55),
        ],
        Colours(WEAR),
    ),
    durable(
        "Water Bottle",
        24,
        &["Leakproof", "Wide-Mouth", "Stainless Steel", "Insulated"],
        &[("{} Water Bottle", 100), ("{} Water Bottle with Straw", 110), ("{} Trail Flask", 120)],
        Sizes(&[("0.5 L", 85), ("0.75 L", 100), ("1 L", 115)]),
    ),
];
