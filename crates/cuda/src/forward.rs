//! Launches of a pass, in order: a table of contents.
//!
//! Sizes and work lists are read by the kernels, so the layers of all passes of a
//! [shape](PassShape) are one graph. In the last layer only keys and values are made for rows whose
//! logits nobody asks for.

use palmette_model::ModelConfig;

use crate::arguments::{
    Attention, EmbedNorm, HeadRows, Heads, HopperAttention, HopperProduct, Int8Product, Norm,
    PassSizes, Product, QuantizeRows,
};
use crate::pass::{PassShape, Share};
use crate::plan::{Layout, Memory, PAGE, Plan, SPLIT_ROWS, TILE};
use crate::request::RowKind;
use crate::sizes::runs;
use crate::weights::{Matrix, Weights};
use crate::{
    Address, Arguments, DeviceError, Driver, Kernel, KernelSet, Stream, TensorMap, Tiles, launch,
};

/// Everything that the launches of a pass name.
#[derive(Clone, Copy)]
pub(crate) struct Forward<'a> {
    pub(crate) driver: &'a dyn Driver,
    /// Stream of the launches.
    pub(crate) on: Stream,
    /// Number of the device's multiprocessors.
    pub(crate) multiprocessors: u32,
    pub(crate) kernels: KernelSet,
    pub(crate) config: &'a ModelConfig,
    pub(crate) weights: &'a Weights,
    pub(crate) plan: &'a Plan,
    pub(crate) memory: &'a Memory,
}

/// Blocks a multiprocessor: rows wait for memory, products for registers, those in 8 bits for
/// shared memory.
const ROW_BLOCKS: u32 = 4;
const INT8_BLOCKS: u32 = 2;

/// Rows that go through a part of a layer: how many there are and may be, whether they are few, and
/// where their residual stream, their attention and their norms are.
#[derive(Clone, Copy)]
struct RowSet {
    count: Address,
    most: usize,
    are_few: bool,
    x: Address,
    attended: Address,
    normed: Address,
}

/// Left side of a product.
#[derive(Clone, Copy)]
enum LeftSide {
    /// The norm of the rows that was made last.
    Normed,
    /// Rows of bfloat16.
    Rows(Address),
}

/// Places of a norm: bfloat16, or 8 bits and a factor a row. The others are null.
#[derive(Clone, Copy)]
struct NormPlaces {
    normed: Address,
    integers: Address,
    factors: Address,
}

/// Partial sums that a product leaves: what their reader makes of them.
#[derive(Clone, Copy)]
struct Sums {
    parts: i32,
    /// Factors of rows and of columns, where the sums are integers; null otherwise.
    row_factors: Address,
    column_factors: Address,
}

