//! Names that misspelt ones stand for, by edit distance and by letters alone.

/// The name that a misspelt one stands for.
pub(crate) fn meant<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_ascii_alphanumeric());
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let is_long = |text: &str| text.len() >= 6;
    let is_part = |known: &str| {
        is_long(known) && is_long(name) && (known.starts_with(name) || name.starts_with(known))
    };
    let distance = |known: &str| match plain(known) == plain(name) || is_part(known) {
        true => 0,
        false => strsim::osa_distance(known, name),
    };
    let near = known.iter().map(|&known| (distance(known), known));
    let near = near.filter(|(distance, known)| *distance <= if known.len() > 5 { 2 } else { 1 });
    near.min().map(|(_, known)| known)
}
