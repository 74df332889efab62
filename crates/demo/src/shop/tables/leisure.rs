//! Garden, art and craft, pets, toys.

use crate::shop::product_types::Options::{Colours, Sizes};
use crate::shop::product_types::{ProductType, durable, refill};

const CLAY: &[&str] = &["Terracotta", "Anthracite", "Stone", "Sage", "White"];
const COSY: &[&str] = &["Grey", "Caramel", "Forest Green", "Navy", "Berry"];

pub(crate) const GARDEN: &[ProductType] = &[
    durable(
        "Planter",
        38,
        &["Self-Watering", "Frost-Proof", "Fibre-Clay", "Terracotta", "Cedar"],
        &[("{} Planter", 100), ("{} Balcony Planter", 90), ("{} Window Box", 95)],
        Sizes(&[("30 cm", 80), ("45 cm", 105), ("60 cm", 140)]),
    ),
    refill(
        "Potting Soil",
        13,
        &["Peat-Free", "Slow-Release", "Enriched", "Organic"],
        &[("{} Potting Soil", 100), ("{} Herb Soil", 110), ("{} Vegetable Soil", 110)],
        Sizes(&[("10 L", 65), ("20 L", 100), ("40 L", 160)]),
    ),
    refill(
        "Seeds",
        6,
        &["Easy-Grow", "Bee-Friendly", "Heirloom", "Organic"],
        &[
            ("{} Tomato Seeds", 100),
            ("{} Herb Seeds", 105),
            ("{} Wildflower Seeds", 110),
            ("{} Salad Seeds", 90),
        ],
        Sizes(&[("1 Packet", 65), ("Set of 4", 210), ("Set of 8", 360)]),
    ),
    durable(
        "Watering Can",
        33,
        &["Compact", "Galvanised", "Powder-Coated", "Copper-Plated"],
        &[("{} Watering Can", 110), ("{} Plant Mister", 60), ("{} Indoor Watering Can", 90)],
        Colours(CLAY),
    ),
    durable(
        "Pruning Shears",
        36,
        &["Non-Stick", "Ratchet", "Bypass", "Forged Steel"],
        &[("{} Pruning Shears", 100), ("{} Hedge Shears", 140), ("{} Herb Snips", 65)],
        Colours(&["Red Grip", "Green Grip", "Beech Grip", "Black Grip"]),
    ),
    durable(
        "Garden Gloves",
        15,
        &["Breathable", "Thorn-Proof", "Bamboo", "Goatskin"],
        &[("{} Garden Gloves", 95), ("{} Long-Cuff Garden Gloves", 130)],
        Colours(&["Olive", "Mustard", "Rose", "Slate"]),
    ),
    durable(
        "Bird Feeder",
        29,
        &["Squirrel-Proof", "Recycled", "Bamboo", "Cedar"],
        &[("{} Bird Feeder", 100), ("{} Window Bird Feeder", 85), ("{} Nesting Box", 110)],
        Colours(&["Natural", "Moss Green", "Slate", "Barn Red"]),
    ),
];

pub(crate) const CRAFT: &[ProductType] = &[
    refill(
        "Watercolours",
        36,
        &["Student", "Vivid", "Mineral", "Artist-Grade"],
        &[("{} Watercolour Set", 105), ("{} Travel Watercolour Set", 115), ("{} Gouache Set", 100)],
        Sizes(&[("12 Colours", 75), ("24 Colours", 120), ("36 Colours", 165)]),
    ),
    durable(
        "Brush Set",
        24,
        &["Synthetic", "Fine-Detail", "Bamboo-Handled", "Squirrel-Hair"],
        &[("{} Round Brush Set", 100), ("{} Flat Brush Set", 100), ("{} Travel Brush Set", 120)],
        Sizes(&[("5 Brushes", 80), ("8 Brushes", 110), ("12 Brushes", 150)]),
    ),
    refill(
        "Sketchbook",
        17,
        &["Recycled", "Spiral-Bound", "Cold-Pressed", "Cotton-Paper"],
        &[("{} Sketchbook", 90), ("{} Watercolour Pad", 120), ("{} Mixed-Media Sketchbook", 105)],
        Sizes(&[("A5", 75), ("A4", 105), ("A3", 150)]),
    ),
    durable(
        "Easel",
        84,
        &["Folding", "Adjustable", "Beech", "Oiled Oak"],
        &[("{} Table Easel", 65), ("{} Studio Easel", 145), ("{} Field Easel", 110)],
        Colours(&["Natural", "White", "Black"]),
    ),
    refill(
        "Yarn",
        11,
        &["Acrylic-Blend", "Cotton", "Wool-Blend", "Alpaca", "Merino"],
        &[("{} Yarn", 95), ("{} Chunky Yarn", 120), ("{} Sock Yarn", 110)],
        Colours(&["Heather Grey", "Mustard", "Teal", "Rosewood", "Cream", "Fern"]),
    ),
    durable(
        "Knitting Needles",
        21,
        &["Aluminium", "Bamboo", "Birch", "Rosewood"],
        &[
            ("{} Straight Knitting Needles", 75),
            ("{} Circular Knitting Needles", 90),
            ("{} Interchangeable Needle Set", 250),
        ],
        Sizes(&[("3.5 mm", 95), ("4 mm", 100), ("5 mm", 100), ("6 mm", 105)]),
    ),
];

