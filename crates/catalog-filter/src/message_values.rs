//! Values in messages.

use serde_json::Value;

/// A value as JSON, the end left out where it is long.
pub(crate) fn shown(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The first names, and how many there are besides.
pub(crate) fn shown_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const MAX_NAMES: usize = 30;
    let num_left = names.len().saturating_sub(MAX_NAMES);
    let names: Vec<&str> = names.take(MAX_NAMES).collect();
    match (names.len(), num_left) {
        (0, _) => "there are none".to_owned(),
        (_, 0) => format!("there are {}", names.join(", ")),
        (_, num_left) => format!("there are {} and {num_left} more", names.join(", ")),
    }
}

/// A number with a comma between thousands: `12,345,678`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The name that is the fewest edits away, if they are few: a hint for messages about unknown
/// names.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let len = name.chars().count();
    // Two letters that changed places are two edits; a name of other letters is no slip.
    let max_distance = (len / 3).max(2).min(len.saturating_sub(1));
    let near = names.map(|other| (distance(name, other), other));
    near.filter(|&(distance, _)| distance <= max_distance).min().map(|(_, other)| other)
}

/// Edit distance of two texts in characters (Levenshtein), upper and lower case alike.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b: Vec<char> = b.chars().collect();
    // Entry `j`: the distance between the characters of `a` so far and the first `j` of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn distances_of_known_pairs() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("Brand", "brand"), 0);
    }

    #[test]
    fn nearest_is_none_where_nothing_is_near() {
        assert_eq!(nearest("pirce", ["brand", "price"].into_iter()), Some("price"));
        assert_eq!(nearest("colour", ["brand", "price"].into_iter()), None);
    }
}
