//! Files whose checksums are right and whose contents are not.

use std::sync::Arc;

use palmette_catalog::{
    BuildOptions, Catalog, CatalogConstraint, Check, CodeTokens, FileError, Item, LevelTokens,
};
use palmette_core::Constraint;
use palmette_mapped::{Format, SectionsIn, SectionsOut};
use serde_json::{Value, json};

const FORMAT: Format = Format { magic: *b"PALMCAT\0", version: 2 };

/// A catalog of items with these codes, named by their numbers.
fn build(codes: &[&[u32]], options: &BuildOptions) -> Catalog {
    let item = |(n, codes): (usize, &&[u32])| Item {
        id: n.to_string(),
        codes: codes.to_vec(),
        attributes: Default::default(),
    };
    let items: Vec<Item> = codes.iter().enumerate().map(item).collect();
    Catalog::build(items.into(), options).expect("sound items")
}

fn with_dense_levels(dense_levels: usize) -> BuildOptions {
    BuildOptions { dense_levels: Some(dense_levels), ..Default::default() }
}

/// The file of a catalog after changes to its sections and its description.
fn changed(catalog: &Catalog, change: impl FnOnce(&mut [Vec<u8>], &mut Value)) -> Vec<u8> {
    let file = SectionsIn::from_bytes(catalog.to_bytes().into(), FORMAT, Check::Whole);
    let file = file.expect("a sound file");
    let sections = (0..).map_while(|number| file.section(number).ok());
    let mut sections: Vec<Vec<u8>> = sections.map(|section| section.to_vec()).collect();
    let description = sections.pop().expect("the description is the last");
    let mut description = serde_json::from_slice(&description).expect("JSON");
    change(&mut sections, &mut description);
    sections.push(description.to_string().into_bytes());
    let mut out = SectionsOut::default();
    sections.into_iter().for_each(|section| _ = out.add(section.into()));
    out.to_bytes(FORMAT)
}

fn open(bytes: Vec<u8>, check: Check) -> Result<Catalog, FileError> {
    Catalog::from_bytes("test", bytes, check)
}

#[track_caller]
fn check_refused(bytes: Vec<u8>, problem: &str) {
    for check in [Check::Frame, Check::Whole] {
        let error = open(bytes.clone(), check).unwrap_err().to_string();
        assert_eq!(error, format!("test: is damaged: {problem}; build the catalog again"));
    }
}

fn section(meta: &Value) -> usize {
    meta["section"].as_u64().expect("a number") as usize
}

/// A file of a kilobyte cannot say that it has four billion items, which would then be gone
/// through.
#[test]
fn numbers_of_no_bits_do_not_stand_for_items() {
    let catalog = build(&[&[0]], &with_dense_levels(0));
    let num_items = u64::from(u32::MAX) - 1;
    let bytes = changed(&catalog, |sections, description| {
        description["index"]["num_items"] = num_items.into();
        description["columns"]["num_ranks"] = num_items.into();
        let starts = &mut description["index"]["dense"]["starts"];
        starts["bits"] = 32.into();
        sections[section(starts)] = [num_items << 32, 0].map(u64::to_le_bytes).concat();
        description["index"]["sparse"][0]["codes"]["len"] = num_items.into();
        let ids = &mut description["ids"];
        ids["text_bytes"] = 0.into();
        sections[ids["text"].as_u64().expect("a number") as usize].clear();
        for (name, len) in [("starts", num_items + 1), ("places", num_items + num_items / 4 + 1)] {
            sections[section(&ids[name])] = vec![0; 8];
            ids[name]["bits"] = 0.into();
            ids[name]["len"] = len.into();
        }
    });
    check_refused(bytes, "its ids are numbered in another number of bits");
}

#[test]
fn items_need_levels() {
    let catalog = build(&[&[0]], &with_dense_levels(0));
    let bytes = changed(&catalog, |_, description| {
        description["index"]["sparse"] = json!([]);
        description["index"]["code_bounds"] = json!([]);
        description["index"]["dense"]["sizes"] = json!([]);
        description["index"]["dense"]["masks"] = json!([]);
    });
    check_refused(bytes, "it says 1 items of no levels");
}

/// Else masks would allow codes past the codebook, which have no token.
#[test]
fn masks_and_codebooks_have_the_same_sizes() {
    let catalog = build(&[&[0, 1], &[5, 2]], &with_dense_levels(1));
    let bytes = changed(&catalog, |_, description| {
        description["index"]["code_bounds"][0] = 4.into();
        description["codes_per_level"][0] = 4.into();
    });
    check_refused(bytes, "masks of sizes [6, 3] for codebooks of [4, 3]");
    let bytes = changed(&catalog, |_, description| description["codes_per_level"][1] = 7.into());
    check_refused(bytes, "it has codebooks of [6, 7] and codes below [6, 3]");
}