pub(crate) const PETS: &[ProductType] = &[
    durable(
        "Dog Bed",
        68,
        &["Washable", "Raised", "Orthopaedic", "Memory Foam"],
        &[("{} Dog Bed", 100), ("{} Dog Sofa", 150), ("{} Dog Travel Mat", 60)],
        Colours(COSY),
    ),
    durable(
        "Dog Lead",
        24,
        &["Reflective", "Adjustable", "Padded", "Rope", "Leather"],
        &[("{} Dog Lead", 95), ("{} Dog Collar", 80), ("{} Dog Harness", 150)],
        Colours(COSY),
    ),
    refill(
        "Dog Food",
        32,
        &["Complete", "Grain-Free", "Sensitive", "Organic", "Cold-Pressed"],
        &[("{} Chicken Dog Food", 95), ("{} Salmon Dog Food", 110), ("{} Lamb Dog Food", 105)],
        Sizes(&[("2 kg", 50), ("6 kg", 105), ("12 kg", 180)]),
    ),
    refill(
        "Dog Treats",
        9,
        &["Crunchy", "Soft", "Grain-Free", "Air-Dried"],
        &[("{} Dog Treats", 95), ("{} Training Treats", 90), ("{} Dental Chews", 125)],
        Sizes(&[("150 g", 75), ("300 g", 120), ("500 g", 170)]),
    ),
    durable(
        "Cat Tree",
        95,
        &["Compact", "Plush", "Sisal", "Solid-Wood"],
        &[("{} Cat Tree", 110), ("{} Scratching Post", 55), ("{} Window Perch", 60)],
        Colours(&["Cream", "Grey", "Beige", "Walnut"]),
    ),
    refill(
        "Cat Litter",
        15,
        &["Clumping", "Low-Dust", "Wood-Based", "Plant-Based"],
        &[("{} Cat Litter", 100), ("{} Unscented Cat Litter", 105)],
        Sizes(&[("5 L", 60), ("10 L", 100), ("20 L", 170)]),
    ),
    refill(
        "Cat Food",
        21,
        &["Complete", "Grain-Free", "Sensitive", "Organic"],
        &[("{} Tuna Cat Food", 105), ("{} Chicken Cat Food", 95), ("{} Turkey Cat Food", 100)],
        Sizes(&[("12 x 85 g", 70), ("24 x 85 g", 125), ("2 kg", 95)]),
    ),
];

pub(crate) const TOYS: &[ProductType] = &[
    durable(
        "Building Blocks",
        38,
        &["Chunky", "Magnetic", "Beech", "Hand-Painted"],
        &[("{} Building Blocks", 95), ("{} Marble Run", 130), ("{} Stacking Set", 70)],
        Sizes(&[("40 Pieces", 75), ("60 Pieces", 100), ("100 Pieces", 150)]),
    ),
    durable(
        "Jigsaw Puzzle",
        19,
        &["Illustrated", "Matt-Finish", "Linen-Finish", "Wooden"],
        &[
            ("{} Forest Jigsaw Puzzle", 100),
            ("{} Harbour Jigsaw Puzzle", 100),
            ("{} Botanical Jigsaw Puzzle", 105),
            ("{} World Map Jigsaw Puzzle", 105),
        ],
        Sizes(&[("100 Pieces", 75), ("500 Pieces", 100), ("1,000 Pieces", 130)]),
    ),
    durable(
        "Board Game",
        35,
        &["Quick-Play", "Family", "Cooperative", "Deluxe"],
        &[
            ("{} Strategy Board Game", 120),
            ("{} Word Game", 80),
            ("{} Card Game", 50),
            ("{} Memory Game", 60),
        ],
        Sizes(&[("2 Players", 85), ("2-4 Players", 100), ("3-6 Players", 115)]),
    ),
    durable(
        "Plush Toy",
        23,
        &["Washable", "Corduroy", "Organic Cotton", "Hand-Stitched"],
        &[
            ("{} Plush Bear", 105),
            ("{} Plush Rabbit", 100),
            ("{} Plush Fox", 100),
            ("{} Plush Whale", 110),
        ],
        Sizes(&[("Small", 70), ("Medium", 100), ("Large", 145)]),
    ),
    refill(
        "Colouring Pencils",
        12,
        &["Washable", "Triangular", "Water-Soluble", "Cedar"],
        &[("{} Colouring Pencils", 100), ("{} Wax Crayons", 80), ("{} Felt-Tip Pens", 90)],
        Sizes(&[("12 Colours", 70), ("24 Colours", 115), ("48 Colours", 200)]),
    ),
    durable(
        "Balance Bike",
        98,
        &["Lightweight", "Adjustable", "Steel", "Birch"],
        &[("{} Balance Bike", 105), ("{} Kick Scooter", 80), ("{} Tricycle", 110)],
        Colours(&["Mint", "Cherry Red", "Sky Blue", "Sunflower", "Natural"]),
    ),
];
