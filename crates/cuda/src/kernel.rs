//! Kernels: each with its threads, its shared memory and the struct that it takes.

use crate::arguments::{
    Arguments, Attention, BeamRows, BitMask, CallerLevel, DraftStates, EmbedNorm, HeadRows, Heads,
    HopperAttention, HopperProduct, Int8Product, Norm, Product, QuantizeRows, RowMasks, RowSums,
    Select,
};

/// A file of kernels, compiled and loaded as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Module {
    /// `product_portable.cu`
    Product,
    /// `product_hopper.cu`
    HopperProduct,
    /// `int8.cu`
    Int8,
    /// `rows.cu`
    Rows,
    /// `attention_portable.cu`
    Attention,
    /// `attention_hopper.cu`
    HopperAttention,
    /// `select.cu`
    Select,
    /// `masks.cu`
    Masks,
    /// `draft.cu`
    Draft,
}

impl Module {
    /// Modules, all of them.
    pub const ALL: [Self; 9] = [
        Self::Product,
        Self::HopperProduct,
        Self::Int8,
        Self::Rows,
        Self::Attention,
        Self::HopperAttention,
        Self::Select,
        Self::Masks,
        Self::Draft,
    ];

    /// Name of the file without its ending.
    pub fn name(self) -> &'static str {
        match self {
            Self::Product => "product_portable",
            Self::HopperProduct => "product_hopper",
            Self::Int8 => "int8",
            Self::Rows => "rows",
            Self::Attention => "attention_portable",
            Self::HopperAttention => "attention_hopper",
            Self::Select => "select",
            Self::Masks => "masks",
            Self::Draft => "draft",
        }
    }

    /// True where it has instructions of Hopper, which no other device has: newer ones neither.
    pub fn is_of_hopper(self) -> bool {
        matches!(self, Self::HopperProduct | Self::HopperAttention)
    }
}

/// Tiles of a product, and stages of them in shared memory.
const PRODUCT_SHARED: usize = 3 * (128 + 128) * 64 * 2;

/// Tiles of a product in 8 bits, and stages of them in shared memory.
const INT8_SHARED: usize = 3 * (128 + 128) * 128;

/// Stages of tiles, and their barriers, of Hopper's product.
const HOPPER_PRODUCT_SHARED: usize = 6 * (128 + 128) * 64 * 2 + 1024;

/// Bytes of queries of 128 rows and of two pages of 64 keys and values.
const fn attention_shared(head_width: usize) -> usize {
    (128 * head_width + 2 * 2 * 64 * head_width) * 2
}

/// Bytes of four stages of a page's keys and values, and of their barriers, of Hopper's attention.
const fn hopper_attention_shared(head_width: usize) -> usize {
    4 * 2 * 64 * head_width * 2 + 1024
}

/// Kernels of products and of attention: sets whose results have the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelSet {
    /// For every device.
    Portable,
    /// For Hopper, by its own instructions.
    Hopper,
}

impl KernelSet {
    /// The fastest set that a device of this compute capability has.
    pub fn of_capability((major, _): (u32, u32)) -> Self {
        if major == 9 { Self::Hopper } else { Self::Portable }
    }
}

macro_rules! kernels {
    ($($kernel:ident: $name:ident, $module:ident, $arguments:ident, $threads:expr, $shared:expr;)*) => {
        /// A kernel, by its number in the emulation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "kernels are documented in their files")]
        pub enum Kernel { $($kernel),* }

        impl Kernel {
            /// Kernels, all of them, in order.
            pub const ALL: &[Self] = &[$(Self::$kernel),*];

            /// Name of its symbol.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kernel => stringify!($name)),* }
            }

            /// The file that has it.
            pub fn module(self) -> Module {
                match self { $(Self::$kernel => Module::$module),* }
            }

            /// Threads of a block.
            pub fn threads(self) -> u32 {
                match self { $(Self::$kernel => $threads),* }
            }

            /// Bytes of shared memory of a block.
            pub fn shared_bytes(self) -> usize {
                match self { $(Self::$kernel => $shared),* }
            }

            /// Name and bytes of the struct that it takes.
            pub fn arguments(self) -> (&'static str, usize) {
                match self {
                    $(Self::$kernel => ($arguments::NAME, $arguments::BYTES)),*
                }
            }
        }
    };
}

