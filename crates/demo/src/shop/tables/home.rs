//! Home office, bed and bath, living room.

use crate::shop::product_types::Options::{Colours, Sizes};
use crate::shop::product_types::{ProductType, durable, refill};

const FABRIC: &[&str] =
    &["Oatmeal", "Dusty Rose", "Olive", "Charcoal", "Ivory", "Terracotta", "Sea Blue"];
const WOOD: &[&str] = &["Oak", "Walnut", "White", "Black", "Ash"];
const METAL: &[&str] = &["Matt Black", "Brass", "White", "Sage", "Brushed Nickel"];

pub(crate) const OFFICE: &[ProductType] = &[
    durable(
        "Desk",
        340,
        &["Compact", "Solid-Top", "Cable-Tidy", "Height-Adjustable"],
        &[("{} Desk", 100), ("{} Writing Desk", 90), ("{} Corner Desk", 125)],
        Colours(WOOD),
    ),
    durable(
        "Office Chair",
        260,
        &["Swivel", "Mesh", "Ergonomic", "Lumbar-Support"],
        &[("{} Office Chair", 95), ("{} Office Chair with Headrest", 120), ("{} Desk Stool", 60)],
        Colours(&["Black", "Light Grey", "Forest Green", "Petrol Blue", "Cognac"]),
    ),
    durable(
        "Desk Lamp",
        64,
        &["Clamp-On", "LED", "Dimmable", "Swing-Arm"],
        &[("{} Desk Lamp", 100), ("{} Desk Lamp with Charging Base", 135)],
        Colours(METAL),
    ),
    durable(
        "Monitor Stand",
        58,
        &["Adjustable", "Slim", "Cable-Tidy", "Aluminium"],
        &[
            ("{} Monitor Stand", 85),
            ("{} Monitor Arm", 130),
            ("{} Laptop Stand", 75),
            ("{} Monitor Riser with Drawer", 110),
        ],
        Colours(&["Black", "White", "Silver", "Natural"]),
    ),
    durable(
        "Keyboard",
        82,
        &["Slim", "Wireless", "Low-Profile", "Backlit", "Mechanical"],
        &[("{} Keyboard", 90), ("{} Compact Keyboard", 90), ("{} Keyboard and Mouse Set", 130)],
        Colours(&["Graphite", "White", "Sand", "Sage", "Navy"]),
    ),
    refill(
        "Notebook",
        14,
        &["Recycled", "Softcover", "Hardcover", "Linen-Bound", "Leather-Bound"],
        &[
            ("{} Dotted Notebook", 100),
            ("{} Lined Notebook", 95),
            ("{} Weekly Planner", 130),
            ("{} Pocket Notebook", 65),
        ],
        Colours(&["Ink Blue", "Olive", "Black", "Burgundy", "Sand", "Coral"]),
    ),
    durable(
        "Pen",
        26,
        &["Slim", "Refillable", "Brushed Metal", "Lacquered"],
        &[("{} Fountain Pen", 140), ("{} Rollerball Pen", 90), ("{} Gel Pen Set", 60)],
        Colours(&["Matt Black", "Deep Blue", "Forest Green", "Champagne"]),
    ),
];

pub(crate) const BEDDING: &[ProductType] = &[
    durable(
        "Duvet",
        130,
        &["Microfibre", "Quilted", "Cotton-Filled", "Wool-Filled", "Down"],
        &[("{} Duvet", 100), ("Lightweight {} Duvet", 90), ("{} Winter Duvet", 120)],
        Sizes(&[("135 x 200 cm", 85), ("155 x 220 cm", 100), ("200 x 220 cm", 130)]),
    ),
    durable(
        "Pillow",
        46,
        &["Microfibre", "Memory Foam", "Cooling", "Wool-Filled", "Down"],
        &[("{} Pillow", 95), ("{} Side-Sleeper Pillow", 115), ("{} Neck-Support Pillow", 110)],
        Sizes(&[("40 x 80 cm", 85), ("50 x 70 cm", 95), ("80 x 80 cm", 110)]),
    ),
    durable(
        "Bed Linen",
        88,
        &["Jersey", "Cotton Percale", "Organic Cotton", "Sateen", "Washed Linen"],
        &[("{} Duvet Cover Set", 110), ("{} Fitted Sheet", 55), ("{} Pillowcase Pair", 45)],
        Colours(FABRIC),
    ),
    durable(
        "Bath Towel",
        32,
        &["Quick-Dry", "Waffle", "Combed Cotton", "Organic Cotton", "Bamboo-Blend"],
        &[("{} Bath Towel", 100), ("{} Hand Towel Pair", 80), ("{} Towel Set", 190)],
        Colours(FABRIC),
    ),
    durable(
        "Bathrobe",
        74,
        &["Fleece", "Waffle", "Terry", "Organic Cotton", "Linen"],
        &[("{} Bathrobe", 95), ("{} Hooded Bathrobe", 110), ("{} Kimono Robe", 100)],
        Colours(FABRIC),
    ),
];

pub(crate) const LIVING: &[ProductType] = &[
    durable(
        "Throw Blanket",
        56,
        &["Fleece", "Woven", "Cotton-Knit", "Chunky-Knit", "Lambswool"],
        &[("{} Throw Blanket", 100), ("{} Fringed Throw", 105), ("{} Bedspread", 140)],
        Colours(FABRIC),
    ),
    durable(
        "Cushion",
        27,
        &["Cotton", "Textured", "Corduroy", "Velvet", "Linen"],
        &[("{} Cushion", 105), ("{} Cushion Cover", 70), ("{} Floor Cushion", 190)],
        Colours(FABRIC),
    ),
    durable(
        "Floor Lamp",
        145,
        &["Slim", "Dimmable", "Tripod", "Arched"],
        &[("{} Floor Lamp", 105), ("{} Reading Lamp", 90), ("{} Floor Lamp with Linen Shade", 125)],
        Colours(METAL),
    ),
    durable(
        "Rug",
        165,
        &["Washable", "Flat-Weave", "Jute", "Wool-Blend", "Hand-Knotted Wool"],
        &[("{} Rug", 100), ("{} Runner Rug", 70), ("{} Round Rug", 105)],
        Colours(FABRIC),
    ),
    durable(
        "Vase",
        34,
        &["Ribbed", "Glass", "Ceramic", "Stoneware", "Hand-Blown Glass"],
        &[("{} Vase", 100), ("{} Bud Vase", 60), ("{} Floor Vase", 180)],
        Colours(&["Smoke", "Amber", "White", "Clay", "Ink Blue", "Moss"]),
    ),
    durable(
        "Picture Frame",
        24,
        &["Slim", "Aluminium", "Beech", "Solid Oak"],
        &[("{} Picture Frame", 80), ("{} Gallery Frame Set", 190), ("{} Poster Frame", 120)],
        Sizes(&[("13 x 18 cm", 75), ("21 x 30 cm", 100), ("40 x 50 cm", 150)]),
    ),
    refill(
        "Scented Candle",
        22,
        &["Hand-Poured", "Soy Wax", "Rapeseed Wax", "Beeswax"],
        &[("{} Scented Candle", 100), ("{} Three-Wick Candle", 145), ("{} Candle Refill", 80)],
        Colours(&["Cedar", "Lavender", "Fig", "Orange Blossom", "Sea Salt", "Sandalwood"]),
    ),
];
