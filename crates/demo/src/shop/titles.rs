//! Titles and prices: how a product's parts become what a customer reads.

use super::brands::PriceClass;

/// `brand series [feature] form, option`, the feature where the form wants it.
pub(crate) fn title(
    brand: &str,
    series: &str,
    feature: Option<&str>,
    form: &str,
    option: &str,
) -> String {
    format!("{brand} {series} {}, {option}", named(feature, form))
}

/// True if a word would occur twice in the title, as in "Soft Soft Blanket".
pub(crate) fn repeats_a_word(series: &str, feature: Option<&str>, form: &str) -> bool {
    let named = named(feature, form);
    let words: Vec<&str> = series.split(' ').chain(named.split([' ', '-'])).collect();
    (1..words.len()).any(|position| words[..position].contains(&words[position]))
}

/// The price on the shelf for `cents`, with the endings each class uses: .49 and .99, .50 and .90,
/// whole units.
pub(crate) fn shelf_price(cents: u64, class: PriceClass) -> f64 {
    let half_units = (cents + 25) / 50;
    let cents = match class {
        PriceClass::Budget => half_units.max(2) * 50 - 1,
        PriceClass::Mid if half_units % 2 == 1 => half_units * 50,
        PriceClass::Mid => half_units.max(2) * 50 - 10,
        PriceClass::Premium => (cents + 50) / 100 * 100,
    };
    cents.max(100) as f64 / 100.0
}

fn named(feature: Option<&str>, form: &str) -> String {
    match feature {
        Some(feature) if form.contains("{}") => form.replace("{}", feature),
        Some(feature) => format!("{feature} {form}"),
        None => form.replace("{} ", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_stands_where_the_form_wants_it() {
        let form = "Women's {} Rain Jacket";
        assert_eq!(
            title("Fernhollow", "Glen", Some("3-Layer"), form, "Navy"),
            "Fernhollow Glen Women's 3-Layer Rain Jacket, Navy"
        );
        assert_eq!(
            title("Fernhollow", "Glen", None, form, "Navy"),
            "Fernhollow Glen Women's Rain Jacket, Navy"
        );
    }

    #[test]
    fn words_are_not_repeated() {
        assert!(repeats_a_word("Thistle", None, "{} Thistle Feeder"));
        assert!(repeats_a_word("Glen", Some("Glass"), "{} Glass Jar"));
        assert!(!repeats_a_word("Glen", Some("Glass"), "{} Vase"));
    }

    #[test]
    fn prices_end_as_their_class_does() {
        assert_eq!(shelf_price(1234, PriceClass::Budget), 12.49);
        assert_eq!(shelf_price(1234, PriceClass::Mid), 12.5);
        assert_eq!(shelf_price(1190, PriceClass::Mid), 11.9);
        assert_eq!(shelf_price(1234, PriceClass::Premium), 12.0);
    }
}
