//! Names that misspelt ones stand for, by edit distance and by letters alone.

/// The name that a misspelt one stands for.
pub(crate) fn meant<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    fn plain(text: &str) -> impl Iterator<Item = u8> {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase())
    }
    let length = name.chars().count();
    let is_long = |text: &str| text.len() >= 6;
    let is_part = |known: &str| {
        is_long(known) && is_long(name) && (known.starts_with(name) || name.starts_with(known))
    };
    // PERF: schemas are full of members that only people read. Edits change a length by one each.
    let distance = |known: &str| {
        let most = if known.len() > 5 { 2 } else { 1 };
        match plain(known).eq(plain(name)) || is_part(known) {
            true => Some(0),
            false if known.chars().count().abs_diff(length) > most => None,
            false => Some(strsim::osa_distance(known, name)).filter(|&distance| distance <= most),
        }
    };
    let near = known.iter().filter_map(|&known| Some((distance(known)?, known)));
    near.min().map(|(_, known)| known)
}