/// The ranks of dense levels are below twice the number of items, however they are damaged.
#[test]
fn a_table_of_ranks_has_as_many_bits_as_ranks_need() {
    let catalog = build(&[&[0, 1], &[1, 2]], &with_dense_levels(1));
    let bytes = changed(&catalog, |sections, description| {
        let starts = &mut description["index"]["dense"]["starts"];
        starts["bits"] = 57.into();
        sections[section(starts)] = vec![0xFF; 8 * (57 * 3_usize).div_ceil(64) + 8];
    });
    check_refused(bytes, "the table of its dense levels has another size");
}

/// Counts of prefixes beyond any number there could be: a step ends all the same.
#[test]
fn damaged_counts_do_not_keep_a_step_from_ending() {
    // IDs of different lengths, few or many prefixes: levels with a list or with bits.
    let few: Vec<Vec<u32>> = (0..600).map(|n| vec![n / 300; 2 - (n % 300 == 0) as usize]).collect();
    let many: Vec<Vec<u32>> = (0..600).map(|n| vec![n / 2; 2 - (n % 2) as usize]).collect();
    for (codes, form) in [(few, "listed"), (many, "bits")] {
        let codes: Vec<&[u32]> = codes.iter().map(Vec::as_slice).collect();
        let catalog = build(&codes, &with_dense_levels(0));
        let at = (0..2).find(|&level| catalog.index().level_shape(level).form == form);
        let at = at.expect("a level of that form");
        let bytes = changed(&catalog, |sections, description| {
            let meta = &mut description["index"]["sparse"][at]["starts"];
            if form == "listed" {
                let directory = &mut meta["listed"]["directory"];
                let len = directory["len"].as_u64().expect("a number");
                directory["bits"] = 57.into();
                let mut words = vec![0xFF; 8 * (57 * len).div_ceil(64) as usize + 8];
                // Nothing before the first rank, and more than can be counted to after it.
                words[..7].fill(0);
                words[7] = 0xFE;
                sections[section(directory)] = words;
            } else {
                let words = meta["bits"]["words"].as_u64().expect("a number") as usize;
                sections[words][64..68].fill(0xFF);
            }
        });
        let catalog = open(bytes, Check::Frame).expect("a sound frame");
        let mut open = vec![catalog.start()];
        let mut masks = vec![0; 10];
        while let Some(state) = open.pop() {
            for _ in 0..1000 {
                catalog.index().fill_masks(&[state], None, &[], 10, &mut masks);
            }
            open.extend(catalog.children(&state).into_iter().map(|(_, child)| child).take(2));
        }
    }
}

/// Codes of damaged files may be anything; tokens are those of their level.
#[test]
fn codes_without_a_token_are_not_visited() {
    let catalog = build(&[&[0], &[3], &[3]], &with_dense_levels(0));
    let bytes = changed(&catalog, |sections, description| {
        let index = &mut description["index"];
        index["dense"]["sizes"] = json!([]);
        index["dense"]["masks"] = json!([]);
        let codes = &mut index["sparse"][0]["codes"];
        codes["bits"] = 32.into();
        let len = codes["len"].as_u64().expect("a number");
        sections[section(codes)] = vec![0xFF; (32 * len).div_ceil(64) as usize * 8 + 8];
    });
    let catalog = open(bytes, Check::Frame).expect("a sound frame");
    assert_eq!(catalog.children(&catalog.start())[0].0, u32::MAX);
    let level = LevelTokens { first_token: 3, num_codes: 4 };
    let tokens = CodeTokens::new(vec![level], 7).expect("within the vocabulary");
    let constraint = CatalogConstraint::new(Arc::new(catalog), tokens).expect("one level");
    let mut visited = Vec::new();
    let Ok(()) =
        constraint.successors(&constraint.start(), &mut (), |token, _| visited.push(token));
    assert_eq!(visited, []);
}

/// The largest codebook there is, and three items: counted without a bit for each code.
#[test]
fn codes_of_a_large_codebook_are_counted() {
    let codes: [&[u32]; 3] = [&[7, 7], &[7, 1 << 30], &[9, 7]];
    let options = BuildOptions { codes_per_level: Some(vec![1 << 31; 2]), ..with_dense_levels(0) };
    let used: Vec<usize> =
        build(&codes, &options).stats().levels.iter().map(|level| level.codes_used).collect();
    assert_eq!(used, [2, 2]);
}
