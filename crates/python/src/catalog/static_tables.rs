//! The tables of STATIC (Sparse Transition-Accelerated Trie Index): a prefix tree as arrays, for
//! decoders on an accelerator.
//!
//! Letters: V tokens, L codes of a semantic ID, S states, E edges. State 0 ends an ID; the prefix
//! of one token `t` is state `t + 1`; longer prefixes of fewer than L tokens are numbered from V +
//! 1, a level after the other, each in sorted order. An edge goes from a prefix of one token or
//! more over a token; edges are sorted by the state that they leave.
//!
//! Source: STATIC, arXiv 2602.22647, §4.2, and the arrays that its published index has. We differ:
//! rows come in any order, and what it takes and gets wrong (tokens past the vocabulary, IDs of
//! several lengths) is an error here.

use palmette_catalog::readers::ItemSink;
use palmette_catalog::{BuildOptions, Catalog, CatalogBuilder};

use super::codes::IntMatrix;

/// All arrays, in the order in which STATIC returns them.
#[derive(Debug, PartialEq)]
pub(crate) struct StaticTables {
    /// `[E + V, 2]`: token and next state of each edge, then V times (V, 0).
    pub(crate) packed_csr: Vec<i32>,
    /// `[S + 2]`: where the edges of each state begin; then E, and E + V.
    pub(crate) indptr: Vec<i32>,
    /// `[L]`: most tokens that follow a prefix of each length.
    pub(crate) layer_max_branches: Vec<i64>,
    /// `[V]`: the tokens that an ID may begin with.
    pub(crate) start_mask: Vec<bool>,
    /// `[V; d]`: the prefixes of d tokens.
    pub(crate) dense_mask: Vec<bool>,
    /// `[V; d]`: their states.
    pub(crate) dense_states: Vec<i32>,
}

/// Entries of the dense tables, at most: 5 bytes each.
const MAX_DENSE: usize = 1 << 30;

impl StaticTables {
    /// The tables of a catalog whose code `c` is token `c`. `Err`: the rule that is broken.
    pub(crate) fn of(
        catalog: &Catalog,
        num_tokens: usize,
        num_levels: usize,
        num_dense: usize,
    ) -> Result<Self, String> {
        if num_dense == 0 || num_dense >= num_levels {
            return Err(format!(
                "dense_lookup_layers is {num_dense}; of IDs of {num_levels} codes, 1 to {} can be dense",
                num_levels.saturating_sub(1)
            ));
        }
        let dense = u32::try_from(num_dense).ok().and_then(|power| num_tokens.checked_pow(power));
        let Some(num_keys) = dense.filter(|&keys| keys <= MAX_DENSE) else {
            return Err(format!(
                "{num_tokens} tokens to the power of {num_dense} dense layers are more entries than {MAX_DENSE}; take fewer \
                 layers, or a vocabulary of the codes alone"
            ));
        };
        let mut tables = Self {
            packed_csr: Vec::new(),
            indptr: Vec::new(),
            layer_max_branches: vec![0; num_levels],
            start_mask: vec![false; num_tokens],
            dense_mask: vec![false; num_keys],
            dense_states: vec![0; num_keys],
        };
        let ids = distinct_ids(catalog, num_tokens, num_levels)?;
        let ids: Vec<&[u32]> = ids.chunks_exact(num_levels).collect();
        let is_new =
            |row: usize, level: usize| row == 0 || ids[row][..=level] != ids[row - 1][..=level];
        // The state of each row's prefix, a level after the other.
        let mut states: Vec<u32> = ids.iter().map(|id| id[0] + 1).collect();
        ids.iter().for_each(|id| tables.start_mask[id[0] as usize] = true);
        let starts = tables.start_mask.iter().filter(|&&starts| starts).count();
        tables.layer_max_branches[0] = starts as i64;
        let mut next_state = num_tokens as u64 + 1;
        let mut leaving = vec![0_u32; num_tokens + 1];
        for level in 1..num_levels {
            if level == num_dense {
                tables.fill_dense(&ids, &states, num_tokens, num_dense);
            }
            let is_last = level + 1 == num_levels;
            let (mut most, mut last) = (0, 0);
            for (row, id) in ids.iter().enumerate() {
                if is_new(row, level) {
                    let from = states[row];
                    leaving[from as usize] += 1;
                    most = most.max(leaving[from as usize]);
                    last = if is_last { 0 } else { next_state as u32 };
                    next_state += u64::from(!is_last);
                    tables.packed_csr.extend([id[level] as i32, last as i32]);
                }
                states[row] = last;
            }
            tables.layer_max_branches[level] = i64::from(most);
            if next_state + num_tokens as u64 + tables.packed_csr.len() as u64 / 2 > i32::MAX as u64
            {
                return Err("states and edges do not fit into 32 bits".into());
            }
            leaving.resize(next_state as usize, 0);
        }
        let mut edges = 0;
        tables.indptr.push(0);
        for count in leaving {
            edges += count;
            tables.indptr.push(edges as i32);
        }
        tables.indptr.push(edges as i32 + num_tokens as i32);
        for _ in 0..num_tokens {
            tables.packed_csr.extend([num_tokens as i32, 0]);
        }
        Ok(tables)
    }

