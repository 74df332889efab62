//! Running, cycling, yoga and fitness.

use crate::shop::product_types::Options::{Colours, Sizes};
use crate::shop::product_types::{ProductType, durable, refill};

const BRIGHT: &[&str] = &["Black", "Coral", "Electric Blue", "Lime", "White", "Plum"];
const CALM: &[&str] = &["Lavender", "Ocean Blue", "Charcoal", "Eucalyptus", "Blush", "Indigo"];

pub(crate) const RUNNING: &[ProductType] = &[
    durable(
        "Running Shoes",
        112,
        &["Everyday", "Breathable", "Cushioned", "Stability", "Carbon-Plated"],
        &[
            ("Women's {} Road Running Shoes", 100),
            ("Men's {} Road Running Shoes", 100),
            ("Women's {} Trail Running Shoes", 110),
            ("Men's {} Trail Running Shoes", 110),
        ],
        Colours(BRIGHT),
    ),
    refill(
        "Running Socks",
        13,
        &["Breathable", "Cushioned", "Seamless", "Compression", "Merino Wool"],
        &[("{} Running Socks", 100), ("{} Ankle Running Socks", 95), ("{} Toe Socks", 115)],
        Sizes(&[("1 Pair", 75), ("2 Pairs", 130), ("3 Pairs", 175)]),
    ),
    durable(
        "Running Belt",
        26,
        &["Elastic", "Slim", "Reflective", "Bounce-Free", "Waterproof"],
        &[("{} Running Belt", 100), ("{} Hydration Belt", 135), ("{} Phone Belt", 90)],
        Colours(BRIGHT),
    ),
    refill(
        "Energy Gels",
        18,
        &["Isotonic", "Caffeinated", "Vegan", "Organic", "Electrolyte"],
        &[
            ("{} Lemon Energy Gels", 100),
            ("{} Berry Energy Gels", 100),
            ("{} Salted Caramel Energy Gels", 105),
        ],
        Sizes(&[("Box of 6", 65), ("Box of 12", 120), ("Box of 24", 210)]),
    ),
    durable(
        "Running Shirt",
        38,
        &["Quick-Dry", "Mesh", "Reflective", "Seamless", "Merino Wool"],
        &[
            ("Women's {} Running Shirt", 100),
            ("Men's {} Running Shirt", 100),
            ("Women's {} Long-Sleeve Running Shirt", 125),
            ("Men's {} Long-Sleeve Running Shirt", 125),
        ],
        Colours(BRIGHT),
    ),
    durable(
        "Running Watch",
        180,
        &["Slim", "Heart-Rate", "Solar", "Multisport"],
        &[("{} Running Watch", 90), ("{} GPS Running Watch", 115)],
        Colours(&["Black", "White", "Slate Blue", "Sage", "Rose"]),
    ),
];

pub(crate) const CYCLING: &[ProductType] = &[
    durable(
        "Bike Helmet",
        72,
        &["Adjustable", "Ventilated", "Lightweight", "Impact-Shielded"],
        &[("{} City Bike Helmet", 95), ("{} Road Bike Helmet", 120), ("{} Trail Bike Helmet", 125)],
        Colours(&["Matt Black", "White", "Petrol Blue", "Signal Red", "Olive"]),
    ),
    durable(
        "Bike Lights",
        42,
        &["Clip-On", "Water-Resistant", "Rechargeable", "High-Beam"],
        &[("{} Bike Light Set", 110), ("{} Front Bike Light", 85), ("{} Rear Bike Light", 60)],
        Sizes(&[("30 Lux", 80), ("60 Lux", 100), ("100 Lux", 140)]),
    ),
    durable(
        "Bike Lock",
        56,
        &["Coated", "Keyed", "Hardened Steel", "Double-Bolt"],
        &[("{} Cable Bike Lock", 50), ("{} Chain Bike Lock", 95), ("{} Folding Bike Lock", 120)],
        Sizes(&[("85 cm", 90), ("100 cm", 100), ("120 cm", 115)]),
    ),
    durable(
        "Panniers",
        84,
        &["Reflective", "Quick-Release", "Roll-Top", "Waterproof", "Waxed Canvas"],
        &[("{} Pannier Bag", 75), ("{} Pannier Pair", 135), ("{} Handlebar Bag", 60)],
        Colours(&["Black", "Olive", "Mustard", "Petrol Blue", "Grey"]),
    ),
    durable(
        "Cycling Jersey",
        66,
        &["Quick-Dry", "Breathable", "Thermal", "Slim-Fit", "Merino Wool"],
        &[
            ("Women's {} Cycling Jersey", 100),
            ("Men's {} Cycling Jersey", 100),
            ("Unisex {} Long-Sleeve Cycling Jersey", 125),
        ],
        Colours(BRIGHT),
    ),
    durable(
        "Bike Pump",
        33,
        &["Compact", "Aluminium", "High-Pressure", "Dual-Valve"],
        &[("{} Mini Bike Pump", 75), ("{} Floor Pump", 120), ("{} Floor Pump with Gauge", 140)],
        Colours(&["Black", "Silver", "Signal Red"]),
    ),
    refill(
        "Chain Oil",
        11,
        &["All-Weather", "Biodegradable", "Dry-Weather", "Wet-Weather", "Wax-Based"],
        &[("{} Chain Oil", 100), ("{} Chain Lubricant", 105), ("{} Chain Cleaner", 95)],
        Sizes(&[("50 ml", 75), ("100 ml", 100), ("250 ml", 180)]),
    ),
];

pub(crate) const FITNESS: &[ProductType] = &[
    durable(
        "Yoga Mat",
        48,
        &["Non-Slip", "Extra-Thick", "Reversible", "Cork", "Natural Rubber"],
        &[("{} Yoga Mat", 100), ("{} Travel Yoga Mat", 85), ("{} Extra-Long Yoga Mat", 125)],
        Colours(CALM),
    ),
    durable(
        "Yoga Block",
        17,
        &["Foam", "Bevelled", "Bamboo", "Cork"],
        &[("{} Yoga Block", 75), ("{} Yoga Block Pair", 130), ("{} Yoga Block and Strap Set", 150)],
        Colours(CALM),
    ),
    durable(
        "Foam Roller",
        29,
        &["Smooth", "Textured", "High-Density", "Vibrating"],
        &[("{} Foam Roller", 100), ("{} Massage Roller", 105)],
        Sizes(&[("30 cm", 85), ("45 cm", 100), ("60 cm", 120)]),
    ),
    durable(
        "Resistance Bands",
        21,
        &["Latex-Free", "Looped", "Anti-Slip", "Woven"],
        &[
            ("{} Resistance Bands", 95),
            ("{} Resistance Bands with Handles", 140),
            ("{} Pull-Up Bands", 120),
        ],
        Sizes(&[("Set of 3", 85), ("Set of 5", 120)]),
    ),
    durable(
        "Kettlebell",
        46,
        &["Vinyl-Coated", "Cast-Iron", "Powder-Coated", "Competition"],
        &[("{} Kettlebell", 100), ("{} Wide-Grip Kettlebell", 110)],
        Sizes(&[("8 kg", 70), ("12 kg", 100), ("16 kg", 130), ("20 kg", 160)]),
    ),
    durable(
        "Dumbbells",
        58,
        &["Vinyl-Coated", "Hexagonal", "Rubber-Coated", "Chrome"],
        &[("{} Dumbbell Pair", 100), ("{} Dumbbell Pair with Rack", 145)],
        Sizes(&[("2 x 2 kg", 55), ("2 x 5 kg", 100), ("2 x 8 kg", 140), ("2 x 10 kg", 170)]),
    ),
];
