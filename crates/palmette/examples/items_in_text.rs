//! Items inside text: JSON whose SKUs are in stock at a live shop, while the stock changes.
//!
//! `cargo run --release -p palmette --example items_in_text`
#![allow(clippy::print_stdout)] // It shows what it does.

use std::error::Error;

use palmette::{Bindings, Catalog, CompiledGrammar, Item, LiveCatalog, Mask, TokenId};
use palmette::{Update, Vocabulary};

/// Stands for a model: of the allowed tokens without blanks, the one whose number a hash likes best.
fn sample(tokens: &Vocabulary, allowed: &Mask, step: u32) -> TokenId {
    let liking = |token: &TokenId| {
        let is_blank = tokens.decode(&[*token]).iter().any(u8::is_ascii_whitespace);
        (!is_blank, (token.0 ^ step).wrapping_mul(0x9E37_79B1))
    };
    allowed.iter().max_by_key(liking).expect("a mask allows something")
}

fn item(id: &str, code: u32, title: &str, stock: u32) -> Item {
    let attributes: [(String, _); 2] =
        [("title".to_owned(), title.into()), ("stock".to_owned(), stock.into())];
    Item {
        id: id.to_owned(),
        codes: [0, code].into(),
        attributes: attributes.into_iter().collect(),
    }
}

/// Writes an answer and gives the SKUs in it.
fn write(grammar: &CompiledGrammar, seed: u32) -> Result<Vec<String>, Box<dyn Error>> {
    let (mut matcher, mut written) = (grammar.matcher(), Vec::new());
    while let Some(allowed) = matcher.mask()? {
        let token = sample(grammar.vocabulary(), &allowed, seed + written.len() as u32);
        matcher.commit(token)?;
        written.push(token);
    }
    let members = matcher.members()?;
    println!("{}", String::from_utf8_lossy(&grammar.vocabulary().decode(&written)));
    let skus = members.iter().filter(|member| member.field == "id");
    Ok(skus.map(|member| member.value.clone()).collect())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let items = [("P0074", 1, "tent", 3), ("P0101", 2, "mat", 0), ("P0102", 3, "stove", 9)];
    let shop =
        Catalog::from_items(items.map(|(id, code, title, stock)| item(id, code, title, stock)))?;
    let live = LiveCatalog::create(dir.path().join("live"), &shop)?;

    // Compiled once: it names a shop and knows no item of it.
    let tokens = Vocabulary::encoding("o200k_base")?;
    let grammar = tokens.json_schema(
        r#"{"type": "array", "minItems": 2, "maxItems": 2, "items": {
            "type": "object", "required": ["sku", "rating"], "additionalProperties": false,
            "properties": {"sku": {"type": "string", "x-catalog": "shop"}, "rating": {"enum": [1, 2, 3]}}}}"#,
    )?;
    assert_eq!(grammar.slots()[0].label(), "shop");

    // A request sees the shop as it is at its beginning.
    let in_stock = |live: &LiveCatalog| {
        let bindings = Bindings::new().catalog("shop", live.view());
        grammar.bind(&bindings.filter("shop", r#"{"range": {"stock": {"gt": 0}}}"#)?)
    };
    let before = in_stock(&live)?;
    println!("{:?}", before.sources());
    assert_eq!(before.sources()[0].eligible, 2);
    for seed in 0..5 {
        assert!(write(&before, seed)?.iter().all(|sku| sku == "P0074" || sku == "P0102"));
    }

    live.apply(&[
        Update::Upsert(item("P0102", 3, "stove", 0)),
        Update::Upsert(item("P0200", 0, "lamp", 5)),
    ])?;
    let after = in_stock(&live)?;
    assert_eq!(after.sources()[0].generation, Some(1));
    for seed in 0..5 {
        assert!(write(&after, seed)?.iter().all(|sku| sku == "P0074" || sku == "P0200"));
    }

    // What does not exist cannot be written.
    let refused = after.matcher().commit_bytes(br#"[{"sku": "P0999"#).unwrap_err();
    println!("{refused}");
    assert!(refused.is_refusal());
    Ok(())
}
