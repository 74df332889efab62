//! Strings from a seed: titles of products, stock-keeping units, addresses of pages.

use palmette_core::Vocabulary;

/// Random numbers from a seed (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, all alike.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    /// A number below `bound`, small ones far more often: as words are used.
    pub(crate) fn skewed(&mut self, bound: usize) -> usize {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        ((bound as f64).powf(share) - 1.0) as usize % bound
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.skewed(words.len())]
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A brand, adjectives, a thing, what it is for, sizes, a colour, a model number: 60 bytes.
    Titles,
    /// `B0` and eight letters and digits.
    Skus,
    /// An address with a title in it: 95 bytes.
    Urls,
}

impl Kind {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "titles" => Some(Self::Titles),
            "skus" => Some(Self::Skus),
            "urls" => Some(Self::Urls),
            _ => None,
        }
    }

    pub(crate) fn append(self, random: &mut Random, words: &[String], text: &mut String) {
        match self {
            Self::Titles => title(random, words, text),
            Self::Skus => {
                const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
                text.push_str("B0");
                text.extend((0..8).map(|_| char::from(DIGITS[random.below(DIGITS.len())])));
            }
            Self::Urls => {
                let mut slug = String::new();
                title(random, words, &mut slug);
                let host = ["example", "shop", "store"][random.below(3)];
                let folder = ["p", "dp", "product", "item"][random.below(4)];
                *text += &format!("https://www.{host}.com/{folder}/");
                let plain =
                    |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
                text.extend(slug.chars().map(plain));
                *text += &format!("-{}", random.below(100_000_000));
            }
        }
    }
}

/// The words of a vocabulary: its tokens of a blank and letters.
pub(crate) fn words(vocabulary: &Vocabulary) -> Vec<String> {
    let word = |text: &[u8]| {
        let word = std::str::from_utf8(text).ok()?.strip_prefix(' ')?;
        let is_word = word.chars().count() >= 2 && word.chars().all(char::is_alphabetic);
        is_word.then(|| word.to_owned())
    };
    vocabulary.texts().filter_map(|(_, text)| word(text)).collect()
}

const ADJECTIVES: &[&str] = &[
    "Portable",
    "Compact",
    "Wireless",
    "Waterproof",
    "Heavy Duty",
    "Rechargeable",
    "Stainless Steel",
    "Adjustable",
    "Foldable",
    "Premium",
    "Classic",
    "Organic",
    "Insulated",
    "Digital",
    "Kids",
    "Women's",
    "Men's",
    "Vintage",
    "Magnetic",
    "Silicone",
    "Bamboo",
    "Leather",
    "Cotton",
    "Solar",
    "Smart",
    "Mini",
    "Extra Large",
    "Double-Wall",
    "Non-Slip",
    "High-Speed",
    "Quick-Dry",
    "Anti-Glare",
    "Noise Cancelling",
    "Multi-Purpose",
    "Eco-Friendly",
    "Handmade",
];
const THINGS: &[&str] = &[
    "Water Bottle",
    "Headphones",
    "Backpack",
    "Desk Lamp",
    "Phone Case",
    "Running Shoes",
    "Yoga Mat",
    "Coffee Maker",
    "Tent",
    "Sleeping Bag",
    "Keyboard",
    "Office Chair",
    "Screwdriver Set",
    "Kitchen Knife",
    "Blender",
    "Air Purifier",
    "Speaker",
    "Travel Mug",
    "Notebook",
    "Ink Cartridge",
    "Laser Printer",
    "Garden Hose",
    "Drill Bit",
    "Storage Box",
    "Picture Frame",
    "Wall Clock",
    "Rain Jacket",
    "Hiking Boots",
    "Camping Stove",
    "Bike Helmet",
    "Car Charger",
    "USB-C Cable",
    "Power Bank",
    "Monitor Stand",
    "Gaming Mouse",
    "Toothbrush",
    "Shampoo",
    "Face Cream",
    "Dog Bed",
    "Puzzle",
    "Board Game",
    "T-Shirt",
    "Jeans",
    "Sunglasses",
    "Wallet",
    "Suitcase",
    "Umbrella",
    "Pillow",
    "Towel",
    "Curtains",
    "Rug",
    "Candle",
    "Vase",
    "Mirror",
];
const COLOURS: &[&str] = &[
    "Black",
    "White",
    "Slate Grey",
    "Navy Blue",
    "Forest Green",
    "Burnt Orange",
    "Rust Red",
    "Sand",
    "Ivory",
    "Teal",
    "Purple",
    "Pink",
    "Silver",
    "Gold",
    "Rose Gold",
    "Charcoal",
    "Olive",
    "Sky Blue",
    "Yellow",
    "Brown",
];
const PURPOSES: &[&str] = &[
    "for Home",
    "for Office",
    "for Travel",
    "for Kids",
    "for Camping",
    "for Women",
    "for Men",
    "with LED Light",
    "with Carrying Case",
    "with Lid",
    "with Remote Control",
    "Compatible with iPhone 15",
    "Gift Set",
    "Value Pack",
    "Refill",
    "Replacement Parts",
    "2024 Model",
    "(Renewed)",
    "Made in Italy",
];

fn title(random: &mut Random, words: &[String], text: &mut String) {
    let word = |random: &mut Random, text: &mut String| {
        let mut letters = words[random.skewed(words.len())].chars();
        text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        text.extend(letters);
    };
    word(random, text);
    if random.below(3) == 0 {
        text.push(' ');
        word(random, text);
    }
    for _ in 0..1 + random.below(2) {
        *text += " ";
        *text += random.pick(ADJECTIVES);
    }
    *text += " ";
    *text += random.pick(THINGS);
    if random.below(2) == 0 {
        text.push(' ');
        word(random, text);
    }
    if random.below(2) == 0 {
        *text += " ";
        *text += random.pick(PURPOSES);
    }
    match random.below(4) {
        0 => *text += &format!(", {} Pack", 1 + random.skewed(100)),
        1 => *text += &format!(", {} oz", 1 + random.below(64)),
        2 => *text += &format!(", {}\" x {}\"", 1 + random.below(60), 1 + random.below(60)),
        _ => {}
    }
    *text += ", ";
    *text += random.pick(COLOURS);
    if random.below(3) > 0 {
        let letter = char::from(b'A' + random.below(26) as u8);
        *text += &format!(", {letter}{}", 100 + random.below(9900));
    }
}
