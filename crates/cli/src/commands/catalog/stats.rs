//! Statistics of a catalog, for people.

use palmette_catalog::{Catalog, ColumnStats, LevelStats};

use crate::output::{bytes, grouped, table};

pub(super) fn stats_text(catalog: &Catalog) -> String {
    let stats = catalog.stats();
    let mut text =
        format!("{} items, {} semantic IDs", grouped(stats.num_items), grouped(stats.num_ids));
    if stats.items_in_collisions > 0 {
        text += &format!(
            "; {} items share theirs with others, up to {} on one",
            grouped(stats.items_in_collisions),
            stats.largest_collision
        );
    }
    let lengths: Vec<String> = (0..stats.lengths.len())
        .filter(|&length| stats.lengths[length] > 0)
        .map(|length| format!("{} of {length} codes", grouped(stats.lengths[length])))
        .collect();
    if lengths.len() > 1 {
        text += &format!("\nlengths differ: {}", lengths.join(", "));
    }
    text += "\n";
    let rows: Vec<Vec<String>> = stats
        .levels
        .iter()
        .enumerate()
        .map(|(level, at)| {
            let spelled = at.prefix.as_ref().map_or_else(String::new, |p| format!(" <{p}_…>"));
            vec![
                format!("{level}{spelled}"),
                grouped(u64::from(at.codebook_size)),
                grouped(at.codes_used as u64),
                grouped(at.num_prefixes),
                grouped(at.max_branching as u64),
                kept(at),
                bytes(at.bytes),
            ]
        })
        .collect();
    if !rows.is_empty() {
        let headings =
            ["level", " codebook", " used", " prefixes", " most that follow one", "kept", " bytes"];
        text += &table(&headings, &rows);
    }
    let rows: Vec<Vec<String>> = stats.columns.iter().map(column_row).collect();
    if !rows.is_empty() {
        text += &table(&["attribute", "kind", " distinct", " missing", " bytes"], &rows);
    }
    let per_item = stats.index_bytes as f64 / stats.num_items.max(1) as f64;
    text += &format!(
        "index {} ({per_item:.2} bytes an item), ids {}, attributes {}",
        bytes(stats.index_bytes),
        bytes(stats.id_bytes),
        bytes(stats.attribute_bytes)
    );
    text
}

/// Form of a level, in words.
fn kept(level: &LevelStats) -> String {
    let form = form_text(level.form);
    if level.masked && level.form != "dense" { format!("masks, {form}") } else { form.to_owned() }
}

/// The form of a level, as an index and its plan name it, in words.
pub(super) fn form_text(form: &str) -> &'static str {
    match form {
        "dense" => "masks, ranks",
        "by_rank" => "a code an item",
        "listed" => "a code a prefix, listed",
        _ => "a code a prefix, marked",
    }
}

fn column_row(column: &ColumnStats) -> Vec<String> {
    let ColumnStats { name, kind, num_distinct, num_missing, bytes: size } = column;
    let counts = [grouped(*num_distinct), grouped(*num_missing), bytes(*size as usize)];
    [vec![name.clone(), kind.clone()], counts.to_vec()].concat()
}
