//! Arguments of kernels: structs laid out as C++ has them, written as bytes without unsafe code.
//!
//! The structs that a kernel takes are aligned to 64 bytes; the others lie in device memory. Fields
//! are documented beside the kernels (`kernels/*.cu`), and a test compares every offset with the
//! compiler's there.

use crate::{Address, TensorMap};

/// A struct as a kernel reads it.
pub trait Arguments: Copy {
    /// Name in C++.
    const NAME: &'static str;
    /// Bytes, padding included.
    const BYTES: usize;
    /// Alignment in bytes.
    const ALIGNMENT: usize;
    /// Fields in order.
    const FIELDS: &'static [Field];

    /// Writes its bytes; what pads it stays.
    ///
    /// # Panics
    /// When `to` is shorter than [`BYTES`](Self::BYTES).
    fn write(&self, to: &mut [u8]);
}

/// A field of a struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in both languages.
    pub name: &'static str,
    /// Bytes from the beginning of the struct.
    pub offset: usize,
    /// Bytes of the field.
    pub bytes: usize,
}

/// Bytes of structs, one after another, as an array in device memory has them.
pub fn array_bytes<A: Arguments>(items: &[A]) -> Vec<u8> {
    let mut bytes = vec![0; items.len() * A::BYTES];
    for (item, to) in items.iter().zip(bytes.chunks_exact_mut(A::BYTES)) {
        item.write(to);
    }
    bytes
}

/// A number, an address, a map or a struct in a struct.
trait Scalar: Copy {
    fn write(self, to: &mut [u8]);
}
impl Scalar for i32 {
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }
}
impl Scalar for u32 {
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }
}
impl Scalar for f32 {
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.to_le_bytes());
    }
}
impl Scalar for Address {
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.0.to_le_bytes());
    }
}

impl Scalar for TensorMap {
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.0);
    }
}
impl Scalar for Product {
    fn write(self, to: &mut [u8]) {
        Arguments::write(&self, to);
    }
}
impl Scalar for Attention {
    fn write(self, to: &mut [u8]) {
        Arguments::write(&self, to);
    }
}

macro_rules! structs {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug)]
            #[allow(missing_docs, reason = "fields are documented beside the kernels")]
            pub struct $name { $(pub $field: $type,)* }

            impl Arguments for $name {
                const NAME: &'static str = stringify!($name);
                const BYTES: usize = size_of::<Self>();
                const ALIGNMENT: usize = align_of::<Self>();
                const FIELDS: &'static [Field] = &[$(Field {
                    name: stringify!($field),
                    offset: std::mem::offset_of!(Self, $field),
                    bytes: size_of::<$type>(),
                }),*];

                fn write(&self, to: &mut [u8]) {
                    $(
                        let at = std::mem::offset_of!(Self, $field);
                        Scalar::write(self.$field, &mut to[at..at + size_of::<$type>()]);
                    )*
                }
            }
        )*

        /// Layouts of all structs: name, bytes, alignment and fields.
        pub const LAYOUTS: &[(&str, usize, usize, &[Field])] = &[
            $(($name::NAME, $name::BYTES, $name::ALIGNMENT, $name::FIELDS)),*
        ];
    };
}