    /// Enters the states of prefixes of as many tokens as are dense.
    fn fill_dense(&mut self, ids: &[&[u32]], states: &[u32], num_tokens: usize, num_dense: usize) {
        for (id, &state) in ids.iter().zip(states) {
            let prefix = id[..num_dense].iter();
            let key = prefix.fold(0, |key, &token| key * num_tokens + token as usize);
            self.dense_mask[key] = true;
            self.dense_states[key] = state as i32;
        }
    }
}

/// The semantic IDs in order, each once, one after another.
fn distinct_ids(
    catalog: &Catalog,
    num_tokens: usize,
    num_levels: usize,
) -> Result<Vec<u32>, String> {
    let mut ids: Vec<u32> = Vec::with_capacity(catalog.num_items() as usize * num_levels);
    for rank in 0..catalog.num_items() {
        let codes = catalog.codes(rank);
        if codes.len() != num_levels {
            let (id, len) = (catalog.id(rank), codes.len());
            return Err(format!(
                "item {id:?} has {len} codes where others have {num_levels}; the tables are of IDs of one length"
            ));
        }
        if let Some(level) = codes.iter().position(|&code| code as usize >= num_tokens) {
            let (id, code) = (catalog.id(rank), codes[level]);
            return Err(format!(
                "item {id:?} has code {code} at level {level}; with vocab_size={num_tokens}, codes are below that"
            ));
        }
        // Neighbours may be equal: items that share an ID.
        if !ids.ends_with(&codes) {
            ids.extend(codes);
        }
    }
    Ok(ids)
}

/// The catalog of tables: items are numbered in the order of their IDs. `Err`: the rule that is
/// broken.
pub(crate) fn catalog_of(
    packed_csr: &IntMatrix,
    indptr: &IntMatrix,
    starts: &IntMatrix,
    num_levels: usize,
) -> Result<Catalog, String> {
    if num_levels == 0 || packed_csr.num_columns() != 2 {
        return Err(
            "packed_csr has two columns, token and state, and num_levels is 1 or more".into()
        );
    }
    // Prefixes of one length: their tokens, one after another, and their states.
    let mut tokens: Vec<u32> = Vec::new();
    let mut states: Vec<i64> = Vec::new();
    for at in 0..starts.num_rows() {
        let token = starts.get(at, 0);
        tokens.push(token as u32);
        states.push(token + 1);
    }
    for level in 1..num_levels {
        let (mut next_tokens, mut next_states) = (Vec::new(), Vec::new());
        for (at, &state) in states.iter().enumerate() {
            let bounds =
                usize::try_from(state).ok().filter(|&s| s > 0 && s + 1 < indptr.num_rows());
            let Some(place) = bounds else {
                return Err(format!(
                    "state {state} at level {level} is none of {}",
                    indptr.num_rows()
                ));
            };
            let (begin, end) = (indptr.get(place, 0), indptr.get(place + 1, 0));
            let edges = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
            let edges = edges.filter(|&(begin, end)| begin <= end && end <= packed_csr.num_rows());
            let Some((begin, end)) = edges else {
                return Err(format!(
                    "state {state} has edges {begin} to {end} of {}",
                    packed_csr.num_rows()
                ));
            };
            for edge in begin..end {
                let token = packed_csr.get(edge, 0);
                let Ok(token) = u32::try_from(token) else {
                    return Err(format!("edge {edge} has token {token}"));
                };
                next_tokens.extend_from_slice(&tokens[at * level..(at + 1) * level]);
                next_tokens.push(token);
                next_states.push(packed_csr.get(edge, 1));
            }
            if next_states.len() > packed_csr.num_rows() {
                return Err(
                    "states are reached on several ways; a prefix tree has one to each".into()
                );
            }
        }
        (tokens, states) = (next_tokens, next_states);
    }
    let options = BuildOptions { num_levels: Some(num_levels), ..BuildOptions::default() };
    let mut builder = CatalogBuilder::new(options).map_err(|error| error.to_string())?;
    for (row, codes) in tokens.chunks_exact(num_levels).enumerate() {
        let pushed = builder.push(row as u64 + 1, row.to_string(), codes, Default::default());
        pushed.map_err(|error| error.to_string())?;
    }
    builder.finish(None, |_| {}).map_err(|error| error.to_string())
}