impl Forward<'_> {
    /// Layers over a pass of a shape, whose description is on the device. They leave the norms of
    /// the rows whose logits are wanted.
    pub(crate) fn layers(&self, shape: PassShape) -> Result<(), DeviceError> {
        let (s, memory, weights) = (&self.plan.sizes, self.memory, self.weights);
        let places = self.plan.places(shape.layout);
        let at = |place| memory.pass.address_at(place);
        let all = RowSet {
            count: at(places.sizes),
            most: self.plan.rows,
            are_few: shape.layout == Layout::Few,
            x: memory.x.address(),
            attended: memory.attended.address(),
            normed: memory.normed.address(),
        };
        let heads_only = RowSet {
            count: head_rows(all.count),
            most: self.plan.head_rows(),
            are_few: shape.has_few_heads,
            x: memory.head_x.address(),
            attended: memory.head_attended.address(),
            normed: memory.head_normed.address(),
        };
        let width = s.hidden as i32;
        let Some(first) = weights.layers.first() else { return Ok(()) };
        let NormPlaces { normed, integers, factors } = self.norm_places(all, Some(first.qkv));
        self.rows(
            Kernel::EmbedNorm,
            &EmbedNorm {
                rows: all.count,
                tokens: at(places.tokens),
                table: weights.embeddings,
                weight: first.attention_norm,
                x: all.x,
                normed,
                integers,
                factors,
                width,
                factor: self.config.architecture.embedding_scale,
                epsilon: self.config.rms_norm_eps,
            },
        )?;
        let (heads, merge) = match s.head_width {
            64 => (Kernel::Heads64, Kernel::MergeOwn64),
            _ => (Kernel::Heads128, Kernel::MergeOwn128),
        };
        for (index, layer) in weights.layers.iter().enumerate() {
            let pages = index * self.plan.layer_page_bytes();
            let keys = memory.keys.address_at(pages);
            let values = memory.values.address_at(pages);
            let own = memory.own.address_at(index * self.plan.layer_slot_bytes());

            let sums = self.sums(all, LeftSide::Normed, layer.qkv, s.qkv_width(), s.hidden)?;
            self.rows(
                heads,
                &Heads {
                    rows: all.count,
                    sums: memory.sums.address(),
                    row_factors: sums.row_factors,
                    column_factors: sums.column_factors,
                    bias: layer.qkv_bias,
                    query_norm: layer.query_norm,
                    key_norm: layer.key_norm,
                    cosines: weights.cosines,
                    sines: weights.sines,
                    positions: at(places.positions),
                    destinations: at(places.destinations),
                    queries: memory.queries.address(),
                    keys,
                    values,
                    own,
                    parts: sums.parts,
                    part_rows: SPLIT_ROWS as i32,
                    heads: s.heads as i32,
                    key_heads: s.key_heads as i32,
                    epsilon: self.config.rms_norm_eps,
                },
            )?;
            let attend = Attention {
                sizes: at(places.sizes),
                items: at(places.items),
                requests: at(places.requests),
                pages: at(places.pages),
                visible: at(places.visible),
                own_tokens: at(places.own_tokens),
                ancestors: at(places.ancestors),
                queries: memory.queries.address(),
                keys,
                values,
                own,
                sums: memory.attention_sums.address(),
                statistics: memory.attention_statistics.address(),
                out: memory.attended.address(),
                heads: s.heads as i32,
                key_heads: s.key_heads as i32,
                most_rows: places.merged as i32,
                scale: self.config.architecture.attention_scale(s.head_width)
                    * std::f32::consts::LOG2_E,
            };
            self.attend(&attend)?;
            self.rows(merge, &attend)?;
            let next = weights.layers.get(index + 1);
            let rows = if next.is_some() { all } else { heads_only };
            if next.is_none() {
                self.rows(
                    Kernel::HeadRows,
                    &HeadRows {
                        rows: rows.count,
                        taken: at(places.taken),
                        x: all.x,
                        heads: all.attended,
                        taken_x: rows.x,
                        taken_heads: rows.attended,
                        width,
                        heads_width: s.query_width() as i32,
                    },
                )?;
            }
            let (attended, out) = (LeftSide::Rows(rows.attended), layer.attention_out);
            let sums = self.sums(rows, attended, out, s.hidden, s.query_width())?;
            self.norm(rows, sums, layer.mlp_norm, Some(layer.gate_up))?;
            self.gated(rows, layer.gate_up)?;
            let inner = LeftSide::Rows(memory.inner.address());
            let sums = self.sums(rows, inner, layer.down, s.hidden, s.inner)?;
            let after = next.map_or(weights.final_norm, |next| next.attention_norm);
            self.norm(rows, sums, after, next.map(|next| next.qkv))?;
        }
        Ok(())
    }

    /// Keeps hidden states of a share's last rows for the reading, for other columns of the same
    /// row and for a draft head: its request has the place `index` in the pass.
    pub(crate) fn keep_rows(
        &self,
        layout: Layout,
        index: usize,
        share: &Share,
    ) -> Result<(), DeviceError> {
        let Some((_, first)) = share.kept() else { return Ok(()) };
        let (width, of) = (self.plan.sizes.hidden, &share.request.memory);
        let places = self.plan.places(layout);
        let at = |place| self.memory.pass.address_at(place);
        let kept = HeadRows {
            rows: at(places.counts + index * 4),
            taken: at(places.lasts + index * self.plan.kept_rows() * 4),
            x: self.memory.head_x.address(),
            heads: self.memory.head_normed.address(),
            taken_x: of.last_x.address_at(first * width * 4),
            taken_heads: of.last_normed.address_at(first * width * 2),
            width: width as i32,
            heads_width: width as i32,
        };
        self.rows(Kernel::HeadRows, &kept)
    }

    /// Logits of a share that the pass ends, and of those beside it: its request has the place
    /// `index` in the pass.
    pub(crate) fn logits(
        &self,
        layout: Layout,
        index: usize,
        share: &Share,
    ) -> Result<(), DeviceError> {
        let (s, of, columns) = (&self.plan.sizes, &share.request.memory, &share.request.columns);
        let places = self.plan.places(layout);
        let at = |place| self.memory.pass.address_at(place);
        let rows = at(places.counts + index * 4);
        let normed = self.memory.head_normed.address();
        let x = match share.request.kind {
            RowKind::Prompt => of.last_normed.address(),
            _ => Address(normed.0 + (share.head_row * s.hidden * 2) as u64),
        };
        let first_tile = columns.start / TILE;
        let tiles = columns.end.div_ceil(TILE) - first_tile;
        let row = share.request.logits_row;
        self.product(
            [Kernel::ProductLogits, Kernel::HopperProductLogits],
            share.product_rows,
            &Product {
                rows,
                x,
                w: self.weights.head,
                out: of.logits.address_at(row * columns.len() * 4),
                windows: at(places.windows + share.window * 4),
                statistics: of.logit_statistics.address_at(row * tiles * 8),
                n: s.vocab as i32,
                k: s.hidden as i32,
                runs: runs(s.vocab, s.hidden) as i32,
                first_tile: first_tile as i32,
                tiles: tiles as i32,
                columns: columns.len() as i32,
                ..no_product()
            },
        )
    }

    /// Partial sums of a product.
    fn sums(
        &self,
        rows: RowSet,
        x: LeftSide,
        w: Matrix,
        n: usize,
        k: usize,
    ) -> Result<Sums, DeviceError> {
        let runs = runs(n, k) as i32;
        let parts = if rows.are_few { runs } else { 1 };
        if let Some(factors) = w.factors {
            let product = Int8Product {
                out: self.memory.sums.address(),
                parts,
                ..self.int8_product(rows, x, w.rows, factors, [n, k])?
            };
            self.launch(Kernel::Int8Sums, INT8_BLOCKS, &product)?;
            let row_factors = product.x_factors;
            return Ok(Sums { parts, row_factors, column_factors: factors });
        }
        let product = Product {
            rows: rows.count,
            x: match x {
                LeftSide::Normed => rows.normed,
                LeftSide::Rows(x) => x,
            },
            w: w.rows,
            out: self.memory.sums.address(),
            n: n as i32,
            k: k as i32,
            runs,
            split: i32::from(rows.are_few),
            part_rows: SPLIT_ROWS as i32,
            ..no_product()
        };
        self.product([Kernel::ProductSums, Kernel::HopperProductSums], rows.most, &product)?;
        Ok(Sums { parts, row_factors: Address::NULL, column_factors: Address::NULL })
    }

    /// The gated product of normed rows with gate and up.
    fn gated(&self, rows: RowSet, w: Matrix) -> Result<(), DeviceError> {
        let (s, out) = (&self.plan.sizes, self.memory.inner.address());
        if let Some(factors) = w.factors {
            let sides = [2 * s.inner, s.hidden];
            let product = self.int8_product(rows, LeftSide::Normed, w.rows, factors, sides)?;
            let product = Int8Product { out, ..product };
            return self.launch(Kernel::Int8Swiglu, INT8_BLOCKS, &product);
        }
        let product = Product {
            rows: rows.count,
            x: rows.normed,
            w: w.rows,
            out,
            n: 2 * s.inner as i32,
            k: s.hidden as i32,
            // One run: its pairs are made in the registers of the product.
            runs: 1,
            ..no_product()
        };
        self.product([Kernel::ProductSwiglu, Kernel::HopperProductSwiglu], rows.most, &product)
    }

    /// A product in 8 bits with weights `[n, k]`, in one part and without a place for it. Rows of
    /// bfloat16 are rounded for it; norms are so already.
    fn int8_product(
        &self,
        rows: RowSet,
        x: LeftSide,
        w: Address,
        w_factors: Address,
        [n, k]: [usize; 2],
    ) -> Result<Int8Product, DeviceError> {
        let (integers, factors) = (self.memory.integers.address(), self.memory.factors.address());
        if let LeftSide::Rows(x) = x {
            let rounded = QuantizeRows { rows: rows.count, x, integers, factors, width: k as i32 };
            self.rows(Kernel::QuantizeRows, &rounded)?;
        }
        Ok(Int8Product {
            rows: rows.count,
            x: integers,
            w,
            x_factors: factors,
            w_factors,
            out: Address::NULL,
            n: n as i32,
            k: k as i32,
            parts: 1,
            part_rows: SPLIT_ROWS as i32,
        })
    }

    /// A product by the portable kernel or by Hopper's; `most` bounds the rows that `x` has.
    pub(crate) fn product(
        &self,
        [portable, hopper]: [Kernel; 2],
        most: usize,
        product: &Product,
    ) -> Result<(), DeviceError> {
        if self.kernels == KernelSet::Portable {
            return self.launch(portable, 1, product);
        }
        let (n, k) = (product.n as usize, product.k as usize);
        let x_tiles = self.tiles(product.x, [most, k], TILE)?;
        let w_tiles = self.tiles(product.w, [n, k], TILE)?;
        self.launch(hopper, 1, &HopperProduct { x_tiles, w_tiles, product: *product })
    }

    /// Attention to the pages of prompts.
    fn attend(&self, attend: &Attention) -> Result<(), DeviceError> {
        let (s, width) = (&self.plan.sizes, self.plan.sizes.head_width);
        let [portable, hopper] = match width {
            64 => [Kernel::PromptAttention64, Kernel::HopperPromptAttention64],
            _ => [Kernel::PromptAttention128, Kernel::HopperPromptAttention128],
        };
        if self.kernels == KernelSet::Portable {
            return self.launch(portable, 1, attend);
        }
        let heads = self.plan.pages * s.key_heads;
        let key_tiles = self.tiles(attend.keys, [heads * PAGE, width], PAGE)?;
        let value_tiles = self.tiles(attend.values, [heads * width, PAGE], width)?;
        self.launch(hopper, 1, &HopperAttention { key_tiles, value_tiles, attention: *attend })
    }

    fn tiles(
        &self,
        address: Address,
        [rows, columns]: [usize; 2],
        box_rows: usize,
    ) -> Result<TensorMap, DeviceError> {
        let (rows, columns, box_rows) = (rows as u64, columns as u64, box_rows as u32);
        self.driver.tensor_map(&Tiles { address, rows, columns, box_rows })
    }

    /// Places of a norm in the form that its reader multiplies with; the head, which is none of the
    /// layers' matrices, reads bfloat16.
    fn norm_places(&self, rows: RowSet, reader: Option<Matrix>) -> NormPlaces {
        let memory = self.memory;
        match reader.and_then(|reader| reader.factors) {
            None => {
                NormPlaces { normed: rows.normed, integers: Address::NULL, factors: Address::NULL }
            }
            Some(_) => NormPlaces {
                normed: Address::NULL,
                integers: memory.integers.address(),
                factors: memory.factors.address(),
            },
        }
    }

    /// Adds a product's sums to the residual stream and norms it, for the matrix that multiplies
    /// the norm next.
    fn norm(
        &self,
        rows: RowSet,
        sums: Sums,
        weight: Address,
        reader: Option<Matrix>,
    ) -> Result<(), DeviceError> {
        let NormPlaces { normed, integers, factors } = self.norm_places(rows, reader);
        self.rows(
            Kernel::NormRows,
            &Norm {
                rows: rows.count,
                sums: self.memory.sums.address(),
                row_factors: sums.row_factors,
                column_factors: sums.column_factors,
                weight,
                x: rows.x,
                normed,
                integers,
                factors,
                width: self.plan.sizes.hidden as i32,
                parts: sums.parts,
                part_rows: SPLIT_ROWS as i32,
                epsilon: self.config.rms_norm_eps,
            },
        )
    }

    pub(crate) fn rows<A: Arguments>(
        &self,
        kernel: Kernel,
        arguments: &A,
    ) -> Result<(), DeviceError> {
        self.launch(kernel, ROW_BLOCKS, arguments)
    }

    fn launch<A: Arguments>(
        &self,
        kernel: Kernel,
        blocks: u32,
        arguments: &A,
    ) -> Result<(), DeviceError> {
        let grid = [self.multiprocessors * blocks, 1, 1];
        launch(self.driver, self.on, kernel, grid, arguments)
    }
}

/// Address of the number of rows whose logits are wanted, beside that of all rows.
fn head_rows(sizes: Address) -> Address {
    let field = PassSizes::FIELDS.iter().find(|field| field.name == "head_rows");
    Address(sizes.0 + field.map_or(0, |field| field.offset as u64))
}

pub(crate) fn no_product() -> Product {
    Product {
        rows: Address::NULL,
        x: Address::NULL,
        w: Address::NULL,
        out: Address::NULL,
        windows: Address::NULL,
        statistics: Address::NULL,
        n: 0,
        k: 0,
        runs: 1,
        split: 0,
        part_rows: 0,
        first_tile: 0,
        tiles: 0,
        columns: 0,
        whole: 0,
    }
}
