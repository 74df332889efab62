//! Strings from a seed: titles of products, names, stock-keeping units, addresses of pages.

use palmette_core::Vocabulary;
use serde::Serialize;

use super::{MembersError, below};
use crate::random::Random;

/// A number below `bound`, small ones far more often: as words are used.
pub(super) fn skewed(random: &mut Random, bound: usize) -> usize {
    let share = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
    ((bound as f64).powf(share) - 1.0) as usize % bound
}

fn pick<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[skewed(random, words.len())]
}

/// Kind of the strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    /// A brand, adjectives, a thing, what it is for, sizes, a colour, a model number: 60 bytes.
    Titles,
    /// A capitalised word or two, as names of countries are: 9 bytes.
    Names,
    /// `B0` and eight letters and digits.
    Skus,
    /// An address with a title in it: 95 bytes.
    Urls,
}

impl MemberKind {
    pub(super) fn append(self, random: &mut Random, words: &[String], text: &mut String) {
        match self {
            Self::Titles => title(random, words, text),
            Self::Names => {
                word(random, words, text);
                if below(random, 3) == 0 {
                    text.push(' ');
                    word(random, words, text);
                }
            }
            Self::Skus => {
                const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
                text.push_str("B0");
                text.extend((0..8).map(|_| char::from(DIGITS[below(random, DIGITS.len())])));
            }
            Self::Urls => {
                let mut slug = String::new();
                title(random, words, &mut slug);
                let host = ["example", "shop", "store"][below(random, 3)];
                let folder = ["p", "dp", "product", "item"][below(random, 4)];
                *text += &format!("https://www.{host}.com/{folder}/");
                let plain =
                    |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
                text.extend(slug.chars().map(plain));
                *text += &format!("-{}", below(random, 100_000_000));
            }
        }
    }
}

/// The words of a vocabulary: its tokens of a blank and letters.
pub(super) fn words(vocabulary: &Vocabulary) -> Result<Vec<String>, MembersError> {
    let word = |text: &[u8]| {
        let word = std::str::from_utf8(text).ok()?.strip_prefix(' ')?;
        let is_word = word.chars().count() >= 2 && word.chars().all(char::is_alphabetic);
        is_word.then(|| word.to_owned())
    };
    let words: Vec<String> = vocabulary.texts().filter_map(|(_, text)| word(text)).collect();
    match words.is_empty() {
        false => Ok(words),
        true => Err(MembersError(
            "the vocabulary has no token of a blank and letters, of which strings are made; choose another"
                .to_owned(),
        )),
    }
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

/// Appends a capitalised word.
pub(super) fn word(random: &mut Random, words: &[String], text: &mut String) {
    let mut letters = words[skewed(random, words.len())].chars();
    text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
    text.extend(letters);
}

fn title(random: &mut Random, words: &[String], text: &mut String) {
    word(random, words, text);
    if below(random, 3) == 0 {
        text.push(' ');
        word(random, words, text);
    }
    for _ in 0..1 + below(random, 2) {
        *text += " ";
        *text += pick(random, ADJECTIVES);
    }
    *text += " ";
    *text += pick(random, THINGS);
    if below(random, 2) == 0 {
        text.push(' ');
        word(random, words, text);
    }
    if below(random, 2) == 0 {
        *text += " ";
        *text += pick(random, PURPOSES);
    }
    match below(random, 4) {
        0 => *text += &format!(", {} Pack", 1 + skewed(random, 100)),
        1 => *text += &format!(", {} oz", 1 + below(random, 64)),
        2 => *text += &format!(", {}\" x {}\"", 1 + below(random, 60), 1 + below(random, 60)),
        _ => {}
    }
    *text += ", ";
    *text += pick(random, COLOURS);
    if below(random, 3) > 0 {
        let letter = char::from(b'A' + below(random, 26) as u8);
        *text += &format!(", {letter}{}", 100 + below(random, 9900));
    }
}