structs! {
    /// Sizes of a pass, read by its kernels from device memory.
    #[repr(C)]
    PassSizes { rows: i32, head_rows: i32, items: i32, merge_rows: i32, first_merge: i32, }

    /// Arguments of the products: `kernels/product.cuh`.
    #[repr(C, align(64))]
    Product {
        rows: Address, x: Address, w: Address, out: Address, windows: Address, statistics: Address,
        n: i32, k: i32, runs: i32, split: i32, part_rows: i32, first_tile: i32, tiles: i32,
        columns: i32, whole: i32,
    }

    /// Arguments of Hopper's products: `kernels/product_hopper.cu`.
    #[repr(C, align(64))]
    HopperProduct { x_tiles: TensorMap, w_tiles: TensorMap, product: Product, }

    /// Arguments of `quantize_rows`: `kernels/int8.cu`.
    #[repr(C, align(64))]
    QuantizeRows {
        rows: Address, x: Address, integers: Address, factors: Address, width: i32,
    }

    /// Arguments of the products in 8 bits: `kernels/int8.cu`.
    #[repr(C, align(64))]
    Int8Product {
        rows: Address, x: Address, w: Address, x_factors: Address, w_factors: Address,
        out: Address, n: i32, k: i32, parts: i32, part_rows: i32,
    }

    /// Arguments of `embed_norm`: `kernels/rows.cu`.
    #[repr(C, align(64))]
    EmbedNorm {
        rows: Address, tokens: Address, table: Address, weight: Address, x: Address,
        normed: Address, integers: Address, factors: Address, width: i32, factor: f32,
        epsilon: f32,
    }

    /// Arguments of `norm_rows`: `kernels/rows.cu`.
    #[repr(C, align(64))]
    Norm {
        rows: Address, sums: Address, row_factors: Address, column_factors: Address,
        weight: Address, x: Address, normed: Address, integers: Address, factors: Address,
        width: i32, parts: i32, part_rows: i32, epsilon: f32,
    }

    /// Arguments of `heads_64` and `heads_128`: `kernels/rows.cu`.
    #[repr(C, align(64))]
    Heads {
        rows: Address, sums: Address, row_factors: Address, column_factors: Address, bias: Address,
        query_norm: Address, key_norm: Address, cosines: Address, sines: Address,
        positions: Address, destinations: Address, queries: Address, keys: Address,
        values: Address, own: Address, parts: i32, part_rows: i32, heads: i32, key_heads: i32,
        epsilon: f32,
    }

    /// Arguments of `head_rows`: `kernels/rows.cu`.
    #[repr(C, align(64))]
    HeadRows {
        rows: Address, taken: Address, x: Address, heads: Address, taken_x: Address,
        taken_heads: Address, width: i32, heads_width: i32,
    }

    /// Arguments of `row_sums`: `kernels/rows.cu`.
    #[repr(C, align(64))]
    RowSums { rows: Address, statistics: Address, normalisers: Address, tiles: i32, }

    /// A tile of attention to prompts: `kernels/attention.cuh`.
    #[repr(C)]
    AttentionItem { request: i32, key_head: i32, first_row: i32, run: i32, }

    /// A request of a pass: `kernels/attention.cuh`.
    #[repr(C)]
    AttentionRequest { first_row: i32, rows: i32, first_page: i32, }

    /// Arguments of the kernels of attention: `kernels/attention.cuh`.
    #[repr(C, align(64))]
    Attention {
        sizes: Address, items: Address, requests: Address, pages: Address, visible: Address,
        own_tokens: Address, ancestors: Address, queries: Address, keys: Address, values: Address,
        own: Address, sums: Address, statistics: Address, out: Address, heads: i32, key_heads: i32,
        most_rows: i32, scale: f32,
    }

    /// Arguments of Hopper's attention to prompts: `kernels/attention_hopper.cu`.
    #[repr(C, align(64))]
    HopperAttention { key_tiles: TensorMap, value_tiles: TensorMap, attention: Attention, }

    /// A row's ranks in a segment: `kernels/select.cu`.
    #[repr(C)]
    Range { begin: u32, end: u32, key: u32, }

    /// A set of ranks of a segment: `kernels/select.cu`.
    #[repr(C)]
    Filter { bits: Address, before: Address, excluded: Address, num_excluded: i32, }

    /// Codes of a level of a segment: `kernels/select.cu`.
    #[repr(C)]
    Level {
        codes: Address, masks: Address, starts: Address, begin_bits: Address,
        begin_counts: Address, wide: i32,
    }

    /// An extension of a beam, as selection writes it: `kernels/extension.cuh`.
    #[repr(C)]
    Extension { score: f32, parent: u32, code: u32, }

    /// A search of a step of selection: `kernels/select.cu`.
    #[repr(C, align(16))]
    Search {
        logits: Address, scores: Address, positions: Address, levels: Address, filters: Address,
        live: Address, masks: Address, normalisers: Address, histogram: Address, state: Address,
        candidates: Address, best: Address, next: Address, next_scores: Address, rows: i32,
        segments: i32, codes: i32, columns: i32, first: i32, width: i32, capacity: i32,
        normalised: i32, floor: f32,
    }

    /// Arguments of the kernels of selection: `kernels/select.cu`.
    #[repr(C, align(64))]
    Select { searches: Address, }

    /// Arguments of `begin_level` and `write_beams`: `kernels/select.cu`.
    #[repr(C, align(64))]
    CallerLevel {
        searches: Address, logits: Address, scores: Address, positions: Address, levels: Address,
        filters: Address, found: Address, tokens: Address, masks: Address, normalisers: Address,
        histogram: Address, state: Address, candidates: Address, best: Address, next: Address,
        next_scores: Address, next_tokens: Address, parents: Address, requests: i32, rows: i32,
        segments: i32, codes: i32, columns: i32, width: i32, level: i32, first: i32,
        own_filters: i32, normalised: i32, floor: f32,
    }

    /// Arguments of `continue_beams`: `kernels/select.cu`.
    #[repr(C, align(64))]
    BeamRows {
        extensions: Address, count: Address, ancestors: Address, next_ancestors: Address,
        tokens: Address, pass_ancestors: Address, rows: i32, passes: i32, most_rows: i32,
        pass_rows: i32, first_token: i32, first_slot: i32,
    }

    /// Arguments of `apply_bitmask`: `kernels/masks.cu`.
    #[repr(C, align(64))]
    BitMask {
        rows: Address, masks_of: Address, masks: Address, logits: Address, columns: i32, words: i32,
    }

    /// Arguments of `mask_rows_16` and `mask_rows_32`: `kernels/masks.cu`.
    #[repr(C, align(64))]
    RowMasks {
        rows: Address, masks_of: Address, masks: Address, logits: Address, count: i32,
        num_rows: i32, num_masks: i32, columns: i32, words: i32, row_stride: i32, mask_stride: i32,
        infinity: u32,
    }

    /// Arguments of `draft_states`: `kernels/draft.cu`.
    #[repr(C, align(64))]
    DraftStates {
        rows: Address, extensions: Address, sums: Address, before: Address, codes: Address,
        hidden: Address, states: Address, inputs: Address, width: i32, parts: i32, part_rows: i32,
        squashes: i32,
    }
}
