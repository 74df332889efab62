//! Changes to files of sections that leave the checksums right: else nothing else would be reached.

use libfuzzer_sys::fuzzer_mutate;
use palmette_mapped::{Check, Format, SectionsIn, SectionsOut};
use serde_json::Value;

use crate::random::Random;

/// Changes the file in `data[..size]`, or a fresh one where there is none yet; returns its new
/// size.
///
/// Now and then bytes are changed blindly, so that header and table are reached too. Of the
/// sections the last is taken for JSON where it is, and numbers in it are changed.
pub fn mutate_sections(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    format: Format,
    fresh: impl Fn(u64) -> Vec<u8>,
) -> usize {
    let random = &mut Random(seed.into());
    let file = SectionsIn::from_bytes(data[..size].to_vec().into(), format, Check::Frame);
    let file = match file {
        Ok(_) if random.below(20) == 0 => return fuzzer_mutate(data, size, max_size),
        Ok(file) if random.below(50) != 0 => file,
        _ => {
            let bytes = fresh(random.next());
            SectionsIn::from_bytes(bytes.into(), format, Check::Frame).expect("a sound file")
        }
    };
    let sections = (0..).map_while(|number| file.section(number).ok());
    let mut sections: Vec<Vec<u8>> = sections.map(|section| section.to_vec()).collect();
    for _ in 0..random.below(4) {
        change(&mut sections, random);
    }
    let mut out = SectionsOut::default();
    sections.into_iter().for_each(|section| _ = out.add(section.into()));
    let bytes = out.to_bytes(format);
    if bytes.len() > max_size {
        return size;
    }
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

fn change(sections: &mut Vec<Vec<u8>>, random: &mut Random) {
    let at = random.below(sections.len());
    match random.below(10) {
        0..4 => {
            if let Some(section) = sections.get_mut(at) {
                let keep = random.below(8) != 0;
                change_bytes(section, keep);
            }
        }
        4..8 => {
            let Some(last) = sections.last_mut() else { return };
            match serde_json::from_slice::<Value>(last) {
                Ok(mut description) => {
                    change_json(&mut description, random);
                    *last = description.to_string().into_bytes();
                }
                Err(_) => change_bytes(last, false),
            }
        }
        8 if at < sections.len() => {
            // A number or two more or fewer.
            let section = &mut sections[at];
            let len = (section.len() + random.below(33)).saturating_sub(16);
            section.resize(len, random.next() as u8);
        }
        _ if random.below(2) == 0 => {
            sections.insert(at, vec![random.next() as u8; random.below(80)])
        }
        _ if at < sections.len() => _ = sections.remove(at),
        _ => {}
    }
}

fn change_bytes(section: &mut Vec<u8>, keep_len: bool) {
    let len = section.len();
    let room = len + 64;
    section.resize(room, 0);
    let changed = fuzzer_mutate(section, len, room);
    section.truncate(if keep_len { len } else { changed });
}

/// Changes one number, flag or name of a document, or takes out or repeats an entry of a list.
fn change_json(document: &mut Value, random: &mut Random) {
    let numbers: Vec<Value> = leaves(document).into_iter().map(|leaf| leaf.clone()).collect();
    if random.below(4) == 0 {
        let mut lists = lists(document);
        let at = random.below(lists.len());
        let Some(list) = lists.get_mut(at) else { return };
        let entry = random.below(list.len());
        match list.get(entry).cloned() {
            Some(value) if random.below(2) == 0 => list.insert(entry, value),
            Some(_) => _ = list.remove(entry),
            None => list.push(Value::from(random.below(4))),
        }
        return;
    }
    let mut leaves = leaves(document);
    let at = random.below(leaves.len());
    let Some(leaf) = leaves.get_mut(at) else { return };
    let old = leaf.as_u64().unwrap_or(0);
    **leaf = match random.below(8) {
        0 => Value::from(old.wrapping_add(1)),
        1 => Value::from(old.wrapping_sub(1)),
        2 => Value::from(old.wrapping_mul(2)),
        3 => Value::from(random.below(70)),
        4 => Value::from(1_u64 << random.below(64)),
        5 => Value::from((1_u64 << random.below(64)) - 1),
        6 => Value::from(random.next() >> random.below(64)),
        _ => numbers[random.below(numbers.len())].clone(),
    };
}

fn leaves(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(values) => values.iter_mut().flat_map(leaves).collect(),
        Value::Object(values) => values.values_mut().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

/// Lists, but not those within lists.
fn lists(value: &mut Value) -> Vec<&mut Vec<Value>> {
    match value {
        Value::Array(values) => vec![values],
        Value::Object(values) => values.values_mut().flat_map(lists).collect(),
        _ => Vec::new(),
    }
}
