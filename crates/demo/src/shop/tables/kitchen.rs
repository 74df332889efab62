//! Baking, cooking, coffee and tea.

use crate::shop::product_types::Options::{Colours, Sizes};
use crate::shop::product_types::{ProductType, durable, refill};

const ENAMEL: &[&str] = &["Cream", "Sage", "Graphite", "Cherry Red", "Sky Blue", "Mustard"];
const GLAZE: &[&str] = &["Speckled White", "Ink Blue", "Sage", "Sand", "Charcoal", "Terracotta"];

pub(crate) const BAKING: &[ProductType] = &[
    durable(
        "Stand Mixer",
        320,
        &["Compact", "Tilt-Head", "Planetary", "Bowl-Lift"],
        &[("{} Stand Mixer", 100), ("{} Stand Mixer with Dough Hook", 115)],
        Colours(ENAMEL),
    ),
    durable(
        "Cake Tin",
        22,
        &["Non-Stick", "Loose-Base", "Anodised", "Carbon Steel"],
        &[
            ("{} Springform Cake Tin", 105),
            ("{} Loaf Tin", 85),
            ("{} Bundt Tin", 120),
            ("{} Tart Tin", 90),
        ],
        Sizes(&[("20 cm", 85), ("24 cm", 100), ("28 cm", 118)]),
    ),
    durable(
        "Mixing Bowl",
        28,
        &["Nesting", "Non-Slip", "Stainless Steel", "Glass", "Stoneware"],
        &[("{} Mixing Bowl", 70), ("{} Mixing Bowl Set", 140), ("{} Batter Bowl", 80)],
        Sizes(&[("2 L", 85), ("3 L", 100), ("5 L", 130)]),
    ),
    durable(
        "Proofing Basket",
        25,
        &["Wood-Pulp", "Lined", "Rattan", "Hand-Woven"],
        &[
            ("{} Round Proofing Basket", 95),
            ("{} Oval Proofing Basket", 100),
            ("{} Bread Proofing Set", 160),
        ],
        Sizes(&[("500 g", 80), ("750 g", 95), ("1 kg", 110)]),
    ),
    refill(
        "Bread Flour",
        7,
        &["Fine", "Strong", "Wholegrain", "Organic", "Stoneground"],
        &[("{} Bread Flour", 100), ("{} Rye Flour", 105), ("{} Spelt Flour", 120)],
        Sizes(&[("1 kg", 60), ("2.5 kg", 120), ("5 kg", 200)]),
    ),
    durable(
        "Piping Set",
        19,
        &["Reusable", "Silicone", "Stainless Steel", "Seamless"],
        &[("{} Piping Set", 100), ("{} Icing Nozzle Set", 90), ("{} Cake Decorating Set", 140)],
        Sizes(&[("12 Pieces", 80), ("24 Pieces", 110), ("36 Pieces", 140)]),
    ),
];

pub(crate) const KITCHEN: &[ProductType] = &[
    durable(
        "Kitchen Knife",
        62,
        &["Stainless Steel", "Full-Tang", "Forged", "Hammered", "Damascus Steel"],
        &[
            ("{} Chef's Knife", 115),
            ("{} Bread Knife", 100),
            ("{} Santoku Knife", 115),
            ("{} Paring Knife", 60),
        ],
        Colours(&["Black Handle", "Olive Wood Handle", "Walnut Handle", "White Handle"]),
    ),
    durable(
        "Cutting Board",
        36,
        &["Reversible", "Bamboo", "Acacia", "End-Grain", "Walnut"],
        &[
            ("{} Cutting Board", 100),
            ("{} Bread Board", 90),
            ("{} Cutting Board with Juice Groove", 120),
        ],
        Sizes(&[("30 x 20 cm", 80), ("40 x 25 cm", 105), ("50 x 35 cm", 140)]),
    ),
    durable(
        "Frying Pan",
        54,
        &["Non-Stick", "Ceramic-Coated", "Cast-Iron", "Carbon Steel", "Copper-Core"],
        &[("{} Frying Pan", 100), ("{} Skillet", 100), ("{} Wok", 115)],
        Sizes(&[("20 cm", 75), ("24 cm", 95), ("28 cm", 115), ("32 cm", 135)]),
    ),
    durable(
        "Saucepan",
        48,
        &["Enamelled", "Non-Stick", "Stainless Steel", "Tri-Ply", "Copper-Core"],
        &[("{} Saucepan", 90), ("{} Saucepan with Lid", 105), ("{} Stockpot", 135)],
        Sizes(&[("1.5 L", 80), ("2.5 L", 100), ("4 L", 130)]),
    ),
    durable(
        "Dutch Oven",
        118,
        &["Classic", "Pre-Seasoned", "Cast-Iron", "Enamelled Cast-Iron"],
        &[("{} Round Dutch Oven", 100), ("{} Oval Dutch Oven", 115), ("{} Bread Oven", 105)],
        Colours(ENAMEL),
    ),
    refill(
        "Spices",
        14,
        &["Classic", "Fragrant", "Organic", "Single-Estate"],
        &[
            ("{} Paprika", 60),
            ("{} Peppercorns", 75),
            ("{} Curry Spice Set", 170),
            ("{} Barbecue Spice Set", 165),
        ],
        Sizes(&[("80 g", 80), ("150 g", 110), ("300 g", 170)]),
    ),
    durable(
        "Apron",
        29,
        &["Cotton", "Adjustable", "Denim", "Waxed Canvas", "Linen"],
        &[("{} Apron", 100), ("{} Cross-Back Apron", 115), ("{} Waist Apron", 80)],
        Colours(&["Charcoal", "Natural", "Olive", "Navy", "Rust", "Striped"]),
    ),
];

