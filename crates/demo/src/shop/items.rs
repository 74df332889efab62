//! Generating the items: every brand of a department makes a few products of most of its types.

use std::collections::BTreeSet;

use super::brands::{BRANDS, PriceClass, brands_of, price_class};
use super::departments::Department;
use super::dice::Dice;
use super::product_types::{Options, ProductType};
use super::purchases::ShopItem;
use super::titles::{repeats_a_word, shelf_price, title};

/// Number of codes of level 3 for each form of a product type. A type has at most four forms.
const CODES_PER_FORM: u32 = 16;

/// Products that the last month has added are this young at most, in days.
pub(crate) const NEW_BELOW_DAYS: u32 = 30;

/// All items, in the order of departments, product types and brands.
pub(crate) fn generate_items(dice: &mut Dice) -> Vec<ShopItem> {
    let mut items = Vec::new();
    for department in Department::ALL {
        for (type_code, product_type) in department.product_types().iter().enumerate() {
            for brand in brands_of(department) {
                if leads_its_class(brand, department) || dice.chance(76) {
                    let shelf = Shelf { department, type_code, product_type, brand };
                    shelf.fill(&mut items, dice);
                }
            }
        }
    }
    items
}

/// True if `brand` is the first one of its price class in `department`. Leaders make every type, so
/// no customer finds a shelf without anything in their class.
fn leads_its_class(brand: usize, department: Department) -> bool {
    let class = price_class(brand);
    brands_of(department).find(|&other| price_class(other) == class) == Some(brand)
}

/// The place of one brand's products of one type.
struct Shelf {
    department: Department,
    type_code: usize,
    product_type: &'static ProductType,
    brand: usize,
}

impl Shelf {
    /// Adds two to four products, each in one to three colours or sizes.
    fn fill(&self, items: &mut Vec<ShopItem>, dice: &mut Dice) {
        let mut made = BTreeSet::new();
        let mut codes_used = [0; 4];
        let num_products = dice.between(2, 4);
        while (made.len() as u32) < num_products {
            let product = self.draw_product(dice);
            if made.insert((product.series, product.feature, product.form)) {
                self.add_variants(&product, &mut codes_used[product.form], items, dice);
            }
        }
    }

    fn draw_product(&self, dice: &mut Dice) -> Product {
        let features = features_of(self.product_type, price_class(self.brand));
        loop {
            let series = *dice.pick(&BRANDS[self.brand].series);
            let form = dice.below(self.product_type.forms.len() as u32) as usize;
            let feature = dice.chance(75).then(|| *dice.pick(features));
            if repeats_a_word(series, feature, self.product_type.forms[form].0) {
                continue;
            }
            let is_new = dice.chance(8);
            return Product {
                series,
                feature,
                form,
                price_percent: dice.between(92, 112),
                age_days: if is_new {
                    dice.below(NEW_BELOW_DAYS)
                } else {
                    dice.between(NEW_BELOW_DAYS, 1500)
                },
            };
        }
    }

    fn add_variants(
        &self,
        product: &Product,
        codes_used: &mut u32,
        items: &mut Vec<ShopItem>,
        dice: &mut Dice,
    ) {
        let (form, form_percent) = self.product_type.forms[product.form];
        let options = self.product_type.options;
        let mut chosen = dice.permutation(options.len());
        chosen.truncate(dice.between(1, 3) as usize);
        chosen.sort_unstable();

        for (position, option) in chosen.into_iter().enumerate() {
            // Real catalogs have colliding IDs: here a few colours of one product share theirs.
            let shares_codes =
                position > 0 && matches!(options, Options::Colours(_)) && dice.chance(6);
            if !shares_codes {
                *codes_used += 1;
            }
            let (option, option_percent) = options.get(option);
            let class = price_class(self.brand);
            // Each factor is a percentage, the price is in units: 100^4 / 100 makes it cents.
            let cents =
                [form_percent, option_percent, product.price_percent, class.price_percent()]
                    .iter()
                    .fold(u64::from(self.product_type.price), |price, &percent| {
                        price * u64::from(percent)
                    })
                    / 1_000_000;
            let brand = BRANDS[self.brand].name;
            items.push(ShopItem {
                id: format!("P{:04}", items.len() + 1),
                title: title(brand, product.series, product.feature, form, option),
                category: self.department.name().to_owned(),
                product_type: self.product_type.name.to_owned(),
                brand: brand.to_owned(),
                price: shelf_price(cents, class),
                stock: if dice.chance(4) { 0 } else { dice.between(1, 120) },
                age_days: product.age_days,
                codes: [
                    self.department as u32,
                    self.type_code as u32,
                    self.brand as u32,
                    product.form as u32 * CODES_PER_FORM + *codes_used - 1,
                ],
            });
        }
    }
}

/// A product before its colours and sizes.
struct Product {
    series: &'static str,
    feature: Option<&'static str>,
    form: usize,
    price_percent: u32,
    age_days: u32,
}

/// The features a brand of `class` offers: the plain two thirds, all, or the fine two thirds.
fn features_of(product_type: &ProductType, class: PriceClass) -> &'static [&'static str] {
    let features = product_type.features;
    let left_out = features.len() / 3;
    match class {
        PriceClass::Budget => &features[..features.len() - left_out],
        PriceClass::Mid => features,
        PriceClass::Premium => &features[left_out..],
    }
}
