//! Interests: the types that people buy together, and in which order.

/// A reason to shop: related product types, often from several departments.
#[derive(Debug)]
pub(crate) struct Interest {
    pub(crate) name: &'static str,
    /// Number of people who have it, in proportion to the other interests.
    pub(crate) popularity: u32,
    /// Product types in the order people tend to buy them. Whoever bought one thing of a sequence
    /// most likely buys what follows it. Most buy the types in front, few those at the end.
    pub(crate) sequences: &'static [&'static [&'static str]],
    /// Names of interests that people with this one often have as well.
    pub(crate) near: &'static [&'static str],
}

/// All interests. Every product type of the shop occurs in at least one.
pub(crate) const INTERESTS: &[Interest] = &[
    Interest {
        name: "weekend camping",
        popularity: 11,
        sequences: &[
            &["Tent", "Sleeping Bag", "Sleeping Mat", "Camping Stove", "Camp Cookset", "Headlamp"],
            &["Camping Stove", "Gas Cartridge", "Camp Cookset", "Gas Cartridge"],
            &["Headlamp", "Camp Chair", "Gas Cartridge", "Water Bottle"],
        ],
        near: &["day hiking", "bicycle touring", "dog owner"],
    },
    Interest {
        name: "day hiking",
        popularity: 10,
        sequences: &[
            &["Hiking Boots", "Hiking Socks", "Trekking Backpack", "Trekking Poles", "Rain Jacket"],
            &["Trekking Backpack", "Water Bottle", "Hiking Socks", "Headlamp"],
            &["Rain Jacket", "Hiking Socks", "Hiking Boots"],
        ],
        near: &["weekend camping", "trail running", "dog owner"],
    },
    Interest {
        name: "road running",
        popularity: 10,
        sequences: &[
            &["Running Shoes", "Running Socks", "Running Belt", "Energy Gels", "Running Shirt"],
            &["Running Shirt", "Running Watch", "Running Shoes", "Running Socks", "Foam Roller"],
            &["Energy Gels", "Running Socks", "Energy Gels"],
        ],
        near: &["trail running", "home gym", "commuting by bike"],
    },
    Interest {
        name: "trail running",
        popularity: 6,
        sequences: &[
            &["Running Shoes", "Hiking Socks", "Headlamp", "Energy Gels", "Water Bottle"],
            &["Running Watch", "Trekking Poles", "Rain Jacket", "Energy Gels"],
        ],
        near: &["day hiking", "road running"],
    },
    Interest {
        name: "commuting by bike",
        popularity: 8,
        sequences: &[
            &["Bike Helmet", "Bike Lights", "Bike Lock", "Panniers", "Rain Jacket"],
            &["Bike Lock", "Bike Pump", "Chain Oil", "Bike Lights", "Chain Oil"],
        ],
        near: &["bicycle touring", "home office", "road running"],
    },
    Interest {
        name: "bicycle touring",
        popularity: 5,
        sequences: &[
            &[
                "Panniers",
                "Cycling Jersey",
                "Water Bottle",
                "Tent",
                "Sleeping Bag",
                "Camping Stove",
            ],
            &["Cycling Jersey", "Bike Helmet", "Bike Pump", "Chain Oil", "Energy Gels"],
        ],
        near: &["commuting by bike", "weekend camping"],
    },
    Interest {
        name: "home gym",
        popularity: 7,
        sequences: &[
            &["Resistance Bands", "Dumbbells", "Kettlebell", "Foam Roller", "Yoga Mat"],
            &["Dumbbells", "Yoga Mat", "Resistance Bands", "Water Bottle"],
        ],
        near: &["road running", "yoga and calm"],
    },
    Interest {
        name: "yoga and calm",
        popularity: 8,
        sequences: &[
            &["Yoga Mat", "Yoga Block", "Scented Candle", "Loose-Leaf Tea", "Bathrobe"],
            &["Yoga Block", "Foam Roller", "Cushion", "Scented Candle", "Yoga Mat"],
        ],
        near: &["tea table", "bathroom retreat", "home gym"],
    },
    Interest {
        name: "bread baking",
        popularity: 8,
        sequences: &[
            &["Proofing Basket", "Bread Flour", "Dutch Oven", "Kitchen Knife", "Cutting Board"],
            &["Mixing Bowl", "Bread Flour", "Proofing Basket", "Bread Flour", "Apron"],
        ],
        near: &["cake baking", "everyday cooking"],
    },
    Interest {
        name: "cake baking",
        popularity: 8,
        sequences: &[
            &["Stand Mixer", "Mixing Bowl", "Cake Tin", "Piping Set", "Apron"],
            &["Cake Tin", "Piping Set", "Bread Flour", "Teapot"],
        ],
        near: &["bread baking", "tea table", "family play"],
    },
    Interest {
        name: "everyday cooking",
        popularity: 10,
        sequences: &[
            &["Kitchen Knife", "Cutting Board", "Frying Pan", "Saucepan", "Spices", "Dutch Oven"],
            &["Frying Pan", "Spices", "Apron", "Spices"],
        ],
        near: &["bread baking", "espresso bar", "first flat"],
    },
    Interest {
        name: "espresso bar",
        popularity: 9,
        sequences: &[
            &["Espresso Machine", "Coffee Beans", "Coffee Grinder", "Coffee Beans", "Mug"],
            &["Coffee Grinder", "Coffee Beans", "Descaler", "Coffee Beans", "Descaler"],
        ],
        near: &["home office", "everyday cooking", "filter coffee"],
    },
    Interest {
        name: "filter coffee",
        popularity: 6,
        sequences: &[
            &["Pour-Over Set", "Coffee Filters", "Coffee Beans", "Coffee Grinder", "Mug"],
            &["Coffee Beans", "Coffee Filters", "Coffee Beans", "Coffee Filters"],
        ],
        near: &["espresso bar", "reading and writing"],
    },
    Interest {
        name: "tea table",
        popularity: 6,
        sequences: &[
            &["Teapot", "Loose-Leaf Tea", "Mug", "Loose-Leaf Tea", "Loose-Leaf Tea"],
            &["Mug", "Teapot", "Throw Blanket", "Loose-Leaf Tea"],
        ],
        near: &["yoga and calm", "reading and writing", "cake baking"],
    },
    Interest {
        name: "balcony garden",
        popularity: 8,
        sequences: &[
            &["Planter", "Potting Soil", "Seeds", "Watering Can", "Pruning Shears"],
            &["Seeds", "Potting Soil", "Planter", "Potting Soil"],
        ],
        near: &["country garden", "living room makeover"],
    },
    Interest {
        name: "country garden",
        popularity: 6,
        sequences: &[
            &["Pruning Shears", "Garden Gloves", "Seeds", "Bird Feeder", "Potting Soil"],
            &["Garden Gloves", "Watering Can", "Seeds", "Bird Feeder"],
        ],
        near: &["balcony garden", "dog owner"],
    },
    Interest {
        name: "home office",
        popularity: 9,
        sequences: &[
            &["Desk", "Office Chair", "Desk Lamp", "Monitor Stand", "Keyboard", "Notebook"],
            &["Monitor Stand", "Keyboard", "Notebook", "Pen"],
        ],
        near: &["espresso bar", "reading and writing", "commuting by bike"],
    },
    Interest {
        name: "reading and writing",
        popularity: 6,
        sequences: &[
            &["Pen", "Notebook", "Desk Lamp", "Mug", "Notebook", "Throw Blanket"],
            &["Floor Lamp", "Throw Blanket", "Loose-Leaf Tea", "Notebook"],
        ],
        near: &["home office", "tea table", "watercolour painting"],
    },
    Interest {
        name: "better sleep",
        popularity: 7,
        sequences: &[
            &["Duvet", "Pillow", "Bed Linen", "Throw Blanket"],
            &["Pillow", "Bed Linen", "Duvet", "Scented Candle"],
        ],
        near: &["bathroom retreat", "first flat"],
    },
    Interest {
        name: "bathroom retreat",
        popularity: 5,
        sequences: &[
            &["Bath Towel", "Bathrobe", "Scented Candle", "Bath Towel"],
            &["Bathrobe", "Bath Towel", "Pillow"],
        ],
        near: &["better sleep", "yoga and calm"],
    },
    Interest {
        name: "living room makeover",
        popularity: 8,
        sequences: &[
            &["Rug", "Cushion", "Throw Blanket", "Floor Lamp", "Vase", "Picture Frame"],
            &["Floor Lamp", "Picture Frame", "Vase", "Scented Candle"],
        ],
        near: &["better sleep", "balcony garden", "first flat"],
    },
    Interest {
        name: "first flat",
        popularity: 6,
        sequences: &[
            &["Duvet", "Bath Towel", "Frying Pan", "Saucepan", "Kitchen Knife", "Mug"],
            &["Bed Linen", "Bath Towel", "Rug", "Desk", "Desk Lamp"],
        ],
        near: &["everyday cooking", "living room makeover", "home office"],
    },
    Interest {
        name: "watercolour painting",
        popularity: 6,
        sequences: &[
            &["Watercolours", "Brush Set", "Sketchbook", "Easel", "Picture Frame"],
            &["Sketchbook", "Watercolours", "Sketchbook", "Brush Set"],
        ],
        near: &["knitting", "reading and writing", "family play"],
    },
    Interest {
        name: "knitting",
        popularity: 5,
        sequences: &[
            &["Knitting Needles", "Yarn", "Yarn", "Cushion", "Loose-Leaf Tea"],
            &["Yarn", "Knitting Needles", "Yarn"],
        ],
        near: &["tea table", "watercolour painting"],
    },
    Interest {
        name: "dog owner",
        popularity: 9,
        sequences: &[
            &["Dog Bed", "Dog Lead", "Dog Food", "Dog Treats", "Dog Food", "Dog Treats"],
            &["Dog Lead", "Dog Treats", "Dog Food", "Rain Jacket"],
        ],
        near: &["day hiking", "country garden", "weekend camping"],
    },
    Interest {
        name: "cat owner",
        popularity: 8,
        sequences: &[
            &["Cat Tree", "Cat Litter", "Cat Food", "Cat Litter", "Cat Food"],
            &["Cat Food", "Cat Litter", "Throw Blanket"],
        ],
        near: &["reading and writing", "living room makeover"],
    },
    Interest {
        name: "family play",
        popularity: 8,
        sequences: &[
            &["Building Blocks", "Plush Toy", "Jigsaw Puzzle", "Colouring Pencils", "Board Game"],
            &["Balance Bike", "Bike Helmet", "Plush Toy", "Building Blocks"],
            &["Colouring Pencils", "Sketchbook", "Colouring Pencils", "Jigsaw Puzzle"],
        ],
        near: &["cake baking", "watercolour painting", "weekend camping"],
    },
];