pub(crate) const COFFEE: &[ProductType] = &[
    durable(
        "Espresso Machine",
        390,
        &["Compact", "15-Bar", "Thermoblock", "Dual-Boiler"],
        &[
            ("{} Espresso Machine", 100),
            ("{} Espresso Machine with Milk Frother", 120),
            ("{} Lever Espresso Machine", 135),
        ],
        Colours(&["Stainless Steel", "Matt Black", "Cream", "Mint"]),
    ),
    durable(
        "Coffee Grinder",
        92,
        &["Compact", "Stepless", "Ceramic-Burr", "Steel-Burr"],
        &[("{} Manual Coffee Grinder", 65), ("{} Electric Coffee Grinder", 125)],
        Colours(&["Stainless Steel", "Matt Black", "White", "Walnut"]),
    ),
    refill(
        "Coffee Beans",
        18,
        &["Medium-Roast", "Dark-Roast", "Decaf", "Organic", "Single-Origin"],
        &[
            ("{} Espresso Beans", 105),
            ("{} Filter Coffee Beans", 100),
            ("{} House Blend Beans", 90),
        ],
        Sizes(&[("250 g", 60), ("500 g", 105), ("1 kg", 180)]),
    ),
    refill(
        "Coffee Filters",
        8,
        &["Bleach-Free", "Natural", "Thick-Paper", "Bamboo-Fibre"],
        &[("{} Cone Coffee Filters", 100), ("{} Basket Coffee Filters", 95)],
        Sizes(&[("Pack of 40", 70), ("Pack of 80", 110), ("Pack of 100", 130)]),
    ),
    refill(
        "Descaler",
        12,
        &["Liquid", "Citric-Acid", "Odourless", "Plant-Based"],
        &[("{} Coffee Machine Descaler", 100), ("{} Descaling Tablets", 95)],
        Sizes(&[("2 Uses", 70), ("4 Uses", 100), ("10 Uses", 190)]),
    ),
    durable(
        "Pour-Over Set",
        44,
        &["Classic", "Stainless Steel", "Matt Black", "Copper-Plated"],
        &[
            ("{} Coffee Dripper", 60),
            ("{} Pour-Over Set", 120),
            ("{} Gooseneck Kettle", 140),
            ("{} French Press", 95),
        ],
        Sizes(&[("0.4 L", 85), ("0.6 L", 100), ("1 L", 120)]),
    ),
    durable(
        "Teapot",
        42,
        &["Glass", "Stoneware", "Porcelain", "Cast-Iron"],
        &[("{} Teapot", 95), ("{} Teapot with Infuser", 110)],
        Sizes(&[("0.6 L", 85), ("0.9 L", 100), ("1.2 L", 115)]),
    ),
    refill(
        "Loose-Leaf Tea",
        13,
        &["Classic", "Fragrant", "Organic", "Small-Batch", "Hand-Picked"],
        &[
            ("{} Black Tea", 95),
            ("{} Green Tea", 105),
            ("{} Herbal Tea", 85),
            ("{} Oolong Tea", 130),
        ],
        Sizes(&[("100 g Tin", 90), ("200 g Pouch", 140), ("50 g Sampler", 60)]),
    ),
    durable(
        "Mug",
        16,
        &["Stackable", "Glazed", "Double-Wall", "Stoneware", "Hand-Thrown"],
        &[("{} Coffee Mug", 85), ("{} Espresso Cup Pair", 110), ("{} Tea Mug with Lid", 120)],
        Colours(GLAZE),
    ),
];