kernels! {
    ProductSums: product_sums, Product, Product, 256, PRODUCT_SHARED;
    ProductAdd: product_add, Product, Product, 256, PRODUCT_SHARED;
    ProductBf16: product_bf16, Product, Product, 256, PRODUCT_SHARED;
    ProductSwiglu: product_swiglu, Product, Product, 256, PRODUCT_SHARED;
    ProductLogits: product_logits, Product, Product, 256, PRODUCT_SHARED;
    HopperProductSums: hopper_product_sums, HopperProduct, HopperProduct, 384, HOPPER_PRODUCT_SHARED;
    HopperProductAdd: hopper_product_add, HopperProduct, HopperProduct, 384, HOPPER_PRODUCT_SHARED;
    HopperProductBf16: hopper_product_bf16, HopperProduct, HopperProduct, 384, HOPPER_PRODUCT_SHARED;
    HopperProductSwiglu: hopper_product_swiglu, HopperProduct, HopperProduct, 384, HOPPER_PRODUCT_SHARED;
    HopperProductLogits: hopper_product_logits, HopperProduct, HopperProduct, 384, HOPPER_PRODUCT_SHARED;
    QuantizeRows: quantize_rows, Int8, QuantizeRows, 256, 0;
    Int8Sums: int8_sums, Int8, Int8Product, 256, INT8_SHARED;
    Int8Swiglu: int8_swiglu, Int8, Int8Product, 256, INT8_SHARED;
    EmbedNorm: embed_norm, Rows, EmbedNorm, 256, 0;
    NormRows: norm_rows, Rows, Norm, 256, 0;
    Heads64: heads_64, Rows, Heads, 256, 0;
    Heads128: heads_128, Rows, Heads, 256, 0;
    HeadRows: head_rows, Rows, HeadRows, 256, 0;
    RowSums: row_sums, Rows, RowSums, 256, 128;
    PromptAttention64: prompt_attention_64, Attention, Attention, 256, attention_shared(64);
    PromptAttention128: prompt_attention_128, Attention, Attention, 256, attention_shared(128);
    HopperPromptAttention64: hopper_prompt_attention_64, HopperAttention, HopperAttention, 384, hopper_attention_shared(64);
    HopperPromptAttention128: hopper_prompt_attention_128, HopperAttention, HopperAttention, 384, hopper_attention_shared(128);
    MergeOwn64: merge_own_64, Attention, Attention, 256, 0;
    MergeOwn128: merge_own_128, Attention, Attention, 256, 0;
    ClearStep: clear_step, Select, Select, 256, 0;
    AllowedCodes: allowed_codes, Select, Select, 256, 4 * (256 + 8 + 24);
    RowScores: row_scores, Select, Select, 256, 4 * (8 + 4096 + 24);
    PickBin: pick_bin, Select, Select, 1024, 128;
    KeepCandidates: keep_candidates, Select, Select, 256, 0;
    SortBest: sort_best, Select, Select, 1024, 8 * 4096 + 4 * 256 + 8 + 4 * (2 + 28);
    Advance: advance, Select, Select, 256, 0;
    ContinueBeams: continue_beams, Select, BeamRows, 256, 0;
    BeginLevel: begin_level, Select, CallerLevel, 256, 0;
    WriteBeams: write_beams, Select, CallerLevel, 256, 0;
    ApplyBitmask: apply_bitmask, Masks, BitMask, 256, 0;
    MaskRows16: mask_rows_16, Masks, RowMasks, 256, 0;
    MaskRows32: mask_rows_32, Masks, RowMasks, 256, 0;
    DraftStates: draft_states, Draft, DraftStates, 256, 0;
}
